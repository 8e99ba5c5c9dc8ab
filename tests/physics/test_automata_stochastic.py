"""Automata with random numbers against exact statistics; a deviation is measured in standard errors of the run itself.

Sources: M. R. Evans, N. Rajewsky and E. R. Speer, J. Stat. Phys. 95 (1999) 45 (parallel exclusion process, which is the
traffic model of K. Nagel and M. Schreckenberg, J. Phys. I France 2 (1992) 2221, with a largest speed of 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples
from minga.lang.expr import Node
from minga.lang.random import uniform
from minga.lang.rule_context import RuleContext
from thinned import thinned

from .watching import history, watch


def batched(values: Sequence[float] | np.ndarray, batches: int = 20) -> tuple[float, float]:
    """Mean of a series and its standard error, from the means of batches that are longer than the correlations."""
    means = [float(np.mean(part)) for part in np.array_split(np.asarray(values), batches)]
    return float(np.mean(means)), float(np.std(means, ddof=1) / math.sqrt(batches))


def soup(n: int, density: float) -> Any:
    """Exactly so many cars on a ring, in random places."""
    return (np.argsort(uniform((n,), seed=11)) < round(density * n)).astype(np.uint8)


# Traffic
@mg.rule(fields=("car", "stays"), states=2, neighbourhood=mg.offsets([-1, 1]))
def exclusion(cell: Any, near: RuleContext, *, stay: float = 0.5) -> dict[str, Node]:
    """Each car whose next cell is free moves on, but for those that stay; all at once.

    A cell draws for the car that may be there in the next step, so that its neighbour can see what is decided.
    """
    leaves = cell.car & ~near["car", 1] & ~cell.stays & 1
    comes = near["car", -1] & ~cell.car & ~near["stays", -1] & 1
    return {"car": (cell.car ^ leaves) | comes, "stays": mg.random() < stay}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("density", "stay", "known"), thinned([(0.5, 0.5, 0.146447), (0.3, 0.25, 0.195862)], (0.3, 0.25, 0.195862))
)
def test_flux_of_traffic_with_speed_one(density: float, stay: float, known: float) -> None:
    go = 1 - stay
    exact = 0.5 * (1 - math.sqrt(1 - 4 * go * density * (1 - density)))
    assert exact == pytest.approx(known, abs=5e-7)
    n = 4000
    init = {"car": soup(n, density), "stays": {"fill": 0}}
    model = mg.automaton(exclusion, (n,), init=init, parameters={"stay": stay}, seed=3)
    seen = watch(model, range(3000, 8000, 10))
    assert {entry["car_population"] for entry in seen.values()} == {round(density * n)}
    # A car that moves changes two cells.
    flux, error = batched([entry["car_residual"] / (2 * n) for entry in seen.values()])
    assert error < 5e-4
    assert abs(flux - exact) < 4 * error + 1 / n


@pytest.mark.slow
def test_one_car_after_another_is_the_limit_of_rare_moves() -> None:
    """Cars in random order (TASEP) on a ring of L cells: flux density (1 - density) L / (L - 1) a cell and sweep.

    Moves that are so rare that two neighbours hardly ever move in the same step happen one after the other; all at
    once they would flow twice as fast. 1000 rings of 100 cells, each with 50 cars; two rates give the limit.
    """
    length, cars, rings = 100, 50, 1000
    ring = mg.rule(fields=("car", "stays"), states=2, neighbourhood=mg.offsets([(0, -1), (0, 1)]))(_exclusion_in_rows)
    start = (np.argsort(uniform((rings, length), seed=4), axis=1) < cars).astype(np.uint8)
    flux = {}
    for rate in (0.04, 0.02):
        init = {"car": start, "stays": {"fill": 1}}
        model = mg.automaton(ring, start.shape, init=init, parameters={"stay": 1 - rate}, seed=9)
        steps = round(20 / rate)
        seen = watch(model, range(steps // 2, steps, 5))
        flux[rate] = float(np.mean([entry["car_residual"] for entry in seen.values()])) / (2 * start.size * rate)
    exact = cars / length * (1 - cars / length) * length / (length - 1)
    assert exact == pytest.approx(0.252525, abs=5e-7)
    assert 2 * flux[0.02] - flux[0.04] == pytest.approx(exact, rel=0.015)
    assert flux[0.04] > flux[0.02] > exact  # more of what happens at once: less exclusion


def _exclusion_in_rows(cell: Any, near: RuleContext, *, stay: float) -> dict[str, Node]:
    leaves = cell.car & ~near["car", 0, 1] & ~cell.stays & 1
    comes = near["car", 0, -1] & ~cell.car & ~near["stays", 0, -1] & 1
    return {"car": (cell.car ^ leaves) | comes, "stays": mg.random() < stay}


# Forest fire
def test_what_burns_is_what_grew() -> None:
    """Where a fire lasts one step, the mean share of fires is growth times that of empty cells."""
    rules = examples()["forest-fire"].parent / "rules"
    model = mg.automaton(
        f"{rules / 'forest_fire.py'}:forest_fire",
        (256, 256),
        init={"soup": 0.35},
        parameters={"growth": 0.02, "lightning": 0.001},
        seed=5,
    )
    seen = watch(model, range(1000, 4000, 10))
    shares = np.array([entry["histogram"] for entry in seen.values()]) / 256**2
    empty, trees, _ = shares.mean(axis=0)
    balance, error = batched(shares[:, 2] - 0.02 * shares[:, 0])
    assert abs(balance) < 4 * error
    assert error < 1e-4
    assert 0.02 * empty == pytest.approx(0.012722, rel=0.01)
    assert trees == pytest.approx(0.351, abs=0.003)


# Ising
def onsager_energy(temperature: float) -> float:
    """Energy of a spin on the infinite square lattice: L. Onsager, Phys. Rev. 65 (1944) 117."""
    k = 2 / temperature
    factor = 2 * math.tanh(k) ** 2 - 1  # 0 at the critical temperature, where the elliptic integral diverges
    if abs(factor) < 1e-12:
        return -1 / math.tanh(k)
    modulus = 2 * math.sinh(k) / math.cosh(k) ** 2
    a, b = 1.0, math.sqrt(1 - modulus**2)  # the complete elliptic integral is pi / (2 agm(1, b))
    while a - b > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return -(1 + factor / a) / math.tanh(k)


def onsager_magnetisation(temperature: float) -> float:
    return (1 - math.sinh(2 / temperature) ** -4) ** 0.125


def kaufman_energy(n: int, temperature: float) -> float:
    """Energy of a spin on an n x n torus (B. Kaufman, Phys. Rev. 76 (1949) 1232), by a difference of ln Z."""

    def log_z(k: float) -> float:
        gamma = np.empty(2 * n)
        gamma[0] = 2 * k + math.log(math.tanh(k))
        angle = np.pi * np.arange(1, 2 * n) / n
        gamma[1:] = np.arccosh(math.cosh(2 * k) / math.tanh(2 * k) - np.cos(angle))
        odd, even = gamma[1::2] * n / 2, gamma[0::2] * n / 2
        products = [
            np.log(2 * np.cosh(odd)).sum(), np.log(2 * np.abs(np.sinh(odd))).sum(),
            np.log(2 * np.cosh(even)).sum(), np.log(2 * np.abs(np.sinh(even))).sum(),
        ]  # fmt: skip
        signs = [1, 1, 1, np.sign(gamma[0])]
        top = max(products)
        total = sum(sign * math.exp(p - top) for sign, p in zip(signs, products, strict=True))
        return n * n / 2 * math.log(2 * math.sinh(2 * k)) + top + math.log(total) - math.log(2)

    k, h = 1 / temperature, 1e-5
    return -(log_z(k + h) - log_z(k - h)) / (2 * h) / (n * n)


CRITICAL = 2 / math.log(1 + math.sqrt(2))


@pytest.mark.parametrize(("temperature", "energy", "magnetisation"), [
    (1.5, -1.951117, 0.986500), (2.0, -1.745565, 0.911319), (2.5, -1.106079, None), (3.0, -0.817310, None),
    (CRITICAL, -math.sqrt(2), None),
])  # fmt: skip
def test_exact_values_of_the_ising_model(temperature: float, energy: float, magnetisation: float | None) -> None:
    assert pytest.approx(2.269185, abs=5e-7) == CRITICAL
    assert onsager_energy(temperature) == pytest.approx(energy, abs=5e-7)
    assert kaufman_energy(128, temperature) == pytest.approx(energy, abs=0.005 if temperature == CRITICAL else 2e-6)
    if magnetisation is not None:
        assert onsager_magnetisation(temperature) == pytest.approx(magnetisation, abs=5e-7)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", thinned([1.5, 2.0, 2.5, 3.0, CRITICAL], 2.0, 3.0))
def test_ising_by_heat_bath(temperature: float) -> None:
    """Energy and magnetisation of a torus under the shipped rule against the exact values of that very torus."""
    n = 32 if temperature == CRITICAL else 64
    settle, every, looks = 500, 10, 600
    rules = examples()["ising"].parent / "rules"
    model = mg.automaton(
        f"{rules / 'ising.py'}:ising", (n, n), init={"fill": 1}, parameters={"temperature": temperature}, seed=9
    )
    up = 2.0 * history(model, settle + every * looks, every)[settle // every :] - 1
    energies = -(up * (np.roll(up, 1, 1) + np.roll(up, 1, 2))).mean(axis=(1, 2))
    energy, error = batched(energies)
    assert error < (1.5e-2 if temperature == CRITICAL else 2e-3)
    assert abs(energy - kaufman_energy(n, temperature)) < 4 * error
    if temperature < CRITICAL:
        found, error = batched(np.abs(up.mean(axis=(1, 2))))
        assert abs(found - onsager_magnetisation(temperature)) < 4 * error + 1e-4


# Percolation
@pytest.mark.slow
def test_fire_crosses_a_forest_above_the_threshold() -> None:
    """A fire that is lit along one side reaches the other one where trees are denser than 0.592746, the threshold of
    site percolation on the square lattice (R. M. Ziff, Phys. Rev. Lett. 69 (1992) 2670); the grid is finite, so the
    threshold is found within some hundredths."""
    n, rules = 192, examples()["forest-fire"].parent / "rules"

    def crossings(density: float) -> int:
        found = 0
        for seed in range(4):
            forest = (uniform((n, n), seed=seed) < density).astype(np.uint8)
            forest[0] = 2
            model = mg.automaton(
                f"{rules / 'forest_fire.py'}:forest_fire",
                forest.shape,
                init=forest,
                boundary=["fixed", "periodic"],
                parameters={"growth": 0.0, "lightning": 0.0},
            )
            left = np.asarray(mg.run(model, steps=8 * n).cell[-1])
            assert not (left == 2).any()
            found += bool((left[-1] != forest[-1]).any())
        return found

    assert crossings(0.592746 - 0.045) == 0
    assert crossings(0.592746 + 0.045) == 4
