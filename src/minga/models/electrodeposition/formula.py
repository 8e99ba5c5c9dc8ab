"""Coefficients of the time formula, implicit Euler or BDF2 with variable steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from minga.engine.program import Program
from minga.space.field import Register

__all__ = ["Formula"]


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """Registers of the time formula, c' = rate * c_next - now * c_now + before * c_previous (implicit Euler or BDF2).

    Attributes
    ----------
    rate, now, before
        Coefficients of the formula, 1/s.
    ratio
        Ratio of this step to the last one; 0 for implicit Euler.
    """

    rate: Register = field(default_factory=lambda: Register("formula rate"))
    now: Register = field(default_factory=lambda: Register("formula now"))
    before: Register = field(default_factory=lambda: Register("formula before"))
    ratio: Register = field(default_factory=lambda: Register("formula ratio"))

    def record(self, program: Program, step: Register, ratio: object) -> None:
        """Record the coefficients for a step of length `step` (s) and its ratio to the last step."""
        program.let(self.ratio, ratio)
        program.let(self.rate, (1.0 + 2.0 * self.ratio) / ((1.0 + self.ratio) * step))
        program.let(self.now, (1.0 + self.ratio) / step)
        program.let(self.before, self.ratio * self.ratio / ((1.0 + self.ratio) * step))
