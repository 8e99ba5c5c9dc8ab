"""Disks of a given speed, made of the one there is by waiting; no rights are needed.

`Cached` accepts what the operating system's page cache would: at once while less than `depth` bytes wait for the disk,
then as fast as the disk takes them. It is a token bucket of that depth, refilled at the disk's rate. `Paced` is what a
writer sees that waits for every frame to be on the disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Cached:
    """A page cache of `depth` bytes before a disk of `rate` bytes a second."""

    def __init__(self, rate: float, depth: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.rate, self.depth = rate, depth
        self._clock = clock
        self._dirty, self._at = 0.0, clock()

    def delay(self, size: int) -> float:
        """Seconds until the cache has taken so many bytes, which are dirty from then on."""
        now = self._clock()
        self._dirty = max(0.0, self._dirty - (now - self._at) * self.rate)
        wait = max(0.0, (self._dirty + size - self.depth) / self.rate)
        self._dirty, self._at = self._dirty + size, now
        return wait

    @property
    def backlog(self) -> float:
        """Seconds until everything is on the disk."""
        return max(0.0, self._dirty / self.rate - (self._clock() - self._at))


class Paced:
    """A disk of `rate` bytes a second: waits for what the real one, which is faster, does not take.

    spent  seconds that writing and this disk's waiting have taken so far
    """

    def __init__(self, rate: float, spent: Callable[[], float], sleep: Callable[[float], None] = time.sleep) -> None:
        self.rate, self._spent, self._sleep = rate, spent, sleep
        self._bytes = 0

    def __call__(self, size: int) -> None:
        """Wait before so many bytes are written."""
        self._bytes += size
        wait = self._bytes / self.rate - self._spent()
        if wait > 0:
            self._sleep(wait)

    @property
    def late(self) -> float:
        """Seconds by which the real disk has been slower than this one."""
        return max(0.0, self._spent() - self._bytes / self.rate)
