"""Schedules of observers: by steps, model time, wall time, on a condition, at the start or at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from minga.engine.clock import Interval, multiple, passed
from minga.engine.condition import check_condition, condition
from minga.engine.program import Program
from minga.errors import CaseError, shown
from minga.space.field import Register

if TYPE_CHECKING:
    from minga.running.simulation import Simulation

__all__ = ["Schedule", "Timetable", "at_intervals", "regular"]

_WHEN: Final = "schedule.when"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Schedule of an observer.

    Parameters
    ----------
    steps
        Every so many steps of the model; of several numbers, after multiples of each.
    time
        At each multiple of this model time, in the unit of the model's clock, or with a unit: ``"0.5 s"``; of several
        times, at multiples of each. Clocks whose steps can be adjusted reach these times exactly; with steps of a
        given length it is after the first step that reaches the time. It may be given beside `steps`.
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
    time: float | str | tuple[float | str, ...] | None = None
    seconds: float | None = None
    when: str | None = None
    chunks: bool = False
    start: bool = False
    end: bool = False

    def __post_init__(self) -> None:
        for steps in self.strides:
            if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
                raise CaseError(f"expected a whole number of at least 1, found {shown(steps)}", key="schedule.steps")
        for value in (value for value in self.times if not isinstance(value, str)):
            _check_positive(value, "schedule.time")
        if self.seconds is not None:
            _check_positive(self.seconds, "schedule.seconds")
        if self.when is not None:
            check_condition(self.when, _WHEN)
        intervals = [name for name in ("steps", "time", "seconds") if getattr(self, name) is not None]
        if ("seconds" in intervals and len(intervals) > 1) or (
            self.when is not None and intervals not in ([], ["steps"])
        ):
            given = ", ".join([*intervals, *(["when"] if self.when is not None else [])])
            raise CaseError(
                f"an observer cannot have all of {given}",
                key="schedule",
                remedy="give steps, time or both; or seconds; or when, with or without steps",
            )

    @property
    def strides(self) -> tuple[int, ...]:
        """Numbers of steps whose multiples count."""
        if self.steps is None:
            return ()
        return self.steps if isinstance(self.steps, tuple) else (self.steps,)

    @property
    def times(self) -> tuple[float | str, ...]:
        """Model times whose multiples count, as they were given."""
        if self.time is None:
            return ()
        return self.time if isinstance(self.time, tuple) else (self.time,)


def at_intervals(*intervals: Interval | None, start: bool = False, end: bool = False) -> Schedule:
    """Return a schedule of intervals that settings give: numbers of steps (int) or model times; None is no interval.

    Parameters
    ----------
    *intervals
        The intervals.
    start, end
        Also before the first step, and after the last one.
    """
    steps = tuple(value for value in intervals if isinstance(value, int))
    times = tuple(value for value in intervals if isinstance(value, float | str))
    return Schedule(steps or None, times or None, start=start, end=end)


def regular(step: int, now: float, intervals: Sequence[Interval | None]) -> bool:
    """Return whether a step, at this model time, is the first one or at a multiple of one of several intervals."""
    if step == 0:
        return True
    steps = (value for value in intervals if isinstance(value, int))
    times = (value for value in intervals if isinstance(value, float))
    return any(step % stride == 0 for stride in steps) or any(_at_multiple(now, interval) for interval in times)


def _at_multiple(now: float, interval: float) -> bool:
    count = passed(now, interval)
    return count > 0 and passed(2 * multiple(interval, count) - now, interval) >= count


def _check_positive(value: object, key: str) -> None:
    known = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not known or not 0 < value < math.inf:  # type: ignore[operator]
        raise CaseError(f"expected a positive number, found {shown(value)}", key=key)


class Timetable:
    """Application of a schedule to one run, created and used in the same way on all ranks."""

    def __init__(self, schedule: Schedule, simulation: Simulation) -> None:
        self.schedule = schedule
        model = simulation.model
        self._clock = clock = model.clock
        if schedule.times and clock is None:
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
        self._times = [clock.value(value, "schedule.time") for value in schedule.times] if clock is not None else []
        self._passed = [0] * len(self._times)
        """Numbers of intervals of model time that have passed."""
        self._looked = time.monotonic()
        self.only_at_end = False
        """True if the observer was due last for no other reason than the end of the run."""

    def begin(self, simulation: Simulation) -> bool:
        """Start or resume at the step the simulation is at, and return whether the observer is due there."""
        step, schedule = simulation.step, self.schedule
        self._passed = self._passed_by(simulation)
        fresh = simulation.resumed is None
        if not fresh and (self._regular(step) or (step > 0 and regular(step, simulation.time, self._times))):
            self._seen = step  # before the interruption
        over = step >= simulation.steps and schedule.end
        due = schedule.start and self._seen != step and (fresh or over)
        if due:
            self._seen = step
        return due

    def next_step(self, step: int) -> int | None:
        """Return the first step after `step` at which the simulation must stop to ask `due`; None for any."""
        strides = self.schedule.strides
        kind = None if self._clock is None else self._clock.kind
        if (not strides and self._program is not None) or (self._times and kind == "free"):
            strides = (1,)
        goals = [step - step % stride + stride for stride in strides]
        if kind == "constant":
            goals += [self._step_at(step, interval) for interval in self._times]
        return min(goals, default=None)

    def next_time(self, now: float) -> float | None:
        """Return the first model time after `now` at which the simulation must stop, None for any.

        It is None as well where the number of steps to that time is known or cannot be chosen: see `next_step`.
        """
        if self._clock is None or self._clock.kind not in ("split", "adaptive"):
            return None
        return min((multiple(interval, passed(now, interval) + 1) for interval in self._times), default=None)

    def _step_at(self, step: int, interval: float) -> int:
        """Return the first step after `step` that reaches the next multiple of an interval; steps have one length."""
        assert self._clock is not None
        length = self._clock.length
        assert length is not None
        count = passed(self._clock.at(step), interval) + 1
        goal = max(step + 1, math.floor(multiple(interval, count) / length) - 1)
        while passed(self._clock.at(goal), interval) < count:
            goal += 1
        return goal

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
        before, self._passed = self._passed, self._passed_by(simulation)
        return any(now > then for now, then in zip(self._passed, before, strict=True))

    def _passed_by(self, simulation: Simulation) -> list[int]:
        return [passed(simulation.time, interval) for interval in self._times]

    def _condition(self, simulation: Simulation) -> bool:
        if self._program is None or (self.schedule.strides and not self._multiple(simulation.step)):
            return False
        simulation.observe()
        simulation.engine.write(simulation.steps_done, simulation.step)
        simulation.engine.run(self._program)
        return bool(simulation.engine.read(self._holds))
