"""Limits of stability: those of the table against a scan of what a step makes of du/dt = z u."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from minga.solve import INTEGRATORS
from minga.solve.integrators import imex, stages

Amplification = Callable[[np.ndarray], np.ndarray]
Z = Polynomial([0.0, 1.0])
ONE = Polynomial([1.0])
STAGES = {
    "euler": stages.EULER, "heun": stages.HEUN, "ssprk3": stages.SSPRK3, "ssprk43": stages.SSPRK43,
    "williamson3": stages.WILLIAMSON3, "rk4": stages.RK4, "bs3": stages.BS3, "dp5": stages.DP5,
}  # fmt: skip
TABLEAUX = {"imex-euler": imex.EULER, "ars222": imex.ARS222, "ars443": imex.ARS443}


def of_stages(given: Sequence[stages.Stage]) -> Polynomial:
    """What explicit stages make of 1, as a polynomial of z; those that begin at a level "a" have a stage before."""
    known = {"now": ONE, "k1": Z, "a": ONE + given[0].time * Z}
    for stage in given:
        rate, found = Z * known[stage.at], {}
        for update in stage.updates:
            levels = sum((weight * known[name] for name, weight in update.levels.items()), Polynomial([0.0]))
            rates = sum((weight * known[name] for name, weight in update.rates.items()), Polynomial([0.0]))
            found[update.target] = levels + update.rate * rate + rates
        known |= found | ({stage.kept: rate} if stage.kept else {})
    return known["next"]


def of_explicit_part(tableau: imex.Tableau) -> Polynomial:
    """What the explicit part of a tableau makes of 1."""
    rates, level = [Z], ONE
    for weights in tableau.explicit:
        level = sum((a * rate for a, rate in zip(weights, rates, strict=True)), ONE)
        rates.append(Z * level)
    return level


def of_two_steps(coefficients: Callable[[Any], list[Any]]) -> Amplification:
    """The largest root of the recurrence that the explicit part of a method of two steps is."""
    return lambda z: np.array([np.abs(np.roots(coefficients(each))).max() for each in z])


AMPLIFICATIONS: dict[str, Amplification] = {
    **{name: of_stages(each) for name, each in STAGES.items()},
    **{name: of_explicit_part(each) for name, each in TABLEAUX.items()},
    "cnab2": of_two_steps(lambda z: [1.0, -1.0 - 1.5 * z, 0.5 * z]),
    "sbdf2": of_two_steps(lambda z: [1.5, -2.0 - 2.0 * z, 0.5 + z]),
}


def test_all_methods_with_limits_are_scanned() -> None:
    limited = {name for name, each in INTEGRATORS.items() if math.isfinite(each.real) and not each.stochastic}
    assert set(AMPLIFICATIONS) == limited


@pytest.mark.parametrize("way", [-1.0, 1j])
@pytest.mark.parametrize("name", AMPLIFICATIONS)
def test_limits(name: str, way: complex) -> None:
    limit = INTEGRATORS[name].real if way == -1.0 else INTEGRATORS[name].imaginary
    inside, beyond = way * np.linspace(0.0, limit, 301), way * np.array([limit + max(2e-6, 0.05 * (not limit))])
    assert np.abs(AMPLIFICATIONS[name](inside)).max() < 1.0 + 1e-12
    assert np.abs(AMPLIFICATIONS[name](beyond)).max() > 1.0 + 1e-10
