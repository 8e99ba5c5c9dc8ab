"""Workers: threads that compute the tiles of a kernel together. The calling thread is worker 0.

On Linux the threads wait in native code, and a dispatch costs a microsecond or two. Elsewhere they wait in Python,
where a dispatch costs some tens of microseconds; results are the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from minga.compile.abi import WORKER_WORDS
from minga.engine import loop_code
from minga.engine.loop_code import is_supported, loop_functions
from minga.engine.pin import available_cores

_ALIGNMENT: Final = 64
_SPIN_NANOSECONDS: Final = 50_000
"""Nanoseconds for which an idle thread spins before it sleeps, if there is a core for each thread."""

Words = NDArray[np.int64]
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_BODY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
_DISPATCH = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)


class Workers:
    """`count` workers with `scratch_bytes` of aligned scratch memory each; one thread may call `run` at a time.

    Worker number w is pinned to core `cpus[w]` if the system allows it; worker 0, the caller, is not moved.
    `native=False` makes the threads wait in Python, as on systems where native waiting is not supported.
    """

    def __init__(
        self, count: int = 1, scratch_bytes: int = 0, *, cpus: Sequence[int] | None = None, native: bool | None = None
    ) -> None:
        if count < 1:
            raise ValueError(f"{count} workers: there must be at least one")
        if cpus is not None and len(cpus) < count:
            raise ValueError(f"{count} workers need as many cores, found {len(cpus)}")
        self.count = count
        self.native = is_supported() if native is None else native and is_supported()
        self._scratch: list[NDArray[np.uint8]] = []
        self._words = np.zeros((count, WORKER_WORDS), np.int64)
        self._words[:, 0] = np.arange(count)
        self.reserve(scratch_bytes)
        places = [self.words(worker) for worker in range(count)]
        self._team: _NativeTeam | _PythonTeam
        self._team = (_NativeTeam if self.native else _PythonTeam)(places, cpus, self._words)
        self._finalizer = weakref.finalize(self, self._team.close)

    def words(self, worker: int) -> int:
        """Return the address of a worker's words: its number, the address and the bytes of its scratch memory."""
        return int(self._words.ctypes.data) + 8 * WORKER_WORDS * worker

    @property
    def control(self) -> int:
        """Address of the block through which native threads receive work."""
        return self._team.control

    def note(self, rings: int) -> None:
        """Let native workers other than the first record events; `rings` is the address of a table of their rings."""
        self._team.note(rings)

    def reserve(self, scratch_bytes: int) -> None:
        """Give each worker at least this many bytes of scratch memory; its previous contents are lost."""
        if self._scratch and scratch_bytes <= self._words[0, 2]:
            return
        # Not initialised here: a page is placed near the thread that first writes to it.
        self._scratch = [np.empty(scratch_bytes + _ALIGNMENT, np.uint8) for _ in range(self.count)]
        for words, memory in zip(self._words, self._scratch):
            words[1] = -(-memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT
            words[2] = scratch_bytes

    def run(self, function: int, args: int, tiles: int) -> None:
        """Call `function(args, tile, worker)` for all tiles below `tiles`, on all workers; return at completion."""
        self._team.run(function, args, tiles)

    def close(self) -> None:
        """End the threads. Further calls, also at interpreter exit, have no effect."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _NativeTeam:
    """Threads that wait in native code, with Python's lock released."""

    def __init__(self, places: Sequence[int], cpus: Sequence[int] | None, keep: object) -> None:
        functions = loop_functions()
        memory = np.zeros(loop_code.CONTROL_WORDS + _ALIGNMENT // 8, np.int64)
        skip = -memory.ctypes.data % _ALIGNMENT // 8
        self._words = memory[skip : skip + loop_code.CONTROL_WORDS]
        self._keep = keep, memory
        self._words[loop_code.SYSCALL] = libc_address("syscall")
        self._words[loop_code.YIELD] = libc_address("sched_yield")
        self._words[loop_code.FUTEX] = loop_code.futex_number()
        spin = _SPIN_NANOSECONDS / nanoseconds_per_tick() if len(available_cores()) >= len(places) > 1 else 0
        self._words[loop_code.SPIN] = int(spin)
        self.control = int(self._words.ctypes.data)
        self._first = places[0]
        self._dispatch = _DISPATCH(functions.dispatch)
        body = _BODY(functions.worker)
        self._threads = [
            _thread(worker, cpus, functools.partial(body, self.control, places[worker]))
            for worker in range(1, len(places))
        ]

    def run(self, function: int, args: int, tiles: int) -> None:
        self._dispatch(self.control, self._first, function, args, tiles, 0)

    def note(self, rings: int) -> None:
        self._words[loop_code.RINGS] = rings

    def close(self) -> None:
        self._words[loop_code.STOP] = 1
        self._dispatch(self.control, self._first, 0, 0, 0, 0)  # no work, but it wakes all threads
        for thread in self._threads:
            thread.join()
        self._threads = []


class _PythonTeam:
    """Threads that wait in Python."""

    control = 0

    def __init__(self, places: Sequence[int], cpus: Sequence[int] | None, keep: object) -> None:
        self._keep = keep
        self._first = places[0]
        self._others = len(places) - 1
        self._wake = threading.Condition()
        self._dispatches = 0
        self._at_work = 0
        self._stop = False
        self._tiles: Callable[[int], None] = _no_tiles
        self._threads = [
            _thread(worker, cpus, functools.partial(self._body, places[worker])) for worker in range(1, len(places))
        ]

    def _body(self, worker: int) -> None:
        seen = 0
        while True:
            with self._wake:
                while self._dispatches == seen and not self._stop:
                    self._wake.wait()
                if self._stop:
                    return
                seen = self._dispatches
                take = self._tiles
            take(worker)
            with self._wake:
                self._at_work -= 1
                self._wake.notify_all()

    def run(self, function: int, args: int, tiles: int) -> None:
        kernel, numbers = _KERNEL(function), itertools.count()

        def take(worker: int) -> None:
            while (tile := next(numbers)) < tiles:  # atomic in Python: no two threads get the same tile
                kernel(args, tile, worker)

        if tiles <= 1 or not self._others:
            take(self._first)
            return
        with self._wake:
            self._tiles, self._at_work = take, self._others
            self._dispatches += 1
            self._wake.notify_all()
        take(self._first)
        with self._wake:
            while self._at_work:
                self._wake.wait()

    def note(self, rings: int) -> None:
        return None

    def close(self) -> None:
        with self._wake:
            self._stop = True
            self._wake.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads = []


def _no_tiles(worker: int) -> None:
    return None


def _thread(worker: int, cpus: Sequence[int] | None, body: Callable[[], object]) -> threading.Thread:
    """Start a thread, pinned to its core."""

    def pinned() -> None:
        if cpus is not None and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):  # the process may not use this core: the thread is not moved
                os.sched_setaffinity(0, {cpus[worker]})
        body()

    # A daemon, because the interpreter waits for other threads before it calls the finalizer that ends them.
    thread = threading.Thread(target=pinned, name=f"minga worker {worker}", daemon=True)
    thread.start()
    return thread


def libc_address(name: str) -> int:
    """Return the address of a function of the C library."""
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0


@functools.cache
def nanoseconds_per_tick() -> float:
    """Return the length of a tick of the clock that native code reads, measured once against the system's clock."""
    ticks = ctypes.CFUNCTYPE(ctypes.c_int64)(loop_functions().ticks)
    rates: list[float] = []
    for _ in range(3):
        start, first = time.perf_counter_ns(), ticks()
        while time.perf_counter_ns() - start < 1_000_000:
            pass
        last, stop = ticks(), time.perf_counter_ns()
        rates.append((stop - start) / (last - first))
    return sorted(rates)[1]
