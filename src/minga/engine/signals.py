"""Requests to end a run: a flag that the run looks at between steps, and a limit for runs that cannot look.

A rank that waits for a message, or computes in native code, does not execute Python's signal handlers. A thread
therefore receives the signals as well. When nobody has answered within some seconds, it ends the run, whatever that
waits for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final

__all__ = ["GRACE", "StopRequest", "bytes_written"]

GRACE: Final = 5.0
"""Seconds after Ctrl-C or a termination signal in which a run has to end its step."""
WRITING: Final = 30.0
"""Seconds without a byte written after which a run that has ended its step, and writes what it has, is given up."""

_COPIES: Final = 1.0
"""Seconds in which several signals are one: ``timeout``, launchers and batch systems send copies."""
_PAUSE: Final = 0.1
_QUIET: Final = 1.0
"""Seconds without so many bytes written: the run is not busy with output."""
_BUSY: Final = 1 << 20
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """Set by the first Ctrl-C, termination signal or ``SIGUSR1``.

    A second Ctrl-C or termination signal interrupts at once, unless it comes within a second of the first.

    Parameters
    ----------
    told
        Called once at the first signal, in a thread.
    late
        Called in a thread where a Ctrl-C or a termination signal was not answered within :data:`GRACE` seconds; it has
        to end the run. By default the main thread is interrupted. ``SIGUSR1`` sets no limit.
    written
        How many bytes this run has written so far. While it goes on writing, it is not late.
    """

    def __init__(
        self,
        told: Callable[[], object] | None = None,
        late: Callable[[], object] | None = None,
        written: Callable[[], int] | None = None,
    ) -> None:
        self.asked = False
        self.late = False
        """Whether the time to answer was over."""
        self._told = told
        self._end = late or self._interrupt
        self._written = written or bytes_written
        self._since = 0.0
        self._answered = False
        self._over = threading.Event()

    def __call__(self) -> bool:
        """Whether somebody has asked."""
        return self.asked

    def answer(self) -> None:
        """Say that the last step is done, and that the rest of the time is spent on output."""
        self._answered = True

    @contextlib.contextmanager
    def listening(self) -> Iterator[StopRequest]:
        """Take over these signals inside the ``with`` block."""
        reading, writing = socket.socketpair()
        with reading, writing:
            writing.setblocking(False)
            thread = threading.Thread(target=self._watch, args=(reading,), name="signals", daemon=True)
            thread.start()
            before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
            woken = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
            try:
                yield self
            finally:
                self._over.set()
                signal.set_wakeup_fd(woken)
                for number, handler in before.items():
                    signal.signal(number, handler)
                with contextlib.suppress(BlockingIOError):
                    writing.send(b"\0")
                thread.join()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        """Python's own handler, in the main thread: only here can what runs be interrupted."""
        if self.late:
            raise KeyboardInterrupt
        if not self.asked:
            self.asked, self._since = True, time.monotonic()
        elif number != signal.SIGUSR1 and time.monotonic() - self._since > _COPIES:
            raise KeyboardInterrupt

    def _watch(self, signals: socket.socket) -> None:
        told = False
        while not self._over.is_set():
            numbers = signals.recv(64)
            if not any(number in numbers for number in _SIGNALS):
                continue
            self.asked, self._since = True, self._since or time.monotonic()
            if self._told is not None and not told:
                self._told()
            told = True
            if signal.SIGINT in numbers or signal.SIGTERM in numbers:
                self._wait_for_answer()
                return

    def _wait_for_answer(self) -> None:
        begun = changed = time.monotonic()
        written = self._written()
        while not self._over.wait(_PAUSE):
            now = time.monotonic()
            if self._written() - written > _BUSY:
                written, changed = self._written(), now
            if now - begun >= GRACE and now - changed >= (WRITING if self._answered else _QUIET):
                self.late = True
                self._end()
                return

    def _interrupt(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


def bytes_written(processes: Iterable[int | str] = ("self",)) -> int:
    """Bytes that processes have written to files so far, as far as the system tells."""
    found = 0
    for process in processes:
        with contextlib.suppress(OSError, ValueError):
            lines = Path(f"/proc/{process}/io").read_text().splitlines()
            found += next(int(line.split()[1]) for line in lines if line.startswith("wchar"))
    return found
