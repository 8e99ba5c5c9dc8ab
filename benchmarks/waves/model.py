"""The models that are measured: minga's own Fletcher waves, as users get them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

import minga as mg
from benchmarks.timing import Way
from minga.engine.begin import start
from minga.models.waves.boundary import Random
from minga.models.waves.medium import Medium
from minga.models.waves.model import fletcher
from minga.studies.machado.one_run import DT, SOURCE

LAYER: Final = 16


def varying(shape: tuple[int, ...]) -> Medium:
    """A medium that differs from cell to cell, so that all six coefficients are arrays."""
    numbers = np.random.default_rng(2)

    def between(low: float, high: float) -> np.ndarray:
        return low + (high - low) * numbers.random(shape, np.float32)

    return Medium(between(2500, 3000), between(0.15, 0.24), between(0.0, 0.1), between(0.2, 1.2), between(0.0, 2.0))


@contextmanager
def forward_steps(size: int, threads: int, medium: Medium | None = None) -> Iterator[Way]:
    """Whole time steps, the source among them, of a grid of size**3 cells with random layers; by default in a medium
    that varies. The waves have filled the grid before the first step that counts."""
    shape = (size - 2 * LAYER if size > 4 * LAYER else size // 2,) * 3
    layer = (size - shape[0]) // 2
    model = fletcher(shape, dt=DT, medium=medium or varying(shape), boundary=Random(layer), sources=[SOURCE])
    with mg.Engine(mg.Layout.single(model.grid.box, 1), grid=model.grid, threads=threads) as engine:
        start(model, engine)
        for number, item in enumerate(slot for f in model.fields[:2] for slot in (f.now, f.previous)):
            engine.set(item, 1e-3 * np.random.default_rng(number).standard_normal(model.grid.shape, np.float32))
        engine.run(model.step, 2)
        yield lambda times: engine.run(model.step, times)
