"""Choice of the solver for the linear systems of Newton's method.

- one axis: block elimination along it, in ordered kernels
- rows: two axes, rows of nodes as dense blocks, by LAPACK on rank 0
- sparse: two axes, sparse factorisation, by SuperLU on rank 0
- krylov: two axes, BiCGStab with multigrid, on all ranks; sparse factors from the first unsolved system on
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from minga.engine.engine import Engine
from minga.engine.follow import Hierarchy
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.expr import as_node, where
from minga.models.photodiode.solver.problem import Linear, Scheme
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.floating import floats
from minga.solve.block_tridiagonal import BlockLines, Pattern
from minga.solve.iterative import Iterative
from minga.solve.row_blocks import planes
from minga.solve.sparse_factors import sparse
from minga.space.field import Field, Register
from minga.space.grid import Grid

__all__ = [
    "LinearSolver",
    "check_contacts",
    "check_linear",
    "chosen",
    "description_of",
    "factorised",
    "hierarchies_of",
    "linear_solver",
    "unsolved_words",
]

NARROW: Final = 4
"""Number of nodes across up to which dense row blocks are as fast as any other solver."""
LARGE: Final = 10_000
"""Number of nodes beyond which a factorisation takes more time and memory than iterations."""
LARGEST: Final = 30_000
"""The same with regions that float, where many iterations do not solve what a factorisation does."""


DESCRIPTIONS: Final[dict[Linear, str]] = {
    "rows": "rows of nodes as dense blocks, on rank 0",
    "sparse": "sparse factors by SuperLU, on rank 0",
    "krylov": "BiCGStab with multigrid, on all ranks",
}


class LinearSolver(Protocol):
    """Solver for all unknowns of all nodes; the blocks of its matrix are `matrix`: lower, diagonal, upper."""

    @property
    def matrix(self) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]:
        """Fields of the lower, diagonal and upper blocks, row by row."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""

    def setup(self, program: Program) -> None:
        """Record the preparation of a solution after the matrix has changed."""

    def solve(self, program: Program, b: Sequence[Field], x: Sequence[Field]) -> object:
        """Record the solution for the right sides `b` into `x`, which may be the same fields."""


def hierarchies_of(solver: LinearSolver) -> tuple[Hierarchy, ...]:
    """Return the coarser grids of a solver that must follow the device's grid, for a Model."""
    return solver.hierarchies if isinstance(solver, Iterative) else ()


def chosen(linear: Linear, device: Device) -> Linear:
    """Return the solver that "auto" stands for on a device with two axes."""
    if linear != "auto":
        return linear
    size = device.grid.box.size
    if device.grid.shape[1] <= NARROW:
        return "rows"
    return "sparse" if size <= LARGE or (size <= LARGEST and floats(device)) else "krylov"


def check_linear(linear: Linear, grid: Grid, scheme: Scheme) -> None:
    """Raise CaseError if a solver is chosen where there is no choice."""
    if linear == "auto" or (grid.ndim == 2 and scheme == "newton"):
        return
    found = "a device with one axis" if scheme == "newton" else f"scheme = {scheme!r}"
    raise CaseError(
        f"linear = {linear!r} is for Newton's method in two axes; this is {found}",
        key="photodiode.linear",
        remedy="leave it out",
    )


def check_contacts(linear: Linear, device: Device, scheme: Scheme) -> None:
    """Raise CaseError for contacts whose equations are of too different sizes for the iterations of krylov."""
    metals = [t.name for t in device.terminals if t.image_force or t.tunnelling_mass is not None]
    loose = device.surface is not None and bool(device.surface.free.any())
    solver = chosen(linear, device) if scheme == "newton" and device.grid.ndim == 2 else None
    if solver != "krylov" or not (metals and loose):
        return
    raise CaseError(
        f'linear = "krylov" with a barrier that depends on the field, at the {metals[0]}, and a velocity of '
        "recombination at the other contact",
        key="photodiode.linear",
        remedy='write linear = "sparse", or leave one of both out',
    )


def description_of(linear: Linear, device: Device) -> str:
    """Describe the solver on a device with two axes."""
    found = chosen(linear, device)
    if linear != "auto":
        return f"{DESCRIPTIONS[found]} ({found})"
    why = "a region that floats" if found == "sparse" and device.grid.box.size > LARGE else "the number of nodes"
    return f"{DESCRIPTIONS[found]} ({found}, chosen by {why})"


def unsolved_words(engine: Engine, solver: LinearSolver) -> str:
    """Return a further remedy for a failure, if iterations of the linear solver did not converge."""
    if isinstance(solver, Iterative) and engine.read(solver.unsolved) and not engine.read(solver.given_up):
        return ', or solve its linear systems directly (photodiode.linear = "sparse")'
    return ""


def factorised(program: Program, solvers: Sequence[LinearSolver]) -> dict[str, Register]:
    """Record the observable that is 1 once factors solve what iterations did not; none without iterations."""
    given_up = [solver.given_up for solver in solvers if isinstance(solver, Iterative)]
    if not given_up:
        return {}
    found = Register("observed factorised")
    total = as_node(given_up[0])
    for one in given_up[1:]:
        total = total + one
    program.let(found, where(total > 0, 1.0, 0.0))
    return {"factorised": found}


def linear_solver(
    linear: Linear, device: Device, coupling: Pattern, held: Field, name: str, *, keep: bool = False
) -> LinearSolver:
    """Return the solver for a device with one or two axes and 3 unknowns per node; `held` is not 0 at contacts.

    `keep`: sparse factors are kept for further right sides of the same matrix.
    """
    grid = device.grid
    if grid.ndim == 1:
        return BlockLines(grid, "x", 3, name, coupling)
    found = chosen(linear, device)
    if found == "krylov":
        # Currents of electrons and holes are of the same kind.
        return Iterative(grid, 3, coupling, held, ((0,), (1, 2)), name=name, factors=True, keep=keep)
    return planes(grid, 3, coupling, name) if found == "rows" else sparse(grid, 3, coupling, name, keep=keep)
