"""Cost of sending a boundary: packed, by a derived datatype, and pickled, as in Fig. 11 of the paper.

    python -m minga.studies.bounanos.boundaries

A boundary has three points with 26 numbers each, which are not contiguous, since each number has its own array. One
process sends to itself, so that only the handling by the library is measured. Prints microseconds as one JSON object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from minga.studies.bounanos.costs import ROWS

__all__ = ["measure"]

POINTS: Final = 3
NUMBERS: Final = 26


def measure(rounds: int = 2000) -> dict[str, float]:
    """Return the time in microseconds of a transfer into place, the median over batches, by method."""
    from mpi4py import MPI

    comm = MPI.COMM_SELF
    fields = np.arange(float(NUMBERS * ROWS * POINTS)).reshape(NUMBERS, ROWS, POINTS)
    target = np.zeros_like(fields)
    packed, arrived = np.zeros((NUMBERS, POINTS)), np.zeros((NUMBERS, POINTS))
    vector = MPI.DOUBLE.Create_vector(NUMBERS, POINTS, ROWS * POINTS)
    vector.Commit()
    last, ghost = ROWS - 2, 0

    def by_packing() -> None:
        packed[...] = fields[:, last]
        comm.Sendrecv(packed, 0, 0, arrived, 0, 0)
        target[:, ghost] = arrived

    source_at = fields.reshape(-1)[last * POINTS :]
    target_at = target.reshape(-1)[ghost * POINTS :]

    def by_datatype() -> None:
        comm.Sendrecv([source_at, 1, vector], 0, 0, [target_at, 1, vector], 0, 0)

    def by_pickling() -> None:
        target[:, ghost] = comm.sendrecv(fields[:, last], 0, 0, None, 0, 0)

    found = {}
    ways: dict[str, Callable[[], None]] = {
        "packed": by_packing, "derived datatype": by_datatype, "pickled": by_pickling,
    }  # fmt: skip
    for name, way in ways.items():
        target[...] = 0.0
        way()
        if not np.array_equal(target[:, ghost], fields[:, last]):
            raise AssertionError(f"{name}: the boundary did not arrive")
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(rounds // 20):
                way()
            times.append((time.perf_counter() - start) / (rounds // 20))
        found[name] = 1e6 * float(np.median(times))
    vector.Free()
    return found


if __name__ == "__main__":
    print(json.dumps(measure()))
