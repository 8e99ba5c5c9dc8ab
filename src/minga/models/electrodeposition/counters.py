"""Counts of time steps, what describes a failure, and the reasons why a run is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from minga.models.electrodeposition.rejections import Rejections
from minga.space.field import Register

__all__ = ["COMPLETE", "CUT_OFF", "EXHAUSTED", "REACHED", "Counters"]

REACHED: Final = 1
"""Value of `ended` once the deposit has reached the anode."""
CUT_OFF: Final = 2
"""Value of `ended` once the voltage has passed its cut-off."""
COMPLETE: Final = 3
"""Value of `ended` once the program of currents and voltages is over."""
EXHAUSTED: Final = 4
"""Value of `ended` once no voltage can drive the program's current."""


@dataclass(frozen=True, slots=True, eq=False)
class Counters:
    """Registers that count time steps and describe a failure.

    Attributes
    ----------
    taken, rejected
        Numbers of accepted and rejected time steps since the beginning.
    error
        Error of the last attempt, relative to the tolerance.
    failed
        0, or the reason why the run cannot continue: 1 the iteration did not converge, 2 the error stayed too large,
        3 a concentration became negative, 4 a linear system was not solved, 5 there were too many attempts.
    place
        Row-major number of the cell where the change was largest.
    species
        Index of the ion that changed there, or became negative.
    attempts
        Number of attempts in this step of the run.
    reasons
        Numbers of rejected time steps by the reason.
    """

    taken: Register = field(default_factory=lambda: Register("steps taken", "i8"))
    rejected: Register = field(default_factory=lambda: Register("steps rejected", "i8"))
    error: Register = field(default_factory=lambda: Register("step error"))
    failed: Register = field(default_factory=lambda: Register("failed", "i8"))
    place: Register = field(default_factory=lambda: Register("failed at", "i8"))
    species: Register = field(default_factory=lambda: Register("failed species", "i8"))
    attempts: Register = field(default_factory=lambda: Register("attempts", "i8"))
    reasons: Rejections = field(default_factory=Rejections)
