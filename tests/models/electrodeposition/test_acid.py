"""Bisulphate and pairs of acid baths against a general solver of chemical equilibrium."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import least_squares

from minga.models.electrodeposition.acid import acid_of
from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.problem import Constants

A, B = 0.509, 0.328


def oracle(metal: float, acid: float, log_k: float, radii: tuple[float, float]) -> np.ndarray:
    """Free M, H, SO4, then MSO4 and HSO4, from mass action and balances in logarithms."""

    def log_g(strength: float) -> list[float]:
        root = math.sqrt(strength)
        return [
            -4 * A * root / (1 + B * radii[0] * root) + radii[1] * strength,
            -A * root / (1 + B * 9.0 * root),
            -4 * A * root / (1 + B * 5.0 * root) - 0.04 * strength,
            0.0,
            -A * (root / (1 + root) - 0.3 * strength),
        ]

    def off(logs: np.ndarray) -> np.ndarray:
        c = 10.0**logs
        g = log_g(0.5 * float(4 * c[0] + c[1] + 4 * c[2] + c[4]))
        return np.array([
            logs[3] + g[3] - (logs[0] + g[0] + logs[2] + g[2]) - log_k,
            logs[4] + g[4] - (logs[1] + g[1] + logs[2] + g[2]) - 1.988,
            (c[0] + c[3]) / metal - 1,
            (c[1] + c[4]) / (2 * acid) - 1,
            (c[2] + c[3] + c[4]) / (metal + acid) - 1,
        ])  # fmt: skip

    start = np.log10(np.array([metal / 2, acid, metal / 2, metal / 2, acid]))
    found = least_squares(off, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert np.abs(found.fun).max() < 1e-10
    return np.asarray(10.0**found.x)


@pytest.mark.parametrize(("salt", "log_k", "radius"), [("CuSO4", 2.31, 6.0), ("ZnSO4", 2.37, 5.0)])
@pytest.mark.parametrize(("metal", "acid"), [(0.01, 0.001), (0.1, 0.01), (0.1, 0.5)])
def test_fractions_are_those_of_mass_action(salt: str, log_k: float, radius: float, metal: float, acid: float) -> None:
    found = acid_of(bath(salt, 1e3 * metal, "H2SO4", 1e3 * acid), Constants())
    expected = oracle(metal, acid, log_k, (radius, 0.0))
    assert found is not None
    assert found.bisulphate == pytest.approx(expected[4] / (2 * acid), rel=1e-8)
    assert found.paired == pytest.approx(expected[3] / metal, rel=1e-8)
    assert found.free == pytest.approx(expected[2], rel=1e-8)
    assert found.strength == pytest.approx(0.5 * (4 * expected[0] + expected[1] + 4 * expected[2] + expected[4]))


def test_other_baths_have_no_such_state() -> None:
    assert acid_of(bath("CuSO4", 100.0, None, 0.0), Constants()) is None
