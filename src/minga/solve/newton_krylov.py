"""Newton's method for implicit steps, u - scale f(u, t) = known, whose linear systems a Krylov method solves.

The linear systems are solved to a part of their right sides only (an inexact Newton method), since the next iteration
corrects what is left. The iteration ends when the correction that would follow, estimated by the rate of convergence,
is small beside the tolerance (E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, IV.8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import as_node, where
from minga.solve.jacobian import Scale, Vector
from minga.solve.multigrid import Multigrid
from minga.solve.permitted import PermittedErrors, sizes
from minga.solve.rates import Rates, rates_kernel
from minga.solve.shifted_systems import ShiftedSystems
from minga.space.field import TIME, Field, Register

__all__ = ["NewtonKrylov", "corrected"]

FORCING: Final = 1e-4
"""Part of its right side to which a linear system is solved."""
MOST_ROUNDS: Final = 20
"""Largest number of iterations of Newton's method."""
MOST_PRODUCTS: Final = 1000
"""Largest number of iterations of the Krylov method in each."""
SHARE: Final = 0.01
"""Part of the permitted errors that the last correction may leave."""
NEVER: Final = 1e300
"""Size of the correction before the first one."""


@dataclass(frozen=True, eq=False)
class NewtonKrylov:
    """Newton's method for implicit steps of some fields, with its vectors and registers.

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
    systems
        The linear systems of its iterations.
    good
        Register of the last solution: 1 if the iteration converged, otherwise 0.
    rounds, products
        Registers of the number of Newton's iterations of the last solution, and of Krylov iterations since the start.
    """

    rates: Rates
    fields: tuple[Field, ...]
    name: str
    systems: ShiftedSystems = field(init=False)
    good: Register = field(init=False)
    rounds: Register = field(init=False)
    products: Register = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "systems", ShiftedSystems(self.rates, self.fields, self.name))
        for word in ("good", "rounds", "products"):
            put(self, word, Register(f"{self.name} {word}", "i8"))

    @property
    def workspace(self) -> tuple[Field, ...]:
        """All fields of the workspace."""
        return self.systems.workspace

    @property
    def hierarchies(self) -> tuple[Multigrid, ...]:
        """The hierarchies of grids of the preconditioner, for a Model."""
        return self.systems.hierarchies

    def solve(self, program: Program, state: Vector, known: Vector, scale: Scale, permitted: PermittedErrors) -> None:
        """Record the solution of u - scale f(u, t) = known, with the time that `mg.TIME` holds.

        Parameters
        ----------
        program
            The Program to record into.
        state
            The slots that hold the first guess, and then the solution.
        known
            The slots of the known part.
        scale
            A number, a register, or an expression of registers.
        permitted
            The permitted errors, of which the iteration leaves a hundredth.
        """
        size, before = Register(f"{self.name} size"), Register(f"{self.name} size before")
        over, unsolved = Register(f"{self.name} over", "i8"), Register(f"{self.name} unsolved", "i8")
        left = Register(f"{self.name} left")
        program.let(self.rounds, 0)
        program.let(self.good, 0)
        program.let(over, 0)
        program.let(size, NEVER)
        residual = self._residual()
        with program.repeat(until=over > 0, expected=2), program.unchecked():
            program.apply(
                residual, state, known, self.rates.constants, self.systems.right, dt=scale, **self.rates.scalars
            )
            linear = self.systems.solve(
                program, state, scale, tolerance=FORCING, limit=MOST_PRODUCTS, name=f"{self.name} krylov",
                unsolved=unsolved,
            )  # fmt: skip
            program.let(before, size)
            found = program.apply(corrected, state, self.systems.change)
            program.let(size, permitted.share(found, "change", "size"))
            program.let(self.rounds, self.rounds + 1)
            program.let(self.products, self.products + linear.iterations)
            rate = where(self.rounds > 1, size / before, 0.5)
            program.let(left, size * where(rate < 1.0, rate / (1.0 - rate), NEVER))
            known_size = (size >= 0.0) & (size < NEVER)
            program.let(self.good, where((unsolved == 0) & known_size & (left <= SHARE), 1, 0))
            worse = (self.rounds > 1) & (size > 2.0 * before)
            failed = (unsolved > 0) | ~known_size | worse | (self.rounds >= MOST_ROUNDS)
            program.let(over, where((self.good > 0) | failed, 1, 0))

    def _residual(self) -> Any:
        """Return the kernel that stores known + scale f(u) - u."""
        rates = self.rates

        def compute(state: list[Any], known: list[Any], constants: list[Any], right: list[Any], **scalars: Any) -> None:
            here = (0,) * len(state[0].axes)
            h = scalars.pop("dt")
            for u, b, target, value in zip(
                state, known, right, rates.function(state, constants, TIME, **scalars), strict=True
            ):
                target[here] = (b[here] - u[here]) + h * as_node(value)

        return rates_kernel(compute, "newton-residual", rates)


@kernel
def corrected(state: Sequence[CellReader], change: Sequence[CellReader]) -> dict[str, Reduced]:
    """Store state = state + change; return the sizes of both."""
    here = (0,) * len(state[0].axes)
    values = [u[here] + d[here] for u, d in zip(state, change, strict=True)]
    for u, value in zip(state, values, strict=True):
        u[here] = value
    return sizes("change", [d[here] for d in change]) | sizes("size", values)
