"""Conjugate gradients with a multigrid preconditioner: time of an iteration, on one rank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import minga as mg
from benchmarks.results import Found, rates
from benchmarks.timing import Effort, measure
from minga.solve import Laplacian, Multigrid, conjugate_gradients

SIZE, QUICK = 127, 15
TOLERANCE = 1e-8


def measure_solver(effort: Effort) -> Iterator[Found]:
    size = QUICK if effort.quick else SIZE
    grid = mg.Grid((size,) * 3, spacing=1 / (size + 1))
    layout = mg.Layout.single(grid.box, 1)
    multigrid = Multigrid(Laplacian(grid), layout)
    x, b = (mg.Field(name, grid, boundary=mg.fixed(0.0)) for name in ("x", "b"))
    program = mg.Program("solve")
    solution = conjugate_gradients(program, multigrid.operator, x, b, preconditioner=multigrid, tolerance=TOLERANCE)
    with mg.Engine(multigrid.layouts(layout)) as engine:
        multigrid.load(engine)
        engine.set(b, np.random.default_rng(1).standard_normal(grid.shape))

        def solve(times: int) -> None:
            for _ in range(times):
                engine.set(x, 0.0)
                engine.run(program)

        times = measure({"engine": solve}, Effort(min(effort.rounds, 7), effort.sample, effort.quick))
        iterations = int(engine.read(solution.iterations))
    yield Found(
        f"multigrid-cg-{size}", f"multigrid CG, Poisson f8, {size} x {size} x {size}", "Mcells/s an iteration",
        rates(times, iterations * size**3 / 1e6), {}, (),
        {
            "iterations": iterations, "tolerance": TOLERANCE, "levels": len(multigrid.levels),
            "milliseconds_an_iteration": round(1000 * times.least("engine") / iterations, 3),
        },
    )  # fmt: skip
