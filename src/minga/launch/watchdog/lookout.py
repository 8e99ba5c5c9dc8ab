"""Lookout over the ranks of this host: their pulses, and the states of their processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

from minga.launch.processes import Process, seen
from minga.launch.watchdog.pulse import Pulse, read_pulses

__all__ = ["GONE", "RUNS", "STOPPED", "HostReport", "Lookout", "RankReport"]

RUNS: Final = "runs"
STOPPED: Final = "stopped"
GONE: Final = "gone"
"""States of the process of a rank."""


@dataclass(frozen=True, slots=True)
class RankReport:
    """A rank as the agent of its host sees it.

    Attributes
    ----------
    rank, pid
        Number of the rank and its process.
    state
        ``"runs"``, ``"stopped"`` (by SIGSTOP) or ``"gone"``.
    life
        Numbers that change while the process lives: beats of its heart, and its processor time.
    progress
        Numbers that change while it makes progress: steps, and polls inside a step.
    phase
        Its activity: :data:`minga.launch.watchdog.pulse.PHASES`.
    memory
        True if the system has killed it because memory was exhausted.
    """

    rank: int
    pid: int
    state: str
    life: tuple[int, int]
    progress: tuple[int, int]
    phase: str
    memory: bool = False

    @property
    def step(self) -> int:
        """Steps done."""
        return self.progress[0]


@dataclass(frozen=True, slots=True)
class HostReport:
    """Report of an agent on its host.

    Attributes
    ----------
    ranks
        The ranks that it has seen.
    free
        Free bytes on the disk of the run's directory; None if the host does not see it.
    """

    ranks: tuple[RankReport, ...]
    free: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {"ranks": [list(astuple(rank)) for rank in self.ranks], "free": self.free}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> HostReport:
        """Return the report from JSON.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the content is none.
        """
        ranks = [
            RankReport(rank, pid, state, tuple(life), tuple(progress), phase, memory)
            for rank, pid, state, life, progress, phase, memory in content["ranks"]
        ]
        return cls(tuple(ranks), content["free"])


class Lookout:
    """Lookout over the ranks whose pulses are in a folder.

    Parameters
    ----------
    folder
        Folder of the pulses.
    directory
        Directory of the run.
    """

    def __init__(self, folder: Path, directory: Path) -> None:
        self._folder, self._directory = folder, directory
        self._known: dict[int, Process] = {}
        self._starved: dict[int, bool] = {}
        """For ranks that are gone: True if memory was exhausted."""
        self._kills = _memory_kills()

    def look(self) -> HostReport:
        """Return the present state of all ranks."""
        ranks = tuple(self._seen(pulse) for pulse in read_pulses(self._folder))
        return HostReport(ranks, _free(self._directory))

    def processes(self) -> Iterator[Process]:
        """Yield the processes of ranks that exist."""
        for process in self._known.values():
            if process.lives:
                yield process

    def _seen(self, pulse: Pulse) -> RankReport:
        now = seen(pulse.pid)
        if pulse.rank not in self._known:
            self._known[pulse.rank] = Process(pulse.pid, -1 if now is None else now.began)
        gone = now is None or now.ended or now.began != self._known[pulse.rank].began
        if gone and pulse.rank not in self._starved:
            self._starved[pulse.rank] = _memory_kills() > self._kills
        ticks = 0 if now is None or gone else now.ticks
        return RankReport(
            rank=pulse.rank,
            pid=pulse.pid,
            state=GONE if gone else STOPPED if now is not None and now.stopped else RUNS,
            life=(pulse.beats, ticks),
            progress=(pulse.step, pulse.rounds),
            phase=pulse.phase,
            memory=self._starved.get(pulse.rank, False),
        )


def _free(directory: Path) -> int | None:
    """Return the free bytes of the disk that holds a directory; None if it does not exist here."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _memory_kills() -> int:
    """Return how many processes of this system were killed for lack of memory so far; 0 if it does not tell."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/vmstat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0
