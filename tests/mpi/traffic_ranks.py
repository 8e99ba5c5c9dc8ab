"""Run on MPI ranks by test_traffic_mpi.py: where the ranks sit, and what a relaxation sends, as JSON."""

from __future__ import annotations

import json
import sys

import minga as mg
from minga.engine.comm import MPIComm
from minga.fit.placement import cost_of, place
from minga.fit.topology import seats_of, traffic_by_level
from minga.fit.work.work import Exchange
from minga.space.cuts import cartesian


@mg.kernel
def relaxation(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


comm = MPIComm()
parts = (comm.size // 2, 2)
mapping, native = sys.argv[1], sys.argv[2] == "native"
grid = mg.Grid((32, 32))
seats = seats_of(comm)
layout = place(cartesian(grid.box, parts, granule=1), seats, mapping)
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
if comm.rank == 0:
    levels = {name: [t.messages, t.bytes, t.copies] for name, t in traffic_by_level(sent, seats).items()}
    answer = {"levels": levels, "nodes": seats.paths[:, 0].tolist(), "owner": layout.owner.tolist(), "events": events}
    cost = cost_of(layout, seats, exchanges=(Exchange((1, 1), (1, 1), 8),))
    answer["expected"] = [10 * cost.messages[0], 10 * cost.bytes[0]]
    sys.stdout.write(json.dumps(answer))
