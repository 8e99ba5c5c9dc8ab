"""The processes that a launcher has started on this machine: each rank is in a session of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["descendants", "kill", "stopped"]

_PATIENCE: Final = 1.0
_PAUSE: Final = 0.01


def descendants(process: int) -> list[int]:
    """The children of a process, theirs, and so on; empty where the system does not tell."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        found = _state(int(path.name))
        if found is not None:
            children.setdefault(found[1], []).append(int(path.name))
    known = [process]
    for parent in known:  # grows meanwhile
        known += children.get(parent, [])
    return known[1:]


def stopped(processes: Iterable[int]) -> list[int]:
    """Those that somebody has stopped (``SIGSTOP``, Ctrl-Z, a debugger)."""
    return [process for process in processes if (found := _state(process)) is not None and found[0] in "Tt"]


def kill(processes: Iterable[int]) -> None:
    """End processes at once, also stopped ones, and wait a moment until they are gone."""
    there = list(processes)
    for process in there:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    limit = time.monotonic() + _PATIENCE
    while any((found := _state(process)) is not None and found[0] != "Z" for process in there):
        if time.monotonic() > limit:
            return
        time.sleep(_PAUSE)


def _state(process: int) -> tuple[str, int] | None:
    """The letter of a process's state, and its parent."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[1])
