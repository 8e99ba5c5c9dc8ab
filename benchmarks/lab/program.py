"""What the ranks of a lab do in a benchmark: ``python -m benchmarks.lab.program ORDER``, under a launcher.

ORDER is JSON: ``experiment``, and what that needs. Rank 0 prints one line of JSON with what was found. Variants are
timed in turns, so that a busy moment meets all of them.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import minga as mg
from minga.case.examples import examples
from minga.engine.begin import start
from minga.engine.comm import MPIComm
from minga.engine.engine import Engine
from minga.plan.balance import Balancer
from minga.plan.cost import predict, work_of
from minga.plan.plan import Plan
from minga.plan.planner import make_plan
from minga.plan.probe.probe import probe_ranks
from minga.plan.ranks import RankGroup
from minga.running.session import state_digest
from minga.space.layout import Layout
from minga.studies.changing import lose_share

HERE = Path(__file__).parent


def model_of(name: str, shape: Sequence[int]) -> mg.Model:
    """A model by the name of its file: beside this one, or a shipped example."""
    path = HERE / f"{name}.py"
    specification = importlib.util.spec_from_file_location(name, path if path.exists() else examples()[name])
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    model: mg.Model = module.model(shape=tuple(shape))
    return model


def meet(world: MPI.Intracomm) -> None:
    """A barrier that uses no processor while it waits: other ranks are being timed."""
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(0.002)


@dataclass(slots=True)
class Variant:
    """One way to run a model, and how long its steps took."""

    model: mg.Model
    engine: Engine
    seconds: list[float] = field(default_factory=list)
    sent: list[tuple[int, int]] = field(default_factory=list)
    """Bytes and packets that this node's interface sent, by sample."""
    steps: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, model: mg.Model, comm: Any, layout: Layout, **options: Any) -> Variant:
        engine = Engine(model.layouts_like(layout), comm=comm, **options)
        start(model, engine)
        engine.run(model.step, 3)
        return cls(model, engine)

    def sample(self, world: MPI.Intracomm, steps: int) -> float:
        """Seconds a step of the slowest rank."""
        meet(world)
        before = interface()
        began = time.perf_counter()
        self.engine.run(self.model.step, steps)
        spent = float(world.allreduce(time.perf_counter() - began, MPI.MAX)) / steps
        after = interface()
        self.seconds.append(spent)
        self.steps.append(steps)
        self.sent.append((after[0] - before[0], after[1] - before[1]))
        return spent

    def clear(self) -> None:
        """Forget all samples."""
        for samples in (self.seconds, self.sent, self.steps):
            samples.clear()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def interface() -> tuple[int, int]:
    """Bytes and packets that this node's link has carried out."""
    counters = Path("/sys/class/net/eth0/statistics")
    return int((counters / "tx_bytes").read_text()), int((counters / "tx_packets").read_text())


def round_robin(world: MPI.Intracomm, variants: Mapping[str, Variant], seconds: float, rounds: int) -> None:
    """Samples of all variants, each about so many seconds long, every second round in the opposite order."""
    counts = {}
    for name, variant in variants.items():
        spent = variant.sample(world, 8)
        variant.clear()
        counts[name] = max(8, int(seconds / spent))
    for number in range(rounds):
        for name in list(variants) if number % 2 == 0 else list(reversed(variants)):
            variants[name].sample(world, counts[name])


def speeds_of_nodes(world: MPI.Intracomm, name: str, layout: Layout, seconds: float, *, at_once: bool) -> list[float]:
    """Cells a second of each rank with its own part of the grid, without any messages; equal on all ranks.

    ``at_once``: all work at the same time, as they do in a run, and share the memory of the machine that plays them;
    else one after the other.
    """
    mine = layout.blocks_of(world.rank)
    model = model_of(name, layout.box(mine[0]).shape) if mine else None
    speed = 0.0
    for turn in range(1 if at_once else world.size):
        meet(world)
        if model is not None and (at_once or turn == world.rank):
            with Engine(model.layouts("single", 1)) as engine:
                start(model, engine)
                engine.run(model.step, 5)
                if at_once:
                    meet(world)
                began, done, count = time.perf_counter(), 0, 1
                while (spent := time.perf_counter() - began) < seconds:
                    engine.run(model.step, count)
                    done, count = done + count, min(2 * count, 8)
                speed = model.grid.size * done / spent
        elif at_once:
            meet(world)
    meet(world)
    found: list[float] = world.allgather(speed)
    return found


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median and ends of some samples."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


