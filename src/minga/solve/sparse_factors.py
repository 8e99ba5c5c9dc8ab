"""Systems on grids of two axes with k coupled unknowns a cell, solved directly: sparse factors, by SuperLU.

SciPy's SuperLU (X. S. Li, ACM Trans. Math. Softw. 31, 2005) factorises the matrix. How much of it fills up is decided
by the order of the cells, which here is nested dissection's (A. George, SIAM J. Numer. Anal. 10, 1973): both halves of
the grid, then the line of cells between them. Work grows like N^1.5 and memory like N log N for N cells.

Entries of drift and diffusion span 30 decades, and unknowns do, so that a solution has to be right in each of its
numbers and not only in the largest. Equations are scaled by powers of two, pivots stay on the diagonal unless they are
tiny there, and the solution is refined until it is the exact one, rounded (:mod:`minga.solve.refinement`). The factors
have other last bits on every processor, since SuperLU calls a BLAS; the solution does not.

It runs in Python on rank 0, between the operations of a Program, so that its bits do not depend on the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.extras import require
from minga.solve.block_tridiagonal import Pattern
from minga.solve.five_point import Direct, FivePoint
from minga.solve.five_point_parts import Part, parts_of, scales, terms
from minga.solve.refinement import refined
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Structure", "dissection", "factorised", "factors_of", "solution", "sparse"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Known = tuple[Floats, Callable[[Floats], Floats]]
"""Entries of a matrix, and what solves its systems."""

LEAF: Final = 9
"""Number of cells below which a part is not worth dissecting."""
SMALL_PIVOT: Final = 1e-6
"""Fraction of the largest entry in its column below which a diagonal entry is not used as a pivot."""


def sparse(grid: Grid, unknowns: int, coupling: Pattern, name: str = "sparse", *, keep: bool = False) -> Direct:
    """Return a direct solver for grids of two axes, by sparse factors in the order of nested dissection.

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
    keep
        Whether factors are kept for further right sides of the same matrix.

    Returns
    -------
    Direct
        The solver.
    """
    return factors_of(FivePoint(grid, unknowns, coupling, name), keep=keep)


def factors_of(matrix: FivePoint, *, keep: bool = False) -> Direct:
    """Return the same direct solver for a matrix whose fields are known.

    Parameters
    ----------
    matrix
        The fields of the matrix.
    keep
        Whether factors are kept for further right sides of the same matrix.

    Returns
    -------
    Direct
        The solver.
    """
    structure = functools.cache(lambda: Structure.of(matrix))  # on rank 0 alone, once it is needed

    known: list[Known] = []

    def solved(values: Mapping[Field, Floats], right: Sequence[Floats]) -> Floats:
        return _solved(matrix, structure(), values, right, known if keep else [])

    return Direct(matrix, solved, "solve_sparse")


def solution(matrix: FivePoint, values: Mapping[Field, Floats], right: Sequence[Floats]) -> Floats:
    """Return the solution of a system that is solved once, without a Program.

    Parameters
    ----------
    matrix
        The fields of the matrix.
    values
        Their whole arrays.
    right
        A right side for each unknown, of the grid's shape.

    Returns
    -------
    Floats
        The solution, of shape (k, rows, columns); NaN where the matrix is singular or not finite.
    """
    return _solved(matrix, Structure.of(matrix), values, right, [])


def _solved(
    matrix: FivePoint, structure: Structure, values: Mapping[Field, Floats], right: Sequence[Floats], known: list[Known]
) -> Floats:
    """Return the solution, of shape (k, rows, columns); `known` has the factors of the last matrix, or is empty."""
    scale = scales(structure.parts, values, matrix.unknowns, matrix.grid.shape)
    made = structure.matrix(values, scale)
    solve: Callable[[Floats], Floats] | None
    if known and np.array_equal(known[0][0], made.data):
        solve = known[0][1]
    else:
        solve = structure.solver(made)
        known[:] = [] if solve is None else [(made.data, solve)]
    b: Floats = scale * np.stack(right)
    if solve is None or not np.isfinite(b).all():
        return np.full((matrix.unknowns, *matrix.grid.shape), np.nan)
    return refined(terms(structure.parts, values, scale), b, solve)


def factorised(matrix: Any) -> Callable[[Floats], Floats] | None:
    """Return what solves a system with this matrix for a right side; None where it is singular or not finite."""
    require("scipy")
    from scipy.sparse.linalg import splu

    if not np.isfinite(matrix.data).all():
        return None
    try:
        factors = splu(
            matrix, permc_spec="NATURAL", diag_pivot_thresh=SMALL_PIVOT,
            options={"SymmetricMode": True, "Equil": False},
        )  # fmt: skip
    except RuntimeError:  # singular
        return None
    solve: Callable[[Floats], Floats] = factors.solve
    return solve


# Structure -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Positions of a matrix' entries in compressed columns, with the cells in the order of their elimination.

    parts    fields, in the order in which their entries are lined up
    sources  of the entries in columns: their number in that line
    starts   of the columns, and `rows` of their entries
    places   of all unknowns (equations): their number in the order of elimination, (k * cells,), k-major
    shape    of the grid
    """

    parts: tuple[Part, ...]
    sources: Integers
    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    places: Integers
    shape: tuple[int, ...]

    @classmethod
    def of(cls, matrix: FivePoint) -> Structure:
        """Return the structure of a matrix, in the order of nested dissection."""
        k, shape = matrix.unknowns, matrix.grid.shape
        order = dissection(shape[0], shape[1])
        position = np.empty(order.size, np.int64)
        position[order] = np.arange(order.size)
        places = k * position.reshape(shape) + np.arange(k)[:, None, None]
        parts = tuple(parts_of(matrix))
        rows, columns = [], []
        for part in parts:
            rows.append(places[part.equation][part.inside].ravel())
            columns.append(places[part.unknown][part.there].ravel())
        row, column = np.concatenate(rows), np.concatenate(columns)
        sources = np.lexsort((row, column))
        starts = np.concatenate(([0], np.cumsum(np.bincount(column, minlength=places.size))))
        return cls(parts, sources, starts.astype(np.int32), row[sources].astype(np.int32), places.ravel(), shape)

    def matrix(self, values: Mapping[Field, Floats], scale: Floats) -> Any:
        """Return the matrix in compressed columns, its equations scaled, in the order of elimination."""
        require("scipy")
        from scipy.sparse import csc_array

        line = [(scale[p.equation] * values[p.field])[p.inside].ravel() for p in self.parts]
        data = np.concatenate(line)[self.sources]
        size = self.places.size
        return csc_array((data, self.rows, self.starts), shape=(size, size))

    def solver(self, matrix: Any) -> Callable[[Floats], Floats] | None:
        """Return what solves a system for a right side (k, rows, columns); None where it is singular or not finite."""
        factors = factorised(matrix)
        if factors is None:
            return None

        def solve(right: Floats) -> Floats:
            b = np.empty(self.places.size)
            b[self.places] = right.ravel()
            return factors(b)[self.places].reshape(-1, *self.shape)

        return solve


def dissection(rows: int, columns: int) -> Integers:
    """Return the cells of a grid (row-major numbers) in the order of nested dissection."""
    numbers = np.arange(rows * columns).reshape(rows, columns)
    found: list[Integers] = []

    def part(cells: Integers) -> None:
        if cells.size <= LEAF or min(cells.shape) < 1:
            found.append(cells.ravel())
            return
        long = cells if cells.shape[0] >= cells.shape[1] else cells.T
        middle = long.shape[0] // 2
        part(long[:middle])
        part(long[middle + 1 :])
        found.append(long[middle])

    part(numbers)
    return np.concatenate(found)
