"""Five-point Jacobi steps and Life in bytes: the kernel alone, and a Program of it, beside gcc and a copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import minga as mg
from benchmarks.peers import address, kernel_way, peer
from benchmarks.results import ENGINE, Found, at_least, rates, ratios
from benchmarks.timing import Effort, Way, measure
from minga.compile.call import Call
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray
from minga.engine.storage import allocate
from minga.engine.tiles import tile_shape
from minga.lang.kernel import infer_signature

IN_CACHE, LARGE = 512, 4096
LIFE_IN_CACHE, LIFE_LARGE = 1024, 8192
QUICK = 192


@mg.kernel
def jacobi(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def life(u, new):
    n = u[-1, -1] + u[-1, 0] + u[-1, 1] + u[0, -1] + u[0, 1] + u[1, -1] + u[1, 0] + u[1, 1]
    new[0, 0] = mg.cast((n == 3) | ((n == 2) & (u[0, 0] == 1)), "u1")


def measure_jacobi(effort: Effort) -> Iterator[Found]:
    for dtype in ("f4", "f8"):
        for size in (QUICK,) if effort.quick else (IN_CACHE, LARGE):
            yield _stencil(f"jacobi-{dtype}-{size}", jacobi, dtype, size, effort, bound=size == LARGE)


def measure_life(effort: Effort) -> Iterator[Found]:
    for size in (QUICK,) if effort.quick else (LIFE_IN_CACHE, LIFE_LARGE):
        yield _stencil(f"life-u1-{size}", life, "u1", size, effort, bound=False)


def _stencil(name: str, kernel: mg.Kernel, dtype: str, size: int, effort: Effort, *, bound: bool) -> Found:
    graph = kernel.graph(infer_signature(2, [(dtype, (0, 1))] * 2))
    box = mg.Box((0, 0), (size, size))
    u, new = (allocate(box.grow((1, 1), (1, 1)), box, dtype, number) for number in (1, 2))
    start = _start(dtype, size)
    u[1:-1, 1:-1] = start
    compiled, tile = compile_kernel(graph), tile_shape(graph, box.shape, 1)
    turns = ((u, new), (new, u))
    calls = [Call(compiled, (box.lo, box.hi), [BoundArray(a, (-1, -1)) for a in turn], tile=tile) for turn in turns]
    words = [[*(address(a, 1, 1) for a in turn), size, size, u.strides[0] // u.itemsize] for turn in turns]
    c_name = f"{kernel.name}_{dtype}"
    calls[0].run()
    own = new[1:-1, 1:-1].copy()
    new[1:-1, 1:-1] = 0
    gcc, copy = peer(c_name, *words, keep=turns), peer(f"copy_{dtype}", *words, keep=turns, way="copy")
    equal = None
    for way in gcc.values():
        way(1)
        equal = bool((own == new[1:-1, 1:-1]).all())
    with mg.Engine(mg.Layout.single(box, 1), grid=mg.Grid((size, size))) as engine:
        program = _program(engine, kernel, dtype, start)
        times = measure({"kernel": kernel_way(*calls), **gcc, "engine": program, **copy}, effort)
    itemsize = np.dtype(dtype).itemsize
    found = ratios(times, "kernel / gcc", "engine / gcc", "kernel / copy", "engine / copy", "engine / kernel")
    limits = {"engine / kernel": ENGINE} | ({"kernel / copy": 0.9, "engine / copy": 0.9} if bound else {})
    limits |= {"kernel / gcc": 0.9, "engine / gcc": 0.9} if dtype == "u1" else {}
    return Found(
        name, f"{kernel.name} {dtype}, {size} x {size}", "Mcells/s", rates(times, size * size / 1e6), found,
        at_least(found, limits),
        {
            "bytes_per_cell": 3 * itemsize,
            "bytes_in_use": 2 * size * size * itemsize,
            "GB_per_second": round(3 * itemsize * size * size / times.least("kernel") * 1e-9, 2),
            "equal_to_gcc": equal,
        },
    )  # fmt: skip


def _start(dtype: str, size: int) -> np.ndarray:
    numbers = np.random.default_rng(1)
    if dtype == "u1":
        return (numbers.random((size, size)) < 0.4).astype(dtype)
    return numbers.random((size, size), dtype)


def _program(engine: mg.Engine, kernel: mg.Kernel, dtype: str, start: np.ndarray) -> Way:
    """A step of a field in two slots between walls at 0, repeated in native code."""
    (grid,) = engine.storage.layouts
    u = mg.Field("u", grid, dtype=dtype, slots=2, boundary=mg.fixed(0))
    step = mg.Program("step")
    step.apply(kernel, u, u.next)
    step.rotate(u)
    engine.set(u, start)
    engine.run(step, times=2)
    engine.set(u, start)
    return lambda times: engine.run(step, times=times)
