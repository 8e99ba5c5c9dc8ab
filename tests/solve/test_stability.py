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


def of_both_parts(tableau: imex.Tableau, implicit: np.ndarray, explicit: complex) -> np.ndarray:
    """What a step of a tableau makes of 1, for the rates of both parts."""
    levels, value = [], np.ones_like(implicit)
    stages = [value]
    for of_rest, of_linear in zip(tableau.explicit, tableau.implicit, strict=True):
        value = 1.0 + sum(a * explicit * each for a, each in zip(of_rest, stages, strict=True))
        value = value + sum(a * implicit * each for a, each in zip(of_linear[:-1], levels, strict=True))
        levels.append(value / (1.0 - of_linear[-1] * implicit))
        stages.append(levels[-1])
    return levels[-1]


def of_two_steps_and_both_parts(name: str, implicit: np.ndarray, explicit: complex) -> np.ndarray:
    """The larger of the two roots of the recurrence."""
    if name == "cnab2":
        a, b, c = 1.0 - 0.5 * implicit, -1.0 - 0.5 * implicit - 1.5 * explicit, 0.5 * explicit
    else:
        a, b, c = 1.5 - implicit, -2.0 - 2.0 * explicit, 0.5 + explicit
    root = np.sqrt(b * b - 4 * a * c + 0j)
    return np.maximum(abs(root - b), abs(root + b)) / abs(2 * a)


@pytest.mark.parametrize("name", AMPLIFICATIONS)
def test_oscillations_hardly_grow_with_steps_that_resolve_them(name: str) -> None:
    """By 0.1 % a radian, also beside waves of any frequency in the implicit part: the largest rotation up to 0.3."""
    waves = np.concatenate([[0.0], *(sign * 1j * np.logspace(-3, 4, 2000) for sign in (1, -1))])

    def growth(turn: float) -> float:
        if name in TABLEAUX:
            found = np.abs(of_both_parts(TABLEAUX[name], waves, 1j * turn)).max()
        elif name in ("cnab2", "sbdf2"):
            known = waves[:1] if name == "cnab2" else waves
            found = of_two_steps_and_both_parts(name, known, 1j * turn).max()
        else:
            found = np.abs(AMPLIFICATIONS[name](np.array([1j * turn])))[0]
        return float(np.log(found) / turn)

    swing = INTEGRATORS[name].swing
    assert max(growth(turn) for turn in np.linspace(0.01, 1.0, 40) * swing) < 1.001e-3
    assert swing == 0.3 or growth(1.05 * swing) > 1e-3


def test_waves_that_one_method_amplifies_beside_oscillations() -> None:
    """Crank and Nicolson's method damps no wave, and one of them resonates, whatever the length of the step."""
    waves = 1j * np.linspace(3.0, 4.0, 1000)
    for turn in (0.1, 0.01, 0.001):
        assert of_two_steps_and_both_parts("cnab2", waves, 1j * turn).max() > 1.0 + 0.6 * turn
    assert [name for name, each in INTEGRATORS.items() if not each.waves] == ["cnab2"]
