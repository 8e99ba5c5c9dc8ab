"""Simulated time: machines change by their script while the run computes, waits or is started again.

While ranks work, each host reports once a second, as agents do, and minga's own judge says from these reports who is
lost. Nothing here decides anything.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from benchmarks.reliability.soak.pile import Change, Machine
from minga.launch.watchdog.judge import Judge
from minga.launch.watchdog.lookout import GONE, RUNS, HostReport, RankReport
from minga.launch.watchdog.loss import LossError

__all__ = ["Vigil", "World"]

LIMIT: Final = 8.0
"""Seconds of silence after which a host counts as lost: the default of ``run.watch``."""
_PERIOD: Final = 1.0
_LONGEST_HEALING: Final = 5.0
"""Most seconds after which connections go on when a cable is back: TCP tries again after twice as long each time."""


@dataclass(eq=False)
class World:
    """The clock, and the machines.

    Attributes
    ----------
    now
        Simulated seconds.
    could
        Cell updates that the machines which were present could have done.
    happened
        How often what has happened.
    """

    machines: Sequence[Machine]
    script: list[Change]
    chance: np.random.Generator
    now: float = 0.0
    could: float = 0.0
    happened: Counter[str] = field(default_factory=Counter)
    losses: int = 0
    warnings: int = 0
    """Numbers of losses, and of other messages of the judge."""
    lost: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Cell updates that could have been done, by what was done instead."""
    _next: int = 0

    def wait(self, seconds: float, what: str = "pauses") -> None:
        """Let time pass in which no ranks work."""
        self.spend(seconds, what, None)

    @property
    def rate(self) -> float:
        """Cell updates per second of all machines that are present."""
        return sum(machine.rate for machine in self.machines)

    def spend(self, seconds: float, what: str, vigil: Vigil | None) -> None:
        """Let ranks work for so many seconds, and longer where some of them cannot.

        ``what`` is what they do instead of steps, empty for steps.

        Raises
        ------
        LossError
            If one of them is lost.
        """
        before, left = self.could, seconds
        try:
            while left > 1e-9:
                halted = vigil is not None and vigil.halted(self.now)
                due = math.inf if vigil is None else vigil.due if halted else min(vigil.due, self.now + left)
                until = min(self._next_change, due if vigil is not None else self.now + left)
                left -= 0.0 if halted else until - self.now
                self._pass(until, vigil)
        finally:
            if what:
                self.lost[what] += self.could - before

    @property
    def _next_change(self) -> float:
        return self.script[self._next].at if self._next < len(self.script) else math.inf

    def _pass(self, until: float, vigil: Vigil | None) -> None:
        self.could += (until - self.now) * self.rate
        self.now = until
        while self._next_change <= self.now:
            change = self.script[self._next]
            self._next += 1
            change.happen(self.machines[change.machine])
            self.happened[change.what] += 1
            if vigil is not None:
                vigil.notice(change, self)
        if vigil is not None and self.now >= vigil.due:
            vigil.look(self)


@dataclass(eq=False)
class Vigil:
    """The watch over the ranks of one start.

    Attributes
    ----------
    team
        The machines of its ranks, in order; the first one is where the run was started.
    phase
        What the ranks do.
    step
        Steps done.
    every_second
        Called once a second with the present time.
    due
        Time of the next look.
    """

    team: Sequence[Machine]
    now: float
    phase: str = "starting"
    step: int = 0
    every_second: Callable[[float], object] = lambda now: None
    due: float = 0.0

    def __post_init__(self) -> None:
        names = [machine.name for machine in self.team]
        self.judge = Judge(names, names[0], LIMIT, self.now)
        self.due = self.now + _PERIOD
        self._first = [(machine.deaths, machine.kills) for machine in self.team]
        self._beats = 0
        self._heals = self._cut = -math.inf

    def halted(self, now: float) -> bool:
        """Return whether some rank keeps the others waiting."""
        gone = any((each.deaths, each.kills) != first for each, first in zip(self.team, self._first, strict=True))
        return gone or now < self._heals or not all(machine.present for machine in self.team)

    def notice(self, change: Change, world: World) -> None:
        """Take note of a change: connections need a while after a cut, and agents report at once that a rank ended."""
        if world.machines[change.machine] not in self.team:
            return
        if change.what.startswith("is cut off"):
            self._cut = world.now
        elif change.what == "is connected again":
            self._heals = world.now + min(_LONGEST_HEALING, world.now - self._cut) * world.chance.random()
        elif change.what == "has a rank killed":
            self.due = world.now

    def look(self, world: World) -> None:
        """Let all hosts report, and the judge decide.

        Raises
        ------
        LossError
            If a host or rank is lost.
        """
        self.due = world.now + _PERIOD
        self._beats += 1
        for rank, machine in enumerate(self.team):
            self._report(rank, machine, world)
        for event in self.judge.look(world.now):
            if event.loss is not None:
                world.losses += 1
                raise LossError(event.loss)
            world.warnings += 1
        self.every_second(world.now)

    def _report(self, rank: int, machine: Machine, world: World) -> None:
        deaths, kills = self._first[rank]
        if not machine.present or machine.deaths != deaths:
            return
        if world.chance.random() >= machine.loss:  # a sign of life, in one datagram
            self.judge.heard_sign(machine.name, world.now)
        if world.chance.random() >= machine.loss:  # otherwise it comes with the next one, as TCP sends it again
            state = RUNS if machine.kills == kills else GONE
            report = RankReport(rank, 1000 + rank, state, (self._beats, self._beats), (self.step, 0), self.phase)
            self.judge.heard(machine.name, HostReport((report,)), world.now)
