"""Convolutions of large radius beside SciPy: its `fftconvolve` of the wrapped field, and the best that it can do.

The latter is a product of real transforms in periodic boxes, with the transform of the weights kept, by hand.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import minga as mg
from benchmarks.timing import Effort, measure

SIZES: Final = (256, 1024)
RADII: Final = (13, 40, 100)
REQUIRED: Final = 0.8


def convolutions(quick: bool) -> dict[str, Any]:
    """Return a row for each size and radius, all of one thread."""
    from scipy import __version__

    pairs = [(n, r) for n in SIZES for r in RADII]
    rows = [_row(n, r, Effort.least() if quick else Effort()) for n, r in (pairs[:1] if quick else pairs)]
    return {"peer": "SciPy", "version": __version__, "rows": rows}


def _row(size: int, radius: int, effort: Effort) -> dict[str, Any]:
    from scipy import fft
    from scipy.signal import fftconvolve

    weights, values = _ring(radius), np.random.default_rng(1).random((size, size))
    grid = mg.Grid((size, size), periodic=True)
    convolution = mg.solve.Convolution(grid, weights)
    u, found = mg.Field("u", grid), mg.Field("found", grid)
    step = mg.Program("step")
    convolution(step, u, found)
    initial = {**convolution.initial, u: values}
    model = mg.Model(
        "blur", grid, (u, found, *convolution.fields), step, initial, hierarchies=convolution.hierarchies
    )  # fmt: skip
    kept = fft.rfft2(np.roll(_padded(weights, size), (-radius, -radius), (0, 1)))

    def product(times: int) -> Any:
        for _ in range(times):
            result = fft.irfft2(fft.rfft2(values) * kept, values.shape)
        return result

    def wrapped(times: int) -> Any:
        for _ in range(times):
            result = fftconvolve(np.pad(values, radius, mode="wrap"), weights, mode="valid")
        return result

    with mg.Engine(model.layouts("slabs", 1)) as engine:
        for slot, value in model.start_values():
            engine.set(slot, value)
        times = measure({"minga": lambda n: engine.run(step, n), "product": product, "fftconvolve": wrapped}, effort)
        difference = float(np.abs(engine.gather(found) - wrapped(1)).max())
    return {
        "size": size,
        "radius": radius,
        "method": convolution.method,
        "milliseconds": {name: 1e3 * times.median(name) for name in times.seconds},
        "times_as_fast": {name: times.ratio("minga", name) for name in ("fftconvolve", "product")},
        "required": REQUIRED,
        "largest_difference": difference,
    }


def _ring(radius: int) -> Any:
    """Return the weights of Lenia's ring."""
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    r = np.sqrt(y**2 + x**2) / radius
    inside = (r > 0) & (r < 1)
    ring = np.where(inside, np.exp(4 - 1 / np.where(inside, r * (1 - r), 1.0)), 0.0)
    return ring / ring.sum()


def _padded(weights: Any, size: int) -> Any:
    rest = size - len(weights)
    return np.pad(weights, ((0, rest), (0, rest)))
