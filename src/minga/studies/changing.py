"""Run in which a node loses part of its share midway: with and without balancing, and the best possible result."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minga.engine.comm import MPIComm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import MingaError
from minga.lab.cluster import Cluster
from minga.plan.balance import Balancer
from minga.plan.cost import work_of
from minga.plan.plan import Plan
from minga.plan.planner import make_plan
from minga.plan.probe.probe import probe_ranks
from minga.plan.ranks import RankGroup
from minga.running.loop import drive
from minga.running.observers.balance import Balance
from minga.running.session import state_digest
from minga.studies.tinetti.mpi_ranks import meet

__all__ = ["lose_share", "obeying"]

_GLANCE: Final = 0.002


@contextmanager
def obeying(cluster: Cluster, flags: Path, shares: Mapping[str, float], node: int = 0) -> Iterator[None]:
    """Give a node the share from ``shares`` when the ranks raise the flag of that name, and take the flag down.

    Parameters
    ----------
    cluster
        The lab that holds the nodes.
    flags
        Directory of the flags.
    shares
        Shares of the node, by flag.
    node
        Number of the node.

    Raises
    ------
    MingaError
        At the end, if a share could not be set; the flag is taken down nevertheless, since the ranks wait for that.
    """
    over = threading.Event()
    refused: list[MingaError] = []

    def watch() -> None:
        while not over.wait(_GLANCE):
            for name, share in shares.items():
                if (flags / name).exists():
                    try:
                        cluster.set_share(node, share)
                    except MingaError as error:
                        refused.append(error)
                    (flags / name).unlink()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if refused:
        raise refused[0]


@dataclass(slots=True)
class _Changing:
    """Balancer that has the flag ``halved`` raised after a number of steps."""

    world: Any
    balancer: Balancer
    change: int
    flags: Path
    seconds: float = 0.0
    """Seconds until the change."""
    began: float = 0.0

    @property
    def interval(self) -> int | None:
        """Steps between balancing decisions, of the balancer in use."""
        return self.balancer.interval

    def start(self, model: Model, engine: Engine) -> None:
        """Start the balancer and the clock."""
        self.balancer.start(model, engine)
        self.began = time.perf_counter()

    def check(self, engine: Engine, step: int, remaining: int) -> bool:
        """Raise the flag once the change is due, then let the balancer decide."""
        if not self.seconds and step >= self.change:
            self.seconds = (time.perf_counter() - self.began) * self.change / step
            _raise_flag(self.world, self.flags, "halved")
        return self.balancer.check(engine, step, remaining)


def lose_share(world: Any, model: Model, flags: Path, seconds: float) -> dict[str, Any]:
    """Run a model for about ``seconds``; after a third of its steps the first node gets the share ``halved``.

    Collective. The process that holds the lab must run :func:`obeying` with the shares ``halved`` and ``restored``. The
    best result in hindsight is the time until the change plus, for the remaining steps, the time with a plan made after
    it. The digests of this run and of one without balancing are compared.
    """
    comm = MPIComm(world)
    group, plan = _planned(model, comm)
    output = [model.field(name) for name in model.output]
    with _engine(model, comm, plan) as before:
        steady = _seconds_a_step(world, model, before, seconds / 8)
        steps = int(world.bcast(seconds / steady))
        run = _Changing(world, Balancer(work_of(model), group, "auto"), max(1, steps // 3), flags)
        meet(world)
        with _engine(model, comm, plan) as engine:
            result = drive(model, engine, steps, [Balance(run)])
            digest = state_digest(engine, model, output)
            cells = engine.storage.layout(model.planned_grid).cells().tolist()
        later = _planned(model, comm)[1]
        unchanged = _seconds_a_step(world, model, before, seconds / 8)
    with _engine(model, comm, later) as after:
        best = _seconds_a_step(world, model, after, seconds / 8)
    _raise_flag(world, flags, "restored")
    with _engine(model, comm, plan) as engine:
        drive(model, engine, steps)
        same = digest == state_digest(engine, model, output)
    first, rest = run.seconds, steps - run.change
    spent = max(world.allgather(result.seconds))
    return {
        "steps": steps,
        "changed_after_steps": run.change,
        "seconds": {
            "balanced": spent,
            "not balanced": first + rest * unchanged,
            "best in hindsight": first + rest * best,
        },
        "step_before": steady,
        "cells": {"before": plan.layout.cells().tolist(), "after": cells, "best": later.layout.cells().tolist()},
        "moves": [decision.as_dict() for decision in run.balancer.decisions],
        "same_bits": bool(same),
    }


def _planned(model: Model, comm: MPIComm) -> tuple[RankGroup, Plan]:
    """Return ranks and plan as `minga run` would, from new measurements."""
    group = probe_ranks(model, comm, cache=False)
    return group, make_plan(work_of(model), group)


def _engine(model: Model, comm: MPIComm, plan: Plan) -> Engine:
    return Engine(model.layouts_like(plan.layout), comm=comm, halo_depth=plan.halo_depth, overlap=plan.overlap)


def _seconds_a_step(world: Any, model: Model, engine: Engine, seconds: float) -> float:
    """Return the time per step of a run without balancing, measured as with balancing; equal on all ranks."""
    first = drive(model, engine, 4)
    steps = int(world.bcast(max(4.0, seconds * 4 / first.seconds)))
    meet(world)
    return float(max(world.allgather(drive(model, engine, steps).seconds))) / steps


def _raise_flag(world: Any, flags: Path, name: str) -> None:
    """Raise a flag and wait until it has been taken down."""
    flag = flags / name
    if world.rank == 0:
        flag.touch()
    meet(world)
    while flag.exists():
        time.sleep(_GLANCE)
    meet(world)
