"""Diffusive part of the Jacobian of rates: what couples the cells of one field with their nearest neighbours.

Where it dominates 1 - scale J, which the sums of the entries of a row tell, V-cycles of multigrid for it, one for each
field, are a preconditioner with which the number of iterations hardly depends on scale and on the number of cells.
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
from minga.lang.derivative import derivative
from minga.lang.expr import Node, as_node, author_error, extreme, where
from minga.lang.functions import max as largest
from minga.lang.graph import topological
from minga.solve.elliptic import Elliptic
from minga.solve.jacobian import Jacobian, Scale, Vector, differences
from minga.solve.laplacian import step
from minga.solve.multigrid import Multigrid
from minga.solve.rates import Rates, most, rates_kernel
from minga.space.box import Box
from minga.space.field import TIME, Field, Register

__all__ = ["NearPart", "near_part"]

Readers = Sequence[CellReader]

_STRONG: Final = 30.0
"""Sum of the entries of a row, times scale, from which on a V-cycle is worth its time."""
_SHARE: Final = 0.2
"""Largest share that all other entries may have beside it: less than for a biharmonic operator along one axis, 1/4."""
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
        A register that is 1 if the part dominates, since the last `setup`.
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
        program.let(self.strong, where(dominates, 1, 0))
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
                scale=scale,
            )  # fmt: skip
        program.apply(_unit, self.ones, chosen=number)
        ones, sums = (tuple(item.now for item in group) for group in (self.ones, self.sums))
        jacobian.shifted(scale)(program, ones, sums)
        program.apply(_positive, self.sums[number], elliptic.diagonal)

    def __call__(self, program: Program, source: Vector, target: Vector) -> None:
        """Record a V-cycle for each field."""
        for levels, one, other in zip(self.levels, source, target, strict=True):
            levels(program, one, other)


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
    try:
        Program("trial").apply(_entries(rates), list(fields), rates.constants, low, high, **rates.scalars)
    except KernelError:
        return None
    operators = tuple(Elliptic(grid, f"{name} {item.name}") for item in fields)
    levels = tuple(Multigrid(each, name=f"{each.name} levels") for each in operators)
    return NearPart(
        rates, tuple(fields), operators, levels, low, high, differences(fields, f"{name} ones"),
        differences(fields, f"{name} sums"), Register(f"{name}.strong", "i8"),
    )  # fmt: skip


def _beside(item: Field, name: str) -> Field:
    """Return a field of entries, which faces read at both sides."""
    return Field(f"{item.name}@{name}", item.grid)


# Kernels -------------------------------------------------------------------------------------------------------------
def _entries(rates: Rates) -> Kernel:
    """Return the kernel of the derivatives by the neighbours, and of the largest sums of rows."""

    def compute(state: list[Any], constants: list[Any], low: list[Any], high: list[Any], **scalars: Any) -> Any:
        ndim = len(state[0].axes)
        here = (0,) * ndim
        found = [as_node(value) for value in rates.function(state, constants, TIME, **scalars)]
        near: list[Node] = []
        rest: list[Node] = []
        diffuses = False
        for number, (reader, value) in enumerate(zip(state, found, strict=True)):
            entries = _by_reads(value, [item.parameter for item in state])
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
        return {"near": largest(most(near)), "rest": largest(most(rest))}

    return rates_kernel(compute, "near-entries", rates, step=False)


def _by_reads(value: Node, own: Sequence[int]) -> dict[tuple[int, tuple[int, ...]], Node]:
    """Return the derivatives of a rate by all cells of the state that it reads."""
    reads: dict[tuple[int, tuple[int, ...]], Node] = {}
    for node in topological([value]):
        if node.op == "local":
            raise author_error("the derivative by cells that a local reads", "write the expression out")
        if node.op == "read" and node.data[0] in own:
            reads.setdefault((node.data[0], node.data[2]), node)
    return {key: derivative(value, node) for key, node in reads.items()}


def _neighbours(ndim: int) -> list[tuple[int, ...]]:
    return [step(ndim, axis, way) for axis in range(ndim) for way in (-1, 1)]


def _or_zero(entry: Node | None) -> Node:
    return as_node(0.0) if entry is None else entry


@functools.cache
def _conductance(ndim: int, axis: int) -> Kernel:
    """Return the kernel of the conductance of faces across an axis, from the entries of the cells beside them."""
    here, below = (0,) * ndim, step(ndim, axis, -1)

    @kernel
    def conductance(low: CellReader, high: CellReader, face: CellReader, *, scale: Node) -> None:
        face[here] = extreme("max", (0.5 * scale * (low[here] + high[below]), 0.0))

    return conductance


@kernel
def _unit(vectors: Readers, *, chosen: Node) -> None:
    """Store 1 in one of some fields, and 0 in the others."""
    for number, item in enumerate(vectors):
        item[(0,) * len(item.axes)] = where(chosen == number, 1.0, 0.0)


@kernel
def _positive(sums: CellReader, diagonal: CellReader) -> None:
    """Store the sums of rows that the V-cycle uses."""
    here = (0,) * len(sums.axes)
    diagonal[here] = extreme("max", (sums[here], _LEAST))
