"""A relaxation on ranks of which the last one takes several times as long for a cell, balanced or not.

Started on MPI ranks, it does both and prints what came of them.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import minga as mg
from minga.engine.comm import Comm, MPIComm
from minga.plan.balance import Balancer
from minga.plan.links import Links
from minga.plan.ranks import RankGroup
from minga.plan.speed import Speed
from minga.plan.topology import Tree
from minga.plan.work.work import Work
from minga.running.observers.balance import Balance
from minga.space.cuts import slabs
from minga.space.layout import Layout

GRID = mg.Grid((90, 128), periodic=(True, False))
STEP_SECONDS = 0.04
"""Of a rank that is not slow, for all cells of the grid."""


@mg.kernel
def relax(u: Any, new: Any) -> None:
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def energy(u: Any) -> Any:
    return mg.sum(u[0, 0] * u[0, 0])


def slow_model(pace: float) -> mg.Model:
    """Every rank waits in each step in proportion to its cells; `pace` is how much longer than others this one."""
    u = mg.Field("u", GRID, slots=2, boundary=mg.fixed(1.0))

    def work(engine: mg.Engine) -> None:
        cells = sum(box.size for box, _ in engine.blocks(u))
        time.sleep(pace * STEP_SECONDS * cells / GRID.size)

    step, observe = mg.Program("step"), mg.Program("observe")
    step.apply(relax, u, u.next)
    step.call(work, reads=[u])
    step.rotate(u)
    value = observe.apply(energy, u)
    y, x = np.indices(GRID.shape)
    return mg.Model(
        "slow", GRID, (u,), step, initial={"u": np.sin(0.1 * x) + y % 7}, observe=observe, observables={"energy": value}
    )


def equal_group(ranks: int) -> RankGroup:
    """Ranks that nobody has measured."""
    seats = Tree.parse(str(ranks)).seats(ranks)
    links = Links.uniform(len(seats.levels), [(5e-5, 1e-9)])
    zeros = np.zeros(ranks, np.int64)
    return RankGroup((Speed.constant(1e7),), zeros, np.full(ranks, 1 << 40), seats, links)


def work() -> Work:
    return Work("slow", "k", GRID.box, (True, False), (1, 64), (2, 1), 16, ())


def run(
    comm: Comm,
    steps: int,
    pace: float,
    look: int | str | None,
    layout: Layout | None = None,
    poll: Any = "auto",
    observers: Sequence[mg.Observer] = (),
    until: mg.Stop | None = None,
) -> dict[str, Any]:
    """A run, balanced after every so many steps or not at all; what rank 0 finds, and the last step's length."""
    model = slow_model(pace if comm.rank == comm.size - 1 else 1.0)
    balancer = None if look is None else Balancer(work(), equal_group(comm.size), look)  # type: ignore[arg-type]
    with mg.Engine(model.layouts_like(layout or slabs(GRID.box, comm.size)), comm=comm, poll=poll) as engine:
        watching = [*observers, *([] if balancer is None else [Balance(balancer)])]
        result = mg.drive(model, engine, steps, watching, until=until)
        whole = engine.gather(model.fields[0])
        engine.comm.barrier()
        began = time.perf_counter()
        engine.run(model.step, 10)
        took = np.array([round((time.perf_counter() - began) * 1e8)], np.int64)
        engine.comm.allreduce(took, "max")
        digest = "" if whole is None else hashlib.sha256(whole.tobytes()).hexdigest()
        cells = engine.storage.layout(GRID).cells().tolist()
        last = engine.gather(model.fields[0])
        engine.relayout({GRID: Layout.single(GRID.box, comm.size, comm.size - 1)}, piece_bytes=5000)
        gathered = engine.gather(model.fields[0])
    return {
        "digest": digest,
        "on one rank": last is None or bool(np.array_equal(last, gathered)),
        "energy": repr(result.observables["energy"]),
        "seconds": result.seconds,
        "last": int(took[0]) * 1e-9,
        "cells": cells,
        "decisions": [] if balancer is None else [decision.as_dict() for decision in balancer.decisions],
    }


if __name__ == "__main__":
    comm = MPIComm()
    found = [run(comm, 36, 3.0, look) for look in (None, 4)]
    found += [run(comm, 5, 0.1, 1, poll=poll) for poll in ("off", 1e-3)]
    if comm.rank == 0:
        sys.stdout.write(json.dumps(found) + "\n")
