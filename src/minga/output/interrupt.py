"""Ctrl-C and SIGTERM in a run from Python: the step in progress is completed first, and everything is kept."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

__all__ = ["Interrupt"]

_DEFAULT: Final[dict[signal.Signals, Any]] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
_COPIES: Final = 1.0
"""Seconds in which several SIGTERM count as one: launchers and batch systems send copies."""


class Interrupt:
    """Request by Ctrl-C to end a run; the second Ctrl-C interrupts at once.

    With ``termination``, SIGTERM counts as well. When the run has saved its data, the signal is delivered again, and
    ends the process as it would have done at once.
    """

    def __init__(self, *, termination: bool = False) -> None:
        self.asked = False
        self._signals = (signal.SIGINT, signal.SIGTERM) if termination else (signal.SIGINT,)
        self._terminated: float | None = None

    def __call__(self) -> bool:
        """Return whether the run is to end after its step."""
        return self.asked

    @contextlib.contextmanager
    def listening(self) -> Iterator[Interrupt]:
        """Take over the signals inside the ``with`` block, in the main thread and unless others handle them."""
        main = threading.current_thread() is threading.main_thread()
        mine = [number for number in self._signals if main and signal.getsignal(number) is _DEFAULT[number]]
        for number in mine:
            signal.signal(number, self._ask)
        try:
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

    @staticmethod
    def _restore(numbers: list[signal.Signals]) -> None:
        for number in numbers:
            signal.signal(number, _DEFAULT[number])

    def _ask(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        copy = number == signal.SIGTERM and self._terminated is not None and now - self._terminated < _COPIES
        if number == signal.SIGTERM and self._terminated is None:
            self._terminated = now
        if self.asked and not copy:
            raise KeyboardInterrupt
        self.asked = True
