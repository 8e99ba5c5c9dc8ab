"""Systems on grids of two axes with k coupled unknowns a cell, solved directly: rows of cells as dense blocks.

Block elimination along the first axis, whose pivots are the dense blocks of all cells in a row, decomposed by LAPACK
with partial pivoting after every equation was scaled to 1 (Golub and Van Loan, Matrix Computations, 4th edition,
section 4.5). Work grows like n m^3 and memory like n m^2 for n rows of m cells, so it is for grids that are narrow: up
to some 20 cells across. Wider ones are better solved by `minga.solve.sparse_factors`.

It runs in Python on rank 0, between the operations of a Program; the other ranks wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from minga.solve.block_tridiagonal import Pattern
from minga.solve.five_point import Direct, FivePoint
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
    k, (rows, cells), places = matrix.unknowns, matrix.grid.shape, matrix.places
    lower, upper = matrix.lower, matrix.upper
    size = k * cells
    every = np.arange(cells) * k
    own, above = np.zeros((rows, size, size)), np.zeros((rows, size, size))
    full = [(i, j) for i in range(k) for j in range(k)]
    for target, part, entries, shift in (
        (own, matrix.diagonal, full, 0), (own, lower[1], places, -1),
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
