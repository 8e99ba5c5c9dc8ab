"""Systems on grids of two axes with k coupled unknowns a cell, solved directly: rows of cells as dense blocks.

Every cell is coupled with itself and the four cells beside it, by k x k blocks. Block elimination along the first axis,
whose pivots are the dense blocks of all cells in a row, decomposed by LAPACK with partial pivoting after every equation
was scaled to 1 (Golub and Van Loan, Matrix Computations, 4th edition, section 4.5). Work grows like n m^3 and memory
like n m^2 for n rows of m cells, so it is for grids that are narrow: up to some 100 cells across.

It runs in Python on rank 0, between the operations of a Program; the other ranks wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.solve.block_tridiagonal import Pattern
from minga.space.boundary import fixed
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Planes"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Planes:
    """Solves systems on a grid of two axes that are not periodic; declares the fields of their matrix.

    The caller's kernels write `diagonal`, and for each axis `lower` and `upper`, the coupling with the cell before and
    after: rows of k fields, f8, in a row; of `lower` and `upper` those that `coupling` has. Blocks that would reach
    beyond the grid are not used.
    """

    grid: Grid
    unknowns: int
    coupling: Pattern
    name: str = "planes"
    lower: tuple[tuple[Field, ...], ...] = field(init=False)
    diagonal: tuple[Field, ...] = field(init=False)
    upper: tuple[tuple[Field, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.grid.ndim != 2 or any(self.grid.periodic):
            raise ProgramError(
                f"{self.name}: a grid of {self.grid.ndim} axes, periodic: {self.grid.periodic}",
                remedy="choose one of two axes with two ends each",
            )
        k, put = self.unknowns, object.__setattr__
        for part in ("lower", "upper"):
            put(self, part, tuple(
                tuple(self._declare(f"{part} {axis}{i}{j}") for i, j in self._places) for axis in self.grid.axes
            ))  # fmt: skip
        put(self, "diagonal", tuple(self._declare(f"diagonal {i}{j}") for i in range(k) for j in range(k)))

    def _declare(self, what: str) -> Field:
        return Field(f"{self.name} {what}", self.grid, boundary=fixed(0.0))

    @property
    def _places(self) -> list[tuple[int, int]]:
        k = self.unknowns
        return [(i, j) for i in range(k) for j in range(k) if self.coupling[i][j]]

    @property
    def matrix(self) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]:
        """Lower, diagonal and upper, of all axes one after the other."""
        lower, upper = (tuple(item for axis in part for item in axis) for part in (self.lower, self.upper))
        return lower, self.diagonal, upper

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return tuple(item for part in self.matrix for item in part)

    def setup(self, program: Program) -> None:
        """Nothing: every solve decomposes the matrix anew."""

    def solve(self, program: Program, b: Sequence[Field], x: Sequence[Field]) -> None:
        """Record the solution for one right side; x may be b. Where there is none, x is NaN."""
        b, x = tuple(b), tuple(x)

        def solve_planes(engine: Engine) -> None:
            values: dict[Field, Any] = {item: engine.gather(item) for item in (*self.fields, *b)}
            found: Floats | None = None
            if engine.comm.rank == 0:
                found = self._solved(values, [values[item] for item in b])
            found = engine.comm.bcast(found)
            for item, value in zip(x, found, strict=True):
                for box, view in engine.blocks(item):
                    view[...] = value[box.slices((0, 0))]

        program.call(solve_planes, reads=[item.now for item in (*self.fields, *b)], writes=[item.now for item in x])

    def _solved(self, values: dict[Field, Any], right: Sequence[Floats]) -> Floats:
        """The solution, (k, rows, cells)."""
        k, (rows, cells) = self.unknowns, self.grid.shape
        size = k * cells
        every = np.arange(cells) * k
        own, above = np.zeros((rows, size, size)), np.zeros((rows, size, size))
        full = [(i, j) for i in range(k) for j in range(k)]
        for target, part, places, shift in (
            (own, self.diagonal, full, 0), (own, self.lower[1], self._places, -1),
            (own, self.upper[1], self._places, 1), (above, self.upper[0], self._places, 0),
        ):  # fmt: skip
            inside = np.arange(max(0, -shift), cells - max(0, shift))
            for item, (i, j) in zip(part, places, strict=True):
                target[:, every[inside] + i, every[inside + shift] + j] = values[item][:, inside]
        below = np.zeros((rows, cells, k, k))
        for item, (i, j) in zip(self.lower[0], self._places, strict=True):
            below[:, :, i, j] = values[item]
        given = np.stack(right, axis=-1).reshape(rows, size)
        ratio = np.zeros((rows, size, size))
        partial = np.zeros((rows, size))
        for row in range(rows):
            sides = np.concatenate((above[row], given[row][:, None]), axis=1)
            block = own[row]
            if row:
                before = np.concatenate((ratio[row - 1], partial[row - 1][:, None]), axis=1).reshape(cells, k, size + 1)
                change = np.matmul(below[row], before).reshape(size, size + 1)
                block = block - change[:, :size]
                sides[:, size] -= change[:, size]
            scale = 1.0 / np.abs(block).max(axis=1, initial=1e-300)
            try:
                found = np.linalg.solve(block * scale[:, None], sides * scale[:, None])
            except np.linalg.LinAlgError:
                return np.full((k, rows, cells), np.nan)
            ratio[row], partial[row] = found[:, :size], found[:, size]
        solution = np.zeros((rows, size))
        solution[-1] = partial[-1]
        for row in range(rows - 2, -1, -1):
            solution[row] = partial[row] - ratio[row] @ solution[row + 1]
        return solution.reshape(rows, cells, k).transpose(2, 0, 1)
