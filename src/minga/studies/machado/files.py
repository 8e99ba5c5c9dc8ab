"""Numbered files of frames, as a program writes them that does not wait for the disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.studies.machado.disks import Cached

__all__ = ["Files"]


class Files:
    """Files in a folder, written through the page cache of a disk (see `Cached`).

    Attributes
    ----------
    copy
        Least seconds that bringing a frame into the cache takes.
    stalled
        Seconds of waiting while the cache was full.
    slower
        Seconds by which frames took longer than `copy`, in all.
    """

    def __init__(self, folder: Path, rate: float, depth: float, copy: float) -> None:
        self.folder, self.copy = folder, copy
        self.cache = Cached(rate, depth)
        self.index = 0
        self.stalled, self.slower = 0.0, 0.0

    def write(self, values: NDArray[Any]) -> None:
        """Write a frame; return when it is in the cache."""
        began = time.perf_counter()
        with (self.folder / f"{self.index:04}").open("wb", buffering=0) as file:
            file.write(np.ascontiguousarray(values).data)
        rest = self.copy - (time.perf_counter() - began)
        self.slower += max(0.0, -rest)
        wait = self.cache.delay(values.nbytes)
        self.stalled += wait
        time.sleep(max(0.0, rest) + wait)
        self.index += 1
