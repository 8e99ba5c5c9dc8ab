"""Frequencies at which a response has fallen by 3 dB, that is to 1/sqrt(2) of its value at low frequencies.

The frequency grows tenfold from 1 Hz until the response is smaller, and is then found between the last two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang.expr import where
from minga.models.photodiode.solver.current import Search
from minga.space.field import Register

__all__ = ["Bandwidth"]

FIRST: Final = 1.0
"""Frequency at which the search begins, Hz."""
FACTOR: Final = 10.0
"""Ratio of frequencies until the response is smaller."""
HIGHEST: Final = 1e16
"""Frequency beyond which there is none, Hz."""
LOWEST: Final = 1e-4
"""Frequency at which the search ends if the response is smaller already at the first one, Hz."""
TOLERANCE: Final = 1e-10
"""Tolerance of the square of the response, relative to its value at low frequencies."""


@dataclass(frozen=True, eq=False)
class Bandwidth:
    """Recorder of a search.

    Attributes
    ----------
    frequency
        Frequency at which the response is to be evaluated, Hz.
    found
        The result, Hz; NaN if there is none.
    """

    name: str
    frequency: Register = field(init=False)
    found: Register = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequency", Register(f"{self.name} tried"))
        object.__setattr__(self, "found", Register(f"{self.name} found"))

    def record(self, program: Program, square: Callable[[Program, Register], Any]) -> None:
        """Record the search; `square` records the response at a frequency and returns its relative square."""
        search, goal = Search(f"{self.name} search", TOLERANCE), -0.5
        value, target = Register(f"{self.name} value"), Register(f"{self.name} target")
        search.begin(program, goal)  # type: ignore[arg-type]
        program.let(self.frequency, FIRST)
        program.let(target, FIRST)
        program.let(value, 0.0)
        beyond = ~((target <= HIGHEST) & (target >= LOWEST))  # also if it is NaN
        with program.repeat(until=search.met(value) | beyond):
            program.let(self.frequency, target)
            program.let(value, -square(program, self.frequency))
            search.aim(program, self.frequency, value, target)
            both = (search.known_low > 0) & (search.known_high > 0)
            further = where(search.known_low > 0, FACTOR, 1.0 / FACTOR) * self.frequency
            program.let(target, where(both, target, further))
        program.let(self.found, where(search.met(value), self.frequency, math.nan))
