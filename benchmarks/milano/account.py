"""Where 14 nodes spend a sweep: ``python -m benchmarks.milano.account ORDER``, under a launcher. Rank 0 prints JSON.

ORDER is JSON: ``mesh`` (cells along y, z, x), ``speeds`` (of the ranks, relative), ``sweeps`` (in a sample), ``rounds``
(samples). Several ways are measured:

whole      relaxation on all nodes, boundary first, overlapped
together   every node relaxes as many planes as it has in `whole`, by itself: no messages; all at the same time
alone      the same, one node after another
messages   the exchanges and reductions of a sweep without one: nodes made free
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from minga.engine.begin import start
from minga.engine.comm import Comm, Envelope, MPIComm, SerialComm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.relaxation.options import RelaxationOptions
from minga.models.electrodeposition.relaxation.scheme import relaxation
from minga.models.electrodeposition.soft import soft_cell
from minga.space.cuts import slabs
from minga.studies.tinetti.mpi_ranks import meet

EXCHANGES = 10
"""Exchanges without computing that are timed together."""
UNKNOWNS = 3
"""Values of a cell that neighbours need: two ions and the potential."""


def cell(mesh: Sequence[int]) -> Problem:
    return dataclasses.replace(soft_cell(dict(zip("yzx", mesh, strict=True)), dt=0.01, steps=1), flow=False)


def ready(mesh: Sequence[int], speeds: Sequence[float], comm: Comm, sweeps: int) -> tuple[Model, Engine]:
    """A relaxation of so many sweeps that has run once."""
    settings = RelaxationOptions("boundary-first", criterion="update", tolerance=1e-300, limit=sweeps)
    model = relaxation(cell(mesh), settings)
    layouts = {grid: slabs(grid.box, comm.size, 0, speeds, granule=1) for grid in model.grids}
    engine = Engine(layouts, comm=comm, overlap=True, threads=1)
    start(model, engine)
    engine.run(model.step)
    return model, engine


def sample(model: Model, engine: Engine, sweeps: int) -> dict[str, Any]:
    """What a sweep takes on this rank: seconds, those of the processor, and the engine's own account of them."""
    before, used, began = engine.ledger.seconds, processor(), time.perf_counter()
    engine.run(model.step)
    seconds, used = time.perf_counter() - began, processor() - used
    spent = {name: (value - before[name]) / sweeps for name, value in engine.ledger.seconds.items()}
    return {"seconds": seconds / sweeps, "user": used[0] / sweeps, "system": used[1] / sweeps, "spent": spent}


def processor() -> np.ndarray:
    """Seconds of the processor that this process has used itself, and that the kernel has used for it."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([usage.ru_utime, usage.ru_stime])


def sampled(world: MPI.Intracomm, model: Model, engine: Engine, order: Mapping[str, Any]) -> Any:
    """Samples by rank."""
    found = []
    for _ in range(order["rounds"]):
        start(model, engine)
        meet(world)
        found.append(sample(model, engine, order["sweeps"]))
    return world.gather(found)


def in_turn(world: MPI.Intracomm, model: Model, engine: Engine, order: Mapping[str, Any]) -> Any:
    """A sample by rank, one rank after another."""
    start(model, engine)
    found = []
    for turn in range(world.size):
        meet(world)
        if turn == world.rank:
            found.append(sample(model, engine, order["sweeps"]))
    meet(world)
    return world.gather(found)


def messages(world: MPI.Intracomm, plane: int) -> dict[str, float]:
    """Seconds that the messages of a sweep take where nothing is computed: planes to both neighbours, reductions."""
    comm, near = MPIComm(world), [rank for rank in (world.rank - 1, world.rank + 1) if 0 <= rank < world.size]
    sends, receives = ([Envelope(rank, np.zeros(plane, np.uint8)) for rank in near] for _ in range(2))
    channel, words, times = comm.channel(sends, receives, 1000), np.zeros(4, np.int64), []
    for step in ("exchange", "reductions"):
        meet(world)
        began = time.perf_counter()
        for _ in range(EXCHANGES):
            if step == "exchange":
                channel.start()
                channel.wait()
            else:
                comm.allreduce(words, "max")
                comm.allreduce(words[:1], "min")
        times.append(float(world.allreduce(time.perf_counter() - began, MPI.MAX)) / EXCHANGES)
    channel.close()
    return dict(zip(("exchange", "reductions"), times, strict=True))


def main() -> int:
    order = json.loads(sys.argv[1])
    world, mesh = MPI.COMM_WORLD, order["mesh"]
    cut = slabs(cell(mesh).grid.box, world.size, 0, order["speeds"], granule=1)
    planes = (cut.hi[:, 0] - cut.lo[:, 0]).tolist()
    model, engine = ready(mesh, order["speeds"], MPIComm(world), order["sweeps"])
    found = {"planes": planes, "whole": sampled(world, model, engine, order)}
    engine.close()
    if world.size > 1:
        own = ready([planes[world.rank], *mesh[1:]], [1.0], SerialComm(), order["sweeps"])
        found["together"] = sampled(world, *own, order)
        found["alone"] = in_turn(world, *own, order)
        found["messages"] = messages(world, 8 * UNKNOWNS * mesh[1] * mesh[2])
    if world.rank == 0:
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
