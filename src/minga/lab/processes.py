"""Finding and ending the processes of a lab."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from minga.lab.cgroups import members
from minga.lab.state import Process, State, process_here

__all__ = ["end", "inside"]

_PATIENCE = 2.0
_LAST_PATIENCE = 10.0


def inside(state: State) -> dict[int, set[int]]:
    """Return the ids of the processes in each node, that is, in its network namespace or its control groups.

    Key -1 holds the processes in the switch, and those that were started inside the lab and have left it, which the
    mark in their environment identifies.
    """
    found: dict[int, set[int]] = {-1: set()}
    nodes: dict[tuple[int, int], int] = {}
    for node in range(-1, len(state.lab.nodes)):
        if node >= 0:
            found[node] = members(state.groups[node]) if node < len(state.groups) else set()
        with contextlib.suppress(OSError):
            there = state.namespace_file(state.namespace(None if node < 0 else node)).stat()
            nodes[there.st_dev, there.st_ino] = node
    mark = f"MINGA_LAB_TOKEN={state.token}".encode()
    for pid in _all_processes():
        with contextlib.suppress(OSError):
            place = Path(f"/proc/{pid}/ns/net").stat()
            where = nodes.get((place.st_dev, place.st_ino))
            if where is not None or mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found[-1 if where is None else where].add(pid)
    counted: set[int] = set().union(*(pids for node, pids in found.items() if node >= 0))
    found[-1] -= counted
    return found


def end(find: Callable[[], Iterable[int]]) -> None:
    """End the processes that ``find`` returns, and any they start meanwhile, until none are left.

    They get SIGTERM first, and SIGKILL if they are still running after two seconds.
    """
    begun = time.monotonic()
    asked: set[Process] = set()
    while time.monotonic() - begun < _LAST_PATIENCE:
        there = {process for pid in find() if pid != os.getpid() and (process := process_here(pid))}
        if not there:
            return
        forced = time.monotonic() - begun > _PATIENCE
        for process in there if forced else there - asked:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL if forced else signal.SIGTERM)
        asked |= there
        time.sleep(0.01)


def _all_processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
