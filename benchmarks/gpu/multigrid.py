"""Conjugate gradients with a multigrid preconditioner on a GPU: time of an iteration, beside what its kernels move."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

import minga as mg
from minga.engine.device import Device
from minga.engine.operations import Apply, Operation, Repeat, flat
from minga.lang.analysis import bytes_per_cell
from minga.solve import Laplacian, Multigrid, conjugate_gradients

NAME: Final = "multigrid"
SIZE, QUICK = 511, 15
TOLERANCE: Final = 1e-8


@dataclass(frozen=True, slots=True)
class Solve:
    """Poisson's equation, f8, in a cube. `bytes`: moved by the kernels of an iteration, each by itself.

    Seconds are those of an iteration, from a whole solution; `bound` those of the bytes at a copy's bandwidth.
    """

    shape: tuple[int, ...]
    tolerance: float
    levels: int
    kernels: int
    iterations: int
    seconds: float
    lowest: float
    highest: float
    bytes: int
    bound: float
    of_bound: float


def measured_solve(device: Device, bandwidth: float, *, quick: bool) -> Solve:
    """Solve from the same start several times; the first solution, which compiles, does not count."""
    size = QUICK if quick else SIZE
    grid = mg.Grid((size,) * 3, spacing=1 / (size + 1))
    layout = mg.Layout.single(grid.box, 1)
    multigrid = Multigrid(Laplacian(grid), layout)
    x, b = (mg.Field(name, grid, boundary=mg.fixed(0.0)) for name in ("x", "b"))
    program = mg.Program("solve")
    solution = conjugate_gradients(program, multigrid.operator, x, b, preconditioner=multigrid, tolerance=TOLERANCE)
    seconds = []
    with mg.Engine(multigrid.layouts(layout), device=device) as engine:
        multigrid.load(engine)
        engine.set(b, np.random.default_rng(1).standard_normal(grid.shape))
        for _ in range(2 if quick else 4):
            engine.set(x, 0.0)
            began = time.perf_counter()
            engine.run(program)
            seconds.append(time.perf_counter() - began)
        iterations = int(engine.read(solution.iterations))
    kernels = [item for item in flat(longest(program.operations).body) if isinstance(item, Apply)]
    moved = sum(item.region.size * bytes_per_cell(item.graph, write_allocate=False) for item in kernels)
    times = [value / iterations for value in seconds[1:]]
    median, bound = statistics.median(times), moved / bandwidth
    print(
        f"multigrid {size}^3: {iterations} iterations of {1e3 * median:.2f} ms ({len(kernels)} kernels), bound "
        f"{1e3 * bound:.2f} ms for {moved / 1e9:.2f} GB: {100 * bound / median:.0f} %"
    )
    return Solve(
        grid.shape, TOLERANCE, len(multigrid.levels), len(kernels), iterations, median, min(times), max(times), moved,
        bound, bound / median,
    )  # fmt: skip


def longest(operations: Sequence[Operation]) -> Repeat:
    """The loop of the iterations: the one with most operations."""
    return max((item for item in operations if isinstance(item, Repeat)), key=lambda item: len(list(flat(item.body))))
