"""Errors for output fields with values that are not finite."""

from __future__ import annotations

from minga.engine.clock import Interval
from minga.engine.finite import check_finite
from minga.running.observer import Observer, Phase
from minga.running.schedule import at_intervals
from minga.running.simulation import Simulation

__all__ = ["Finite"]


class Finite(Observer):
    """Observer that raises RunError if an output field is not finite, at intervals and at the end."""

    phase = Phase.CHECK

    def __init__(self, interval: Interval | None = None) -> None:
        self.schedule = at_intervals(interval, end=True)

    def observe(self, simulation: Simulation) -> None:
        """Check all output fields."""
        check_finite(simulation.model, simulation.engine, simulation.step)
