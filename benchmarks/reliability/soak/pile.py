"""A pile of simulated machines, and the script of what happens to them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

__all__ = ["Change", "Machine", "machines", "script"]

SPEEDS: Final = {"ant": 6e6, "bee": 6e6, "cat": 4e6, "dog": 4e6, "eel": 8e6, "fox": 8e6, "gnu": 3e6, "hen": 6e6}
"""Cell updates per second of each machine; the first one has started the run, and does not fail."""


@dataclass(slots=True)
class Machine:
    """A machine and its state.

    Attributes
    ----------
    speed
        Cell updates per second when nothing slows it.
    slow, loss
        Factor by which it is slower at present, and part of its packets that are lost.
    cut, dead
        Whether its cable is cut, and whether it is off.
    deaths, kills
        Number of times that it went off, and that a process of the run on it was killed.
    """

    name: str
    speed: float
    folder: Path
    slow: float = 1.0
    loss: float = 0.0
    cut: bool = False
    dead: bool = False
    deaths: int = 0
    kills: int = 0

    @property
    def present(self) -> bool:
        """True if the others reach it."""
        return not (self.cut or self.dead)

    @property
    def rate(self) -> float:
        """Cell updates per second at present."""
        return self.speed / self.slow if self.present else 0.0


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """Something that happens to a machine."""

    at: float
    machine: int
    what: str
    value: float = field(default=0.0, compare=False)

    def happen(self, machine: Machine) -> None:
        """Change the state of a machine."""
        match self.what:
            case "slows" | "crawls":
                machine.slow = self.value
            case "is fast again":
                machine.slow = 1.0
            case "loses packets":
                machine.loss = self.value
            case "loses no more packets":
                machine.loss = 0.0
            case "is cut off" | "is cut off for a moment":
                machine.cut = True
            case "is connected again":
                machine.cut = False
            case "dies" | "dies with its disk":
                machine.dead, machine.deaths = True, machine.deaths + 1
                if self.what == "dies with its disk":
                    shutil.rmtree(machine.folder, ignore_errors=True)
            case "returns":
                machine.dead, machine.slow = False, 1.0
                machine.folder.mkdir(exist_ok=True)
            case "has a rank killed":
                machine.kills += 1


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of fault: seconds between two of them on a machine, its length, its size, and what it begins and ends."""

    begins: str
    ends: str
    between: float
    length: tuple[float, float]
    size: tuple[float, float] = (0.0, 0.0)
    starter: bool = True


_HOUR: Final = 3600.0
_KINDS: Final = (
    _Kind("slows", "is fast again", 1.7 * _HOUR, (60, 1800), (1.2, 4.0)),
    _Kind("crawls", "is fast again", 60 * _HOUR, (600, 3600), (60, 200), starter=False),
    _Kind("loses packets", "loses no more packets", 2.0 * _HOUR, (30, 900), (0.005, 0.2)),
    _Kind("is cut off for a moment", "is connected again", 8 * _HOUR, (1, 6), starter=False),
    _Kind("is cut off", "is connected again", 14 * _HOUR, (20, 900), starter=False),
    _Kind("dies", "returns", 8 * _HOUR, (120, 3600), starter=False),
    _Kind("dies with its disk", "returns", 30 * _HOUR, (600, 3600), starter=False),
    _Kind("has a rank killed", "", 10 * _HOUR, (0, 0)),
)
_SAME: Final = ({"slows", "crawls"}, {"is cut off", "is cut off for a moment"}, {"dies", "dies with its disk"})
"""Kinds of which a machine has one at a time."""


def machines(folder: Path) -> list[Machine]:
    """Return the machines, each with a folder for its disk."""
    pile = [Machine(name, speed, folder / name) for name, speed in SPEEDS.items()]
    for machine in pile:
        machine.folder.mkdir()
    return pile


def script(hours: float, chance: random.Random) -> list[Change]:
    """Return what happens in so many hours, in order."""
    return sorted(change for machine in range(len(SPEEDS)) for change in _of_machine(machine, hours * _HOUR, chance))


def _of_machine(machine: int, seconds: float, chance: random.Random) -> Iterator[Change]:
    begins = sorted(
        (at, number)
        for number, kind in enumerate(_KINDS)
        if machine > 0 or kind.starter
        for at in _moments(kind.between, seconds, chance)
    )
    free = [0.0] * len(_KINDS)
    for at, number in begins:
        kind = _KINDS[number]
        length = _between(kind.length, chance)
        if at < free[number]:
            continue
        for other, each in enumerate(_KINDS):
            if other == number or any({kind.begins, each.begins} <= same for same in _SAME):
                free[other] = at + length + 1
        yield Change(at, machine, kind.begins, _between(kind.size, chance))
        if kind.ends:
            yield Change(at + length, machine, kind.ends)


def _moments(between: float, seconds: float, chance: random.Random) -> Iterator[float]:
    at = chance.expovariate(1 / between)
    while at < seconds:
        yield at
        at += chance.expovariate(1 / between)


def _between(span: tuple[float, float], chance: random.Random) -> float:
    """Return a number of a span, whose logarithm is equally likely everywhere."""
    low, high = span
    return low * (high / low) ** chance.random() if low > 0 else 0.0
