"""A person's wish to stop, as a flag that the run looks at between steps."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["INTERRUPTED", "TO_BE_CONTINUED", "StopRequest", "status_of"]

INTERRUPTED = 130
"""Exit status of what a person stopped, as a shell gives it."""

TO_BE_CONTINUED = 75
"""Exit status of a run whose time was up, so that it wrote a checkpoint to go on from: EX_TEMPFAIL of sysexits.h."""

_COPIES = 2.0
"""Seconds in which several termination signals are one."""


def status_of(reason: str) -> int:
    """Exit status of a run that has a result, by the reason of its end (:class:`minga.engine.stop.Ended`)."""
    return {"asked": INTERRUPTED, "time limit": TO_BE_CONTINUED}.get(reason, 0)


class StopRequest:
    """Set by the first Ctrl-C, termination signal or ``SIGUSR1``; the second one interrupts at once.

    A second termination signal counts only if it comes a while after the first: batch systems and launchers send each
    process several copies of one. ``told`` is called at the first one.
    """

    def __init__(self, told: Callable[[], object] | None = None) -> None:
        self.asked = False
        self._told = told
        self._since = 0.0

    def __call__(self) -> bool:
        """Whether somebody has asked."""
        return self.asked

    @contextlib.contextmanager
    def listening(self) -> Iterator[StopRequest]:
        """Take over these signals inside the ``with`` block."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
        before = {number: signal.signal(number, self._ask) for number in numbers}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        again = self.asked and time.monotonic() - self._since > _COPIES
        if (self.asked and number == signal.SIGINT) or (again and number == signal.SIGTERM):
            raise KeyboardInterrupt
        if not self.asked:
            self.asked, self._since = True, time.monotonic()
            if self._told is not None:
                self._told()
