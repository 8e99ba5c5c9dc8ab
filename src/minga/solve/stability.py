"""Stable steps of explicit methods, found from the derivatives of the rates by each cell that they read.

By Gershgorin's theorem no eigenvalue of the linearised rates exceeds the sum of a row's absolute entries. The entries
are expressions of the kernel language (`minga.derivative`), so that the sums are one more kernel and reductions. The
part of a row that belongs to the field itself has real eigenvalues where it is even in the offset and coefficients are
constant, such as diffusion, and imaginary ones where it is odd, such as advection. The part that belongs to other
fields may have either: reactions and cross diffusion, or waves. Conditions of higher order at walls widen the spectrum.
Uniform states may turn and grow by what happens within cells, which steps have to resolve
(`minga.solve.symbols_of_rates`).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import KernelError
from minga.lang.expr import Node, as_node, where
from minga.lang.functions import max as largest
from minga.solve.closures import widening
from minga.solve.integrators import Integrator
from minga.solve.rates import Rates, most, rates_kernel
from minga.solve.row_entries import Entries, row_entries
from minga.solve.symbols_of_rates import alternating, uniform
from minga.space.field import TIME, Field
from minga.space.layout import Layout

__all__ = ["Bounds", "largest_rates", "resolved_step", "stable_step"]

_GROWTH: Final = 0.3
"""Largest logarithm of the growth of uniform states within a step that is chosen."""
_WORDS: Final = ("even", "odd", "cross", "ratio", "turning", "growing", "backwards")
_MOST: Final = 1 << 20
"""Most operations of a rate that is derived: no limit in practice, as this is done once."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the eigenvalues of linearised rates, in one over the unit of time.

    Attributes
    ----------
    even, odd
        The part by which a field acts on itself: even and odd in the offset.
    cross
        The part by which fields act on one another.
    ratio
        The largest sum over the axes of the square of all that may be imaginary, beyond the cell itself, over the even
        part along the axis; infinite where no even part is beside it.
    turning, growing
        How fast uniform states turn where they are not damped as fast, and how fast they grow.
    backwards
        How fast the shortest waves of the grid grow where they grow faster than the longest ones.
    """

    even: float
    odd: float
    cross: float
    ratio: float
    turning: float = 0.0
    growing: float = 0.0
    backwards: float = 0.0

    @property
    def total(self) -> float:
        """A bound of all eigenvalues."""
        return self.even + self.odd + self.cross


def largest_rates(rates: Rates, fields: Sequence[Field], values: Mapping[str, Any]) -> Bounds | None:
    """Return bounds of the eigenvalues of the rates, linearised at given values of the fields.

    Parameters
    ----------
    rates
        The rates of change.
    fields
        The fields.
    values
        Values of the fields and of the constants of the rates by name, as `minga.Model` takes them.

    Returns
    -------
    Bounds or None
        The bounds; None if a rate has no derivative, or they are not finite.
    """
    reach: dict[tuple[int, int], int] = {}

    def compute(state: list[Any], constants: list[Any], **scalars: Any) -> dict[str, Any]:
        found = rates.function(state, constants, TIME, **scalars)
        entries = [row_entries(as_node(value), range(len(state)), _MOST) for value in found]
        rows = [_row(each, number) for number, each in enumerate(entries)]
        for number, row in enumerate(rows):
            reach.update({(number, axis): cells for axis, cells in row.reach.items()})
        turning, growing = uniform(entries)
        backwards = most([alternating(each, number) for number, each in enumerate(entries)])
        sums = [most([getattr(row, word) for row in rows]) for word in _WORDS[:4]]
        return dict(zip(_WORDS, map(largest, (*sums, turning, growing, backwards)), strict=True))

    program = Program("limit")
    kernel = rates_kernel(compute, "limit", rates, step=False)
    try:
        rates.ready(program, [item.now for item in fields])
        with program.unchecked():
            found: Any = program.apply(kernel, list(fields), rates.constants, **rates.scalars)
    except KernelError:
        return None
    grid = fields[0].grid
    with Engine(Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        for item in (*fields, *rates.constants):
            engine.set(item, values.get(item.name, 0.0))
        if not engine.run(program).ok:
            return None
        known = {word: float(engine.read(vars(found)[word])) for word in _WORDS}
    if not all(math.isfinite(value) for word, value in known.items() if word != "ratio"):
        return None
    wider, turned = widening(fields, reach)
    even, odd, cross = known["even"], known["odd"], known["cross"]
    backwards = known["backwards"] if known["backwards"] > odd else 0.0  # steep waves are no diffusion
    walls = {"even": wider * even, "odd": odd + turned * even, "cross": wider * cross}
    return Bounds(**known | walls | {"backwards": backwards})


def stable_step(method: Integrator, bounds: Bounds) -> float | None:
    """Return a step with which an explicit method does not amplify anything.

    Regions of stability contain the rectangles and discs that are used here: a larger share counts whole and a smaller
    one half, and a method that amplifies all waves needs an even part that damps them. Of uniform states that turn it
    makes each radian grow by 0.1 % at most.

    Parameters
    ----------
    method
        The method.
    bounds
        Bounds of the eigenvalues.

    Returns
    -------
    float or None
        The step, infinite if nothing limits it; None if the method amplifies waves with every step.
    """
    even, odd, cross = bounds.even, bounds.odd, bounds.cross
    if method.imaginary:
        real, imaginary = method.real, method.imaginary
        total = max(_joined((even + cross) / real, odd / imaginary), _joined(even / real, (odd + cross) / imaginary))
    else:
        if bounds.ratio == math.inf:
            return None
        total = max((even + cross) / method.real, 4.0 * bounds.ratio / method.real, bounds.turning / method.swing)
    return 1.0 / total if total else math.inf


def resolved_step(method: Integrator, bounds: Bounds) -> float:
    """Return a step that is short beside the times in which uniform states turn and grow.

    Parameters
    ----------
    method
        The method.
    bounds
        Bounds of the eigenvalues.

    Returns
    -------
    float
        The step, infinite if states do neither.
    """
    fastest = max(bounds.turning / method.swing, bounds.growing / _GROWTH)
    return 1.0 / fastest if fastest else math.inf


def _joined(real: float, imaginary: float) -> float:
    return max(real, imaginary) + 0.5 * min(real, imaginary)


@dataclass(slots=True)
class _Row:
    """The sums of the absolute derivatives of one rate by all cells that it reads."""

    even: Node
    odd: Node
    cross: Node
    ratio: Node
    reach: dict[int, int] = field(default_factory=dict)


def _row(entries: Entries, own: int) -> _Row:
    """Return the sums for the rate of field `own`."""
    mine = {offsets: entry for (number, offsets), entry in entries.items() if number == own}
    evens = {offsets: abs(_half(operator.add, mine, offsets)) for offsets in _both(mine)}
    odds = {offsets: abs(_half(operator.sub, mine, offsets)) for offsets in _both(mine)}
    others = {key: abs(entry) for key, entry in entries.items() if key[0] != own}
    even = _total(list(evens.values()))
    waves = [*odds.items(), *((offsets, entry) for (_, offsets), entry in others.items())]
    shares = {offsets: size for offsets, size in evens.items() if any(offsets)}
    damped = _total(list(shares.values()))
    ratios: list[Node] = []
    axes = range(len(next(iter(entries))[1])) if entries else range(0)
    for axis in axes:
        wave = _total([size for offsets, size in waves if offsets[axis]])
        along = _total([size / float(sum(map(bool, at))) for at, size in shares.items() if at[axis]])
        part = even * along / where(damped > 0.0, damped, 1.0)
        ratios.append(where(wave > 0.0, wave * wave / part, 0.0))
    reach = {axis: max((abs(offsets[axis]) for offsets in mine), default=0) for axis in axes}
    return _Row(even, _total(list(odds.values())), _total(list(others.values())), _total(ratios), reach)


def _both(entries: Mapping[tuple[int, ...], Node]) -> list[tuple[int, ...]]:
    """Return the offsets of all entries, and the opposite ones."""
    return list(dict.fromkeys(each for offsets in entries for each in (offsets, tuple(-n for n in offsets))))


def _half(combine: Any, entries: Mapping[tuple[int, ...], Node], offsets: tuple[int, ...]) -> Node:
    """Return the even or the odd part of the entries at an offset."""
    nothing = as_node(np.float64(0.0))
    opposite = tuple(-n for n in offsets)
    half: Node = 0.5 * combine(entries.get(offsets, nothing), entries.get(opposite, nothing))
    return half


def _total(terms: Sequence[Node]) -> Node:
    return functools.reduce(operator.add, terms) if terms else as_node(np.float64(0.0))
