"""What bounds a kernel on this machine: bytes between memory and all cores, and operations a second."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers import FLAGS, address, library, peer

SOURCE = Path(__file__).with_name("bounds.c")
COPY_MOVES = 3
"""Bytes a byte copied by a loop: its target is read into the cache before it is written."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What so many threads reach together."""

    threads: int
    copy_bytes_per_second: float
    flops_per_second: float

    def cells(self, bytes_per_cell: float, flops_per_cell: float) -> tuple[float, float]:
        """Cells a second that memory and that arithmetic allow."""
        return self.copy_bytes_per_second / bytes_per_cell, self.flops_per_second / flops_per_cell


def measure_bounds(threads: int, quick: bool) -> Bounds | None:
    """The best of several rounds; None where there is no gcc."""
    if library() is None:
        return None
    size, rounds = (4 << 20, 2) if quick else (96 << 20, 7)
    copies = [_copy(size) for _ in range(threads)]
    peaks = [_peak(20_000 if quick else 20_000_000) for _ in range(threads)]
    copied = max(COPY_MOVES * size * threads / _together([run for run, _ in copies]) for _ in range(rounds))
    done = max(sum(flops for _, flops in peaks) / _together([run for run, _ in peaks]) for _ in range(min(rounds, 3)))
    return Bounds(threads, copied, done)


def _together(jobs: list[Callable[[], object]]) -> float:
    """Seconds of the slowest of jobs that begin together; ctypes lets go of Python's lock."""
    ready = threading.Barrier(len(jobs))
    spent = [0.0] * len(jobs)

    def run(number: int) -> None:
        ready.wait()
        began = time.perf_counter()
        jobs[number]()
        spent[number] = time.perf_counter() - began

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(spent)


def _copy(size: int) -> tuple[Callable[[], object], int]:
    source, target = np.ones(size // 8), np.zeros(size // 8)
    words = [address(source, 0), address(target, 0), size // 8 // 1024, 1024, 1024]
    (way,) = peer("copy_f8", words, keep=(source, target)).values()
    return functools.partial(way, 1), size


def _peak(rounds: int) -> tuple[Callable[[], object], int]:
    loaded = _peak_library()
    total = np.zeros(1, np.float32)
    words = np.array([rounds, address(total, 0)], np.int64)

    def run(keep: object = total) -> None:
        loaded.peak_f4(ctypes.c_void_p(words.ctypes.data))

    return run, rounds * int(loaded.round_flops())


@functools.cache
def _peak_library() -> ctypes.CDLL:
    gcc = shutil.which("gcc")
    assert gcc is not None
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "bounds.so"
        subprocess.run([gcc, *FLAGS, "-shared", "-fPIC", "-o", str(target), str(SOURCE)], check=True)
        loaded = ctypes.CDLL(str(target))
    loaded.round_flops.restype = ctypes.c_long
    return loaded
