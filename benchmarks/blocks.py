"""Loops in blocks of several rounds (`minga.engine.time_blocks`), on all cores: tuned, as usual, and round by round."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

import minga as mg
from benchmarks.results import Found, at_least, rates, ratios
from benchmarks.stencils import jacobi, life
from benchmarks.timing import Effort, Way, measure
from minga.engine.pin import available_cores
from minga.models.waves import Medium, Sponge, fletcher
from minga.space.box import Box

TUNING = 40.0
"""Most seconds for which a loop runs before it is measured as tuned."""
ROUNDS = 32
"""Rounds of one sample, at least: two of the longest blocks."""

Begin = Callable[[mg.Engine], None]
Start = tuple[mg.Engine, mg.Program, Begin]
Make = Callable[[bool], Start]
"""Makes an engine that tunes its loops or not, a program of one step, and what sets the initial values."""


@mg.kernel
def heat(u, new):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    new[0, 0, 0] = u[0, 0, 0] + 0.1 * (around - 6.0 * u[0, 0, 0])


def measure_blocks(effort: Effort) -> Iterator[Found]:
    plane, life_size, cube, large = (192, 192, 40, 48) if effort.quick else (4096, 8192, 256, 512)
    make, title = _stencil(jacobi, (plane,) * 2, "f8"), f"blocks: Jacobi f8, {plane}²"
    yield _found(f"blocks-jacobi-f8-{plane}", title, plane**2, make, effort)
    for size in (cube, large):
        title = f"blocks: heat f4, {size}³"
        yield _found(f"blocks-heat-f4-{size}", title, size**3, _stencil(heat, (size,) * 3, "f4"), effort, 2.0)
    for order in (4, 8):
        title = f"blocks: isotropic waves of order {order}, source and sponge, {cube}³"
        yield _found(f"blocks-waves-{order}-{cube}", title, cube**3, _waves(cube, order), effort, 1.7)
    make, title = _stencil(life, (life_size,) * 2, "u1"), f"blocks: Life in bytes, {life_size}²"
    yield _found(f"blocks-life-u1-{life_size}", title, life_size**2, make, effort, 2.0)


def _found(name: str, title: str, cells: int, make: Make, effort: Effort, limit: float | None = None) -> Found:
    """Measure a step tuned, as usual, and round by round; the target is that of the first beside the last."""
    with ExitStack() as stack:
        with patch("minga.engine.bind.bind_blocks", lambda *_: []):
            single = make(False)
            alone = _way(*single, stack)
        usual, trying = make(False), make(True)
        untuned, tuned = _way(*usual, stack), _way(*trying, stack)
        end = time.perf_counter() + (0.0 if effort.quick else TUNING)
        while time.perf_counter() < end and not trying[0].tuned:
            tuned(1)
        for engine, _, begin in (single, usual, trying):  # the same numbers: denormal ones take longer
            begin(engine)
        times = measure({"engine": tuned, "usual": untuned, "single": alone}, effort, time.perf_counter_ns)
    found = ratios(times, "engine / single", "usual / single")
    limits = {} if limit is None else {"engine / single": limit}
    details = {"threads": len(available_cores()), "rounds": ROUNDS}
    return Found(name, title, "Mcells/s", rates(times, ROUNDS * cells / 1e6), found, at_least(found, limits), details)


def _way(engine: mg.Engine, step: mg.Program, begin: Begin, stack: ExitStack) -> Way:
    stack.enter_context(engine)
    begin(engine)
    for _ in range(3):  # the first run begins with other halos, for which the loop is prepared apart
        engine.run(step, times=ROUNDS)
    return lambda times: [engine.run(step, times=ROUNDS) for _ in range(times)]


def _stencil(kernel: mg.Kernel, shape: tuple[int, ...], dtype: str) -> Make:
    def make(tune: bool) -> Start:
        grid = mg.Grid(shape)
        u = mg.Field("u", grid, dtype=dtype, slots=2, boundary=mg.fixed(0))
        step = mg.Program("step")
        step.apply(kernel, u, u.next)
        step.rotate(u)
        engine = mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=len(available_cores()), tune=tune)
        values = (np.random.default_rng(1).random(shape, "f4") * (1.7 if dtype == "u1" else 1.0)).astype(dtype)
        return engine, step, lambda engine: engine.set(u, values)

    return make


def _waves(size: int, order: int) -> Make:
    def speed(box: Box) -> np.ndarray:
        """Rise with depth, m/s."""
        return np.broadcast_to(2500.0 + np.arange(box.lo[0], box.hi[0])[:, None, None], box.shape)

    def make(tune: bool) -> Start:
        sponge = Sponge(cells=min(16, size // 4))
        inside = (size - 2 * sponge.cells,) * 3
        model = fletcher(inside, dt=5e-4, medium=Medium(vp=speed), order=order, boundary=sponge)
        engine = mg.Engine(model.layouts("single", 1), threads=len(available_cores()), tune=tune)
        p = model.field("p")
        noise = np.random.default_rng(1).random(p.grid.shape, "f4") - np.float32(0.5)

        def begin(engine: mg.Engine) -> None:
            for item in model.fields:
                if item.name in model.initial:
                    engine.set(item, model.initial[item.name])
            for slot in (p, p.previous):
                engine.set(slot, noise)

        return engine, model.step, begin

    return make
