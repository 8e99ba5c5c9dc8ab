"""Ctrl-C and SIGTERM in a run from Python: the step in progress is completed first, and everything is kept."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from minga.engine.signal_thread import GRACE, signals_in_thread, wait_for_end

__all__ = ["Interrupt"]


_DEFAULT: Final[dict[signal.Signals, Any]] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
_COPIES: Final = 1.0
"""Seconds in which several SIGTERM count as one: launchers and batch systems send copies."""


class Interrupt:
    """Request by Ctrl-C to end a run; the second Ctrl-C interrupts at once.

    With ``termination``, SIGTERM counts as well. When the run has saved its data, the signal is delivered again, and
    ends the process as it would have done at once. A run that has not ended its step within :data:`GRACE` seconds after
    SIGTERM is ended by a thread, whatever it waits for; what it had written stays.
    """

    def __init__(self, *, termination: bool = False) -> None:
        self.asked = False
        self._signals = (signal.SIGINT, signal.SIGTERM) if termination else (signal.SIGINT,)
        self._terminated: float | None = None
        self._answered = self._interrupted = False
        self._over = threading.Event()

    def answer(self) -> None:
        """Report that the last step is done and that the remaining time is spent on output."""
        self._answered = True

    def __call__(self) -> bool:
        """Return whether the run is to end after its step."""
        return self.asked

    @contextlib.contextmanager
    def listening(self) -> Iterator[Interrupt]:
        """Take over the signals inside the ``with`` block, in the main thread and unless others handle them."""
        main = threading.current_thread() is threading.main_thread()
        mine = [number for number in self._signals if main and signal.getsignal(number) is _DEFAULT[number]]
        try:
            with contextlib.ExitStack() as held:
                if signal.SIGTERM in mine:
                    self._over = held.enter_context(signals_in_thread(self._receive)).over
                for number in mine:
                    signal.signal(number, self._ask)
                yield self
        except BaseException as error:
            self._restore(mine)
            self.terminate(f"the run ended at SIGTERM: {error or type(error).__name__}")
            raise
        finally:
            self._restore(mine)

    def terminate(self, reason: str) -> None:
        """End the process by SIGTERM if that was the request to end the run; to be called when all data is saved."""
        if self._terminated is None:
            return
        sys.stderr.write(f"minga: {reason}\n")
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        signal.raise_signal(signal.SIGTERM)

    def _receive(self, numbers: bytes) -> bool:
        """Wait in a thread for the end of the run after SIGTERM, and end the process if it does not come."""
        if signal.SIGTERM not in numbers:
            return False
        self.asked = True
        if not wait_for_end(self._over, GRACE, lambda: self._answered):
            sys.stderr.write(f"minga: the step did not end within {GRACE:g} s of SIGTERM; the run is ended\n")
            sys.stderr.flush()
            os._exit(128 + signal.SIGTERM)
        return True

    @staticmethod
    def _restore(numbers: list[signal.Signals]) -> None:
        for number in numbers:
            signal.signal(number, _DEFAULT[number])

    def _ask(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal in the main thread; the thread may have noted the first SIGTERM before."""
        now = time.monotonic()
        if number == signal.SIGTERM and self._terminated is None:
            self._terminated, first = now, not self._interrupted
        else:
            copy = number == signal.SIGTERM and self._terminated is not None and now - self._terminated < _COPIES
            first = copy or not self.asked
        self.asked = self._interrupted = True
        if not first:
            raise KeyboardInterrupt
