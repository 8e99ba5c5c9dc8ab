"""``progress.json``: the progress of a run for outside readers; renewed once a second, and kept at the end.

=========== ==================================================================================
``state``   ``starting``, ``running``, ``finishing`` (pictures, report), ``finished``,
            ``stopped`` (by a person), ``failed``, ``lost`` (a host or rank), ``waiting`` (to continue after a loss)
``reason``  why it stopped or failed, in words; else empty
``step``    steps done, of ``steps``
``seconds`` wall time of these steps; ``rate``: cell updates per second in this time, or steps
            per second on an unbounded plane
``cells``   cells of the grid, null on an unbounded plane; ``ranks``: ranks at work
``updated`` time of writing, in seconds since 1970; the file itself is touched every second while the run exists
``host``    machine and process (``pid``, which began at ``born``) that wrote it: a run whose process is
            gone has ended
``system``  the kernel and the process namespace of ``pid``, if known: nodes of a lab have
            names of their own, and processes of this machine
=========== ==================================================================================
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from minga.errors import RunError
from minga.output.directory import RunDirectory, write_whole

__all__ = ["OVER", "ProgressFile", "is_active", "is_lost", "note_state", "process_is_gone", "read_progress", "touched"]

OVER = ("finished", "stopped", "failed", "lost")
"""States after which nothing more happens."""

_INTERVAL = 1.0
_SILENT = 60.0
"""Seconds without a touch of the file after which a run on another machine is assumed to be gone."""
_LOOK = 3.0
"""Seconds in which a file that a clock calls old is touched, if only the clocks of two machines differ."""
_NOTHING: Mapping[str, Any] = {"step": 0, "steps": 0, "seconds": 0.0, "rate": 0.0, "cells": 0, "ranks": 0}


class ProgressFile:
    """Progress file as the run itself writes it, on rank 0. A disk error does not end the run.

    Raises
    ------
    RunError
        If the whole directory is gone: nothing more that the run computes could be kept.
    """

    def __init__(self, directory: RunDirectory, steps: int, cells: int | None, ranks: int) -> None:
        self._directory = directory
        self._size: dict[str, int | None] = {"steps": steps, "cells": cells, "ranks": ranks}
        self._updates = 0
        self._next = 0.0

    def starting(self) -> None:
        """Write that the ranks have started, kernels are compiled and fields are filled."""
        self._write("starting", 0, 0.0)

    def running(self, step: int, seconds: float, updates: int, steps: int | None = None) -> None:
        """Note that ``step`` steps were done in ``seconds``, with ``updates`` updates of all cells.

        ``steps`` is the number of all steps where that is only estimated before the end, None if it has not changed.
        The file is written if the last time was at least a second ago, and at the end.
        """
        self._updates = updates
        self._size["steps"] = self._size["steps"] if steps is None else steps
        if time.monotonic() >= self._next or step == self._size["steps"]:
            self._write("running", step, seconds)

    def last(self, step: int, seconds: float) -> None:
        """Write that there are no more steps."""
        self._write("running", step, seconds)

    def _write(self, state: str, step: int, seconds: float) -> None:
        self._next = time.monotonic() + _INTERVAL
        rate = self._updates * (self._size["cells"] or 1) / seconds if seconds > 0 else 0.0
        content = {
            "state": state,
            "step": step,
            "seconds": seconds,
            "rate": rate,
            "updates": self._updates,
            **self._size,
        }
        if not _put(self._directory, content) and not self._directory.path.exists():
            raise RunError(
                f"{self._directory.path} was removed while the run went on, after step {step} of {self._size['steps']}",
                remedy="begin the run again; what it had written is gone",
            )


def note_state(directory: RunDirectory, state: str, reason: str = "") -> None:
    """Write the state of a run as the command that began it knows it; the numbers stay."""
    _put(directory, {**_NOTHING, **(read_progress(directory) or {}), "state": state, "reason": reason})


@contextlib.contextmanager
def touched(directory: RunDirectory, rank: int) -> Iterator[None]:
    """Touch the file on rank 0 once a second inside the ``with`` block, however long a step takes: the run exists."""
    if rank != 0:
        yield
        return
    over = threading.Event()

    def touch() -> None:
        while not over.wait(_INTERVAL):
            with contextlib.suppress(OSError):
                os.utime(directory.progress)

    thread = threading.Thread(target=touch, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def read_progress(directory: RunDirectory) -> dict[str, Any] | None:
    """Return the contents of the file; None if there is none."""
    try:
        found = json.loads(directory.progress.read_text())
    except (OSError, ValueError):
        return None
    return {**_NOTHING, **found} if isinstance(found, dict) and "state" in found else None


def process_is_gone(progress: dict[str, Any]) -> bool:
    """Return whether the process that wrote last no longer exists, as far as this machine can tell."""
    if not _is_here(progress):
        return False
    try:
        pid = int(progress["pid"])
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (KeyError, ValueError, OSError):
        return False
    known, now = progress.get("born"), _birth(pid)
    return known is not None and known != now  # another process has its number, such as 1 in a container


def is_active(directory: RunDirectory, progress: dict[str, Any]) -> bool:
    """Return whether a run is still active, as far as this machine can tell.

    A run on another machine is active if its file was written recently, or is touched while this function waits.

    Parameters
    ----------
    directory
        Directory of the run.
    progress
        Contents of its file.
    """
    if progress["state"] in OVER or process_is_gone(progress):
        return False
    if _is_here(progress):
        return True
    if abs(time.time() - float(progress.get("updated", 0.0))) < _SILENT:
        return True
    before = _touched_at(directory)
    end = time.monotonic() + _LOOK
    while time.monotonic() < end:
        time.sleep(_LOOK / 10)
        if _touched_at(directory) != before:
            return True
    return False


def is_lost(directory: RunDirectory, progress: dict[str, Any]) -> bool:
    """Return whether a run that is not over has no process any more, by what can be seen at once.

    A process of another machine is judged by the age of the file.
    """
    if progress["state"] in OVER:
        return False
    if _is_here(progress):
        return process_is_gone(progress)
    return time.time() - max(float(progress.get("updated", 0.0)), _touched_at(directory)) > _SILENT


def _touched_at(directory: RunDirectory) -> float:
    """Return the time at which the file was touched last, in seconds since 1970."""
    try:
        with directory.progress.open("rb") as stream:  # a network file system then asks for the present time
            return os.fstat(stream.fileno()).st_mtime
    except OSError:
        return 0.0


def _is_here(progress: dict[str, Any]) -> bool:
    """Return whether the process that wrote last has a number that this machine can check."""
    return progress.get("host") == platform.node() or progress.get("system") == (_system() or "")


def _system() -> str | None:
    """Return the running kernel and the process namespace of this process; None if the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8] + " " + Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return None


def _birth(pid: int) -> str | None:
    """Return the start of a process in the system's terms.

    None if the system does not tell, or the process is a zombie, which has ended but was not waited for.
    """
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return None
    return None if state[0] == "Z" else f"{boot}-{state[19]}"


def _put(directory: RunDirectory, content: dict[str, Any]) -> bool:
    stamp = {"updated": time.time(), "host": platform.node(), "pid": os.getpid(), "born": _birth(os.getpid())}
    stamp["system"] = _system()
    try:
        write_whole(directory.progress, {"reason": "", **content, **stamp}, lasting=False)
    except RunError:
        return False
    return True
