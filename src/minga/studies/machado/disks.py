"""Disks of a given speed, made of the real one by waiting; no rights are needed.

`Cached` accepts data as the page cache of an operating system does: at once while less than `depth` bytes wait for the
disk, then as fast as the disk takes them. It is a token bucket of that depth, refilled at the rate of the disk.
`Paced` is the disk of a writer that waits for every frame to be on the disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Cached", "Paced"]


class Cached:
    """A page cache of `depth` bytes in front of a disk of `rate` bytes per second."""

    def __init__(self, rate: float, depth: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.rate, self.depth = rate, depth
        self._clock = clock
        self._dirty, self._at = 0.0, clock()

    def delay(self, size: int) -> float:
        """Return the seconds until the cache has taken `size` bytes, which are dirty from then on."""
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
    """A disk of `rate` bytes per second, which waits for the time that the real one, being faster, does not take.

    Parameters
    ----------
    rate
        Bytes per second.
    spent
        Returns the seconds that writing and the waiting of this disk have taken so far.
    sleep
        Waits for a number of seconds.
    """

    def __init__(self, rate: float, spent: Callable[[], float], sleep: Callable[[float], None] = time.sleep) -> None:
        self.rate, self._spent, self._sleep = rate, spent, sleep
        self._bytes = 0

    def __call__(self, size: int) -> None:
        """Wait before `size` bytes are written."""
        self._bytes += size
        wait = self._bytes / self.rate - self._spent()
        if wait > 0:
            self._sleep(wait)

    @property
    def late(self) -> float:
        """Seconds by which the real disk has been slower than this one."""
        return max(0.0, self._spent() - self._bytes / self.rate)
