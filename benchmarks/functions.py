"""Random numbers, exp and log: arithmetic without much memory, beside libm and NumPy's generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import minga as mg
from benchmarks.peers import address, kernel_way, peer
from benchmarks.results import Found, rates, ratios
from benchmarks.timing import Effort, Way, measure
from minga.compile.call import Call
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray
from minga.engine.storage import allocate
from minga.lang.graph import KernelGraph
from minga.lang.kernel import infer_signature

CELLS = 1 << 13
"""Cells of a row: source and target stay in the first two caches."""
ROWS = 64


@mg.kernel
def draw(new):
    new[0, 0] = mg.random()


@mg.kernel
def draw_two(new, more):
    new[0, 0] = mg.random()
    more[0, 0] = mg.random()


@mg.kernel
def draw_f4(new):
    new[0, 0] = mg.random("f4")


def measure_random(effort: Effort) -> Iterator[Found]:
    cases: list[tuple[mg.Kernel, str, int]] = [(draw, "f8", 1), (draw_two, "f8", 2), (draw_f4, "f4", 1)]
    for kernel, dtype, draws in cases[:1] if effort.quick else cases:
        graph = kernel.graph(infer_signature(2, [(dtype, (0, 1))] * draws))
        call = _call(graph, (ROWS, CELLS // 8), dtype, draws)
        generator = np.random.Generator(np.random.Philox(1))
        ways: dict[str, Way] = {"kernel": kernel_way(call), "numpy philox": _numpy(generator, dtype)}
        times = measure(ways, effort)
        amount = ROWS * CELLS // 8 * draws / 1e6
        values = rates(times, amount)
        values["numpy philox"] = {key: round(rate / draws, 4) for key, rate in values["numpy philox"].items()}
        title = f"random numbers, {draws} {dtype} a cell"
        yield Found(f"random-{dtype}-{draws}", title, "Mdraws/s", values)


def _numpy(generator: np.random.Generator, dtype: str) -> Way:
    target = np.empty((ROWS, CELLS // 8), dtype)

    def fill(times: int) -> None:
        for _ in range(times):
            generator.random(dtype=target.dtype, out=target)

    return fill


def measure_functions(effort: Effort) -> Iterator[Found]:
    functions: dict[str, Callable[..., object]] = {"exp": mg.exp, "log": mg.log}
    for name, function in functions.items():
        for dtype in ("f8",) if effort.quick else ("f8", "f4"):
            yield _function(name, function, dtype, effort)


def _function(name: str, function: Callable[..., object], dtype: str, effort: Effort) -> Found:
    @mg.kernel
    def each(u, new):
        new[0, 0] = function(u[0, 0])

    graph = each.graph(infer_signature(2, [(dtype, (0, 1))] * 2))
    call = _call(graph, (1, CELLS), dtype, 2)
    u, new = (bound.array for bound in call._arrays)
    low, high = (-20.0, 20.0) if name == "exp" else (1e-3, 1e3)
    u[...] = low + (high - low) * np.random.default_rng(1).random(u.shape)
    libm = peer(f"{name}_{dtype}", [address(u, 0, 0), address(new, 0, 0), CELLS], keep=(u, new), way="libm")
    times = measure({"kernel": kernel_way(call), **libm}, effort)
    return Found(
        f"{name}-{dtype}", f"{name} {dtype}", "Mvalues/s", rates(times, CELLS / 1e6), ratios(times, "kernel / libm")
    )


def _call(graph: KernelGraph, shape: tuple[int, int], dtype: str, arrays: int) -> Call:
    box = mg.Box((0, 0), shape)
    bound = [BoundArray(allocate(box, box, graph.params[0].dtype, number), (0, 0)) for number in range(arrays)]
    scalars = {scalar.name: np.uint64(7) for scalar in graph.scalars}
    return Call(compile_kernel(graph), (box.lo, box.hi), bound, scalars)
