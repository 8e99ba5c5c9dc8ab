"""How a rank waits for others: looking all the time, or with short sleeps that leave the core to others.

Looking all the time answers soonest and is right where each rank has a core of its own. Where nodes share cores, or a
quota counts the time of a rank that only looks (containers, :mod:`minga.lab`), it slows down the very rank that is
waited for: offering the core with ``sched_yield`` helps only within a control group. ``MINGA_WAIT=patient`` makes
ranks sleep between looks once a wait has become long, each time for a quarter of what they have waited so far. That
makes long waits a quarter longer at most, and leaves short ones alone, as a sleep takes the kernel 60 microseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Final

from minga.errors import LaunchError

__all__ = ["BEFORE_OTHERS", "NAP_SHARE", "SHORTEST_NAP", "longest_nap", "wait_until"]

BEFORE_OTHERS: Final = 50_000
"""Nanoseconds for which a rank that waits keeps its core to itself in any case."""
NAP_SHARE: Final = 4
"""A sleep takes one part in so many of the wait until then."""
SHORTEST_NAP: Final = 50
"""Microseconds below which a rank does not sleep but offers its core."""
_LONGEST: Final = 500
_VARIABLE: Final = "MINGA_WAIT"


def longest_nap(environment: Mapping[str, str] = os.environ) -> int:
    """Microseconds for which a waiting rank may sleep between two looks; 0 where it must not."""
    word = environment.get(_VARIABLE, "").lower()
    if word in ("", "eager"):
        return 0
    if word == "patient":
        return _LONGEST
    raise LaunchError(f"{_VARIABLE} is {word!r}", remedy=f"set {_VARIABLE} to eager or patient")


def wait_until(done: Callable[[], bool]) -> None:
    """Look until it is done, and let others run meanwhile."""
    longest = longest_nap()
    start = time.perf_counter_ns()
    while not done():
        nap = min(longest, (time.perf_counter_ns() - start) // (1000 * NAP_SHARE))
        if nap >= SHORTEST_NAP:
            time.sleep(nap * 1e-6)
        else:
            os.sched_yield()
