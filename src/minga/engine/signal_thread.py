"""Signals received in a thread: while the main thread runs native code, Python calls no signal handler."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["GRACE", "Arrivals", "bytes_written", "signals_in_thread", "wait_for_end"]

GRACE: Final = 20.0 if "SLURM_JOB_ID" in os.environ else 5.0
"""Seconds after Ctrl-C or a termination signal in which a run has to end its step.

Slurm kills the processes of a job 30 s after its termination signal, by default, so steps may take longer there.
"""
_WRITING: Final = 30.0
"""Seconds without output after which a run is given up that has ended its last step and writes its results."""
_PAUSE: Final = 0.1
_QUIET: Final = 1.0
"""Seconds in which a run that is busy with output writes more than ``_BUSY`` bytes."""
_BUSY: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Signals that arrive in a ``with`` block.

    Attributes
    ----------
    over
        Set at the end of the block.
    look
        Notes the signals that have arrived up to now, if the thread has not done so yet; for handlers of signals.
    """

    over: threading.Event
    look: Callable[[], None]


@contextlib.contextmanager
def signals_in_thread(
    receive: Callable[[bytes], bool], note: Callable[[bytes], object] | None = None
) -> Iterator[Arrivals]:
    """Pass the numbers of arriving signals to a function that runs in a thread, inside the ``with`` block.

    Only signals for which Python has a handler arrive, and only the main thread may enter the block.

    Parameters
    ----------
    receive
        Called with the numbers of one or more signals, one byte each. It returns True to receive no more of them. It
        may wait for the end of the block.
    note
        Called with the same once, as soon as possible, even while `receive` waits.
    """
    reading, writing = socket.socketpair()
    over = threading.Event()
    noted: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    looking = threading.RLock()  # a handler may interrupt another one

    def look() -> None:
        with looking, contextlib.suppress(BlockingIOError):
            while numbers := reading.recv(64):
                if numbers := numbers.strip(b"\0"):
                    if note is not None:
                        note(numbers)
                    noted.put(numbers)

    def watch() -> None:
        while not over.is_set():
            select.select([reading], [], [])
            look()
        noted.put(b"")

    def pass_on() -> None:
        while (numbers := noted.get()) and not receive(numbers):
            pass

    with reading, writing:
        for end in (reading, writing):
            end.setblocking(False)
        threads = [threading.Thread(target=target, name="signals", daemon=True) for target in (watch, pass_on)]
        for thread in threads:
            thread.start()
        before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        try:
            yield Arrivals(over, look)
        finally:
            over.set()
            signal.set_wakeup_fd(before)
            with contextlib.suppress(BlockingIOError):
                writing.send(b"\0")
            for thread in threads:
                thread.join()


def wait_for_end(
    over: threading.Event, grace: float, answered: Callable[[], bool], written: Callable[[], int] | None = None
) -> bool:
    """Wait for the end of a run that was asked to end; return False if it is late.

    Parameters
    ----------
    over
        Set at the end of the run.
    grace
        Seconds in which the run has to end its step.
    answered
        Returns True once the last step is done and the remaining time is spent on output.
    written
        Returns how many bytes the run has written so far; a run that keeps writing is not late. By default those of
        this process.
    """
    total = written or bytes_written
    begun = changed = time.monotonic()
    before = total()
    while not over.wait(_PAUSE):
        now = time.monotonic()
        if total() - before > _BUSY:
            before, changed = total(), now
        if now - begun >= grace and now - changed >= (_WRITING if answered() else _QUIET):
            return False
    return True


def bytes_written(processes: Iterable[int | str] = ("self",)) -> int:
    """Return how many bytes processes have written to files so far, as far as the system reports it."""
    found = 0
    for process in processes:
        with contextlib.suppress(OSError, ValueError):
            lines = Path(f"/proc/{process}/io").read_text().splitlines()
            found += next(int(line.split()[1]) for line in lines if line.startswith("wchar"))
    return found
