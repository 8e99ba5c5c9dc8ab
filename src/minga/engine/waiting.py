"""Waiting of a rank for others: polling continuously, or with short sleeps that leave the core to others.

Continuous polling reacts soonest and is right if each rank has a core of its own. Where nodes share cores, or a quota
counts the time of a rank that only polls (containers, :mod:`minga.lab`), it slows down the very rank that is waited
for: yielding the core with ``sched_yield`` helps only within a control group. ``MINGA_WAIT=patient`` makes ranks sleep
between polls once a wait has become long, each time for a quarter of the time waited so far. This makes long waits a
quarter longer at most, and does not affect short ones, as a sleep takes the kernel 60 microseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Final

from minga.errors import LaunchError

__all__ = ["BEFORE_OTHERS", "NAP_SHARE", "SHORTEST_NAP", "longest_nap", "wait_until"]

BEFORE_OTHERS: Final = 50_000
"""Nanoseconds for which a waiting rank keeps its core in any case."""
NAP_SHARE: Final = 4
"""Ratio of the time waited so far to the length of a sleep."""
SHORTEST_NAP: Final = 50
"""Minimum length of a sleep in microseconds; for shorter times a rank yields its core."""
_LONGEST: Final = 500
_VARIABLE: Final = "MINGA_WAIT"


def longest_nap(environment: Mapping[str, str] = os.environ) -> int:
    """Return the microseconds for which a waiting rank may sleep between two polls; 0 if it must not sleep."""
    word = environment.get(_VARIABLE, "").lower()
    if word in ("", "eager"):
        return 0
    if word == "patient":
        return _LONGEST
    raise LaunchError(f"{_VARIABLE} is {word!r}", remedy=f"set {_VARIABLE} to eager or patient")


def wait_until(done: Callable[[], bool]) -> None:
    """Poll until the condition holds, and let others run meanwhile."""
    longest = longest_nap()
    start = time.perf_counter_ns()
    while not done():
        nap = min(longest, (time.perf_counter_ns() - start) // (1000 * NAP_SHARE))
        if nap >= SHORTEST_NAP:
            time.sleep(nap * 1e-6)
        else:
            os.sched_yield()
