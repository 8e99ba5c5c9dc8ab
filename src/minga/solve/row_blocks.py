"""Systems on grids of two axes with k coupled unknowns a cell, solved directly: rows of cells as dense blocks.

Block elimination along the first axis, whose pivots are the dense blocks of all cells in a row, decomposed by LAPACK
with partial pivoting after every equation was scaled to 1 (Golub and Van Loan, Matrix Computations, 4th edition,
section 4.5). Work grows like n m^3 and memory like n m^2 for n rows of m cells, so it is for grids that are narrow: up
to some 20 cells across. Wider ones are better solved by `minga.solve.sparse_factors`. LAPACK has other last bits on
every processor; the solution is refined until it does not (:mod:`minga.solve.refinement`).

It runs in Python on rank 0, between the operations of a Program; the other ranks wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from minga.solve.block_tridiagonal import Pattern
from minga.solve.five_point import Direct, FivePoint
from minga.solve.five_point_parts import Part, parts_of, scales, terms
from minga.solve.refinement import Term, refined
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["planes"]

Floats = NDArray[np.float64]


def planes(grid: Grid, unknowns: int, coupling: Pattern, name: str = "planes") -> Direct:
    """Return a direct solver for grids of two axes, by block elimination of whole rows; for strips of a few columns.

    The attribute `five_point` of the solver declares the fields of the matrix.

    Parameters
    ----------
    grid
        A grid of two axes that are not periodic.
    unknowns
        The number k of unknowns in a cell.
    coupling
        Which entries of the blocks beside the diagonal exist: k rows of k booleans.
    name
        The beginning of the names of all fields.

    Returns
    -------
    Direct
        The solver.
    """
    matrix = FivePoint(grid, unknowns, coupling, name)
    return Direct(matrix, partial(_solved, matrix), "solve_planes")


def _solved(matrix: FivePoint, values: Mapping[Field, Floats], right: Sequence[Floats]) -> Floats:
    """Return the solution, of shape (k, rows, cells)."""
    parts = parts_of(matrix)
    scale = scales(parts, values, matrix.unknowns, matrix.grid.shape)
    b: Floats = scale * np.stack(right)
    entries = terms(parts, values, scale)
    rows = _Rows.of(matrix.unknowns, matrix.grid.shape, parts, entries)
    if rows is None or not np.isfinite(b).all():
        return np.full(b.shape, np.nan)
    return refined(entries, b, rows.solve)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Blocks of all rows after their elimination; unknowns of a row are numbered cell by cell.

    below    blocks of each cell that couple it with the cell before, (rows, cells, k, k)
    inverse  inverse of the pivot of each row, (rows, k * cells, k * cells)
    ratio    the inverse times the block that couples a row with the next one, of the same shape
    """

    below: Floats
    inverse: Floats
    ratio: Floats

    @classmethod
    def of(cls, k: int, shape: tuple[int, ...], parts: Sequence[Part], entries: Sequence[Term]) -> _Rows | None:
        """Return the rows of a matrix; None if it is singular or not finite."""
        rows, cells = shape
        size = k * cells
        below, own, above = np.zeros((rows, cells, k, k)), np.zeros((rows, size, size)), np.zeros((rows, size, size))
        every = np.arange(cells) * k
        for part, term in zip(parts, entries, strict=True):
            (along, across), (i, j) = term.inside, (term.equation, term.unknown)
            if part.offset[0] < 0:
                below[along, across, i, j] = term.values
            else:
                target = above if part.offset[0] else own
                target[along, every[across] + i, every[term.there[1]] + j] = term.values
        inverse, ratio = np.zeros_like(own), np.zeros_like(own)
        for row, block in enumerate(own):
            if row:
                block -= np.matmul(below[row], ratio[row - 1].reshape(cells, k, size)).reshape(size, size)
            scale = 1.0 / np.abs(block).max(axis=1, initial=1e-300)
            try:
                inverse[row] = np.linalg.inv(block * scale[:, None]) * scale
            except np.linalg.LinAlgError:
                return None
            ratio[row] = inverse[row] @ above[row]
        return cls(below, inverse, ratio)

    def solve(self, right: Floats) -> Floats:
        """Return about the solution for a right side, both of shape (k, rows, cells)."""
        k, rows, cells = right.shape
        found = np.ascontiguousarray(right.transpose(1, 2, 0)).reshape(rows, k * cells)
        for row in range(rows):
            if row:
                found[row] -= np.matmul(self.below[row], found[row - 1].reshape(cells, k, 1)).ravel()
            found[row] = self.inverse[row] @ found[row]
        for row in range(rows - 2, -1, -1):
            found[row] -= self.ratio[row] @ found[row + 1]
        return np.ascontiguousarray(found.reshape(rows, cells, k).transpose(2, 0, 1))
