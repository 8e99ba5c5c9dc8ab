"""Orders of the study to ranks: ``python -m minga.studies.milano.ranks ORDER``, under a launcher; rank 0 prints JSON.

ORDER is JSON with a ``task``:

sweeps  ``meshes`` (cells along y, z, x), ``speeds`` (of the ranks, relative), ``sweeps`` (in a sample), ``rounds``
        (samples of each way, taken in turns), ``flow``
calls   ``sizes`` in bytes, ``rounds``
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpi4py import MPI

from minga.engine.begin import start
from minga.engine.comm import MPIComm
from minga.engine.engine import Engine
from minga.models.electrodeposition.relaxation.options import RelaxationOptions
from minga.models.electrodeposition.relaxation.scheme import relaxation
from minga.models.electrodeposition.soft import soft_cell
from minga.space.cuts import slabs
from minga.studies.milano.chain import ChainComm
from minga.studies.tinetti.mpi_ranks import call_times, meet


def sent_bytes() -> int:
    """Return the bytes that this node's link has carried out; 0 outside of a lab."""
    counter = Path("/sys/class/net/eth0/statistics/tx_bytes")
    return int(counter.read_text()) if counter.exists() else 0


def ways(world: MPI.Intracomm) -> dict[str, dict[str, Any]]:
    """Return the two ways of the paper: blocking messages, and messages beside the sweep of the inner planes."""
    comm = MPIComm(world)
    return {
        "blocking": {"order": "lexicographic", "overlap": False, "comm": ChainComm(comm) if world.size > 1 else comm},
        "overlapped": {"order": "boundary-first", "overlap": True, "comm": comm},
    }


def measure(world: MPI.Intracomm, mesh: Sequence[int], order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the seconds per sweep of each way on a mesh, with their samples, and the planes of each rank."""
    problem = soft_cell(dict(zip("yzx", mesh, strict=True)), dt=0.01, steps=1)
    if not order["flow"]:
        problem = dataclasses.replace(problem, flow=False)
    found: dict[str, Any] = {}
    runs = []
    for name, way in ways(world).items():
        # No sweep settles: a run of the step is so many sweeps, and ends at their limit.
        settings = RelaxationOptions(way["order"], criterion="update", tolerance=1e-300, limit=order["sweeps"])
        model = relaxation(problem, settings)
        layouts = {grid: slabs(grid.box, world.size, 0, order["speeds"], granule=1) for grid in model.grids}
        engine = Engine(layouts, comm=way["comm"], overlap=way["overlap"], threads=1)
        start(model, engine)
        engine.run(model.step)
        runs.append((name, model, engine))
        found[name] = {"seconds": [], "bytes": []}
    for number in range(order["rounds"]):
        for name, model, engine in runs if number % 2 == 0 else runs[::-1]:
            start(model, engine)
            counted = model.observables["sweeps"]
            assert not isinstance(counted, tuple)
            meet(world)
            before, began = sent_bytes(), time.perf_counter()
            engine.run(model.step)
            spent = float(world.allreduce(time.perf_counter() - began, MPI.MAX))
            assert engine.read(counted) == order["sweeps"], "a run without its sweeps was timed"
            found[name]["seconds"].append(spent / order["sweeps"])
            found[name]["bytes"].append(world.allreduce(sent_bytes() - before) / order["sweeps"])
    for name, _, engine in runs:
        found[name] = {
            "seconds": statistics.median(found[name]["seconds"]),
            "samples": found[name]["seconds"],
            "interface_bytes": statistics.median(found[name]["bytes"]),
        }
        engine.close()
    planes = slabs(problem.grid.box, world.size, 0, order["speeds"], granule=1)
    return {"mesh": list(mesh), "planes": (planes.hi[:, 0] - planes.lo[:, 0]).tolist(), **found}


def main() -> int:
    """Carry out the order, and print what it gives."""
    order = json.loads(sys.argv[1])
    world = MPI.COMM_WORLD
    if order["task"] == "calls":
        found: Any = call_times(world, order["sizes"], order["rounds"])
    else:
        found = [measure(world, mesh, order) for mesh in order["meshes"]]
    if world.rank == 0:
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
