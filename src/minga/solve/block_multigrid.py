"""Multigrid for k coupled unknowns a cell on grids of two axes: lines along the first, pairs of lines along the second.

:class:`minga.solve.Multigrid` is its public form. A relaxation step solves every other line along the first axis
exactly, all unknowns together, and then the others (zebra relaxation; Trottenberg, Oosterlee and Schüller, Multigrid,
2001, section 5.1.3). Coarse grids handle the coupling of lines: each line of a level stands for a pair of lines of the
level above it. The equations of a pair are the sums of the equations of both lines, and its unknowns are one correction
for both (aggregation, as in Y. Notay, Electron. Trans. Numer. Anal. 37, 2010). This needs neither symmetry nor
smoothness, preserves sums such as currents, and is robust where couplings along the lines are strong, weak or
one-sided, as in layers. It is an approximate inverse for a Krylov method, not a solver.

Cells may be held, such as nodes at contacts: their unknowns are 0, and pairs do not transfer corrections to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.engine.program import Program
from minga.solve.block_multigrid_kernels import (
    cleared,
    coarse_diagonal,
    coarse_free,
    coarse_inner,
    coarse_outer,
    free_cells,
    line_elimination,
    line_substitution,
    matrix_product,
    only_free,
    prolonged,
    restricted,
    scaled_copy,
    scattered,
)
from minga.solve.block_tridiagonal import factorisation
from minga.solve.coarsening import check_levels, follow_levels
from minga.solve.five_point import FivePoint
from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["BlockMultigrid"]

PAIRS: Final = (1, 2)
Vector = tuple[Slot, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BlockLevel:
    """One level of the hierarchy.

    Parameters
    ----------
    matrix
        The matrix without held cells, which have 1 on their diagonal.
    free
        1, but 0 in held cells.
    factors, ratio
        The factors of the lines, as in BlockLines.
    x, f
        Correction and right side.
    partial, line
        Intermediate and final values of every other line, on the grid of pairs.
    entries
        Entries of the next level's matrix, on the grid of pairs.
    """

    matrix: FivePoint
    free: Field
    factors: tuple[Field, ...]
    ratio: tuple[Field, ...]
    x: Vector
    f: Vector
    partial: tuple[Field, ...]
    line: tuple[Field, ...]
    entries: tuple[Field, ...]

    @property
    def grid(self) -> Grid:
        """The grid of the level."""
        return self.matrix.grid

    @property
    def last(self) -> bool:
        """True if there is only one line."""
        return self.grid.shape[1] == 1

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the level."""
        vectors = tuple(slot.field for slot in (*self.x, *self.f))
        return (
            *self.matrix.fields, self.free, *self.factors, *self.ratio, *vectors, *self.partial, *self.line,
            *self.entries,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class BlockMultigrid:
    """The levels of a matrix, and the V-cycle over them: one relaxation before and one after each coarse correction.

    Vectors are k fields of the finest level's grid, which `vector` declares; `take` and `give` copy them from and to
    the operator's grid.

    Parameters
    ----------
    operator
        The matrix, whose fields the caller's kernels write.
    held
        An integer field of its grid: cells where it is not 0 are held; their equations are unknown = 0.
    cells_per_rank
        A level with fewer cells a rank moves to fewer ranks.
    name
        The beginning of the names of all fields.
    """

    operator: FivePoint
    held: Field
    cells_per_rank: int = 4096
    name: str = "block multigrid"
    scratch: Field = field(init=False)
    levels: tuple[BlockLevel, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_levels(self.operator.grid, 1, self.cells_per_rank)
        object.__setattr__(self, "scratch", Field(f"{self.name} scratch", self.operator.grid))
        levels: list[BlockLevel] = []
        grid = self.operator.grid
        while not levels or not levels[-1].last:
            grid = grid.relabel(f"{self.name} {len(levels)}")
            levels.append(self._level(len(levels), grid))
            grid = grid.coarsen(PAIRS)
        object.__setattr__(self, "levels", tuple(levels))

    def _level(self, number: int, grid: Grid) -> BlockLevel:
        k, coupling, name = self.operator.unknowns, self.operator.coupling, f"{self.name} {number}"
        pairs = grid.coarsen(PAIRS).relabel(f"{self.name} below {number}")

        def declared(what: str, count: int, on: Grid = grid) -> tuple[Field, ...]:
            return tuple(Field(f"{name} {what} {i}", on, boundary=fixed(0.0)) for i in range(count))

        return BlockLevel(
            matrix=FivePoint(grid, k, coupling, name),
            free=Field(f"{name} free", grid, boundary=fixed(0.0)),
            factors=declared("factor", k * k),
            ratio=declared("ratio", k * k),
            x=tuple(item.now for item in declared("correction", k)),
            f=tuple(item.now for item in declared("right side", k)),
            partial=declared("partial", k, pairs),
            line=declared("line", k, pairs),
            entries=declared("entry", k * k, pairs) if grid.shape[1] > 1 else (),
        )

    # For Models and Engines ------------------------------------------------------------------------------------------
    @property
    def grid(self) -> Grid:
        """The operator's grid, which the grids of the levels follow."""
        return self.operator.grid

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the levels, for a Model."""
        return (self.scratch, *(item for level in self.levels for item in level.fields))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of all levels, and of their pairs of lines."""
        return tuple(grid for level in self.levels for grid in (level.grid, level.line[0].grid))

    def layouts(self, layout: Layout) -> Mapping[Grid, Layout]:
        """Return the layouts of `grids` for a layout of the operator's grid."""
        levels = ((level.grid, PAIRS, level.line[0].grid) for level in self.levels)
        return follow_levels(layout, self.grid, levels, self.cells_per_rank)

    def vector(self, name: str) -> Vector:
        """Declare k fields of the finest level's grid."""
        return tuple(
            Field(f"{name} {i}", self.levels[0].grid, boundary=fixed(0.0)).now for i in range(self.operator.unknowns)
        )

    # In Programs -----------------------------------------------------------------------------------------------------
    def setup(self, program: Program, weights: Sequence[Register]) -> None:
        """Record the computation of all levels' matrices. Each of the k equations is multiplied by its weight.

        It has to run before the first cycle, and again whenever the matrix has changed.
        """
        first, k = self.levels[0], self.operator.unknowns
        rows = [i for i, _ in self.operator.places] * 2
        for source, target, equations in zip(
            self.operator.matrix, first.matrix.matrix, (rows, [n // k for n in range(k * k)], rows), strict=True
        ):
            for fine, item, equation in zip(source, target, equations, strict=True):
                program.apply(scaled_copy, fine, self.scratch, weight=weights[equation])
                program.move(self.scratch, item)
        program.apply(free_cells, self.held, self.scratch)
        program.move(self.scratch, first.free)
        program.apply(only_free(len(rows) // 2), *first.matrix.matrix, first.free)
        for level, below in zip(self.levels, (*self.levels[1:], None), strict=True):
            matrix = level.matrix
            made = factorisation(2, 0, matrix.coupling)
            program.apply(made, matrix.lower[0], matrix.diagonal, matrix.upper[0], level.factors, level.ratio)
            if below is not None:
                _make_coarse(program, level, below)

    def take(self, program: Program, source: Sequence[Field], target: Vector, weights: Sequence[Register]) -> None:
        """Record target = source, each equation multiplied by its weight."""
        for item, slot, weight in zip(source, target, weights, strict=True):
            program.apply(scaled_copy, item, self.scratch, weight=weight)
            program.move(self.scratch, slot)

    def give(self, program: Program, source: Vector, target: Sequence[Field]) -> None:
        """Record target = source."""
        for slot, item in zip(source, target, strict=True):
            program.move(slot, item)

    def product(self, program: Program, source: Vector, target: Vector) -> None:
        """Record target = A source, with the weights of `setup`."""
        matrix = self.levels[0].matrix
        program.apply(matrix_product(matrix.coupling), *matrix.matrix, source, target)

    def __call__(self, program: Program, residual: Vector, correction: Vector) -> None:
        """Record correction = M residual, one V-cycle from 0."""
        self._cycle(program, 0, residual, correction)

    def _cycle(self, program: Program, number: int, f: Vector, x: Vector) -> None:
        level = self.levels[number]
        program.apply(cleared, x)
        _relax(program, level, f, x, 0)
        if level.last:
            return
        _relax(program, level, f, x, 1)
        below, matrix = self.levels[number + 1], level.matrix
        program.apply(restricted(matrix.coupling), *matrix.matrix, level.free, f, x, level.line)
        for item, slot in zip(level.line, below.f, strict=True):
            program.move(item, slot)
        self._cycle(program, number + 1, below.f, below.x)
        for slot, item in zip(below.x, level.line, strict=True):
            program.move(slot, item)
        program.apply(prolonged, level.line, level.free, x)
        _relax(program, level, f, x, 1)
        _relax(program, level, f, x, 0)


def _relax(program: Program, level: BlockLevel, f: Vector, x: Vector, colour: int) -> None:
    """Record the solution of every other line, while the others keep their values."""
    matrix, k = level.matrix, level.matrix.unknowns
    lower, _, upper = matrix.matrix
    program.apply(
        line_elimination(matrix.coupling, colour), lower, upper, level.factors, f, x, level.partial,
    )  # fmt: skip
    program.apply(line_substitution(k, colour), level.ratio, level.partial, level.line)
    program.apply(scattered(colour), level.line, x)


def _make_coarse(program: Program, level: BlockLevel, below: BlockLevel) -> None:
    """Record the matrix of the pairs of lines."""
    fine, coarse, entries = level.matrix, below.matrix, level.entries
    made = coarse_diagonal(fine.coupling)
    program.apply(made, fine.lower[1], fine.diagonal, fine.upper[1], level.free, entries)
    _move(program, entries, coarse.diagonal)
    for kernel, source, target in (
        (coarse_inner, fine.lower[0], coarse.lower[0]),
        (coarse_inner, fine.upper[0], coarse.upper[0]),
        (coarse_outer(0), fine.lower[1], coarse.lower[1]),
        (coarse_outer(1), fine.upper[1], coarse.upper[1]),
    ):
        program.apply(kernel, source, entries[: len(source)])
        _move(program, entries[: len(source)], target)
    program.apply(coarse_free, level.free, entries[0])
    program.move(entries[0], below.free)


def _move(program: Program, source: Sequence[Field], target: Sequence[Field]) -> None:
    """Record target = source, field by field."""
    for item, other in zip(source, target, strict=True):
        program.move(item, other)
