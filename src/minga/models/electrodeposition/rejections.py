"""Numbers of rejected time steps, by the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from minga.engine.program import Program
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.iteration import Iteration
from minga.space.field import Register

__all__ = ["Rejections"]

REASONS: Final = ("unsolved", "unconverged", "negative", "error", "voltage", "limit")
"""Names of the reasons; an attempt to which several apply counts for the first."""


@dataclass(frozen=True, slots=True, eq=False)
class Rejections:
    """Registers that count rejected attempts since the beginning.

    Attributes
    ----------
    reason
        Why the last attempt was rejected: 0 if it was not, else the position in `REASONS` plus 1.
    counts
        Numbers of rejections, by the name of the reason: a linear system was not solved, the passes did not converge,
        a concentration became negative, the error was too large, the voltage was far beyond its cut-off, a limit of the
        program was passed, at which a shorter step ends.
    """

    reason: Register = field(default_factory=lambda: Register("rejected because", "i8"))
    counts: dict[str, Register] = field(
        default_factory=lambda: {name: Register(f"rejected {name}", "i8") for name in REASONS}
    )

    def judge(
        self, program: Program, iteration: Iteration, positive: Node, small: Node, overshoots: Node | None
    ) -> None:
        """Record the reason to reject the last attempt, or 0."""
        wrong = (iteration.unsolved.any, iteration.converged == 0, ~positive, ~small, overshoots)
        reason = as_node(0)
        for number, condition in reversed(list(enumerate(wrong))):
            if condition is not None:
                reason = where(condition, number + 1, reason)
        program.let(self.reason, reason)

    def judge_limits(self, program: Program, accepted: Register) -> None:
        """Record that the last attempt, which is good in itself, was not accepted because it passed a limit."""
        passed = 1 + REASONS.index("limit")
        program.let(self.reason, where((self.reason == 0) & ~as_node(accepted), passed, self.reason))

    def count(self, program: Program) -> None:
        """Record the count of the last attempt, which was rejected."""
        for number, register in enumerate(self.counts.values(), 1):
            program.let(register, register + where(self.reason == number, 1, 0))

    def observables(self, *, cutoff: bool, limits: bool) -> dict[str, Register]:
        """Return the registers by the names of their observables; those of a cut-off and of limits where they exist."""
        there = {"voltage": cutoff, "limit": limits}
        return {f"rejected_{name}": item for name, item in self.counts.items() if there.get(name, True)}
