"""A plain oracle of waves whose density varies, media at random, and runs of a few steps."""

from __future__ import annotations

from typing import Any

import numpy as np

import minga as mg
from minga.models.waves import (
    Free,
    Medium,
    Periodic,
    Receivers,
    Release,
    Rigid,
    Shot,
    prepare,
    shot_traces,
)
from minga.models.waves.boundary import Face
from minga.models.waves.stencils import halfway_weights
from minga.space.cuts import parse_layout


def mirrored(index: int, n: int, face: Face, sign: float) -> tuple[int, float]:
    """The cell whose value a cell beyond the low end has, and its factor for odd waves (`sign` -1) or densities (1)."""
    if isinstance(face, Periodic):
        return index % n, 1.0
    if isinstance(face, Free):
        return -index, sign
    if isinstance(face, Rigid):
        return -1 - index, 1.0
    return 0, 0.0 if sign < 0 else 1.0


def extended(values: np.ndarray, axis: int, pad: int, face: Face, sign: float) -> np.ndarray:
    n, moved = values.shape[axis], np.moveaxis(values, axis, 0)
    low = [mirrored(-k, n, face, sign) for k in range(pad, 0, -1)]
    high = [mirrored(-k, n, face, sign) for k in range(1, pad + 1)]
    before = [factor * moved[i] for i, factor in low]
    after = [factor * (moved[(k - 1) % n] if isinstance(face, Periodic) else moved[n - 1 - i])
             for k, (i, factor) in enumerate(high, 1)]  # fmt: skip
    return np.moveaxis(np.stack([*before, *moved, *after]), 0, axis)


def oracle(p: np.ndarray, vp: np.ndarray, rho: np.ndarray, h: tuple[float, ...], order: int, face: Face) -> np.ndarray:
    """rho vp2 div(1 / rho grad p) on the cells of a model whose faces are all alike."""
    m, weights = order // 2, [float(w) for w in halfway_weights(order // 2)]
    total = np.zeros_like(p)
    for axis, step in enumerate(h):
        n, pad = p.shape[axis], 2 * m
        wave = np.moveaxis(extended(p, axis, pad, face, -1.0), axis, 0)
        density = np.moveaxis(extended(rho, axis, pad, face, 1.0), axis, 0)
        flux = np.zeros((n + 2 * m, *wave.shape[1:]))  # entry j lies half a cell above cell j - m
        for j in range(n + 2 * m):
            cell = j - m + pad
            slope = sum(w * (wave[cell + k] - wave[cell + 1 - k]) for k, w in enumerate(weights, 1)) / step
            flux[j] = slope * 2.0 / (density[cell] + density[cell + 1])
        rows = [sum(w * (flux[i + m + k - 1] - flux[i + m - k]) for k, w in enumerate(weights, 1)) for i in range(n)]
        total = total + np.moveaxis(np.stack(rows), 0, axis) / step
    return rho * vp**2 * total


def random_medium(shape: tuple[int, ...], contrast: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.uniform(1500.0, 4000.0, shape), 2000.0 * np.exp(contrast * rng.uniform(-1.0, 1.0, shape))


def advanced(p: np.ndarray, steps: int, **options: Any) -> np.ndarray:
    """Waves after some steps from p at rest: the first step has p for both levels."""
    waves = prepare(p.shape, **({"boundary": Release(), "dtype": "f8"} | options))
    step = mg.Program("step")
    waves.record_kernel(step)
    step.rotate(*waves.fields)
    with mg.Engine({waves.grid: parse_layout("slabs", waves.grid.box, 1)}) as engine:
        for item in (*waves.fields, *waves.increments, *waves.medium):
            for slot in range(item.slots):
                start = p if item in waves.fields else waves.start().get(item.name, 0.0)
                engine.set(item.slot(slot), start)
        engine.run(step, steps)
        found = engine.gather(waves.fields[0])
    assert found is not None
    return np.asarray(found)


def traces(medium: Medium, shape: tuple[int, ...], source: Any, places: list[tuple[float, ...]], samples: int,
           **options: Any) -> np.ndarray:  # fmt: skip
    common: dict[str, Any] = {"dt": 1e-3, "boundary": Release(), "dtype": "f8", "medium": medium}
    waves = prepare(shape, 5.0, **(common | options))
    return shot_traces(waves, Shot([source], Receivers(places)), samples)
