"""Automata on an unbounded plane, `boundary = "unbounded"`: windows of it, and rules that can have them.

A plane may be bounded along some axes, as a strip, `boundary = ["fixed", "unbounded"]`, and a tube, `["periodic",
"unbounded"]`, are. Its window then has all cells along these axes, and grows along the others.

The first of the first cells is cell (0, 0) of the plane, unless the pattern has a position `at` on it. The centre of
cell i has the coordinate i + 1/2 on any window.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from minga.engine.growth import Growth
from minga.engine.model import Model
from minga.engine.program import Apply, Program
from minga.errors import CaseError
from minga.lang.block import BlockRule
from minga.lang.graph import topological
from minga.lang.neighbourhood import moore
from minga.lang.rule import Rule
from minga.lang.types import is_float
from minga.lang.updates import Coloured
from minga.models.automaton.edges import stays_dead
from minga.models.automaton.golly import CORNER, NOTE, PATTERN
from minga.models.automaton.initial import Array, Initial
from minga.models.automaton.observers import KEY as OBSERVE
from minga.models.automaton.observers import Observers
from minga.space.bit_words import WORD
from minga.space.box import Box, Point
from minga.space.field import SEED

__all__ = ["UNBOUNDED", "axes_in", "check_plane", "ends_of_plane", "first_cells", "on_plane", "on_window"]

UNBOUNDED: Final = "unbounded"
Ends = tuple[str, ...]
"""The ends of a plane along each axis: "unbounded", "fixed" or "periodic"."""
KEY: Final = "grid.boundary"
GRANULE: Final = 16
"""Cells at whose multiples windows begin and end along the axes before the last one, where words decide."""
MARGIN: Final = {1: 4096, 2: 384, 3: 64, 4: 48}
"""Empty cells that a new window has at least at each end, for a reach of one cell, by the number of axes."""
SHARE: Final = 2
"""Part of the extent of the cells that is the margin of a new window, if that is more."""
MOST_CELLS: Final = 1 << 36
"""Cells of the largest window."""
FARTHEST: Final = 1 << 48
"""Largest index at which a pattern may begin; coordinates are exact there, and after any number of steps."""
_OBSERVED: Final = ("population", "sum", "residual", "changed", "bounding_box")


def axes_in(boundary: object) -> int:
    """Return the number of axes that an entry of a case for the boundary names; 1 if it is for all of them."""
    return len(boundary) if isinstance(boundary, Sequence) and not isinstance(boundary, str) else 1


def ends_of_plane(boundary: object, ndim: int) -> Ends | None:
    """Return the ends of a plane that is unbounded along some axes; None for a grid that is bounded along all."""
    if isinstance(boundary, str) and boundary == UNBOUNDED:
        return (UNBOUNDED,) * ndim
    if isinstance(boundary, str) or not isinstance(boundary, Sequence) or len(boundary) != ndim:
        return None
    if not any(isinstance(entry, str) and entry == UNBOUNDED for entry in boundary):
        return None
    for entry in boundary:
        if entry not in (UNBOUNDED, "fixed", "periodic"):
            raise CaseError(
                f"found {entry!r} beside an unbounded axis",
                key=KEY,
                remedy='write "fixed" or "periodic" for the axes that are not "unbounded"',
            )
    return tuple(boundary)


def first_cells(init: object, shape: tuple[int, ...], ends: Ends) -> tuple[object, Box]:
    """Return the initial cells without the position of their pattern on the plane, and the box on which they lie.

    Along axes with ends, positions remain those in the grid, whose first cell is 0.
    """
    if len(shape) not in MARGIN or min(shape) < 0:
        raise CaseError(f"found shape {shape}: expected a number of cells for each of 1 to 4 axes", key="grid.shape")
    at = init.get("at") if isinstance(init, Mapping) else None
    if at is None:
        return init, Box.of(shape)
    whole = isinstance(at, Sequence | np.ndarray) and all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) and abs(int(n)) <= FARTHEST for n in at
    )
    if not whole or len(at) != len(shape):
        raise CaseError(
            f"at = {at!r}: expected an index for each of {len(shape)} axes",
            key="automaton.init.at",
            remedy=f"write whole numbers from {-FARTHEST} to {FARTHEST}",
        )
    assert isinstance(init, Mapping)
    there = [(int(n), 0) if end == UNBOUNDED else (0, int(n)) for n, end in zip(at, ends, strict=True)]
    return {**init, "at": [n for _, n in there]}, Box.of(shape).shift(tuple(n for n, _ in there))


def on_plane(make: Callable[..., Model], rule: Rule | BlockRule, first: Box, ends: Ends) -> Model:
    """Return a model on an unbounded plane.

    Parameters
    ----------
    make
        Makes the model on a window, given a boundary, and the window with the corner of the first cells; with
        `init=None` it has no cells.
    rule
        The rule, which says how far live cells spread in a step.
    first
        Box of the first cells, with all cells along axes with ends.
    ends
        Ends along each axis.
    """
    around = (rule.neighbourhood if isinstance(rule, Rule) else moore(1)).around(first.ndim)
    reach = max([1, *(abs(n) for offset in around for n in offset)])

    around_window = ["fixed" if end == UNBOUNDED else end for end in ends]
    axes = tuple(axis for axis, end in enumerate(ends) if end == UNBOUNDED)

    def tight(box: Box) -> Box:
        return _aligned(box, first, axes)

    def roomy(box: Box) -> Box:
        margin = max(MARGIN[box.ndim] * reach, max(box.shape) // SHARE)
        return tight(box.grow(margin, margin))

    def grown(window: Box, **changes: Any) -> Model:
        model = make(around_window, (window, first.lo), **changes)
        about = _attributes(model.about, window, ends)
        growth = Growth(window, axes, reach, lambda box: grown(box, init=None, before=None), roomy, tight)
        return replace(model, growth=growth, about=about)

    return grown(roomy(first))


def check_plane(rule: Rule | BlockRule, step: Program, observers: Observers) -> Observers:
    """Return what is observed by default; raise CaseError for rules and observables that a plane cannot have."""
    reason = _unfit(rule, step)
    if reason is not None:
        raise CaseError(
            f"rule {rule.name!r} cannot run on an unbounded plane: {reason}",
            key=KEY,
            remedy='give a grid that is large enough, boundary = "fixed" or "periodic"',
        )
    if observers.names is None:
        return replace(observers, names=("population", "residual"))
    for name in observers.names:
        if name not in _OBSERVED:
            raise CaseError(
                f"{name!r} of an unbounded plane, most of which is empty",
                key=OBSERVE,
                remedy=f"observe some of {', '.join(_OBSERVED)}",
            )
    return observers


def _unfit(rule: Rule | BlockRule, step: Program) -> str | None:
    """Return why a rule cannot run on an unbounded plane; None if it can."""
    if any(map(is_float, rule.fields.values())):
        return "its cells are floats, of which no cell stays exactly 0"
    if isinstance(rule, Rule) and isinstance(rule.update, Coloured):
        return "its cells change one colour after another, so that a change may spread any distance in a step"
    applies = _applies(step)
    if any(scalar.name == SEED.key for apply in applies for scalar in apply.graph.scalars):
        return "it draws random numbers, also for the cells of empty space"
    if isinstance(rule, Rule) and any(
        node.op == "index" for apply in applies for node in topological([s.value for s in apply.graph.stores])
    ):
        return "it depends on the position of a cell in the grid"
    if not stays_dead(step):
        return "cells come alive among dead cells, so that empty space does not stay empty"
    return None


def _applies(step: Program) -> list[Apply]:
    return [operation for operation in step.operations if isinstance(operation, Apply)]


def _attributes(about: Mapping[str, str], window: Box, ends: Ends) -> dict[str, str]:
    """Return the attributes of files: pattern files name the rule with the ends of the plane, and the corner.

    Golly's planes have cell 0 in the middle of an axis with ends, and no cells, 0, along one without.
    """
    found = {key: text for key, text in about.items() if key != NOTE}
    lengths = [0 if end == UNBOUNDED else n for n, end in zip(window.shape, ends, strict=True)]
    corner = [-(n // 2) if n else low for n, low in zip(lengths, window.lo, strict=True)]
    if PATTERN in found:
        letter = "T" if "periodic" in ends else "P"
        suffix = f":{letter}{lengths[1]},{lengths[0]}" if any(lengths) else ""
        found[PATTERN] = found[PATTERN].split(":P")[0] + suffix
    return found | {CORNER: ",".join(map(str, corner))}


def on_window(cells: Initial, shape: tuple[int, ...], corner: Point, window: Box) -> Initial:
    """Return cells of a grid of `shape`, whose first one lies at `corner` of the plane, as cells of a window."""

    def values(box: Box) -> Array:
        place = box.shift([low - n for low, n in zip(window.lo, corner, strict=True)])
        common = place & Box.of(shape)
        inside = cells(Box.of((1,) * box.ndim) if common.empty else common)
        found = np.zeros(box.shape, inside.dtype)
        if not common.empty:
            found[common.slices(place.lo)] = inside
        return found

    return values


def _aligned(box: Box, first: Box, axes: Sequence[int]) -> Box:
    """Return the smallest window that holds a box of cells; along other axes than `axes` it is that of `first`."""
    units = [*itertools.repeat(GRANULE, box.ndim - 1), WORD]
    lo = tuple(low // unit * unit for low, unit in zip(box.lo, units, strict=True))
    hi = tuple(-(-high // unit) * unit for high, unit in zip(box.hi, units, strict=True))
    ends = [(low, max(low + unit, high)) for low, high, unit in zip(lo, hi, units, strict=True)]
    ends = [pair if axis in axes else (first.lo[axis], first.hi[axis]) for axis, pair in enumerate(ends)]
    window = Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))
    if window.size > MOST_CELLS:
        raise CaseError(
            f"the pattern spans {' x '.join(map(str, window.shape))} cells of the plane: more than fit into memory",
            key=KEY,
            remedy="end the run earlier",
        )
    return window
