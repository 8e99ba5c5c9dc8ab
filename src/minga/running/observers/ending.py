"""Ends of a run before its last step other than by the model's state: by people, signals and the clock."""

from __future__ import annotations

from collections.abc import Callable

from minga.engine.stop import Reason
from minga.running.observer import Observer, Phase
from minga.running.schedule import Schedule
from minga.running.simulation import Simulation

__all__ = ["Asked", "LastStep", "WallTime"]


class Asked(Observer):
    """Observer that ends a run on request, for instance by a signal.

    A step that takes more than a second from then on is left and undone, where the state before it is small enough to
    be kept in memory.

    Parameters
    ----------
    asked
        Returns whether the run is to end; asked on every rank now and then, and one rank is enough.
    """

    phase = Phase.END

    def __init__(self, asked: Callable[[], bool]) -> None:
        self._asked = asked

    def start(self, simulation: Simulation) -> None:
        """Let long steps be interrupted."""
        simulation.stepper.leave_where(self._asked)

    def ends(self, simulation: Simulation) -> Reason | None:
        """Return "asked" if the end was requested."""
        return "asked" if self._asked() else None


class WallTime(Observer):
    """Observer that ends a run after so many seconds of steps and observation."""

    phase = Phase.END

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def ends(self, simulation: Simulation) -> Reason | None:
        """Return "wall time" if the time is over."""
        return "wall time" if simulation.seconds >= self._seconds else None


class LastStep(Observer):
    """Observer that calls a function on every rank when all agree on the last step, before the last output."""

    phase = Phase.END
    schedule = Schedule(end=True)

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def observe(self, simulation: Simulation) -> None:
        """Call the function."""
        self._function()
