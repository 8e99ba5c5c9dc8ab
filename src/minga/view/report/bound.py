"""Comparison of a run with the memory speed of its machine: cells/s against a plain copy of as many bytes."""

from __future__ import annotations

import ctypes
import functools
import platform
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minga.engine.pin import available_cores

__all__ = ["Bound", "copy_rate", "find_bound"]

_SMALLEST, _LARGEST = 1 << 20, 1 << 26
"""Least and most bytes of the two arrays of a copy, which otherwise are as large as the fields of a rank."""
_SECONDS, _TRIES = 0.01, 3
_SHORT = 0.1
"""Duration in seconds below which a run tells little about speed."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Cells/s of a run, and the limit that memory sets on this machine.

    Attributes
    ----------
    rate
        Cell updates per second of the run.
    limit
        Cell updates per second at which the workers used would move as many bytes per second as a copy.
    one_core
        The same for one worker.
    workers, cores
        Workers used, and available cores.
    bytes_per_cell, flops_per_cell
        Bytes that a step reads and writes, and its floating-point operations, for each cell.
    copied
        Bytes per second that a copy reads and writes, all workers together.
    working_set
        Bytes of fields of one worker.
    short
        Whether the run was too short to tell much about speed.
    """

    rate: float
    limit: float
    one_core: float
    workers: int
    cores: int
    bytes_per_cell: float
    flops_per_cell: float
    copied: float
    working_set: int
    short: bool

    @property
    def share(self) -> float:
        """Rate of the run divided by the limit."""
        return self.rate / self.limit


def find_bound(result: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> Bound | None:
    """Return the bound of a run; None if its costs or its speed are not known, or other machines computed it."""
    costs = result.get("costs")
    here = {str(line.get("host")) for line in ranks} == {platform.node()}
    if not isinstance(costs, Mapping) or not costs.get("bytes_per_cell") or not here:
        return None
    if result.get("cells_per_second") is None:
        return None
    workers = max(1, int(result.get("ranks", 1)) * int(result.get("threads", 1)))
    cores = max(1, len(available_cores()))
    size = int(costs.get("field_bytes", 0)) // workers
    copying = min(workers, cores)
    alone, together = copy_rate(size, 1), copy_rate(size, copying)
    per_cell = float(costs["bytes_per_cell"])
    return Bound(
        rate=float(result["cells_per_second"]),
        limit=together / per_cell,
        one_core=alone / per_cell,
        workers=workers,
        cores=cores,
        bytes_per_cell=per_cell,
        flops_per_cell=float(costs.get("flops_per_cell") or 0),
        copied=together,
        working_set=size,
        short=float(result.get("seconds", 0)) < _SHORT,
    )


@functools.cache
def copy_rate(working_set: int, workers: int) -> float:
    """Return the bytes per second that ``workers`` threads read and write together.

    Each thread copies half of its own working set. Bytes are counted as for a kernel: once for reading and once for
    writing, whatever caches do in addition.
    """
    size = min(max(working_set, _SMALLEST), _LARGEST) // 2
    pairs = [(ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)) for _ in range(workers)]
    barrier = threading.Barrier(workers)
    rates = [0.0] * workers

    def copy(number: int) -> None:
        source, target = pairs[number]
        ctypes.memmove(target, source, size)
        barrier.wait()
        for _ in range(_TRIES):
            began, times = time.perf_counter(), 0
            while time.perf_counter() - began < _SECONDS:
                for _ in range(8):
                    ctypes.memmove(target, source, size)  # lets other threads run meanwhile
                times += 8
            rates[number] = max(rates[number], 2 * size * times / (time.perf_counter() - began))

    threads = [threading.Thread(target=copy, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)
