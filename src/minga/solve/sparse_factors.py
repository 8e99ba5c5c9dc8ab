"""Systems on grids of two axes with k coupled unknowns a cell, solved directly: sparse factors, by SuperLU.

SciPy's SuperLU (X. S. Li, ACM Trans. Math. Softw. 31, 2005) factorises the matrix. How much of it fills up is decided
by the order of the cells, which here is nested dissection's (A. George, SIAM J. Numer. Anal. 10, 1973): both halves of
the grid, then the line of cells between them. Work grows like N^1.5 and memory like N log N for N cells.

Entries of drift and diffusion span 30 decades, and unknowns do, so that a solution has to be right in each of its
numbers and not only in the largest. Equations are scaled by powers of two, pivots stay on the diagonal unless they are
tiny there, and the solution is refined until it is the exact one of a matrix that differs in no entry by more than
round-off (R. D. Skeel, Math. Comput. 35, 1980: one step of refinement in the same precision is usually enough).

It runs in Python on rank 0, between the operations of a Program, so that its bits do not depend on the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.solve.block_tridiagonal import Pattern
from minga.solve.five_point import Direct, FivePoint
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["REFINEMENTS", "Structure", "dissection", "factorised", "sparse"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAF: Final = 9
"""Number of cells below which a part is not worth dissecting."""
SMALL_PIVOT: Final = 1e-6
"""Fraction of the largest entry in its column below which a diagonal entry is not used as a pivot."""
REFINEMENTS: Final = 6
"""Largest number of refinement steps."""


def sparse(grid: Grid, unknowns: int, coupling: Pattern, name: str = "sparse") -> Direct:
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

    Returns
    -------
    Direct
        The solver.
    """
    matrix = FivePoint(grid, unknowns, coupling, name)
    structure = functools.cache(lambda: Structure.of(matrix))  # on rank 0 alone, once it is needed

    def solved(values: Mapping[Field, Floats], right: Sequence[Floats]) -> Floats:
        return _solved(matrix, structure(), values, right)

    return Direct(matrix, solved, "solve_sparse")


def _solved(matrix: FivePoint, structure: Structure, values: Mapping[Field, Floats], right: Sequence[Floats]) -> Floats:
    """Return the solution, of shape (k, rows, columns)."""
    system, b = structure.system(values, right)
    solve = factorised(system)
    if solve is None or not np.isfinite(b).all():
        return np.full((matrix.unknowns, *matrix.grid.shape), np.nan)
    return structure.placed(refined(system, b, solve))


def factorised(matrix: Any) -> Callable[[Floats], Floats] | None:
    """Return what solves a system with this matrix for a right side; None where it is singular or not finite."""
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


def refined(matrix: Any, b: Floats, solve: Any) -> Floats:
    """Return a solution refined while that helps: until its backward error, entry by entry, is round-off."""
    sizes = abs(matrix)
    x: Floats = solve(b)
    best, error = x, np.inf
    for _ in range(REFINEMENTS + 1):
        left = b - matrix @ x
        scale = sizes @ np.abs(x) + np.abs(b)
        new = float((np.abs(left) / np.where(scale > 0.0, scale, 1.0)).max(initial=0.0))
        if not new < error:
            return best
        best, done = x, new <= np.finfo(np.float64).eps or new > 0.5 * error
        error = new
        if done:
            return best
        x = x + solve(left)
    return best


# Structure -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Part:
    """One field of the matrix: entry (i, j) of the blocks that lead `offset` cells away, in the cells `inside`."""

    field: Field
    equation: int
    unknown: int
    inside: tuple[slice, slice]
    offset: tuple[int, int]


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
            there = tuple(
                slice(s.start + d, s.stop + d) for s, d in zip(part.inside, part.offset, strict=True)
            )  # fmt: skip
            rows.append(places[part.equation][part.inside].ravel())
            columns.append(places[part.unknown][there].ravel())
        row, column = np.concatenate(rows), np.concatenate(columns)
        sources = np.lexsort((row, column))
        starts = np.concatenate(([0], np.cumsum(np.bincount(column, minlength=places.size))))
        return cls(parts, sources, starts.astype(np.int32), row[sources].astype(np.int32), places.ravel(), shape)

    def system(self, values: Mapping[Field, Floats], right: Sequence[Floats]) -> tuple[Any, Floats]:
        """Return the matrix in compressed columns and the right side, scaled, in the order of elimination."""
        from scipy.sparse import csc_array

        scale = self.scales(values, len(right), right[0].shape)
        line = [(scale[p.equation] * values[p.field])[p.inside].ravel() for p in self.parts]
        data = np.concatenate(line)[self.sources]
        size = self.places.size
        return csc_array((data, self.rows, self.starts), shape=(size, size)), self.lined_up(scale, right)

    def lined_up(self, scale: Floats, right: Sequence[Floats]) -> Floats:
        """Return a right side, scaled, in the order of elimination."""
        b = np.empty(self.places.size)
        b[self.places] = (scale * np.stack(right)).ravel()
        return b

    def placed(self, solution: Floats) -> Floats:
        """Return a solution as arrays over the grid, one for each unknown."""
        return solution[self.places].reshape(-1, *self.shape)

    def scales(self, values: Mapping[Field, Floats], k: int, shape: tuple[int, ...]) -> Floats:
        """Return a power of two for each equation that brings its largest entry near 1, of shape (k, rows, columns)."""
        largest = np.zeros((k, *shape))
        for part in self.parts:
            inside = (part.equation, *part.inside)
            largest[inside] = np.maximum(largest[inside], np.abs(values[part.field][part.inside]))
        with np.errstate(invalid="ignore"):
            exponents = np.frexp(np.where(np.isfinite(largest) & (largest > 0.0), largest, 1.0))[1]
        scale: Floats = np.ldexp(1.0, np.clip(-exponents, -1000, 1000))
        return scale


def parts_of(matrix: FivePoint) -> list[Part]:
    """Return all fields of a matrix, with the entries that do not reach beyond the grid."""
    k, (rows, columns) = matrix.unknowns, matrix.grid.shape
    everywhere = (slice(0, rows), slice(0, columns))
    full = [(i, j) for i in range(k) for j in range(k)]
    found = [Part(item, i, j, everywhere, (0, 0)) for item, (i, j) in zip(matrix.diagonal, full, strict=True)]
    for axis, size in enumerate(matrix.grid.shape):
        for part, inside, offset in (
            (matrix.lower[axis], slice(1, size), -1),
            (matrix.upper[axis], slice(0, size - 1), 1),
        ):
            cells = (inside, everywhere[1]) if axis == 0 else (everywhere[0], inside)
            way = (offset, 0) if axis == 0 else (0, offset)
            found += [Part(item, i, j, cells, way) for item, (i, j) in zip(part, matrix.places, strict=True)]
    return found


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
