"""Run on MPI ranks by test_traffic_mpi.py: where the ranks sit, and what a relaxation sends, as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import minga as mg
from minga.engine.comm import Comm, MPIComm
from minga.plan.placement import cost_of, place
from minga.plan.topology import seats_of, traffic_by_level
from minga.plan.work.work import HaloRound
from minga.space.cuts import cartesian


@mg.kernel
def relaxation(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def answer(comm: Comm, mapping: str, native: bool) -> dict[str, Any] | None:
    """What ten exchanges sent, on rank 0."""
    grid = mg.Grid((32, 32))
    seats = seats_of(comm)
    layout = place(cartesian(grid.box, (comm.size // 2, 2), granule=1), seats, mapping)
    u = mg.Field("u", grid, "f8", slots=2, boundary=mg.fixed(1.0))
    step = mg.Program("step")
    step.apply(relaxation, u, u.next)
    step.rotate(u)
    with mg.Engine(layout, grid=grid, comm=comm, native=native, trace=100) as engine:
        assert engine.native == native
        engine.set(u, 0.0)
        engine.run(step, 9)
        sent = comm.gather(engine.traffic)
        events = comm.gather((len(engine.events.rows), engine.ledger.messages))
    if sent is None:
        return None
    cost = cost_of(layout, seats, exchanges=(HaloRound((1, 1), (1, 1), 8),))
    return {
        "levels": {name: [t.messages, t.bytes, t.copies] for name, t in traffic_by_level(sent, seats).items()},
        "nodes": seats.paths[:, 0].tolist(),
        "owner": layout.owner.tolist(),
        "events": events,
        "expected": [10 * cost.messages[0], 10 * cost.bytes[0]],
    }


if __name__ == "__main__":
    comm = MPIComm()
    mapping, *ways = sys.argv[1:]
    found = [answer(comm, mapping, way == "native") for way in ways]
    if comm.rank == 0:
        sys.stdout.write(json.dumps(found))
