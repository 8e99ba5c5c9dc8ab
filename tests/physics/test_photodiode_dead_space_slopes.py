"""Derivatives of currents and gain with dead space: against differences, and remainders of second order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from minga.models.photodiode import DeadSpace, slopes
from minga.models.photodiode.solver.history_derivatives import _events_pulled
from minga.models.photodiode.solver.paths import _depth, ionised
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.varied import Varied

from .photodiodes import solved
from .test_photodiode_slopes import assert_slopes, avalanche

PROBLEM = Problem((-60.0,), ("dark", "lit"), gain=True, dead_space=DeadSpace(2.0, 2.0), limit=200)


@pytest.mark.parametrize(("count", "threshold"), [(40, 8.0), (40, 0.3), (7, 30.0)])
def test_pairs_by_fluxes_fields_and_coefficients(count: int, threshold: float) -> None:
    random = np.random.default_rng(1)
    lengths, weight = random.uniform(0.5, 1.5, count) * 1e-4 / count, random.normal(size=count)
    given = [random.uniform(*ends, count) for ends in ((0.5e4, 2e4), (2e5, 6e5), (1.0, 3.0))]

    def total(rate: np.ndarray, strength: np.ndarray, flux: np.ndarray) -> float:
        return float((weight * ionised(rate, lengths, strength, flux, threshold)).sum())

    rate, strength, flux = given
    depth = _depth(rate, lengths, strength, threshold)
    passing = [rate, depth, np.exp(-depth), -np.expm1(-depth)]
    events, (to_flux, to_field, to_rate) = _events_pulled(passing, lengths, strength, flux, threshold, weight)
    assert events == pytest.approx(ionised(rate, lengths, strength, flux, threshold), rel=1e-12, abs=1e-15)
    for k, found in enumerate((to_rate, to_field, to_flux)):
        for at in range(count):
            both = []
            for sign in (1.0, -1.0):
                moved = [item.copy() for item in given]
                moved[k][at] *= 1.0 + sign * 1e-6
                both.append(total(*moved))
            expected = (both[0] - both[1]) / (2e-6 * given[k][at])
            assert found[at] == pytest.approx(expected, rel=1e-5, abs=1e-6 * np.abs(found).max())


@pytest.mark.slow
@pytest.mark.parametrize("space", [DeadSpace(2.0, 2.0), DeadSpace(3.0, 0.0, local=False)])
def test_doping_thickness_and_composition(space: DeadSpace) -> None:
    keys = ["layers.Charge.n", "layers.Mult.thickness", "layers.Hole.y[1]"]
    assert_slopes(Varied(avalanche(), keys), [3e16, 1.0, 0.55], replace(PROBLEM, dead_space=space), 1e-5)


@pytest.mark.slow
def test_temperature() -> None:
    assert_slopes(Varied(avalanche(), ["temperature"]), [300.0], replace(PROBLEM, gain=False), 1e-5)


@pytest.mark.slow
def test_remainders_are_of_second_order() -> None:
    devices, x = Varied(avalanche(), ["layers.Charge.n", "layers.Mult.thickness"]), np.array([3e16, 1.0])
    problem, way = replace(PROBLEM, tolerance=1e-9), np.array([3e16, -1.0])
    found = slopes(devices, x, problem)
    for name in ("J", "J_lit", "gain"):
        value, by = found.values[name][0], float(found.slopes[name][0] @ way)
        steps = (4e-4, 2e-4, 1e-4)
        left = [abs(solved(devices(x + h * way), problem)[0][name] - value - h * by) for h in steps]
        for more, less in pairwise(left):
            assert np.log2(more / less) == pytest.approx(2.0, abs=0.02), name
