"""One rank of ``minga bench printista``: ``python -m minga.studies.printista.ranks ORDER``, under a launcher.

ORDER is JSON: ``ranks``, the number of ranks that were started; ``sizes`` of the lattice; ``meshes``, numbers of blocks
along both axes; ``mappings`` of blocks to ranks; ``steps`` in each of so many ``rounds``. Rank 0 prints one line of
JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from minga.engine.comm import Comm, MPIComm, SerialComm
from minga.engine.engine import Engine
from minga.engine.pin import local_place, pin
from minga.errors import LaunchError
from minga.launch.exit_codes import FAILED, OK
from minga.launch.launcher import surrounding_job, world
from minga.launch.rank_end import end_in_error
from minga.plan.placement import place
from minga.plan.topology import seats_of
from minga.space.cuts import cartesian
from minga.studies.printista.laplace import Relaxation

__all__ = ["main", "time_all"]


def time_all(comm: Comm, order: Mapping[str, Any]) -> dict[str, Any]:
    """Time all lattices, meshes and mappings; collective.

    Returns
    -------
    dict
        ``pinned``, True if all ranks have cores of their own, and ``rows`` with a size, mesh and mapping each:
        ``seconds`` of a step (the slowest rank, the median of the rounds), those of ``compute`` (the mean of the
        ranks), and the checksum ``crc`` of the last state, which rank 0 has.
    """
    pinned = pin(*local_place(comm.rank, comm.size), 1).pinned
    pinned = all(comm.bcast(comm.gather(pinned)))
    rows = []
    for size in order["sizes"]:
        for mesh in order["meshes"]:
            for mapping in order["mappings"]:
                found = _time(comm, size, tuple(mesh), mapping, order["steps"], order["rounds"])
                rows.append({"size": size, "mesh": mesh, "mapping": mapping, **found})
    return {"pinned": pinned, "rows": rows}


def _time(comm: Comm, size: int, mesh: tuple[int, ...], mapping: str, steps: int, rounds: int) -> dict[str, Any]:
    """Time rounds of steps on one layout; collective."""
    problem = Relaxation(size)
    layout = place(cartesian(problem.grid.box, mesh, granule=1), seats_of(comm), mapping)
    took, computed = [], []
    with Engine({problem.grid: layout}, comm=comm, threads=1) as engine:
        engine.set(problem.u, np.zeros(problem.grid.shape))
        engine.run(problem.step, steps)  # compiles
        for _ in range(rounds):
            comm.bcast(comm.gather(None))
            before, began = engine.ledger.seconds["compute"], time.perf_counter()
            engine.run(problem.step, steps)
            mine = time.perf_counter() - began, engine.ledger.seconds["compute"] - before
            slowest, mean = comm.bcast(_over_ranks(comm.gather(mine)))
            took.append(slowest / steps)
            computed.append(mean / steps)
        state = engine.gather(problem.u)
    crc = None if comm.rank else zlib.crc32(np.ascontiguousarray(state).data)
    return {"seconds": statistics.median(took), "compute": statistics.median(computed), "crc": crc}


def _over_ranks(times: list[tuple[float, float]] | None) -> tuple[float, float]:
    """Return the longest time of a rank, and the mean of the times of computing, on rank 0."""
    if times is None:
        return 0.0, 0.0
    return max(whole for whole, _ in times), statistics.fmean(part for _, part in times)


def main(arguments: list[str]) -> int:
    """Carry out an order as one rank, and return the exit status."""
    order = json.loads(arguments[0])
    if order["ranks"] == 1:
        print(json.dumps(time_all(SerialComm(), order)), flush=True)
        return OK
    try:
        everyone = world(surrounding_job(), order["ranks"])
    except LaunchError as error:
        sys.stderr.write(f"minga: {error}\n")
        return FAILED
    try:
        found = time_all(MPIComm(everyone), order)
    except BaseException as error:
        end_in_error(error, everyone)
    if everyone.rank == 0:
        print(json.dumps(found), flush=True)
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
