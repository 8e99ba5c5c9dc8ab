"""How near a run came to what its machine can move: cells/s against a plain copy of as many bytes."""

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
"""Bytes of the two arrays of a copy, at least and at most: as many as the fields of a rank have, within reason."""
_SECONDS, _TRIES = 0.01, 3
_SHORT = 0.1
"""A run of fewer seconds tells little about speed."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Cells/s that a run did and that memory allows on this machine.

    rate            cell updates per second of the run
    limit           those at which a copy's bytes per second would be moved by the workers used; `one_core`: by one
    bytes_per_cell  that a step reads and writes
    copied          bytes per second that a copy reads and writes, all workers together
    working_set     bytes of fields of one worker
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
        """The run's part of what is possible."""
        return self.rate / self.limit


def find_bound(result: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> Bound | None:
    """The bound of a run; None where its costs are not known, or where it was computed by other machines than this."""
    costs = result.get("costs")
    here = {str(line.get("host")) for line in ranks} == {platform.node()}
    if not isinstance(costs, Mapping) or not costs.get("bytes_per_cell") or not here:
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
    """Bytes per second that ``workers`` threads read and write together, each copying half of its own working set.

    As a kernel's bytes are counted: once for reading and once for writing, whatever caches do beyond.
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
