"""Excess noise against McIntyre's formula, an independent program, and Monte Carlo with dead space."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.photodiode.noise import local_noise
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Problem

from .evidence import Evidence
from .photodiodes import EXAMPLES, absorbing_pin, apd, device, solved

SECTION = "photodiode: excess noise"
N, WIDTH = 400, 1e-4


def injected(alpha: float, beta: float, node: int) -> Any:
    primary = np.zeros(N + 1)
    primary[node] = 1.0
    return local_noise([alpha] * N, [beta] * N, [WIDTH / N] * N, primary)


@pytest.mark.parametrize("k", [0.0, 0.02, 0.1, 0.5, 1.0, 2.0])
def test_constant_ratio_is_mcintyres_formula(k: float, evidence: Evidence) -> None:
    alpha = 5e3
    growth = math.exp((1.0 - k) * alpha * WIDTH)
    gain = 1.0 / (1.0 - alpha * WIDTH) if k == 1.0 else (1.0 - k) * growth / (1.0 - k * growth)
    found = injected(alpha, k * alpha, 0)
    evidence.relative(SECTION, f"constant k = {k:g}: M", found.gain, gain, 1e-12)
    mcintyre = k * gain + (1.0 - k) * (2.0 - 1.0 / gain)
    evidence.relative(SECTION, f"constant k = {k:g}: F of McIntyre", found.excess, mcintyre, 1e-4)
    mirrored = injected(k * alpha, alpha, N)
    assert (mirrored.gain, mirrored.excess) == pytest.approx((found.gain, found.excess), rel=1e-4)


def test_given_currents() -> None:
    """Equal coefficients, electrons injected: their current grows linearly."""
    rate, total = 5e3, 2.0
    middle = (np.arange(N) + 0.5) / N * WIDTH
    electrons = 1.0 + rate * total * middle
    primary = np.zeros(N + 1)
    primary[0] = 1.0
    arguments = ([rate] * N, [rate] * N, [WIDTH / N] * N, primary)
    found = local_noise(*arguments, electrons, total - electrons)
    assert (found.gain, found.excess) == pytest.approx((2.0, 2.0), rel=1e-9)
    half = local_noise(*arguments, 0.5 * electrons, 0.5 * (total - electrons))
    assert half.excess == pytest.approx(1.5, rel=1e-9)


def test_gain_of_one_and_breakdown() -> None:
    assert injected(0.0, 0.0, 7).excess == 1.0
    beyond = injected(1.1e4, 1.1e4, 0)
    assert math.isnan(beyond.gain)
    assert math.isnan(beyond.excess)


def test_wrong_profiles_are_refused() -> None:
    for arguments, words in (
        (([1.0], [1.0, 2.0], [1.0], [1.0, 1.0]), "beta has the shape"),
        (([1.0], [1.0], [1.0], [1.0]), "primary has the shape"),
        (([-1.0], [1.0], [1.0], [1.0, 1.0]), "alpha has entries that are negative"),
        (([math.nan], [1.0], [1.0], [1.0, 1.0]), "alpha has entries"),
        ((["x"], [1.0], [1.0], [1.0, 1.0]), "alpha has the shape"),
    ):
        with pytest.raises(CaseError, match=words):
            local_noise(*arguments)  # type: ignore[arg-type]


def dead(alpha: float, beta: float, electrons: float, holes: float, count: int = 200) -> Any:
    edges = np.ones(count)
    return mg.models.photodiode.dead_space_noise(
        alpha * edges, beta * edges, WIDTH / count * edges, 1e5 * edges, 1e5 * electrons, 1e5 * holes
    )


@pytest.mark.parametrize(
    ("rates", "length", "expected"),
    [
        ((1e4, 1e4), 1e-5, (4.20058, 3.32803, 4.20058, 3.32803)),
        ((1e4, 2e4), 2e-5, (3.78271, 3.13300, 5.47280, 2.49628)),
    ],
)
def test_dead_space(rates: tuple[float, float], length: float, expected: tuple[float, ...], evidence: Evidence) -> None:
    found = dead(*rates, length, length)
    numbers = (found.gain[0], found.excess[0], found.gain[-1], found.excess[-1])
    what = f"dead space of {1e4 * length:g} um, rates {rates[0]:.0e} and {rates[1]:.0e} /cm"
    names = ("M of electrons", "F of electrons", "M of holes", "F of holes")
    for name, number, known in zip(names, numbers, expected, strict=True):
        evidence.relative(SECTION, f"{what}: {name}", number, known, 1e-4)


def test_without_dead_space_it_is_the_local_theory() -> None:
    found = dead(1e4, 5e3, 0.0, 0.0)
    for node, end in ((0, 0), (N, -1)):
        local = injected(1e4, 5e3, node)
        assert (found.gain[end], found.excess[end]) == pytest.approx((local.gain, local.excess), rel=1e-4)
    whole = local_noise([1e4] * 200, [5e3] * 200, [WIDTH / 200] * 200, [1.0] * 201)
    assert found.gain == pytest.approx(whole.profile, rel=1e-4)


def test_local_rates_include_the_dead_space() -> None:
    edges = np.ones(50)
    arguments = (1e4 * edges, 1e4 * edges, 2e-6 * edges, 4e5 * edges, 4.0, 4.0)
    one = mg.models.photodiode.dead_space_noise(*arguments, local=True)
    rate = 1.0 / (1e-4 - 1e-5)
    other = mg.models.photodiode.dead_space_noise(rate * edges, rate * edges, *arguments[2:])
    assert one.gain == pytest.approx(other.gain, rel=1e-12)
    with pytest.raises(CaseError, match="times the mean free path"):
        mg.models.photodiode.dead_space_noise(*arguments[:4], 40.0, 4.0, local=True)
    with pytest.raises(CaseError, match="threshold_n has entries"):
        mg.models.photodiode.dead_space_noise(*arguments[:4], -1.0, 4.0)


APD = {
    "cook": {-56.0: (2.537129, 2.537465, 2.024240), -60.0: (3.946694, 3.947561, 2.787006),
             -64.0: (9.764336, 9.769620, 5.796557)},
    "umebu": {-60.0: (1.834367, 1.834455, 1.552959)},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", list(APD))
def test_noise_of_an_avalanche_photodiode(name: str, evidence: Evidence) -> None:
    table, circuit, made = APD[name], Circuit(1e-5), apd(5, name)
    problem = Problem((0.0, *table), ("dark", "lit"), gain=True, mode="noise", circuit=circuit)
    rows = solved(made, problem)
    assert made.light is not None
    assert made.light.flux is not None
    power = made.light.flux * 6.62607015e-34 * 2.99792458e17 / made.light.wavelength
    for row, (current_gain, gain, excess) in zip(rows[1:], table.values(), strict=True):
        what = f"apd, {name}, {row['V']:g} V"
        evidence.relative(SECTION, f"{what}: gain", row["gain"], current_gain, 1e-6)
        for end, of in (("", "dark"), ("_lit", "lit")):
            evidence.relative(SECTION, f"{what}, {of}: M of the profile", row[f"M_local{end}"], gain, 2e-6)
            evidence.relative(SECTION, f"{what}, {of}: F", row[f"F{end}"], excess, 2e-5)
        charge = 1.602176634e-19
        primary = (row["J_lit"] - row["J"]) / row["gain"] * circuit.area
        light = 2.0 * charge * abs(primary) * row["gain"] ** 2 * row["F"]
        assert row["S_shot_lit"] - row["S_shot"] == pytest.approx(light, rel=5e-3)
        assert row["S_thermal"] == pytest.approx(4.0 * 1.380649e-23 * 300.0 / 50.0, rel=1e-12)
        responsivity = (row["J"] - row["J_lit"]) / power
        noise = math.sqrt(row["S_shot"] + row["S_thermal"])
        assert row["NEP"] == pytest.approx(noise / responsivity, rel=5e-3)


@pytest.mark.slow
def test_a_device_the_other_way_round() -> None:
    table = tomllib.loads((EXAMPLES / "apd.toml").read_text())["photodiode"]
    layers = [{name: value for name, value in layer.items() if name != "begin"} for layer in table["layers"]]
    changes = {"mesh": {"coarsen": 10}, "layers": layers[::-1]}
    side = {"anode": "cathode", "cathode": "anode"}[table["light"].get("side", "cathode")]
    turned = device("apd", **changes, light={"side": side})
    straight = device("apd", **changes | {"layers": layers})
    # Levels are measured from the contacts where a carrier is usually the majority: here residuals have fewer digits.
    expected, row = (
        solved(made, Problem((0.0, volts), ("lit",), mode="noise", circuit=Circuit(1e-5), tolerance=1e-4))[-1]
        for made, volts in ((straight, -60.0), (turned, 60.0))
    )
    for name in ("F_lit", "M_local_lit", "S_shot_lit", "NEP_lit"):
        assert row[name] == pytest.approx(expected[name], rel=2e-3), name


@pytest.mark.slow
def test_noise_without_gain_is_shot_noise() -> None:
    problem = Problem((0.0, -5.0), ("dark", "lit"), ionisation=False, mode="noise", circuit=Circuit(1e-5))
    equilibrium, row = solved(absorbing_pin(), problem)
    assert math.isnan(equilibrium["S_shot"])
    assert row["F"] == row["M_local"] == 1.0
    near = solved(absorbing_pin(), replace(problem, bias=(0.0, -0.05)))[-1]
    assert math.isnan(near["S_shot"])  # the noise of carriers against the current counts too
    for end in ("", "_lit"):
        assert row[f"S_shot{end}"] == pytest.approx(-2.0 * 1.602176634e-19 * row[f"J{end}"] * 1e-5, rel=2e-3)


@pytest.mark.slow
def test_same_bits_on_any_number_of_ranks() -> None:
    problem = Problem((0.0, -56.0), ("lit",), mode="noise", circuit=Circuit(1e-5))
    one, three = (solved(apd(10), problem, ranks=ranks) for ranks in (1, 3))
    for a, b in zip(one, three, strict=True):
        for name, value in a.items():
            if name != "fields":
                assert np.array_equal(np.asarray(b[name]), np.asarray(value), equal_nan=True), name
