"""Classical relaxation of Laplace u = f on uniform grids, one recorded sweep at a time.

Each sweep gives a cell the value that its neighbours and `f` ask for, in one of three orders: from old values (Jacobi),
even cells and then odd cells (red-black), or one cell after the other (lexicographic Gauss-Seidel). Between walls that
hold the value, N intervals apart, the smoothest wave of the error shrinks by cos(pi/N) a Jacobi sweep, by its square a
sweep in either of the other orders (Young, Iterative Solution of Large Linear Systems, 1971, chapter 5).

Ghost cells are cells like others: `boundary=mg.fixed(value)` puts the wall one spacing beyond the last cell. Every
function returns the register of the largest change, so that a loop can end::

    change = mg.Register("change", initial=1.0)
    with P.repeat(until=change < 1e-6, limit=10000):
        relaxation.red_black(P, u, into=change)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from minga.compile import portable
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node
from minga.lang.functions import abs as cell_abs
from minga.lang.functions import max as cell_max
from minga.lang.kernel import Kernel
from minga.solve.laplacian import step
from minga.space.field import Field, Register
from minga.space.grid import Grid

Order = Literal["red-black", "lexicographic"] | None


def jacobi(
    program: Program, u: Field, f: Field | None = None, *, weight: float = 1.0, into: Register | None = None
) -> Register:
    """Record one Jacobi sweep from `u.now` to `u.next`, and rotate.

    Parameters
    ----------
    program
        The Program to record into.
    u
        An f4 or f8 field with two slots.
    f
        The right side of Laplace u = f; None: 0.
    weight
        1, or less for damped Jacobi.
    into
        The register of the largest change; by default a new one.

    Returns
    -------
    Register
        The largest change of a cell.

    Raises
    ------
    ProgramError
        If the field has one slot or another type, or the grid is not uniform.
    """
    if u.slots < 2:
        raise ProgramError(f"jacobi: field {u.name!r} has one slot", remedy="declare it with slots=2")
    change = _sweep(program, None, u, f, weight, into)
    program.rotate(u)
    return change


def red_black(
    program: Program, u: Field, f: Field | None = None, *, weight: float = 1.0, into: Register | None = None
) -> Register:
    """Record one red-black sweep in place: cells with an even sum of indices, then the others.

    Parameters
    ----------
    program
        The Program to record into.
    u
        An f4 or f8 field.
    f
        The right side of Laplace u = f; None: 0.
    weight
        1 for Gauss-Seidel, between 1 and 2 for over-relaxation (see `best_weight`).
    into
        The register of the largest change; by default a new one.

    Returns
    -------
    Register
        The largest change of a cell.
    """
    return _sweep(program, "red-black", u, f, weight, into)


def lexicographic(
    program: Program, u: Field, f: Field | None = None, *, weight: float = 1.0, into: Register | None = None
) -> Register:
    """Record one lexicographic Gauss-Seidel sweep in place, with the bits of one process on all layouts.

    Cells are updated one after the other, the last axis fastest.

    Parameters
    ----------
    program
        The Program to record into.
    u
        An f4 or f8 field.
    f
        The right side of Laplace u = f; None: 0.
    weight
        1 for Gauss-Seidel, between 1 and 2 for over-relaxation (see `best_weight`).
    into
        The register of the largest change; by default a new one.

    Returns
    -------
    Register
        The largest change of a cell.
    """
    return _sweep(program, "lexicographic", u, f, weight, into)


def best_weight(grid: Grid) -> float:
    """Return the fastest over-relaxation weight if walls of given values lie one spacing beyond the last cells.

    Parameters
    ----------
    grid
        A uniform grid.

    Returns
    -------
    float
        The weight, between 1 and 2.
    """
    parts = zip(_parts(grid)[0], grid.shape, strict=True)
    rate = math.fsum(2.0 * part * portable.cos(np.pi / (n + 1)) for part, n in parts)
    return float(2.0 / (1.0 + np.sqrt(1.0 - rate * rate)))


def _sweep(program: Program, order: Order, u: Field, f: Field | None, weight: float, into: Register | None) -> Register:
    if u.dtype not in ("f4", "f8"):
        raise ProgramError(f"relaxation of field {u.name!r} of dtype {u.dtype}", remedy="declare it as f8 or f4")
    parts, source = _parts(u.grid)
    target = (u.next,) if order is None else ()
    made = sweep_kernel(order, parts, weight, f is not None)
    if f is None:
        change = program.apply(made, u, *target, into=into)
    else:
        change = program.apply(made, u, f, *target, source=source, into=into)
    assert isinstance(change, Register)
    return change


def _parts(grid: Grid) -> tuple[tuple[float, ...], float]:
    """Return the weight of a neighbour in a relaxed value, for each axis, and the factor of `f` (a negative area)."""
    widths: list[float] = []
    for axis, width in enumerate(grid.spacing):
        if not isinstance(width, float):
            raise ProgramError(
                f"relaxation on axis {grid.axes[axis]!r}, whose cells have different widths",
                remedy="use a uniform grid, or minga.solve.laplacian and conjugate gradients",
            )
        widths.append(width)
    finest = min(widths)
    ratios = [(finest / width) * (finest / width) for width in widths]
    total = 2.0 * math.fsum(ratios)
    return tuple(ratio / total for ratio in ratios), -finest * finest / total


@functools.cache
def sweep_kernel(order: Order, parts: tuple[float, ...], weight: float, with_source: bool) -> Kernel:
    """Return the kernel of one sweep of u, f (with a source) and the target (Jacobi); it returns the largest change."""

    def relax(u: CellReader, target: CellReader, source: Node | None) -> Reduced:
        ndim = len(parts)
        here = (0,) * ndim
        old = u[here]
        new = None if source is None else source
        for axis, part in enumerate(parts):
            both = part * (u[step(ndim, axis, -1)] + u[step(ndim, axis, 1)])
            new = both if new is None else new + both
        assert new is not None
        if weight != 1.0:
            new = old + weight * (new - old)
        target[here] = new
        return cell_max(cell_abs(new - old))

    def jacobi_laplace(u: CellReader, result: CellReader) -> Reduced:
        return relax(u, result, None)

    def jacobi_poisson(u: CellReader, f: CellReader, result: CellReader, *, source: Node) -> Reduced:
        return relax(u, result, source * f[(0,) * len(parts)])

    def laplace(u: CellReader) -> Reduced:
        return relax(u, u, None)

    def poisson(u: CellReader, f: CellReader, *, source: Node) -> Reduced:
        return relax(u, u, source * f[(0,) * len(parts)])

    function: Callable[..., Reduced]
    if order is None:
        function = jacobi_poisson if with_source else jacobi_laplace
    else:
        function = poisson if with_source else laplace
    return Kernel(function, order=order, name=f"{order or 'jacobi'} relaxation")
