"""Small steps: what an engine adds to kernels of 64² to 256² cells, by boundaries, fields and slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import minga as mg
from benchmarks.peers import kernel_way
from benchmarks.results import Found, at_least, rates, ratios
from benchmarks.stencils import jacobi, life
from benchmarks.timing import Effort, Way, measure
from minga.compile.call import Call
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray
from minga.engine.storage import allocate
from minga.engine.tiles import tile_shape
from minga.lang.kernel import Kernel, infer_signature

SIZES: Final = (64, 128, 256)
LIMIT: Final = 0.77
"""Least share of the speed of a bare kernel, with its slots in turn: a step may take 1.3 times as long."""


@mg.kernel
def gray_scott(u, v, new_u, new_v):
    reaction = u[0, 0] * v[0, 0] * v[0, 0]
    new_u[0, 0] = u[0, 0] + 0.16 * _laplacian(u) - reaction + 0.06 * (1.0 - u[0, 0])
    new_v[0, 0] = v[0, 0] + 0.08 * _laplacian(v) + reaction - 0.1 * v[0, 0]


@mg.kernel
def waves(p, previous):
    previous[0, 0] = 2.0 * p[0, 0] - previous[0, 0] + 0.2 * _laplacian(p)


def _laplacian(u: Any) -> Any:
    return u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4.0 * u[0, 0]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel of fields in two slots, and the boundary of each axis: None if it is periodic."""

    title: str
    kernel: Kernel
    dtype: str
    boundary: Callable[[], object] | None
    fields: int = 1
    least: float = 0.0
    most: float = 1.0


CASES: Final = {
    "jacobi-fixed": Case("Jacobi, fixed walls", jacobi, "f8", lambda: mg.fixed(0.5)),
    "jacobi-flat": Case("Jacobi, no gradient at walls", jacobi, "f8", mg.zero_gradient),
    "jacobi-periodic": Case("Jacobi, periodic", jacobi, "f8", None),
    "life-fixed": Case("Life in bytes, fixed walls", life, "u1", lambda: mg.fixed(0), most=1.4),
    "life-periodic": Case("Life in bytes, periodic", life, "u1", None, most=1.4),
    "gray-scott": Case("Gray-Scott, periodic", gray_scott, "f8", None, fields=2),
    "waves": Case("waves of order 2, fixed walls", waves, "f4", lambda: mg.fixed(0.0), least=-1.0),
}


def measure_small_steps(effort: Effort) -> Iterator[Found]:
    for name, case in CASES.items():
        for size in SIZES[:1] if effort.quick else SIZES:
            yield _measure(name, case, size, effort)


def _measure(name: str, case: Case, size: int, effort: Effort) -> Found:
    numbers = np.random.default_rng(1)
    values = [case.least + (case.most - case.least) * numbers.random((size, size)) for _ in range(case.fields)]
    starts = [each.astype(case.dtype) for each in values]
    grid = mg.Grid((size, size), periodic=case.boundary is None)
    with mg.Engine(mg.Layout.single(mg.Box((0, 0), grid.shape), 1), grid=grid) as engine:
        times = measure({"kernel": _bare(case, size, starts), "engine": _program(engine, case, starts)}, effort)
    found = ratios(times, "engine / kernel")
    targets = at_least(found, {"engine / kernel": LIMIT})
    title = f"{case.title}, {case.dtype}, {size} x {size}"
    return Found(f"small-{name}-{size}", title, "Mcells/s", rates(times, size * size / 1e6), found, targets)


def _bare(case: Case, size: int, starts: Sequence[np.ndarray]) -> Way:
    """The kernel with the slots of its fields in turn."""
    box = mg.Box((0, 0), (size, size))
    wide = box.grow((1, 1), (1, 1))
    slots = [[allocate(wide, box, case.dtype, 2 * k + slot) for k in range(case.fields)] for slot in range(2)]
    for arrays in slots:
        for array, start in zip(arrays, starts, strict=True):
            array[...] = start.mean()
            array[1:-1, 1:-1] = start
    graph = case.kernel.graph(infer_signature(2, [(case.dtype, (0, 1))] * 2 * case.fields))
    compiled, tile = compile_kernel(graph), tile_shape(graph, box.shape, 1)
    bound = [[BoundArray(array, (-1, -1)) for array in arrays] for arrays in slots]
    turns = ((*bound[0], *bound[1]), (*bound[1], *bound[0]))
    return kernel_way(*(Call(compiled, (box.lo, box.hi), turn, tile=tile) for turn in turns))


def _program(engine: mg.Engine, case: Case, starts: Sequence[np.ndarray]) -> Way:
    (grid,) = engine.storage.layouts
    walls = {} if case.boundary is None else {"boundary": case.boundary()}
    fields = [mg.Field(f"u{k}", grid, dtype=case.dtype, slots=2, **walls) for k in range(case.fields)]
    step = mg.Program("step")
    others = [field.previous if case.kernel is waves else field.next for field in fields]
    step.apply(case.kernel, *fields, *others)
    step.rotate(*fields)
    for field, start in zip(fields, starts, strict=True):
        engine.set(field, start)
    engine.run(step, times=2)
    return lambda times: engine.run(step, times=times)
