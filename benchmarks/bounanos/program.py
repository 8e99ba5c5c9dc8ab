"""What the ranks do: ``python -m benchmarks.bounanos.program ORDER``, under a launcher. Rank 0 prints a line of JSON.

ORDER is JSON: ``task`` ("distributed", "centralised", "adaptive" or "messages"), ``coarsen`` (rows made one), ``ends``
of the segments, ``iterations``, ``labour`` and ``growth`` of `Pointwise` (minga.models.photodiode.pointwise.scheme),
and ``rounds``.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from mpi4py import MPI

from benchmarks.bounanos import WINDOWS
from minga.engine.begin import start
from minga.engine.comm import MPIComm
from minga.engine.engine import Engine
from minga.models.photodiode.pointwise.scheme import Pointwise, pointwise
from minga.models.photodiode.solver.problem import Problem
from minga.space.layout import Layout
from minga.studies.bounanos.adaptive import solve_adaptive
from minga.studies.bounanos.centralised import solve_centralised
from minga.studies.bounanos.workload import paper_device

VOLTAGE = -60.0


def meet(world: MPI.Intracomm) -> None:
    """A barrier that uses no processor while it waits."""
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(0.002)


def pointwise_options(order: Mapping[str, Any], device: Any) -> Pointwise:
    """The scheme: so many iterations, none of which is the last."""
    absorber = next(layer for layer in device.layers if layer.name == "Absorp")
    return Pointwise(
        segments=tuple(order["ends"]),
        across="block",
        tolerance=1e-300,
        limit=order["iterations"],
        cost="synthetic",
        heavy=(absorber.first, absorber.last + 1),
        growth=order["growth"],
        expected=order["iterations"],
        labour=order["labour"],
    )


def distributed(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds of all iterations on the engine, neighbours to neighbours."""
    device = paper_device(order["coarsen"])
    model = pointwise(device, Problem((VOLTAGE,), ("lit",), ionisation=False), pointwise_options(order, device))
    ends = np.asarray(order["ends"])
    owner = np.arange(len(ends) - 1) % world.size
    layout = Layout(model.grid.box, world.size, ends[:-1, None], ends[1:, None], owner)
    seconds = []
    with Engine(dict.fromkeys(model.grids, layout), comm=MPIComm(world), threads=1) as engine:
        start(model, engine)
        engine.prepare(model.step, looped=False)
        for _ in range(order["rounds"]):
            start(model, engine)
            meet(world)
            began = time.perf_counter()
            engine.run(model.step)
            seconds.append(float(world.allreduce(time.perf_counter() - began, MPI.MAX)))
            done = engine.read(model.observables["iterations_lit"])  # type: ignore[arg-type]
            assert done == order["iterations"], "a run without its iterations was timed"
        steps = engine.gather(model.field("newton_steps_lit"))
        busy = world.gather(engine.busy)
    return {
        "seconds": statistics.median(seconds),
        "samples": seconds,
        "busy": busy,
        "steps": None if steps is None else steps.tolist(),
    }


def centralised(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """The same through a parent, on rank 0."""
    device = paper_device(order["coarsen"])
    how = pointwise_options(order, device)
    seconds = []
    for _ in range(order["rounds"]):
        meet(world)
        solution = solve_centralised(device, order["ends"], VOLTAGE, "lit", how, MPIComm(world))
        if solution is not None:
            assert solution.iterations == order["iterations"], "a run without its iterations was timed"
            seconds.append(solution.seconds)
    return {"seconds": statistics.median(seconds), "samples": seconds} if seconds else {}


def adaptive(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """Distributed, and rows change segments a few times on the way."""
    device = paper_device(order["coarsen"])
    how, window = pointwise_options(order, device), order["iterations"] // WINDOWS
    seconds, pauses = [], []
    for _ in range(order["rounds"]):
        meet(world)
        found = solve_adaptive(
            device, len(order["ends"]) - 1, VOLTAGE, "lit", how, MPIComm(world), window=window
        )  # fmt: skip
        if found is not None:
            assert found.solution.iterations == order["iterations"], "a run without its iterations was timed"
            seconds.append(found.solution.seconds)
            pauses.append(found.pauses / (order["iterations"] / window - 1))
    if not seconds:
        return {}
    return {"seconds": statistics.median(seconds), "samples": seconds, "pause": statistics.median(pauses)}


def messages(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds one way between two ranks, of 8 bytes and of a boundary of 624."""
    found = {}
    for size in (8, 624, 6240):
        buffer = np.zeros(size, np.uint8)
        times = []
        for _ in range(order["rounds"]):
            meet(world)
            began = time.perf_counter()
            for _ in range(20):
                if world.rank == 0:
                    world.Send(buffer, 1)
                    world.Recv(buffer, 1)
                else:
                    world.Recv(buffer, 0)
                    world.Send(buffer, 0)
            times.append((time.perf_counter() - began) / 40)
        found[str(size)] = min(times)
    return {"seconds": found}


def main() -> int:
    order = json.loads(sys.argv[1])
    world = MPI.COMM_WORLD
    tasks = {"distributed": distributed, "centralised": centralised, "adaptive": adaptive, "messages": messages}
    task = tasks[order["task"]]
    found = task(world, order)
    if world.rank == 0:
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
