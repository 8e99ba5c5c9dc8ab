"""Agreement of all ranks, in one small message, on the observers that are due."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from minga.engine.stop import Ended, Reason
from minga.errors import CaseError, shown
from minga.running.observer import Observer, Phase
from minga.running.recording import Recording
from minga.running.schedule import Timetable
from minga.running.simulation import Simulation

__all__ = ["Agenda"]

_REASONS: Final[tuple[Reason, ...]] = ("time limit", "wall time", "asked", "over")
"""Reasons for which observers may end a run, the most important last, which stands for reasons in their own words."""


class Agenda:
    """The observers of one run in the order of their phases, made and used alike on all ranks."""

    def __init__(self, simulation: Simulation, observers: Sequence[Observer]) -> None:
        self._simulation = simulation
        self._observers = simulation.observers = sorted(observers, key=lambda observer: observer.phase)
        self._timetables = [Timetable(observer.schedule, simulation) for observer in self._observers]
        self._wanted = [False] * len(self._observers)
        _check_names(self._observers)

    def start(self) -> None:
        """Start all observers, and resume them where one has put back a state."""
        simulation = self._simulation
        for observer in self._observers:
            observer.start(simulation)
        simulation.states()  # raises for one that no checkpoint can hold
        if simulation.resumed is not None:
            for observer in self._observers:
                observer.resume(simulation, None if observer.name is None else simulation.kept.get(observer.name))

    def begin(self) -> None:
        """Show the state before the first step to those that want to see it."""
        for observer, timetable in zip(self._observers, self._timetables, strict=True):
            if timetable.begin(self._simulation):
                observer.observe(self._simulation)
        if self._simulation.ended is not None:  # by one of them
            self.observe()

    def next_step(self, recording: Recording | None = None) -> int:
        """Return the next step after which an observer may be due, the last one at the latest.

        Parameters
        ----------
        recording
            A recording that stands in for one of the observers.
        """
        step = self._simulation.step
        pairs = zip(self._observers, self._timetables, strict=True)
        goals = (
            recording.next_step(step)
            if recording is not None and observer is recording.series
            else timetable.next_step(step)
            for observer, timetable in pairs
        )
        return min(self._simulation.steps, *(goal for goal in goals if goal is not None), self._simulation.steps)

    def next_time(self) -> float | None:
        """Return the next model time at which an observer is due; None if there is none that the run must reach."""
        if not any(timetable.schedule.times for timetable in self._timetables):
            return None
        now = self._simulation.time
        goals = (timetable.next_time(now) for timetable in self._timetables)
        return min((goal for goal in goals if goal is not None), default=None)

    def ask(self, *numbers: int) -> tuple[tuple[int, ...], Ended | None]:
        """Ask all observers of all ranks; return the largest of each of `numbers` on any rank, and why the run ends."""
        simulation = self._simulation
        wanted = [
            observer.wants(simulation) or (simulation.rank == 0 and timetable.wall_time_over())
            for observer, timetable in zip(self._observers, self._timetables, strict=True)
        ]
        reasons = [_checked(observer, observer.ends(simulation)) for observer in self._observers]
        buffer = np.array([*numbers, max(map(_importance, reasons), default=0), *wanted], np.int64)
        simulation.engine.comm.allreduce(buffer, "max")
        found = buffer.tolist()
        self._wanted = [bool(word) for word in found[len(numbers) + 1 :]]
        importance = found[len(numbers)]
        return tuple(found[: len(numbers)]), self._ended(importance, reasons) if importance else None

    def _ended(self, importance: int, reasons: Sequence[str | None]) -> Ended:
        """Return the end whose importance was agreed on, given the reasons of this rank; collective."""
        comm, text = self._simulation.engine.comm, None
        if importance == len(_REASONS):
            own = comm.gather(next((said for said in reasons if _importance(said) == importance), None))
            text = comm.bcast(own and next(said for said in own if said is not None))
        return Ended(_REASONS[importance - 1], self._simulation.step, words=text)

    def observe(self) -> None:
        """Show the state after a step to those that are due; if one of them ends the run, also to those before it."""
        for number, wanted in enumerate(self._wanted):
            over = self._simulation.ended is not None
            self._offer(number, wanted or self._observers[number].schedule.chunks)
            if self._simulation.ended is not None and not over:
                for earlier in range(number):
                    self._offer(earlier, False)

    def _offer(self, number: int, wanted: bool) -> None:
        """Show the state to an observer if it is due."""
        observer, timetable = self._observers[number], self._timetables[number]
        if timetable.due(self._simulation, wanted):
            if timetable.only_at_end:
                self._simulation.set_aside(observer)
            self._show(observer)

    def finish(self) -> None:
        """Tell all observers that there are no more steps."""
        for observer in self._observers:
            observer.finish(self._simulation)

    def fail(self) -> None:
        """Tell all observers that an error ended the run, which none of them may hide by another one."""
        self._simulation.failed = True
        for observer in self._observers:
            with contextlib.suppress(Exception):
                observer.finish(self._simulation)

    def _show(self, observer: Observer) -> None:
        self._simulation.activity = "checkpoint" if observer.phase == Phase.KEEP else "observing"
        began = time.perf_counter()
        observer.observe(self._simulation)
        if observer.counted:
            self._simulation.seconds += time.perf_counter() - began


def _checked(observer: Observer, said: object) -> str | None:
    """Return why an observer wants the run to end; raise CaseError if that is no text."""
    if said is not None and not isinstance(said, str):
        raise CaseError(
            f"{type(observer).__name__}.ends() returned {shown(said)}: expected text or None",
            key="observers",
            remedy='return the reason in words, such as "the residual is below 1e-6"',
        )
    return said or None


def _importance(said: str | None) -> int:
    """Return the importance of a reason, from 1 on; 0 for none."""
    known: Sequence[str] = _REASONS
    return 0 if said is None else 1 + known.index(said) if said in known else len(known)


def _check_names(observers: Sequence[Observer]) -> None:
    """Raise CaseError if the state of observers cannot be put into checkpoints."""
    named: dict[str, Observer] = {}
    for observer in observers:
        if observer.name is None:
            continue
        if observer.name in named:
            raise CaseError(
                f"two observers are called {observer.name!r}", key="observers", remedy="give one another name"
            )
        if observer.phase >= Phase.KEEP:
            raise CaseError(
                f"the observer {observer.name!r} has state, and sees a step after its checkpoint was written",
                key="observers",
                remedy="give it an earlier phase, such as Phase.OBSERVE",
            )
        named[observer.name] = observer
