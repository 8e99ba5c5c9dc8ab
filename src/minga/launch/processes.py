"""Processes of this machine: finding those that a launcher has started, and ending any set of them.

:func:`end` is the only place where minga escalates: it asks processes to end, waits, and kills those that are left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Process", "Sight", "descendants", "end", "kill", "process_here", "processes_marked", "seen", "stopped"]

_PATIENCE: Final = 2.0
"""Seconds that processes get to end by themselves."""
_LAST_PATIENCE: Final = 8.0
"""Seconds after which :func:`end` gives up: a process in an uninterruptible wait cannot be killed."""
_KILLING: Final = 1.0
_PAUSE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Process:
    """A process, identified by its number and its start in clock ticks since boot, because numbers are reused."""

    pid: int
    began: int

    @property
    def lives(self) -> bool:
        """True while this very process exists and is not a zombie."""
        return process_here(self.pid) == self


@dataclass(frozen=True, slots=True)
class Sight:
    """A process number at one moment: the state, the processor time and the start of the process that has it.

    `ticks` and `began` are in clock ticks, `began` since boot.
    """

    state: str
    ticks: int
    began: int

    @property
    def ended(self) -> bool:
        """True if only a zombie is left."""
        return self.state in "ZX"

    @property
    def stopped(self) -> bool:
        """True if it is stopped by ``SIGSTOP`` or Ctrl-Z, but not by a debugger."""
        return self.state == "T"


def seen(pid: int) -> Sight | None:
    """Return what the system tells of a process number; None if no process has it."""
    found = _stat(pid)
    return None if found is None else Sight(found[0], int(found[11]) + int(found[12]), int(found[19]))


def process_here(pid: int) -> Process | None:
    """Return the process that has a number now, or None if there is none or only a zombie."""
    found = seen(pid)
    return None if found is None or found.ended else Process(pid, found.began)


def descendants(*pids: int) -> list[int]:
    """Return the children of processes, their children, and so on; nothing where the system has no ``/proc``."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        found = _stat(int(path.name))
        if found is not None:
            children.setdefault(int(found[1]), []).append(int(path.name))
    known = list(pids)
    for parent in known:  # the list grows while it is iterated over
        known += children.get(parent, [])
    return known[len(pids) :]


def stopped(pids: Iterable[int]) -> list[int]:
    """Return the processes that are stopped (by ``SIGSTOP``, Ctrl-Z or a debugger)."""
    return [pid for pid in pids if (found := _stat(pid)) is not None and found[0] in "Tt"]


def processes_marked(mark: str, *, here: bool = False) -> list[int]:
    """Return the processes whose environment contains an entry, ``NAME=VALUE``.

    With ``here`` only those that see the same network as this process: hosts that are namespaces of one machine may
    share its table of processes.
    """
    found = []
    network = _network("self") if here else None
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0") and network in (None, _network(path.parent.name)):
                found.append(int(path.parent.name))
    return found


def _network(process: str) -> str | None:
    """Return the name of the network namespace of a process; None if the system has none."""
    try:
        return str(Path(f"/proc/{process}/ns/net").readlink())
    except FileNotFoundError:
        return None


def end(find: Callable[[], Iterable[int]], patience: float = _PATIENCE, limit: float = _LAST_PATIENCE) -> None:
    """End processes and those that they start meanwhile: ask them, wait, and kill those that are left.

    Before they are killed they are stopped until ``find`` returns no others: a process that is killed while it starts
    another one would leave an orphan that nobody knows.

    Parameters
    ----------
    find
        Returns the numbers of the processes to end that exist now. It is called until it returns none, so processes
        that are started while others end are ended too. This process itself is never ended.
    patience
        Seconds between ``SIGTERM`` and ``SIGKILL``; 0 kills at once, also stopped processes.
    limit
        Seconds after which the function returns in any case.
    """
    begun = time.monotonic()
    asked: set[Process] = set()
    frozen: set[Process] = set()
    while True:
        there = {process for pid in find() if pid != os.getpid() and (process := process_here(pid))}
        passed = time.monotonic() - begun
        if not there or passed > limit:
            return
        if passed < patience:
            _send(signal.SIGTERM, there - asked)
            asked |= there
        elif there <= frozen:
            _send(signal.SIGKILL, there)
        else:
            _send(signal.SIGSTOP, there)
            frozen |= there
            continue
        time.sleep(_PAUSE)


def kill(pids: Iterable[int]) -> None:
    """Kill processes at once and wait, for at most a second, until they are gone."""
    there = [process for pid in pids if (process := process_here(pid))]
    end(lambda: [process.pid for process in there if process.lives], patience=0.0, limit=_KILLING)


def _send(number: signal.Signals, processes: Iterable[Process]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of ``/proc/PID/stat`` after the name: state, parent, ...; number 19 is the start time."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
