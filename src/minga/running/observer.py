"""Observers: everything in a run that is not a step of its model."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from minga.errors import CaseError, shown
from minga.running.schedule import Schedule

if TYPE_CHECKING:
    from minga.running.simulation import Simulation

__all__ = ["Observer", "Phase", "observer"]


class Phase(IntEnum):
    """Order in which observers see a step, however they were listed."""

    END = 0
    """Observers that may end the run, such as signals and time limits, and observers that are told of its end."""
    FRAMES = 1
    CHECK = 2
    """Errors in what frames have just recorded."""
    OBSERVE = 3
    """Series, and observers of users."""
    KEEP = 4
    """Checkpoints, which rely on all that was observed up to their step."""
    SHOW = 5
    """Output that people watch during the run."""
    MOVE = 6
    """Moving of work to other ranks, after all other observers have seen it in its place."""


class Observer:
    """Base class of observers; each method does nothing until it is replaced.

    All methods are called on every rank, in the same order; each may communicate, except `wants` and `ends`. Observers
    read the state and never change it: results do not depend on who observes.

    Attributes
    ----------
    schedule
        When `observe` is called; it may be an attribute of the class or be set before the run begins.
    phase
        Where the observer stands among those that are due after the same step.
    name
        Under which `state` is put into checkpoints, unique in a run; None for an observer without state. One with state
        stands before the phase ``KEEP``.
    counted
        Whether the time in `observe` counts as time of the steps, and not as output.
    """

    schedule: Schedule = Schedule()
    phase: Phase = Phase.OBSERVE
    name: str | None = None
    counted: bool = False

    def start(self, simulation: Simulation) -> None:
        """Prepare, when initial values are in the engine and before the first step.

        Parameters
        ----------
        simulation
            The run.
        """

    def resume(self, simulation: Simulation, state: Any) -> None:
        """Continue a run from a checkpoint, with what `state` returned then (None where there was nothing).

        Parameters
        ----------
        simulation
            The run.
        state
            The state from the checkpoint; None if there was none.
        """

    def wants(self, simulation: Simulation) -> bool:
        """Return whether this rank wants `observe` to be called now, beside its schedule; one rank is enough.

        Parameters
        ----------
        simulation
            The run.

        Returns
        -------
        bool
            True to be called now.
        """
        return False

    def ends(self, simulation: Simulation) -> str | None:
        """Return why this rank wants the run to end now, None if it does not; one rank is enough.

        Parameters
        ----------
        simulation
            The run.

        Returns
        -------
        str or None
            The reason in words, such as "the residual is below 1e-6", which summaries and reports repeat: the run is
            then complete. With "asked" or "time limit" it is interrupted, and may be resumed.
        """
        return None

    def observe(self, simulation: Simulation) -> None:
        """Examine the state after a step for which the observer is due; `simulation.ended` is set at the last one.

        `simulation.end(reason)`, called on all ranks, makes this step the last one.

        Parameters
        ----------
        simulation
            The run.
        """

    def state(self) -> Any:
        """Return the state for a checkpoint, as data for JSON; that of rank 0 counts.

        Returns
        -------
        object
            Data for JSON.
        """
        return None

    def finish(self, simulation: Simulation) -> None:
        """Clean up after the last step, also if the run failed.

        Parameters
        ----------
        simulation
            The run.
        """


class _Call(Observer):
    def __init__(self, function: Callable[[Simulation], None], schedule: Schedule) -> None:
        self._function, self.schedule = function, schedule

    def observe(self, simulation: Simulation) -> None:
        self._function(simulation)


def observer(function: Callable[[Simulation], None], steps: int | None = None, **schedule: Any) -> Observer:
    """Make an observer of a function.

    Parameters
    ----------
    function
        Called on every rank with the `Simulation` whenever it is due.
    steps, **schedule
        The entries of `Schedule`.

    Returns
    -------
    Observer
        For the argument ``observers`` of `mg.run` and `mg.drive`.

    Raises
    ------
    CaseError
        If `function` is not a function, or the schedule is invalid or empty.
    """
    if not callable(function):
        raise CaseError(f"observer({shown(function)}): expected a function", key="observers")
    due = Schedule(steps, **schedule)
    if due == Schedule():
        raise CaseError(
            "the observer would never be called",
            key="schedule",
            remedy="say when it is due: mg.observer(function, steps=10)",
        )
    return _Call(function, due)
