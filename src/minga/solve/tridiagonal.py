"""Tridiagonal systems along one axis, one for every line of cells: two ordered sweeps (the Thomas algorithm).

    low[i] * x[i-1] + diagonal[i] * x[i] + high[i] * x[i+1] = b[i]

The first sweep eliminates upwards, the second substitutes downwards; lines are independent, so both run along the other
axes at once, and through any number of ranks with the bits of one. Stable without pivoting where the matrix is
diagonally dominant or symmetric positive definite (Golub and Van Loan, Matrix Computations, 4th edition, section 4.3).
"""

from __future__ import annotations

import functools

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader
from minga.lang.kernel import Kernel
from minga.solve.laplacian import step
from minga.space.boundary import BoundaryLike, fixed
from minga.space.field import Field


def solve_tridiagonal(
    program: Program, axis: str | int, low: Field, diagonal: Field, high: Field, b: Field, x: Field, name: str = "line"
) -> None:
    """Record the solution of tridiagonal systems along an axis.

    All fields are f8 on one grid, with all its axes. Two fields are declared besides, for the eliminated upper diagonal
    and right side; `b` keeps its values.

    Parameters
    ----------
    program
        The Program to record into.
    axis
        Name or number of the axis.
    low, diagonal, high
        The coefficients; `low` of the first cell and `high` of the last are not used.
    b
        The right side.
    x
        The solution, which needs boundary=mg.fixed(0.0) along the axis.
    name
        The beginning of the names of all fields.
    """
    grid = x.grid
    along = grid.axis(axis)
    if any(item.grid != grid or item.replicated for item in (low, diagonal, high, b)):
        raise ProgramError(
            "a tridiagonal solve needs fields with all axes of one grid", remedy="declare them on one grid"
        )
    if grid.periodic[along]:
        raise ProgramError(
            f"a tridiagonal solve along {grid.axes[along]!r}, which is periodic: its first and last cells are coupled",
            remedy="use conjugate gradients, or a grid that is not periodic there",
        )
    zero: BoundaryLike = {along: fixed(0.0)}
    upper = Field(f"{name} upper", grid, boundary=zero)
    partial = Field(f"{name} partial", grid, boundary=zero)
    forward, backward = sweeps(grid.ndim, along)
    program.apply(forward, low, diagonal, high, b, upper, partial)
    program.apply(backward, upper, partial, x)


@functools.cache
def sweeps(ndim: int, axis: int) -> tuple[Kernel, Kernel]:
    """Return the kernels of elimination along +axis and substitution along -axis."""
    here, below, above = (0,) * ndim, step(ndim, axis, -1), step(ndim, axis, 1)

    def eliminate(
        low: CellReader, diagonal: CellReader, high: CellReader, b: CellReader, upper: CellReader, partial: CellReader
    ) -> None:
        # Beyond the first cell `upper` and `partial` are 0, so that its own `low` has no effect.
        pivot = diagonal[here] - low[here] * upper[below]
        value = b[here] - low[here] * partial[below]
        upper[here] = high[here] / pivot
        partial[here] = value / pivot

    def substitute(upper: CellReader, partial: CellReader, x: CellReader) -> None:
        x[here] = partial[here] - upper[here] * x[above]

    return Kernel(eliminate, order={axis: 1}), Kernel(substitute, order={axis: -1})
