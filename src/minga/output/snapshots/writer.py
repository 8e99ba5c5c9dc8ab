"""Bounded queue of buffers and the thread that empties it: the solver continues while a frame is written."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.output.snapshots.counters import Counters

__all__ = ["Allocate", "Buffer", "Job", "WriterThread"]

_MOMENT = 0.05

Buffer = NDArray[np.uint8]
Allocate = Callable[[int], Buffer]


@dataclass(frozen=True, slots=True)
class Job:
    """Frame on its way to the disk: the values are in `buffer` once `ready()` has returned.

    Without a buffer, calling `ready` is all there is to do.
    """

    index: int
    step: int
    buffer: Buffer | None
    ready: Callable[[], None]


class WriterThread:
    """Thread that writes frames in the order in which they come, with at most `depth` of them in memory.

    After an error no further frame is written: `error` holds it, and jobs are only removed from the queue.

    Parameters
    ----------
    write
        Does one job; called in the thread.
    rest
        Called in the thread after a job, with the flag that the queue is empty; if it returns that something is left to
        do, it is called again a moment later, and at the end.
    counters
        Counters of the output.
    depth
        Largest number of buffers.
    nbytes
        Bytes of a buffer; 0: jobs have none.
    allocate
        Makes a buffer.
    cpus
        Logical processors the thread may use; by default those of the thread that makes it.
    """

    def __init__(
        self,
        write: Callable[[Job], None],
        rest: Callable[[bool], bool],
        counters: Counters,
        depth: int,
        nbytes: int,
        allocate: Allocate,
        cpus: Collection[int] | None = None,
    ) -> None:
        self._write, self._rest, self._counters, self._cpus = write, rest, counters, cpus
        self._depth, self._nbytes, self._allocate = depth, nbytes, allocate
        self._free: list[Buffer] = []
        self._made = 0
        self._jobs: deque[Job] = deque()
        self._waiting = 0
        self._busy = False
        self._left = False
        self._closing = False
        self._changed = threading.Condition()
        self.error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def full(self) -> bool:
        """True if `acquire` would wait."""
        with self._changed:
            return not self._free and self._made >= self._depth

    def acquire(self) -> Buffer:
        """Return a buffer to fill; wait until there is one."""
        with self._changed:
            if not self._free and self._made < self._depth:
                self._made += 1
                self._counters.buffer_bytes += self._nbytes
                return self._allocate(self._nbytes)
            if not self._free:
                with self._counters.time("stall"):
                    self._changed.wait_for(lambda: bool(self._free))
            return self._free.pop()

    def release(self, buffer: Buffer) -> None:
        """Return a buffer that is not needed after all."""
        with self._changed:
            self._free.append(buffer)
            self._changed.notify_all()

    def submit(self, job: Job) -> None:
        """Add a job to the queue."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="minga writer", daemon=True)
                self._thread.start()
            self._jobs.append(job)
            self._waiting += job.buffer is not None
            self._counters.most_queued = max(self._counters.most_queued, self._waiting)
            self._changed.notify_all()

    def drain(self) -> None:
        """Return when all jobs are done, or given up."""
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs and not self._busy)

    def close(self) -> None:
        """Complete the remaining jobs, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._free.clear()

    def _run(self) -> None:
        if self._cpus is not None and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, self._cpus)  # for this thread alone: the solver may be pinned to one core
        while not (self._closing and not self._jobs):
            job = self._next()
            if job is not None:
                self._do(job)
            elif self._left:
                self._tidy(idle=True)

    def _next(self) -> Job | None:
        """Return the next job; None at the end, or if there was none for a moment and something is left to do."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._jobs) or self._closing, _MOMENT if self._left else None)
            if not self._jobs:
                return None
            self._busy = True
            return self._jobs.popleft()

    def _do(self, job: Job) -> None:
        try:
            job.ready()
            if self.error is None and job.buffer is not None:
                self._write(job)
        except BaseException as error:  # the solver's thread asks for it
            self.error = self.error or error
        with self._changed:
            if job.buffer is not None:
                self._waiting -= 1
                self._free.append(job.buffer)
            self._changed.notify_all()
            idle = not self._jobs
        self._tidy(idle or self.error is not None)
        with self._changed:
            self._busy = False
            self._changed.notify_all()

    def _tidy(self, idle: bool) -> None:
        try:
            self._left = self._rest(idle)
        except BaseException as error:
            self._left, self.error = False, self.error or error
