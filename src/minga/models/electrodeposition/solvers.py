"""Solvers of the elliptic systems: direct in one dimension, else conjugate gradients with multigrid or line solves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from minga.engine.program import Program
from minga.lang.expr import Node
from minga.solve.elliptic import Elliptic
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.solve.krylov import Workspace, clear, conjugate_gradients, workspace
from minga.solve.lines import EllipticLines
from minga.space.boundary import fixed
from minga.space.field import Field, Register
from minga.space.grid import Grid

__all__ = ["INNER", "INNER_GROWING", "Solvers", "Unsolved"]

INNER: Final = 1e-3
"""Relative tolerance of the residual: passes correct the remainder, so closer solves would not save a pass."""
INNER_GROWING: Final = 1e-2
"""The same where a deposit grows: passes reduce the residual by a factor of 2 to 3 each, however close the solves."""


@dataclass(frozen=True, slots=True, eq=False)
class Unsolved:
    """Numbers of linear systems that an attempt at a time step failed to solve, by the unknown."""

    potential: Register = field(default_factory=lambda: Register("potential not solved", "i8"))
    concentrations: Register = field(default_factory=lambda: Register("concentrations not solved", "i8"))
    flow: Register = field(default_factory=lambda: Register("flow not solved", "i8"))

    def begin(self, program: Program) -> None:
        """Record the reset of all counts at the beginning of an attempt."""
        for register in (self.potential, self.concentrations, self.flow):
            program.let(register, 0)

    @property
    def any(self) -> Node:
        """Condition that some system was not solved."""
        return (self.potential > 0) | (self.concentrations > 0) | (self.flow > 0)


@dataclass(frozen=True, eq=False)
class Solvers:
    """Solvers of the elliptic operators on a grid.

    Attributes
    ----------
    grid
        The grid.
    limit
        Largest number of iterations of a system.
    unsolved
        Register that counts systems that needed more iterations, or ended without finite numbers.
    solids
        Whether some cells are or may become solid.
    inner
        Relative tolerance of the residual.
    iterations
        Register with the number of all iterations of conjugate gradients.
    """

    grid: Grid
    limit: int
    unsolved: Register
    solids: bool = False
    inner: float = INNER
    iterations: Register = field(default_factory=lambda: Register("potential iterations", "i8"))
    lines: dict[str, EllipticLines] = field(default_factory=dict)
    cycles: dict[str, EllipticMultigrid] = field(default_factory=dict)
    work: list[Workspace] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def prepare(self, far: Elliptic, near: Elliptic) -> None:
        """Declare the fields and solvers that two operators need.

        Parameters
        ----------
        far
            Operator whose solutions extend through the whole cell.
        near
            Operator whose solutions extend over a few cells.
        """
        if self.grid.ndim == 1:
            for operator in (far, near):
                self.lines[operator.name] = EllipticLines(operator, 0, f"{operator.name} lines")
            return
        self.cycles[far.name] = EllipticMultigrid(far, solids=self.solids, name=f"{far.name} multigrid")
        ends = [axis for axis in range(self.grid.ndim) if not self.grid.periodic[axis]]
        finest = min(ends, key=lambda axis: float(self.grid.widths(axis).min()))
        self.lines[near.name] = EllipticLines(near, finest, f"{near.name} lines")
        self.work.append(workspace(Field("potential unknown", self.grid, boundary=fixed(0.0)), name="potential"))

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields on coarse grids, which a Model must declare."""
        return tuple(item for cycle in self.cycles.values() for item in cycle.fields)

    @property
    def hierarchies(self) -> tuple[EllipticMultigrid, ...]:
        """Multigrid hierarchies, which lay out the coarse grids."""
        return tuple(self.cycles.values())

    def assembled(self, program: Program, operator: Elliptic) -> None:
        """Record everything that follows from new coefficients of an operator."""
        for found in (self.cycles.get(operator.name), self.lines.get(operator.name)):
            if found is not None:
                found.setup(program)

    def solve(self, program: Program, operator: Elliptic, b: Field, x: Field) -> None:
        """Record the solution x of a system with right-hand side b."""
        lines = self.lines.get(operator.name)
        if self.grid.ndim == 1:
            assert lines is not None
            lines(program, b, x)
            return
        name = f"{operator.name} {self.names.count(operator.name)}"
        self.names.append(operator.name)
        program.apply(clear, x)
        found = conjugate_gradients(
            program, operator, x, b, preconditioner=lines or self.cycles[operator.name], tolerance=self.inner,
            limit=self.limit, name=name, work=self.work[0], unsolved=self.unsolved,
        )  # fmt: skip
        program.let(self.iterations, self.iterations + found.iterations)
