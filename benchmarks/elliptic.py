"""Conjugate gradients with multigrid where coefficients vary and cells are solid: iterations, and time of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import minga as mg
from benchmarks.results import Found, rates
from benchmarks.timing import Effort, measure
from minga.solve.elliptic import Elliptic
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.solve.krylov import conjugate_gradients

SIZES, QUICK = (40, 80, 160), (12,)
TOLERANCE = 1e-8

Coefficients = tuple[np.ndarray, np.ndarray]
"""k of every cell, and which are metal."""


def smooth(shape: tuple[int, ...]) -> Coefficients:
    """k varies smoothly by a factor of 1000."""
    z, y, x = ((np.arange(n) + 0.5) / n for n in shape)
    waves = np.sin(2 * np.pi * z)[:, None, None] * np.cos(np.pi * y)[:, None] * np.cos(3 * np.pi * x)
    return 10.0 ** (1.5 * waves), np.zeros(shape, bool)


def needles(shape: tuple[int, ...]) -> Coefficients:
    """Three metal needles, a fortieth of the box wide."""
    metal = np.zeros(shape, bool)
    width = max(1, shape[0] // 40)
    for part in (0.2, 0.5, 0.8):
        low = int(part * shape[2])
        metal[: int(0.6 * shape[0]), shape[1] // 2 : shape[1] // 2 + width, low : low + width] = True
    return np.ones(shape), metal


PROBLEMS: dict[str, Callable[[tuple[int, ...]], Coefficients]] = {"smooth": smooth, "needles": needles}


def conductances(given: Coefficients) -> tuple[list[np.ndarray], np.ndarray]:
    """Of all faces, and to walls: metal, and the two ends of the first axis."""
    k, metal = given
    faces, walls = [], np.zeros(k.shape)
    for axis in range(k.ndim):
        value, solid, wall = (np.moveaxis(each, axis, 0) for each in (k, metal, walls))
        between = 2.0 / (1.0 / value[1:] + 1.0 / value[:-1]) * ~(solid[1:] | solid[:-1])
        face = np.zeros((len(value) + 1, *value.shape[1:]))
        face[1:-1] = between
        wall[1:] += 2.0 * value[1:] * (~solid[1:] & solid[:-1])
        wall[:-1] += 2.0 * value[:-1] * (~solid[:-1] & solid[1:])
        if axis == 0:
            wall[0] += 2.0 * value[0] * ~solid[0]
            wall[-1] += 2.0 * value[-1] * ~solid[-1]
        faces.append(np.moveaxis(face, 0, axis))
    return faces, walls


def measure_elliptic(effort: Effort) -> Iterator[Found]:
    for name, problem in PROBLEMS.items():
        for size in QUICK if effort.quick else SIZES:
            yield _measure(name, problem, size, effort)


def _measure(name: str, problem: Callable[[tuple[int, ...]], Coefficients], size: int, effort: Effort) -> Found:
    grid = mg.Grid((size,) * 3)
    given = problem(grid.shape)
    faces, walls = conductances(given)
    elliptic = Elliptic(grid)
    levels = EllipticMultigrid(elliptic)
    x, b = mg.Field("x", grid, boundary=mg.fixed(0.0)), mg.Field("b", grid)
    setup, program = mg.Program("setup"), mg.Program("solve")
    levels.setup(setup)
    solution = conjugate_gradients(program, elliptic, x, b, preconditioner=levels, tolerance=TOLERANCE)
    layout = mg.Layout.single(grid.box, 1)
    with mg.Engine({grid: layout, **levels.layouts(layout)}) as engine:
        for item, values in zip((*elliptic.faces, elliptic.diagonal), (*faces, walls), strict=True):
            engine.set(item, values)
        engine.set(b, np.where(given[1], 0.0, np.random.default_rng(1).standard_normal(grid.shape)))
        engine.run(setup)

        def solve(times: int) -> None:
            for _ in range(times):
                engine.set(x, 0.0)
                engine.run(program)

        times = measure({"engine": solve}, Effort(min(effort.rounds, 5), effort.sample, effort.quick))
        iterations = int(engine.read(solution.iterations))
    return Found(
        f"elliptic-cg-{name}-{size}", f"multigrid CG, elliptic f8, {name}, {size} x {size} x {size}",
        "Mcells/s an iteration", rates(times, iterations * size**3 / 1e6), {}, (),
        {
            "iterations": iterations, "tolerance": TOLERANCE, "levels": len(levels.levels),
            "milliseconds_an_iteration": round(1000 * times.least("engine") / iterations, 3),
        },
    )  # fmt: skip
