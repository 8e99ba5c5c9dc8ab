"""The limit of the time step and the media that are refused, against all waves on a grid one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minga.models.waves.stability import grows, largest_frequency2
from minga.models.waves.stencils import ORDERS, first_weights, second_weights
from minga.models.waves.symbols import corners

WAVES = np.linspace(-np.pi, np.pi, 25)


def omega2(k1: Any, k2: Any, epsilon: float, delta: float, sigma: float) -> np.ndarray:
    """Eigenvalues of the matrix of the equations, by vpz2: complex, the last axis has both."""
    s, x, n = abs(epsilon - delta) / sigma, 1 + 2 * epsilon, 1 + 2 * delta
    rows = [[x * k2 + s * k1, (1 - s) * k1], [(n - s) * k2, k1 + s * k2]]
    return np.linalg.eigvals(np.moveaxis(np.array(rows), (0, 1), (-2, -1)))


def waves(order: int, spacing: tuple[float, ...], axis: np.ndarray, form: str) -> tuple[np.ndarray, np.ndarray]:
    """k1 and k2 of all waves on a grid, for an axis of symmetry."""
    k = np.meshgrid(*[WAVES] * 3, indexing="ij")
    first = [2 * sum(float(w) * np.sin(j * u) for j, w in enumerate(first_weights(order), 1)) for u in k]
    middle, *sides = map(float, second_weights(order))
    second = [-middle - 2 * sum(w * np.cos(j * u) for j, w in enumerate(sides, 1)) for u in k]
    slopes = [n * d / h for n, d, h in zip(axis, first, spacing, strict=True)]
    k1 = np.square(sum(slopes))
    if form == "fletcher":
        k1 = k1 + sum(n * n * s / h**2 - d * d for n, s, h, d in zip(axis, second, spacing, slopes, strict=True))
    return k1, sum(s / h**2 for s, h in zip(second, spacing, strict=True)) - k1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["fletcher", "selfadjoint"])
@pytest.mark.parametrize("order", [pytest.param(o, marks=[pytest.mark.slow] if o < 16 else []) for o in ORDERS])
def test_no_wave_is_above_the_limit(order: int, form: str) -> None:
    random = np.random.default_rng(order)
    # The first three are those whose largest frequency is not that of the shortest wave.
    media = [(0.46, 0.016, 9.0), (0.007, 0.42, 2.0), (0.86, 0.04, 0.3), (0.24, 0.1, 0.75), (-0.1, -0.3, 1.5)]
    for epsilon, delta, sigma in media:
        assert not grows(epsilon, delta, sigma)
        for spacing in ((1.0, 1.0, 1.0), (1.0, 0.5, 2.0)):
            axis = random.standard_normal(3)
            k1, k2 = waves(order, spacing, axis / np.linalg.norm(axis), form)
            found = omega2(k1, k2, epsilon, delta, sigma)
            limit = float(largest_frequency2(corners(order, spacing, False, form != "fletcher"), epsilon, delta, sigma))
            assert found.real.max() <= limit * (1 + 1e-9)
            if spacing[1] == 1.0 and sigma > 0.5:
                assert limit < 1.35 * found.real.max()


@pytest.mark.slow
def test_media_that_grow_are_those_with_frequencies_that_are_not_real() -> None:
    random = np.random.default_rng(2)
    part = np.linspace(0, 1, 2001)
    seen = set()
    for _ in range(300):
        epsilon, delta = random.uniform(-0.45, 1, 2)
        sigma = float(random.choice([0.1, 0.3, 0.75, 2.0, 5.0, np.inf]))
        found = omega2(part, 1 - part, epsilon, delta, sigma)
        grown = bool(found.real.min() < -1e-6 or abs(found.imag).max() > 1e-6)
        assert bool(grows(epsilon, delta, sigma)) == grown, (epsilon, delta, sigma)
        seen.add((grown, epsilon < delta))
    assert len(seen) == 4


def test_elliptic_and_isotropic_media_do_not_grow() -> None:
    equal = np.linspace(-0.4, 1, 50)
    assert not grows(equal, equal, 0.75).any()
    assert not grows(equal, equal, np.inf).any()
