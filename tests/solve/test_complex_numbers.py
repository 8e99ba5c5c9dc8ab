"""Complex numbers in kernels against those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import minga as mg
from minga.solve.complex_numbers import Complex


@mg.kernel
def calculated(a: Any, b: Any, c: Any, d: Any, out: Any) -> None:
    x, y = Complex(a[0], b[0]), Complex(c[0], d[0])
    results = (x + y, x - y, -x, 2.0 * x - 1.0, 3.0 - x, x * y, x * c[0] + 1.0, 2.0 / x)
    for k, value in enumerate(results):
        out[2 * k][0], out[2 * k + 1][0] = value.re, value.im
    out[2 * len(results)][0] = x.square


def test_operations() -> None:
    rng = np.random.default_rng(1)
    grid = mg.Grid((40,))
    parts = [mg.Field(name, grid) for name in "abcd"]
    out = [mg.Field(f"out{k}", grid) for k in range(17)]
    program = mg.Program("calculate")
    program.apply(calculated, *parts, out)
    values = rng.normal(size=(4, 40))
    values[:2, :20] *= 10.0 ** rng.integers(-200, 100, 20)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=1) as engine:
        for item, value in zip(parts, values, strict=True):
            engine.set(item, value)
        engine.run(program)
        found = np.array([engine.gather(item) for item in out])
    x, y = values[0] + 1j * values[1], values[2] + 1j * values[3]
    expected = np.array([x + y, x - y, -x, 2.0 * x - 1.0, 3.0 - x, x * y, x * values[2] + 1.0, 2.0 / x])
    results = found[:16:2] + 1j * found[1:16:2]
    a, b, c = np.abs(x), np.abs(y), np.abs(values[2])
    sizes = np.array([a + b, a + b, a, 2.0 * a + 1.0, 3.0 + a, a * b, a * c + 1.0, 2.0 / a])
    assert (np.abs(results - expected) <= 1e-15 * sizes).all()
    assert np.allclose(found[16], np.abs(x) ** 2, rtol=1e-15)
