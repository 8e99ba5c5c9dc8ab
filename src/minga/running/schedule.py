"""Schedules of observers: by steps, model time, wall time, on a condition, at the start or at the end."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.engine.condition import check_condition, condition
from minga.engine.program import Program
from minga.errors import CaseError, shown
from minga.space.field import Register

if TYPE_CHECKING:
    from minga.running.simulation import Simulation

__all__ = ["Schedule", "Timetable"]

_WHEN: Final = "schedule.when"
_ROUNDING: Final = 1e-9
"""Part of an interval of model time by which sums of time steps may miss its end."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Schedule of an observer.

    Parameters
    ----------
    steps
        Every so many steps of the model; of several numbers, after multiples of each.
    time
        After the first step that reaches each multiple of this model time, in the unit of the model's clock. Steps are
        then done one by one.
    seconds
        Every so many seconds of wall time. Which steps these are differs from run to run.
    when
        After steps for which a condition on observables and ``step`` holds, such as ``"population < 10"``; with
        ``steps`` it is evaluated every so many steps, else after every step.
    chunks
        Whenever the run looks at the clock, about five times a second.
    start, end
        Also before the first step, and after the last one.

    Raises
    ------
    CaseError
        If a value is invalid, or several intervals are given.
    """

    steps: int | tuple[int, ...] | None = None
    time: float | None = None
    seconds: float | None = None
    when: str | None = None
    chunks: bool = False
    start: bool = False
    end: bool = False

    def __post_init__(self) -> None:
        for steps in self.strides:
            if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
                raise CaseError(f"expected a whole number of at least 1, found {shown(steps)}", key="schedule.steps")
        for name in ("time", "seconds"):
            value = getattr(self, name)
            known = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if value is not None and not (known and 0 < value < math.inf):
                raise CaseError(f"expected a positive number, found {shown(value)}", key=f"schedule.{name}")
        if self.when is not None:
            check_condition(self.when, _WHEN)
        intervals = [name for name in ("steps", "time", "seconds") if getattr(self, name) is not None]
        if len(intervals) > 1 or (self.when is not None and intervals not in ([], ["steps"])):
            given = ", ".join([*intervals, *(["when"] if self.when is not None else [])])
            raise CaseError(
                f"an observer cannot have all of {given}",
                key="schedule",
                remedy="give one of steps, time, seconds; or when, with or without steps",
            )

    @property
    def strides(self) -> tuple[int, ...]:
        """Numbers of steps whose multiples count."""
        if self.steps is None:
            return ()
        return self.steps if isinstance(self.steps, tuple) else (self.steps,)


class Timetable:
    """Application of a schedule to one run, created and used in the same way on all ranks."""

    def __init__(self, schedule: Schedule, simulation: Simulation) -> None:
        self.schedule = schedule
        model = simulation.model
        if schedule.time is not None and model.clock is None:
            raise CaseError(
                f"model {model.name!r} has no clock, so nothing can be due by its time",
                key="schedule.time",
                remedy="make the model with clock=mg.Clock(dt=...), or count steps",
            )
        self._holds = Register("schedule.holds", "bool")
        self._program: Program | None = None
        if schedule.when is not None:
            self._program = Program("schedule")
            observables = {**model.observables, "step": simulation.steps_done}
            self._program.let(self._holds, condition(schedule.when, observables, _WHEN))
        self._seen = -1
        """The last step that was observed."""
        self._interval = 0
        """Number of intervals of model time that have passed."""
        self._looked = time.monotonic()
        self.only_at_end = False
        """True if the observer was due last for no other reason than the end of the run."""

    def begin(self, simulation: Simulation) -> bool:
        """Start or resume at the step the simulation is at, and return whether the observer is due there."""
        step, schedule = simulation.step, self.schedule
        self._interval = self._intervals_over(simulation)
        fresh = simulation.resumed is None
        if not fresh and self._regular(step):
            self._seen = step  # before the interruption
        over = step >= simulation.steps and schedule.end
        due = schedule.start and self._seen != step and (fresh or over)
        if due:
            self._seen = step
        return due

    def next_step(self, step: int) -> int | None:
        """Return the first step after `step` at which the simulation must stop to ask `due`; None for any."""
        strides = self.schedule.strides
        if not strides and (self.schedule.time is not None or self._program is not None):
            strides = (1,)
        return min((step - step % stride + stride for stride in strides), default=None)

    def wall_time_over(self) -> bool:
        """Return whether the observer is due by this rank's clock."""
        seconds = self.schedule.seconds
        return seconds is not None and time.monotonic() - self._looked >= seconds

    def due(self, simulation: Simulation, wanted: bool) -> bool:
        """Return whether the observer is due after the steps that were done; `wanted`: by the clock, or on request."""
        step = simulation.step
        reached = self._reached(simulation)  # counts the interval as over, whatever else the observer is due for
        due = wanted or self._regular(step) or reached or self._condition(simulation)
        at_end = self.schedule.end and simulation.ended is not None
        if not (due or at_end) or self._seen == step:
            return False
        self.only_at_end = not due
        self._seen, self._looked = step, time.monotonic()
        return True

    def _regular(self, step: int) -> bool:
        return self._program is None and self._multiple(step)

    def _multiple(self, step: int) -> bool:
        return any(step % stride == 0 for stride in self.schedule.strides)

    def _reached(self, simulation: Simulation) -> bool:
        before, self._interval = self._interval, self._intervals_over(simulation)
        return self._interval > before

    def _intervals_over(self, simulation: Simulation) -> int:
        interval = self.schedule.time
        return 0 if interval is None else math.floor(simulation.time / interval + _ROUNDING)

    def _condition(self, simulation: Simulation) -> bool:
        if self._program is None or (self.schedule.strides and not self._multiple(simulation.step)):
            return False
        simulation.observe()
        simulation.engine.write(simulation.steps_done, simulation.step)
        simulation.engine.run(self._program)
        return bool(simulation.engine.read(self._holds))
