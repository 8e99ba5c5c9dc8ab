"""A person's wish to stop, as a flag that the run looks at between steps."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

__all__ = ["INTERRUPTED", "StopRequest"]

INTERRUPTED = 130
"""Exit status of what a person stopped, as a shell gives it."""


class StopRequest:
    """Set by the first Ctrl-C, termination signal or ``SIGUSR1``; the second Ctrl-C interrupts as usual."""

    def __init__(self) -> None:
        self.asked = False

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
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
