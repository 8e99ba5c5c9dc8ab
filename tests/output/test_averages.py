"""Averages over time with standard errors of correlated samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minga.errors import CaseError
from minga.output.averages import time_average


def correlated(samples: int, memory: float, seed: int) -> np.ndarray:
    """A stationary sequence of mean 3 and variance 1 in which neighbours are correlated by `memory`."""
    noise = np.random.default_rng(seed).normal(size=samples)
    x = np.empty(samples)
    x[0] = noise[0]
    for n in range(1, samples):
        x[n] = memory * x[n - 1] + math.sqrt(1.0 - memory * memory) * noise[n]
    return 3.0 + x


def test_errors_are_those_of_repeated_experiments() -> None:
    """Independent samples, and ones with a memory of 10: errors agree with the scatter of 40 sequences."""
    for memory in (0.0, 0.9):
        found = [time_average(correlated(2048, memory, seed)) for seed in range(40)]
        for value, error in (("mean", "mean_error"), ("rms", "rms_error")):
            scatter = np.std([getattr(item, value) for item in found])
            assert np.mean([getattr(item, error) for item in found]) == pytest.approx(scatter, rel=0.45), (
                memory,
                value,
            )
        exact = math.sqrt((1.0 + memory) / (1.0 - memory) / 2048)
        assert np.mean([item.mean_error for item in found]) == pytest.approx(exact, rel=0.35)


def test_a_wave_and_a_constant() -> None:
    wave = time_average(2.0 + np.cos(2.0 * np.pi * np.arange(64) / 16))
    assert wave.mean == pytest.approx(2.0, abs=1e-14)
    assert wave.rms == pytest.approx(math.sqrt(0.5), rel=1e-14)
    assert not wave.drifts
    assert time_average(np.arange(100.0)).halves == (24.5, 74.5)
    assert time_average(np.arange(100.0)).drifts
    still = time_average([4.0] * 9)
    assert (still.mean, still.rms, still.mean_error, still.rms_error, still.samples) == (4.0, 0.0, 0.0, 0.0, 9)
    assert not still.drifts


@pytest.mark.parametrize("values", [[1.0] * 7, [1.0] * 8 + [math.nan], np.ones((8, 8)), "abc", None, [1.0, [2.0]]])
def test_what_cannot_be_averaged(values: object) -> None:
    with pytest.raises(CaseError, match="at least 8 finite numbers"):
        time_average(values)  # type: ignore[arg-type]
