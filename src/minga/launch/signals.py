"""Signals that ask minga to end: requests to runs, and interrupts of commands that start processes.

A run is asked by a flag that it reads between steps (:class:`StopRequest`). A rank that waits for a message, or
computes in native code, does not execute Python's signal handlers, so a thread receives the signals as well. If the run
has not answered within some seconds, the thread ends it, whatever it waits for.

All other commands that start processes are interrupted (:func:`interruptible`), so that they end what they started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from minga.engine.signal_thread import GRACE, bytes_written, signals_in_thread, wait_for_end

__all__ = ["GRACE", "STOP_SIGNAL", "StopRequest", "bytes_written", "interruptible", "uninterrupted"]

STOP_SIGNAL: Final = signal.SIGUSR1
"""Signal that asks ranks to stop after the current step; the launchers of MPICH and Open MPI pass it on."""


_COPIES: Final = 1.0
"""Seconds in which several signals count as one: ``timeout``, launchers and batch systems send copies."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, STOP_SIGNAL)
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """A request to end a run, made by the first Ctrl-C, termination signal or ``SIGUSR1``.

    A second Ctrl-C or termination signal interrupts at once, unless it comes within a second of the first.

    Parameters
    ----------
    told
        Called once at the first signal, in a thread.
    late
        Called in a thread where a Ctrl-C or a termination signal was not answered within :data:`GRACE` seconds; it has
        to end the run. By default the main thread is interrupted. ``SIGUSR1`` sets no limit.
    written
        Returns how many bytes the run has written so far. A run that keeps writing is not late.
    """

    def __init__(
        self,
        told: Callable[[], object] | None = None,
        late: Callable[[], object] | None = None,
        written: Callable[[], int] | None = None,
    ) -> None:
        self.asked = False
        self.late = False
        """True once the time to answer has passed."""
        self._told = told
        self._end = late or self._interrupt
        self._written = written
        self._answered = self._heard = False
        self._first: float | None = None
        """Time at which the first Ctrl-C or termination signal has arrived."""
        self._insists = False
        """True if another one has come that is no copy, until the main thread is interrupted by it."""
        self._over = threading.Event()
        self._look: Callable[[], None] = lambda: None

    def __call__(self) -> bool:
        """Return True once the run has been asked to end."""
        return self.asked

    def answer(self) -> None:
        """Report that the last step is done and that the remaining time is spent on output."""
        self._answered = True

    @contextlib.contextmanager
    def listening(self) -> Iterator[StopRequest]:
        """Receive the signals inside the ``with`` block."""
        with signals_in_thread(self._receive, self._note) as arrivals:
            self._over, self._look = arrivals.over, arrivals.look
            before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
            try:
                yield self
            finally:
                _restore(before)

    def _note(self, numbers: bytes) -> None:
        """Note when signals arrive: the main thread may be in native code, and handle them much later."""
        if signal.SIGINT not in numbers and signal.SIGTERM not in numbers:
            return
        now = time.monotonic()
        if self._first is None:
            self._first = now
        elif now - self._first > _COPIES:
            self._first, self._insists = now, True

    def _ask(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal in the main thread, the only one that can be interrupted."""
        self._look()
        self.asked = True
        if self._insists or self.late:
            self._insists = False
            raise KeyboardInterrupt

    def _receive(self, numbers: bytes) -> bool:
        """Take note of signals, in the thread; return True once nothing more is to be received."""
        if not any(number in numbers for number in _SIGNALS):
            return False
        first, self.asked, self._heard = not self._heard, True, True
        if self._told is not None and first:
            self._told()
        if signal.SIGINT not in numbers and signal.SIGTERM not in numbers:
            return False
        if not wait_for_end(self._over, GRACE, lambda: self._answered, self._written):
            self.late = True
            self._end()
        return True

    def _interrupt(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn requests to end (Ctrl-C, SIGTERM, SIGHUP) into KeyboardInterrupt, so that what was started is ended.

    The argument of the exception is the number of the signal; a Ctrl-C has none. Signals for which there is a handler
    already, or that are ignored (by ``nohup``), and all signals in other threads than the main one, are left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last = -_COPIES

    def interrupt(number: int, frame: object) -> None:
        nonlocal last
        if time.monotonic() - last < _COPIES:
            return
        last = time.monotonic()
        raise KeyboardInterrupt(*(() if number == signal.SIGINT else (number,)))

    free = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {
        number: signal.signal(number, interrupt) for number in _ENDING if signal.getsignal(number) is free[number]
    }
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back requests to end until the block is done: ending and removing things must not stop half-way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in _ENDING}
    try:
        yield
    finally:
        _restore(before)
    if came:
        signal.raise_signal(came[0])


def _restore(before: dict[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)
