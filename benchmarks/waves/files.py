"""Numbered files of frames: how a program writes that does not wait for the disk."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from benchmarks.waves.disks import Cached


class Files:
    """Files in a folder, through the page cache of a disk (see `Cached`).

    copy     seconds that bringing a frame into the cache takes at least
    stalled  seconds waited as the cache was full
    slower   seconds that it took longer than `copy`, in all
    """

    def __init__(self, folder: Path, rate: float, depth: float, copy: float) -> None:
        self.folder, self.copy = folder, copy
        self.cache = Cached(rate, depth)
        self.index = 0
        self.stalled, self.slower = 0.0, 0.0

    def write(self, values: np.ndarray) -> None:
        """Write a frame; returns when the cache has it."""
        began = time.perf_counter()
        with (self.folder / f"{self.index:04}").open("wb", buffering=0) as file:
            file.write(np.ascontiguousarray(values))
        rest = self.copy - (time.perf_counter() - began)
        self.slower += max(0.0, -rest)
        wait = self.cache.delay(values.nbytes)
        self.stalled += wait
        time.sleep(max(0.0, rest) + wait)
        self.index += 1
