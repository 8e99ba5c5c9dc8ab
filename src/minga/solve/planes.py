"""Systems on grids of two axes with k coupled unknowns a cell, solved directly: rows of cells as dense blocks.

Block elimination along the first axis, whose pivots are the dense blocks of all cells in a row, decomposed by LAPACK
with partial pivoting after every equation was scaled to 1 (Golub and Van Loan, Matrix Computations, 4th edition,
section 4.5). Work grows like n m^3 and memory like n m^2 for n rows of m cells, so it is for grids that are narrow: up
to some 20 cells across. Wider ones are better solved by `minga.solve.sparse`.

It runs in Python on rank 0, between the operations of a Program; the other ranks wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.solve.block_tridiagonal import Pattern
from minga.solve.five_point import FivePoint, solve_on_one_rank
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Planes"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Planes:
    """Solves systems on a grid of two axes that are not periodic; `five_point` declares the fields of their matrix."""

    grid: Grid
    unknowns: int
    coupling: Pattern
    name: str = "planes"
    five_point: FivePoint = field(init=False)

    def __post_init__(self) -> None:
        made = FivePoint(self.grid, self.unknowns, self.coupling, self.name)
        object.__setattr__(self, "five_point", made)

    @property
    def matrix(self) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]:
        """Lower, diagonal and upper, of all axes one after the other, as FivePoint has them."""
        return self.five_point.matrix

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.five_point.fields

    def setup(self, program: Program) -> None:
        """Nothing: every solve decomposes the matrix anew."""

    def solve(self, program: Program, b: Sequence[Field], x: Sequence[Field]) -> None:
        """Record the solution for one right side; x may be b. Where there is none, x is NaN."""
        solve_on_one_rank(program, self.five_point, b, x, self._solved, "solve_planes")

    def _solved(self, values: Mapping[Field, Floats], right: Sequence[Floats]) -> Floats:
        """The solution, (k, rows, cells)."""
        k, (rows, cells), places = self.unknowns, self.grid.shape, self.five_point.places
        lower, upper = self.five_point.lower, self.five_point.upper
        size = k * cells
        every = np.arange(cells) * k
        own, above = np.zeros((rows, size, size)), np.zeros((rows, size, size))
        full = [(i, j) for i in range(k) for j in range(k)]
        for target, part, entries, shift in (
            (own, self.five_point.diagonal, full, 0), (own, lower[1], places, -1),
            (own, upper[1], places, 1), (above, upper[0], places, 0),
        ):  # fmt: skip
            inside = np.arange(max(0, -shift), cells - max(0, shift))
            for item, (i, j) in zip(part, entries, strict=True):
                target[:, every[inside] + i, every[inside + shift] + j] = values[item][:, inside]
        below = np.zeros((rows, cells, k, k))
        for item, (i, j) in zip(lower[0], places, strict=True):
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