# Experiments ---------------------------------------------------------------------------------------------------------
def hetero(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """What `minga run` does, a plan that is balanced as the run goes on, beside equal slabs and the sum of the speeds.

    Speeds are those without messages, all nodes at work: memory is shared by the nodes of a lab, as real ones do not.
    They, and predictions from new probes, are taken in turns with the steps: the speed of a virtual machine drifts.
    Those of one node after the other are kept too.
    """
    name, seconds, rounds = order["model"], order["seconds"], order["rounds"]
    model, comm = model_of(name, order["shape"]), MPIComm(world)
    group, plan = planned(model, comm)
    slabs = next(iter(model.layouts("slabs", world.size).values()))
    run = Variant.of(model, comm, plan.layout, halo_depth=plan.halo_depth, overlap=plan.overlap)
    equal = Variant.of(model, comm, slabs)
    work = work_of(model)
    balancer = Balancer(work, group, "auto")
    balancer.start(model, run.engine)
    settle(world, run, balancer, 2 * seconds)
    run.clear()
    alone = speeds_of_nodes(world, name, plan.layout, seconds, at_once=False)
    ideals, predicted, speeds = [], [], []
    for _ in range(rounds):
        before = len(run.seconds)
        settle(world, run, balancer, seconds)
        equal.sample(world, max(8, int(seconds / statistics.median(run.seconds[before:]) / 2)))
        layout = run.engine.storage.layout(model.planned_grid)
        speeds.append(speeds_of_nodes(world, name, layout, seconds, at_once=True))
        ideals.append(model.grid.size / sum(speeds[-1]))
        now = probe_ranks(model, comm, cache=False)
        measured = statistics.median(run.seconds[before:])
        predicted.append((predict(work, now, layout, plan.halo_depth, plan.overlap).seconds, measured))
    measured = statistics.median(run.seconds)
    naive = predict(work, group, slabs).seconds
    return {
        "model": name,
        "shape": list(order["shape"]),
        "cells_planned": plan.layout.cells().tolist(),
        "cells": run.engine.storage.layout(model.planned_grid).cells().tolist(),
        "moves": len(balancer.decisions),
        "layout": plan.name,
        "halo_depth": plan.halo_depth,
        "overlap": plan.overlap,
        "speeds": speeds,
        "speeds_one_by_one": alone,
        "ideal_seconds": spread(ideals),
        "plan_seconds": spread(run.seconds),
        "equal_slabs_seconds": spread(equal.seconds),
        "fastest_alone_seconds": model.grid.size / max(alone),
        "predicted_before": plan.prediction.seconds,
        "predicted_and_measured_seconds": predicted,
        "predicted_equal_slabs_seconds": naive,
        "efficiency": statistics.median(ideals) / measured,
        "efficiency_equal_slabs": statistics.median(ideals) / equal.median,
        "efficiency_of_nodes_one_by_one": model.grid.size / sum(alone) / measured,
        "prediction_error": statistics.median(abs(said / found - 1) for said, found in predicted),
        "prediction_error_equal_slabs": abs(naive / equal.median - 1),
        "same_digest": digests({"plan": run, "equal slabs": equal}, model, order["steps"]) if order["steps"] else None,
    }


def settle(world: MPI.Intracomm, variant: Variant, balancer: Balancer, seconds: float) -> None:
    """Samples for so many seconds, a quarter of a second and at least four steps each, with a look after each."""
    step, left = 4, seconds
    while left > 0:
        spent = variant.sample(world, step)
        left -= step * spent
        step = max(4, int(0.25 / spent))
        balancer.check(variant.engine, len(variant.seconds), 10_000)


def overlap(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """Blocking, overlapped with and without polling, and deep halos; messages and bytes by the interfaces."""
    model, comm = model_of(order["model"], order["shape"]), MPIComm(world)
    slabs = next(iter(model.layouts("slabs", world.size).values()))
    ways: dict[str, dict[str, Any]] = {
        "blocking": {"overlap": False},
        "overlapped": {"overlap": True},
        "overlapped without polling": {"overlap": True, "poll": "off"},
        "deep halo": {"overlap": True, "halo_depth": order["depth"]},
    }
    variants = {name: Variant.of(model, comm, slabs, **options) for name, options in ways.items()}
    round_robin(world, variants, order["seconds"], order["rounds"])
    entries = {}
    for name, variant in variants.items():
        sent = world.allreduce(np.array(variant.sent, np.int64).sum(axis=0)) / sum(variant.steps)
        entries[name] = {
            "seconds": spread(variant.seconds),
            "interface_bytes_a_step": float(sent[0]),
            "interface_packets_a_step": float(sent[1]),
            "messages_a_step": messages_a_step(world, variant),
        }
    return {
        "model": order["model"],
        "shape": list(order["shape"]),
        "ways": entries,
        "same_digest": digests(variants, model, order["steps"]),
    }


def depth(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """The depth of halos that the model chooses beside all depths, measured."""
    model, comm = model_of(order["model"], order["shape"]), MPIComm(world)
    group = probe_ranks(model, comm, cache=False)
    plan = make_plan(work_of(model), group, layout="slabs")
    variants = {str(k): Variant.of(model, comm, plan.layout, halo_depth=k, overlap=plan.overlap) for k in range(1, 9)}
    round_robin(world, variants, order["seconds"], order["rounds"])
    medians = {name: variant.median for name, variant in variants.items()}
    work = work_of(model)
    return {
        "model": order["model"],
        "shape": list(order["shape"]),
        "chosen": plan.halo_depth,
        "seconds": {name: spread(variant.seconds) for name, variant in variants.items()},
        "predicted_seconds": {k: predict(work, group, plan.layout, int(k), plan.overlap).seconds for k in variants},
        "over_best": medians[str(plan.halo_depth)] / min(medians.values()),
        "same_digest": digests(variants, model, order["steps"]),
    }


def lost(world: MPI.Intracomm, order: Mapping[str, Any]) -> dict[str, Any]:
    """A node loses half its share in the middle of a run: with balancing, without, and the best split in hindsight."""
    model = model_of(order["model"], order["shape"])
    found = lose_share(world, model, Path(order["flags"]), order["run_seconds"])
    seconds = found["seconds"]
    return {
        "model": order["model"],
        "shape": list(order["shape"]),
        **found,
        "over_hindsight": seconds["balanced"] / seconds["best in hindsight"],
    }


def messages_a_step(world: MPI.Intracomm, variant: Variant) -> float:
    """Messages of all ranks, by the transport's own count, over a few steps."""
    before = sum(traffic.messages for traffic in variant.engine.traffic.values())
    variant.engine.run(variant.model.step, 16)
    after = sum(traffic.messages for traffic in variant.engine.traffic.values())
    return float(world.allreduce(after - before)) / 16


def planned(model: mg.Model, comm: MPIComm) -> tuple[RankGroup, Plan]:
    """What `minga run` would do, measured anew."""
    group = probe_ranks(model, comm, cache=False)
    return group, make_plan(work_of(model), group)


def digests(variants: Mapping[str, Variant], model: mg.Model, steps: int) -> bool:
    """Whether all variants come to the same bits after the same steps from the start."""
    found = set()
    for variant in variants.values():
        start(model, variant.engine)
        variant.engine.run(model.step, steps)
        found.add(state_digest(variant.engine, model, [model.field(name) for name in model.output]))
    return len(found) == 1


EXPERIMENTS = {"hetero": hetero, "lost": lost, "overlap": overlap, "depth": depth}


def main() -> int:
    order = json.loads(sys.argv[1])
    world = MPI.COMM_WORLD
    found = EXPERIMENTS[order["experiment"]](world, order)
    if world.rank == 0:
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
