"""Which solver takes the linear systems of Newton's method.

one axis    block elimination along it, in ordered kernels
rows        two axes: rows of nodes as dense blocks, by LAPACK on rank 0
sparse      two axes: sparse factors, by SuperLU on rank 0
krylov      two axes: BiCGStab with multigrid, on all ranks
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from minga.engine.engine import Engine
from minga.engine.follow import Hierarchy
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.photodiode.solver.problem import Linear, Scheme
from minga.solve.block_tridiagonal import BlockLines, Pattern
from minga.solve.iterative import Iterative
from minga.solve.planes import planes
from minga.solve.sparse import sparse
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["LinearSolver", "check_linear", "hierarchies_of", "in_words", "linear_solver", "unsolved_words"]

NARROW: Final = 4
"""Nodes across: up to so many, rows as dense blocks are as fast as anything."""
LARGE: Final = 10_000
"""Nodes: beyond so many factors take more time and memory than iterations."""


WORDS: Final[dict[Linear, str]] = {
    "rows": "rows of nodes as dense blocks, on rank 0",
    "sparse": "sparse factors by SuperLU, on rank 0",
    "krylov": "BiCGStab with multigrid, on all ranks",
}


class LinearSolver(Protocol):
    """Solves for all unknowns of all nodes; the blocks of its matrix are `matrix`: lower, diagonal, upper."""

    @property
    def matrix(self) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]: ...

    @property
    def fields(self) -> tuple[Field, ...]: ...

    def setup(self, program: Program) -> None: ...

    def solve(self, program: Program, b: Sequence[Field], x: Sequence[Field]) -> object: ...


def hierarchies_of(solver: LinearSolver) -> tuple[Hierarchy, ...]:
    """Grids of it that follow the device's, for a Model."""
    return solver.hierarchies if isinstance(solver, Iterative) else ()


def chosen(linear: Linear, grid: Grid) -> Linear:
    """What "auto" stands for on a grid of two axes."""
    if linear != "auto":
        return linear
    if grid.shape[1] <= NARROW:
        return "rows"
    return "sparse" if grid.box.size <= LARGE else "krylov"


def check_linear(linear: Linear, grid: Grid, scheme: Scheme) -> None:
    """CaseError for a choice where there is none."""
    if linear == "auto" or (grid.ndim == 2 and scheme == "newton"):
        return
    found = f"a device of {grid.ndim} axes" if scheme == "newton" else f"scheme = {scheme!r}"
    raise CaseError(
        f"linear = {linear!r} is for Newton's method in two axes; this is {found}",
        key="photodiode.linear",
        remedy="leave it out",
    )


def in_words(linear: Linear, grid: Grid) -> str:
    """For people: the solver of a grid of two axes."""
    found = chosen(linear, grid)
    return f"{WORDS[found]} ({found}{', chosen by the number of nodes' if linear == 'auto' else ''})"


def unsolved_words(engine: Engine, solver: LinearSolver) -> str:
    """What else a person can do about a failure: something if iterations came to no end."""
    if isinstance(solver, Iterative) and engine.read(solver.unsolved):
        return ', or solve its linear systems directly (photodiode.linear = "sparse")'
    return ""


def linear_solver(linear: Linear, grid: Grid, coupling: Pattern, held: Field, name: str) -> LinearSolver:
    """The solver of the systems on a grid of one or two axes, with 3 unknowns a node. `held`: not 0 at contacts."""
    if grid.ndim == 1:
        return BlockLines(grid, "x", 3, name, coupling)
    found = chosen(linear, grid)
    if found == "krylov":
        # Currents of electrons and of holes are of one kind.
        return Iterative(grid, 3, coupling, held, ((0,), (1, 2)), name=name)
    return (planes if found == "rows" else sparse)(grid, 3, coupling, name)
