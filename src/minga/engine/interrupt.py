"""Interrupts of running Programs: signals are received, and a step that takes long can be left.

Loops in native code prevent Python from running, and thus a run from being ended. After some rounds of its loops a
Program therefore calls Python briefly, after the same number of rounds on all ranks: there they agree on whether to
leave it, and on the number of rounds until the next call. Results do not depend on any of this.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np

from minga.engine.comm import Comm

__all__ = ["NEVER", "InterruptPoll"]

SECONDS: Final = 0.25
"""Seconds from one poll to the next."""
PATIENCE: Final = 1.0
"""Seconds that a step gets to end by itself once the end of the run was requested."""
FASTER: Final = 8
"""Largest factor by which the number of rounds until the next poll grows."""
NEVER: Final = 1 << 62
"""Number of rounds that no loop reaches."""


class InterruptPoll:
    """A function that loops of an engine call after some rounds: it returns the rounds until the next call, 0 to leave.

    Attributes
    ----------
    requested
        Returns True once the run is to end; None: Programs never turn to Python.
    may_leave
        True if the Program that runs may be left in the middle; the same on all ranks.
    polls
        Number of polls so far: a Program that is polled makes progress.
    """

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self.requested: Callable[[], bool] | None = None
        self.may_leave = False
        self.polls = 0
        self._rounds = 1
        self._last = self._since = 0.0

    def begin(self) -> int:
        """Return the rounds until the first poll of a run."""
        self._last = time.perf_counter()
        self._since = 0.0
        return NEVER if self.requested is None else self._rounds

    def __call__(self) -> int:
        """Poll, and return the rounds until the next poll, 0 to leave; collective."""
        self.polls += 1
        now = time.perf_counter()
        if not self._since and self.requested is not None and self.requested():
            self._since = now
        late = self.may_leave and self._since > 0.0 and now - self._since >= PATIENCE
        wanted = int(self._rounds * SECONDS / max(now - self._last, 1e-9))
        words = np.array([-max(1, min(wanted, FASTER * self._rounds, NEVER)), late], np.int64)
        self._comm.allreduce(words, "max")
        self._rounds, self._last = -int(words[0]), time.perf_counter()
        return 0 if words[1] else self._rounds
