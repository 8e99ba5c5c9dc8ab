"""Linear systems of implicit steps, (1 - scale J) change = right, solved by BiCGStab with the preconditioner that fits.

Where diffusion or fourth derivatives dominate, V-cycles of multigrid for this part (`near_part`) keep the number of
iterations small whatever the step; elsewhere the matrix that couples the fields of one cell does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minga.engine.program import Program
from minga.lang.expr import where
from minga.solve.biconjugate import Mapped, Vectors
from minga.solve.jacobian import Jacobian, Scale, Vector, differences, krylov_vectors
from minga.solve.krylov import Solution
from minga.solve.multigrid import Multigrid
from minga.solve.near_part import NearPart, near_part
from minga.solve.rates import Rates
from minga.space.field import Field, Register

__all__ = ["ShiftedSystems"]


@dataclass(frozen=True, eq=False)
class ShiftedSystems:
    """Linear systems (1 - scale J) change = right with the Jacobian J of some rates, and the vectors of their solver.

    Parameters
    ----------
    rates
        The rates of change.
    fields
        The fields, f8.
    name
        The beginning of the names of its registers.

    Attributes
    ----------
    right, change
        Slots of the right side and of the solution.
    vectors
        The vectors of the iteration.
    near
        The diffusive part of the Jacobian, whose multigrid serves as preconditioner where it dominates; None if there
        is no such part.
    """

    rates: Rates
    fields: tuple[Field, ...]
    name: str
    right: Vector = field(init=False)
    change: Vector = field(init=False)
    vectors: Vectors = field(init=False)
    near: NearPart | None = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for word in ("right", "change"):
            put(self, word, tuple(item.now for item in differences(self.fields, word)))
        put(self, "vectors", krylov_vectors(self.fields))
        put(self, "near", near_part(self.rates, self.fields, f"{self.name} near"))

    @property
    def workspace(self) -> tuple[Field, ...]:
        """All fields of the workspace."""
        vectors = (self.right, self.change, *(getattr(self.vectors, word) for word in Vectors.__slots__))
        near = () if self.near is None else self.near.workspace
        return (*(slot.field for vector in vectors for slot in vector), *near)

    @property
    def hierarchies(self) -> tuple[Multigrid, ...]:
        """The hierarchies of grids of the preconditioner, for a Model."""
        return () if self.near is None else self.near.levels

    def solve(
        self, program: Program, state: Vector, scale: Scale, *, tolerance: float, limit: int, name: str,
        unsolved: Register,
    ) -> Solution:  # fmt: skip
        """Record the solution of a system, linearised at a state.

        A solve that fails with multigrid is repeated without it.

        Parameters
        ----------
        program
            The Program to record into.
        state
            The slots of the state.
        scale
            A number, a register, or an expression of registers.
        tolerance
            The iteration ends when the residual is this part of the right side.
        limit
            The most iterations.
        name
            The beginning of the names of all registers.
        unsolved
            An i8 register, which becomes 1 where the limit is reached or the residual is no number, otherwise 0.

        Returns
        -------
        Solution
            Registers of the iteration.
        """
        jacobian, near = Jacobian(self.rates, state), self.near
        cellwise = jacobian.block_jacobi(scale)

        def solve(preconditioner: Mapped) -> Solution:
            program.let(unsolved, 0)
            return jacobian.solve(
                program, scale, self.change, self.right, self.vectors, preconditioner=preconditioner,
                tolerance=tolerance, limit=limit, name=name, unsolved=unsolved,
            )  # fmt: skip

        if near is None:
            return solve(cellwise)

        def either(program: Program, source: Vector, target: Vector) -> None:
            with program.when(near.strong > 0):
                near(program, source, target)
            with program.when(near.strong.node == 0):
                cellwise(program, source, target)

        near.setup(program, jacobian, scale)
        tried = Register(f"{name} tried", "i8")
        program.let(tried, 0)
        with program.repeat(until=tried > 0, expected=1):
            solution = solve(either)
            program.let(tried, where((unsolved == 0) | (near.strong.node == 0), 1, 0))
            program.let(near.strong, where(tried > 0, near.strong, 0))
        return solution
