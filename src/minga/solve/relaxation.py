"""Classical relaxation of Laplace u = f on uniform grids, one recorded sweep at a time.

Each sweep gives a cell the value that its neighbours and `f` ask for, in one of three orders: from old values (Jacobi),
even cells and then odd cells (red-black), or one cell after the other (lexicographic Gauss-Seidel). For
zero walls and N intervals a side, the error of the smoothest wave shrinks by cos(pi/N) a Jacobi sweep, and by its square
a sweep in either of the other orders (Young, Iterative Solution of Large Linear Systems, 1971, chapter 5).

Ghost cells are cells like others: `boundary=mg.fixed(value)` puts the wall one spacing beyond the last cell. Every
function returns the register of the largest change, so that a loop can end::

    change = mg.Register("change", initial=1.0)
    with P.repeat(until=change < 1e-6, limit=10000):
        relaxation.red_black(P, u, into=change)
"""

from __future__ import annotations

import numpy as np

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node
from minga.lang.functions import max as cell_max
from minga.lang.kernel import Kernel, kernel
from minga.solve.laplacian import step
from minga.space.field import Field, Register
from minga.space.grid import Grid


def jacobi(
    program: Program, u: Field, f: Field | None = None, *, weight: float = 1.0, into: Register | None = None
) -> Register:
    """Record one Jacobi sweep from `u.now` to `u.next`, and rotate. `u` needs two slots.

    weight  1, or less for damped Jacobi
    into    the register of the largest change; a new one if not given
    """
    if u.slots < 2:
        raise ProgramError(f"jacobi: field {u.name!r} has one slot", remedy="declare it with slots=2")
    couplings, source = _normalised(u.grid)
    if f is None:
        change = program.apply(laplace_jacobi, u, u.next, **couplings, weight=weight, into=into)
    else:
        change = program.apply(poisson_jacobi, u, f, u.next, **couplings, source=source, weight=weight, into=into)
    program.rotate(u)
    assert isinstance(change, Register)
    return change


def red_black(
    program: Program, u: Field, f: Field | None = None, *, weight: float = 1.0, into: Register | None = None
) -> Register:
    """Record one red-black sweep in place: cells with an even sum of indices, then the others.

    weight  1 for Gauss-Seidel, between 1 and 2 for over-relaxation (fastest near 2 / (1 + sin(pi/N)))
    """
    return _in_place(program, (laplace_red_black, poisson_red_black), u, f, weight, into)


def lexicographic(
    program: Program, u: Field, f: Field | None = None, *, weight: float = 1.0, into: Register | None = None
) -> Register:
    """Record one sweep in place, cell after cell, the last axis fastest, with the bits of one process on all layouts.

    weight  1 for Gauss-Seidel, between 1 and 2 for over-relaxation
    """
    return _in_place(program, (laplace_lexicographic, poisson_lexicographic), u, f, weight, into)


def best_weight(shape: tuple[int, ...]) -> float:
    """The over-relaxation weight that is best for equal spacings and zero walls one spacing beyond `shape` cells."""
    rho = float(np.mean([np.cos(np.pi / (n + 1)) for n in shape]))
    return float(2.0 / (1.0 + np.sqrt(1.0 - rho * rho)))


def _in_place(
    program: Program,
    kernels: tuple[Kernel, Kernel],
    u: Field,
    f: Field | None,
    weight: float,
    into: Register | None,
) -> Register:
    couplings, source = _normalised(u.grid)
    if f is None:
        change = program.apply(kernels[0], u, **couplings, weight=weight, into=into)
    else:
        change = program.apply(kernels[1], u, f, **couplings, source=source, weight=weight, into=into)
    assert isinstance(change, Register)
    return change


def _normalised(grid: Grid) -> tuple[dict[str, float], float]:
    """The part of each axis' neighbours in a relaxed value, and that of f (a length squared, negative)."""
    inverse = []
    for axis, width in enumerate(grid.spacing):
        if not isinstance(width, float):
            raise ProgramError(
                f"relaxation on axis {grid.axes[axis]!r} of different cell widths",
                remedy="use a uniform grid, or minga.solve.laplacian and conjugate gradients",
            )
        inverse.append(1.0 / (width * width))
    total = 2.0 * sum(inverse)
    return {f"part{axis}": value / total for axis, value in enumerate(inverse)}, -1.0 / total
