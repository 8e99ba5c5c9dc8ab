"""Diffusive part of the Jacobian of rates: what couples the cells of one field with their nearest neighbours.

Where it dominates 1 - scale J, which the sums of the entries of a row tell, V-cycles of multigrid for it, one for each
field, are a preconditioner with which the number of iterations hardly depends on scale and on the number of cells.
Where fourth derivatives dominate, as in phase fields, 1 - scale J is within a factor of 2 of the square of
1 - sqrt(scale B) d2/dx2, so that two V-cycles of the same multigrid serve.
The entries are derivatives of the rates by each cell that they read; at walls they are found by a product of the
Jacobian, so that conditions of any kind count.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.errors import KernelError
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, author_error, extreme, square_root, where
from minga.lang.functions import max as largest
from minga.solve.elliptic import Elliptic
from minga.solve.jacobian import Jacobian, Scale, Vector, differences
from minga.solve.krylov import copy
from minga.solve.laplacian import step
from minga.solve.multigrid import Multigrid
from minga.solve.rates import Rates, most, rates_kernel
from minga.solve.row_entries import Entries, row_entries
from minga.space.box import Box
from minga.space.field import TIME, Field, Register

__all__ = ["NearPart", "near_part"]

Readers = Sequence[CellReader]

_STRONG: Final = 30.0
"""Sum of the entries of a row, times scale, from which on a V-cycle is worth its time."""
_SHARE: Final = 0.2
"""Largest share that all other entries may have beside it: less than for a biharmonic operator along one axis, 1/4."""
_STRONG_FOURTH: Final = 100.0
"""Size of the fourth derivatives, times scale, from which on two V-cycles are worth their time."""
_SHARE_FOURTH: Final = 0.5
"""Largest share that all other entries may have beside them."""
_LEAST: Final = 0.5
"""Smallest sum of a row that the V-cycle assumes, so that its operator is positive where something grows."""


@dataclass(frozen=True, eq=False)
class NearPart:
    """The diffusive part of 1 - scale J for some fields on a uniform grid, and multigrid for it.

    Parameters
    ----------
    rates
        The rates of change.
    fields
        The fields of the state.
    operators, levels
        For each field its operator, and the levels of multigrid.
    low, high
        For each field and axis the derivative by the neighbour below and above.
    ones, sums
        A vector of ones and zeros, and the sums of rows.
    strong
        A register that is 1 if the part dominates, and 2 if fourth derivatives do, since the last `setup`.
    far
        Whether cells read beyond their neighbours, so that fourth derivatives may dominate.
    """

    rates: Rates
    fields: tuple[Field, ...]
    operators: tuple[Elliptic, ...]
    levels: tuple[Multigrid, ...]
    low: tuple[Field, ...]
    high: tuple[Field, ...]
    ones: tuple[Field, ...]
    sums: tuple[Field, ...]
    strong: Register
    far: bool

    @property
    def workspace(self) -> tuple[Field, ...]:
        """All fields."""
        parts = [item for one in self.operators for item in one.fields]
        parts += [item for one in self.levels for item in one.fields]
        return (*self.low, *self.high, *self.ones, *self.sums, *parts)

    def setup(self, program: Program, jacobian: Jacobian, scale: Scale) -> None:
        """Record the coefficients for a state and a scale, if the part dominates."""
        found: Any = program.apply(
            _entries(self.rates), jacobian.state, self.rates.constants, self.low, self.high, **self.rates.scalars
        )
        scale = as_node(scale)
        dominates = (scale * found.near >= _STRONG) & (found.rest <= _SHARE * found.near)
        fourth = (scale * found.fourth >= _STRONG_FOURTH) & (found.others <= _SHARE_FOURTH * found.fourth)
        program.let(self.strong, where(dominates, 1, where(fourth, 2, 0)))
        if self.far:
            with program.when(self.strong.node == 2):
                program.apply(
                    _fourths(self.rates), jacobian.state, self.rates.constants, self.low, **self.rates.scalars
                )
        with program.when(self.strong > 0):
            for number, (operator_, levels) in enumerate(zip(self.operators, self.levels, strict=True)):
                self._coefficients(program, number, operator_, jacobian, scale)
                levels.setup(program)

    def _coefficients(self, program: Program, number: int, elliptic: Elliptic, jacobian: Jacobian, scale: Node) -> None:
        """Record the conductances of faces and the sums of rows for one field."""
        grid, ndim = elliptic.grid, elliptic.grid.ndim
        for axis in range(ndim):
            inner = None if grid.periodic[axis] else Box(tuple(int(a == axis) for a in range(ndim)), grid.shape)
            position = number * ndim + axis
            program.apply(
                _conductance(ndim, axis), self.low[position], self.high[position], elliptic.faces[axis], region=inner,
                scale=scale, fourth=self.strong.node == 2,
            )  # fmt: skip
        program.apply(_unit, self.ones, chosen=number)
        ones, sums = (tuple(item.now for item in group) for group in (self.ones, self.sums))
        jacobian.shifted(scale)(program, ones, sums)
        program.apply(_positive, self.sums[number], elliptic.diagonal, fourth=self.strong.node == 2)

    def __call__(self, program: Program, source: Vector, target: Vector) -> None:
        """Record a V-cycle for each field, or two where fourth derivatives dominate."""
        for levels, one, other in zip(self.levels, source, target, strict=True):
            levels(program, one, other)
        if self.far:
            with program.when(self.strong.node == 2):
                for levels, between, other in zip(self.levels, self.ones, target, strict=True):
                    program.apply(copy, other, between)
                    levels(program, between, other)


def near_part(rates: Rates, fields: Sequence[Field], name: str) -> NearPart | None:
    """Return the diffusive part of the Jacobian; None if there is none, or multigrid does not fit its grid.

    Parameters
    ----------
    rates
        The rates of change.
    fields
        The fields of the state, f8.
    name
        The beginning of the names of its fields and registers.

    Returns
    -------
    NearPart or None
        The part.
    """
    grid = fields[0].grid
    cells = all(item.grid == grid and not any(item.centre) and item.on is None for item in fields)
    plain = grid.geometry == "cartesian" and all(grid.uniform(axis) for axis in range(grid.ndim)) and not grid.twisted
    if not (cells and plain) or any(c.antiperiodic for f in fields for pair in f.boundary.sides for c in pair if c):
        return None
    low, high = (
        tuple(_beside(item, f"{name} {word} {axis}") for item in fields for axis in grid.axes)
        for word in ("low", "high")
    )
    far: list[bool] = []
    try:
        Program("trial").apply(_entries(rates, far), list(fields), rates.constants, low, high, **rates.scalars)
    except KernelError:
        return None
    operators = tuple(Elliptic(grid, f"{name} {item.name}") for item in fields)
    levels = tuple(Multigrid(each, name=f"{each.name} levels") for each in operators)
    return NearPart(
        rates, tuple(fields), operators, levels, low, high, differences(fields, f"{name} ones"),
        differences(fields, f"{name} sums"), Register(f"{name}.strong", "i8"), any(far),
    )  # fmt: skip


def _beside(item: Field, name: str) -> Field:
    """Return a field of entries, which faces read at both sides."""
    return Field(f"{item.name}@{name}", item.grid)


# Kernels -------------------------------------------------------------------------------------------------------------
def _entries(rates: Rates, far: list[bool] | None = None) -> Kernel:
    """Return the kernel of the derivatives by the neighbours, and of the largest sums of rows.

    While it is traced, it adds to `far` whether a cell reads others of its field beyond its neighbours.
    """

    def compute(state: list[Any], constants: list[Any], low: list[Any], high: list[Any], **scalars: Any) -> Any:
        ndim = len(state[0].axes)
        here = (0,) * ndim
        found = [as_node(value) for value in rates.function(state, constants, TIME, **scalars)]
        near: list[Node] = []
        rest: list[Node] = []
        fourth: list[Node] = []
        others: list[Node] = []
        diffuses = False
        for number, (reader, value) in enumerate(zip(state, found, strict=True)):
            entries = row_entries(value, [item.parameter for item in state])
            reaches = any(field == reader.parameter and _reach(offsets) > 1 for field, offsets in entries)
            for group, found_there in zip((fourth, others), _fourth_sums(entries, reader.parameter, ndim), strict=True):
                group.append(found_there if reaches else as_node(0.0))
            if far is not None:
                far.append(reaches)
            own = {offsets: entries.pop((reader.parameter, offsets), None) for offsets in _neighbours(ndim)}
            entries.pop((reader.parameter, here), None)
            diffuses = diffuses or any(entry is not None for entry in own.values())
            even: list[Node] = []
            odd: list[Node] = [abs(entry) for entry in entries.values()]
            for axis in range(ndim):
                pair = [_or_zero(own[step(ndim, axis, way)]) for way in (-1, 1)]
                low[number * ndim + axis][here], high[number * ndim + axis][here] = pair
                even.append(extreme("max", (pair[0] + pair[1], 0.0)))
                odd.append(extreme("max", (abs(pair[1] - pair[0]), -(pair[0] + pair[1]))))
            near.append(functools.reduce(operator.add, even))
            rest.append(functools.reduce(operator.add, odd))
        if not diffuses:
            raise author_error("rates that do not depend on neighbours of the same field", "they need no multigrid")
        sums = {"near": near, "rest": rest, "fourth": fourth, "others": others}
        return {name: largest(most(values)) for name, values in sums.items()}

    return rates_kernel(compute, "near-entries", rates, step=False)


def _fourths(rates: Rates) -> Kernel:
    """Return the kernel of the fourth derivatives of each field along each axis, in units of cells."""

    def compute(state: list[Any], constants: list[Any], out: list[Any], **scalars: Any) -> None:
        ndim = len(state[0].axes)
        found = [as_node(value) for value in rates.function(state, constants, TIME, **scalars)]
        for number, (reader, value) in enumerate(zip(state, found, strict=True)):
            entries = row_entries(value, [item.parameter for item in state])
            for axis in range(ndim):
                out[number * ndim + axis][(0,) * ndim] = _moments(entries, reader.parameter, axis)[1]

    return rates_kernel(compute, "fourth-entries", rates, step=False)


def _moments(entries: Entries, own: int, axis: int) -> tuple[Node, Node]:
    """Return D and B of entries D d2/dx2 - B d4/dx4 along an axis.

    D is half the second moment, and B what it leaves of the symbol of the shortest wave.
    """
    along = [(offsets[axis], entry) for (field, offsets), entry in entries.items() if field == own and offsets[axis]]
    second = _total([(0.5 * offset * offset) * entry for offset, entry in along])
    return second, 0.125 * _total([entry for offset, entry in along if offset % 2]) - 0.25 * second


def _fourth_sums(entries: Entries, own: int, ndim: int) -> tuple[Node, Node]:
    """Return the size of the fourth derivatives, and that of all other entries, for the shortest waves."""
    here = (0,) * ndim
    pairs = [_moments(entries, own, axis) for axis in range(ndim)]
    fourth = _total([extreme("max", (16.0 * last, 0.0)) for _, last in pairs])
    others = [4.0 * abs(second) for second, _ in pairs] + [extreme("max", (-16.0 * last, 0.0)) for _, last in pairs]
    others += [abs(entry) for (field, offsets), entry in entries.items() if field != own and offsets != here]
    return fourth, _total(others)


def _reach(offsets: Sequence[int]) -> int:
    return max(map(abs, offsets))


def _total(terms: Sequence[Node]) -> Node:
    return functools.reduce(operator.add, terms) if terms else as_node(0.0)


def _neighbours(ndim: int) -> list[tuple[int, ...]]:
    return [step(ndim, axis, way) for axis in range(ndim) for way in (-1, 1)]


def _or_zero(entry: Node | None) -> Node:
    return as_node(0.0) if entry is None else entry


@functools.cache
def _conductance(ndim: int, axis: int) -> Kernel:
    """Return the kernel of the conductance of faces across an axis, from the entries of the cells beside them.

    Where fourth derivatives dominate, `low` holds these.
    """
    here, below = (0,) * ndim, step(ndim, axis, -1)

    @kernel
    def conductance(low: CellReader, high: CellReader, face: CellReader, *, scale: Node, fourth: Node) -> None:
        second = extreme("max", (0.5 * scale * (low[here] + high[below]), 0.0))
        root = square_root(extreme("max", (0.5 * scale * (low[here] + low[below]), 0.0)))
        face[here] = where(fourth, root, second)

    return conductance


@kernel
def _unit(vectors: Readers, *, chosen: Node) -> None:
    """Store 1 in one of some fields, and 0 in the others."""
    for number, item in enumerate(vectors):
        item[(0,) * len(item.axes)] = where(chosen == number, 1.0, 0.0)


@kernel
def _positive(sums: CellReader, diagonal: CellReader, *, fourth: Node) -> None:
    """Store the sums of rows that the V-cycle uses, of which two make one of fourth derivatives."""
    here = (0,) * len(sums.axes)
    positive = extreme("max", (sums[here], _LEAST))
    diagonal[here] = where(fourth, square_root(positive), positive)
