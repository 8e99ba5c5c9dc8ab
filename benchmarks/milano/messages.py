"""Table 5: what each call takes between two ranks, by size. ``python -m benchmarks.milano.messages ORDER``.

ORDER is JSON: ``sizes`` in bytes, ``rounds``. The time of a call is that until it returns; the message itself may
take longer. Rank 0 sends, rank 1 receives; both are ready before each call.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

CALLS = ("Send", "Recv", "Isend", "Irecv")


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    value = call()
    return 1e3 * (time.perf_counter() - began), value


def main() -> int:
    order = json.loads(sys.argv[1])
    world, found = MPI.COMM_WORLD, {}
    for size in order["sizes"]:
        buffer = np.zeros(size, np.uint8)
        spent: dict[str, list[float]] = {name: [] for name in CALLS}
        for _ in range(order["rounds"]):
            world.Barrier()
            if world.rank == 0:
                spent["Send"].append(timed(lambda b=buffer: world.Send(b, 1))[0])
                milliseconds, request = timed(lambda b=buffer: world.Isend(b, 1))
                spent["Isend"].append(milliseconds)
                request.Wait()
            else:
                spent["Recv"].append(timed(lambda b=buffer: world.Recv(b, 0))[0])
                milliseconds, request = timed(lambda b=buffer: world.Irecv(b, 0))
                spent["Irecv"].append(milliseconds)
                request.Wait()
        whole = world.gather({name: statistics.median(s) for name, s in spent.items() if s})
        if world.rank == 0:
            found[size] = {**whole[0], **whole[1]}
    if world.rank == 0:
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
