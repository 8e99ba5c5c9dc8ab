"""A bounded queue of buffers and the thread that empties it: the solver goes on while a frame is written."""

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
    """A frame on its way to the disk: the values are in `buffer` once `ready()` has returned.

    Without a buffer calling `ready` is all there is to do.
    """

    index: int
    step: int
    buffer: Buffer | None
    ready: Callable[[], None]


class WriterThread:
    """Writes frames in the order in which they come, with at most `depth` of them in memory.

    write     does one job; called in the thread
    rest      called in the thread after a job, with whether the queue is empty; where it says that something is left
              to do it is called again a moment later, and at the end
    nbytes    of a buffer; 0: jobs have none
    allocate  makes a buffer
    cpus      the logical processors the thread may use; by default those of the thread that makes it

    After an error no frame is written any more: `error` holds it, and jobs are only taken out of the queue.
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
        """Whether `acquire` would wait."""
        with self._changed:
            return not self._free and self._made >= self._depth

    def acquire(self) -> Buffer:
        """A buffer to fill; waits until there is one."""
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
        """Give back a buffer that is not needed after all."""
        with self._changed:
            self._free.append(buffer)
            self._changed.notify_all()

    def submit(self, job: Job) -> None:
        """Have a job done."""
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
        """Do what is left, and end the thread."""
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
                os.sched_setaffinity(0, self._cpus)  # of this thread alone: the solver may be pinned to one core
        while not (self._closing and not self._jobs):
            job = self._next()
            if job is not None:
                self._do(job)
            elif self._left:
                self._tidy(idle=True)

    def _next(self) -> Job | None:
        """The next job; None at the end, and where for a moment there was none and something is left to do."""
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
        except BaseException as error:  # it belongs to the solver's thread, which asks
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
