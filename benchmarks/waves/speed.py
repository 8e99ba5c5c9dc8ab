"""The TTI model beside Devito and gcc, on one core and on all: cells a second of those that are updated.

The clock is wall time, as Devito's own. All take turns, so that a busy moment meets all of them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import minga as mg
from benchmarks.peers import peer
from benchmarks.results import Found, at_least, rates, ratios
from benchmarks.timing import Times, Way
from benchmarks.tti import data_of, peer_words, program
from benchmarks.tti_kernels import graph_of
from benchmarks.waves.bounds import Bounds, measure_bounds
from benchmarks.waves.devito import Devito, installed
from benchmarks.waves.model import forward_steps
from minga.compile.llvm import suggest_tile
from minga.lang.analysis import bytes_per_cell, flops
from minga.studies.machado.one_run import PUBLIC

SIZES = (128, 136)
"""Cells along an axis that are updated, absorbing layers included. Planes of 128 are a power of two, which aliases."""
QUICK = 40
KERNEL = "tti_six"
ORDERS = (8, 16)
LIMITS = {
    "forward / devito so=16 forward": 2.5,
    "forward / devito so=8 forward": 1.0,
    "update / gcc": 0.95,
    "forward / gcc": 0.95,
}
"""Devito's so=8 has first derivatives of order 4 in the rotated terms; its so=16 has them of order 8, as minga has."""

Sample = Callable[[], Mapping[str, float]]
"""One sample: seconds a step by name."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much is measured: rounds, and the least seconds of a sample."""

    rounds: int
    sample: float
    quick: bool

    @classmethod
    def of(cls, quick: bool) -> Pace:
        return cls(2, 0.01, True) if quick else cls(9, 0.4, False)


def measure_speed(quick: bool) -> Iterator[Found]:
    """A result for each size on one core, and on all of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    sizes = (QUICK,) if quick else SIZES
    pace = Pace.of(quick)
    bounds = {threads: measure_bounds(threads, quick) for threads in {1, cores}}
    with contextlib.ExitStack() as stack:
        servers: dict[int, Devito] = {}
        if installed() and not quick:
            servers = {order: stack.enter_context(Devito(order, sizes, cores)) for order in ORDERS}
        elif not quick:
            print("Devito is left out: `make bench-waves` installs it", file=sys.stderr)
        for size in sizes:
            for threads in sorted({1, cores}):
                yield _measure(size, threads, servers, bounds[threads], pace)


def _measure(size: int, threads: int, servers: Mapping[int, Devito], bound: Bounds | None, pace: Pace) -> Found:
    data = data_of(KERNEL, size)
    graph = graph_of(KERNEL)
    cells = size**3
    costs = flops(graph), bytes_per_cell(graph)
    details: dict[str, object] = {"threads": threads, "flops_per_cell": costs[0], "bytes_per_cell": costs[1]}
    samples: list[Sample] = []
    with contextlib.ExitStack() as stack:
        box = mg.Layout.single(data.box, 1)
        engine = stack.enter_context(mg.Engine(box, grid=mg.Grid((size,) * 3), threads=threads))
        samples.append(_timed("update", program(engine, KERNEL, data), pace))
        if threads == 1:
            rows = suggest_tile(graph, data.box.shape)[1]
            words, kept = peer_words(KERNEL, data, rows)
            for name, way in peer(KERNEL, words, keep=kept).items():
                samples.append(_timed(name, way, pace, reset=data.reset))
        for name, medium in (("forward", None), ("forward, homogeneous", PUBLIC)):
            samples.append(_timed(name, stack.enter_context(forward_steps(size, threads, medium)), pace))
        for order, server in servers.items():
            samples.append(_devito(server, order, size, threads, details))
        times = _in_turns(samples, pace.rounds)
    values = rates(times, cells / 1e6)
    if bound is not None:
        memory, arithmetic = (round(rate / 1e6, 1) for rate in bound.cells(costs[1], costs[0]))
        values |= {"memory bound": {"best": memory}, "arithmetic bound": {"best": arithmetic}}
        details |= {
            "copy_GB_per_second": round(bound.copy_bytes_per_second * 1e-9, 2),
            "peak_Gflop_per_second": round(bound.flops_per_second * 1e-9, 1),
        }
    pairs = [f"{ours} / {other}" for ours in ("forward", "update") for other in times.seconds if other != ours]
    found = ratios(times, *pairs)
    title = f"TTI, {size} x {size} x {size}, {threads} thread{'s' if threads > 1 else ''}"
    return Found(
        f"speed-{size}-{threads}", title, "Mcells/s", values, found, at_least(found, LIMITS), details
    )  # fmt: skip


def _timed(name: str, way: Way, pace: Pace, reset: Callable[[], None] | None = None) -> Sample:
    """Wall seconds a step of a way; as many steps as a sample needs."""
    way(1)
    began = time.perf_counter()
    way(2)
    steps = max(1, round(pace.sample * 2 / (time.perf_counter() - began)))

    def sample() -> Mapping[str, float]:
        if reset is not None:
            reset()
            way(1)
        began = time.perf_counter()
        way(steps)
        return {name: (time.perf_counter() - began) / steps}

    return sample


def _devito(server: Devito, order: int, size: int, threads: int, details: dict[str, object]) -> Sample:
    steps = 20 if order == 8 else 10

    def sample() -> Mapping[str, float]:
        answer = server.run(size, threads, steps)
        details[f"devito so={order}"] = {key: answer[key] for key in ("version", "blocks", "sections", "steps")}
        return {f"devito so={order} {part}": answer[part] for part in ("update", "forward")}

    sample()  # compiles and tunes
    return sample


def _in_turns(samples: list[Sample], rounds: int) -> Times:
    """Every sample in turn, every second round in the opposite order."""
    seconds: dict[str, list[float]] = {}
    for number in range(rounds):
        for sample in samples if number % 2 == 0 else reversed(samples):
            for name, spent in sample().items():
                seconds.setdefault(name, []).append(spent)
    return Times(seconds)
