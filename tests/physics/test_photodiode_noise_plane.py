"""Noise by the adjoint: Nyquist's formula, shot noise, the theory of one axis, and gains that depend on the place."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.models.photodiode.case import device_of
from minga.models.photodiode.solver.circuit import Circuit
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import BOLTZMANN, CHARGE
from minga.models.photodiode.structure.device import Device

from .evidence import Evidence
from .photodiodes import absorbing_pin, apd, solved
from .transients import coarse, window

SECTION = "photodiode: noise by the adjoint"
ADJOINT = Problem((0.0,), ionisation=False, mode="noise", noise_method="adjoint", circuit=Circuit(1e-5))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one axis", "plane", "cylinder"])
def test_equilibrium_is_nyquists_formula(name: str, evidence: Evidence) -> None:
    device = coarse() if name == "one axis" else window(name)
    noise = solved(device, ADJOINT)[0]["S_shot"]
    conductance = solved(device, Problem((0.0,), ionisation=False, mode="cv", frequencies=(1e-3,)))[0]["G"]
    heat = 4.0 * BOLTZMANN * device.temperature * conductance * 1e-5
    evidence.relative(SECTION, f"{name}: noise in equilibrium over 4 kT G", noise / heat, 1.0, 1e-7)


@pytest.mark.slow
def test_noise_at_small_voltages_is_that_of_both_currents(evidence: Evidence) -> None:
    """2 q J coth(V/2 Vt): that of the carriers in either direction. Light adds its own shot noise in reverse bias."""
    device = absorbing_pin()
    rows = solved(device, replace(ADJOINT, bias=(-0.02, -0.1, -1.0), curves=("dark", "lit")))
    for row, volts in zip(rows, (-0.02, -0.1, -1.0), strict=True):
        both = 2.0 * CHARGE * row["J"] * 1e-5 / math.tanh(0.5 * volts / device.thermal_voltage)
        evidence.relative(
            SECTION, f"noise over that of both currents at {volts:g} V", -row["S_shot"] / both, -1.0, 2e-3
        )
    expected = -2.0 * CHARGE * rows[-1]["J_lit"] * 1e-5
    evidence.relative(SECTION, "shot noise of a photocurrent", rows[-1]["S_shot_lit"] / expected, 1.0, 1e-3)


@pytest.mark.slow
def test_a_device_that_is_uniform_across_is_one_with_one_axis(evidence: Evidence) -> None:
    problem = Problem((0.0, -60.0), ("dark", "lit"), mode="noise", noise_method="adjoint", circuit=Circuit(1e-5))
    one, two = (solved(apd(10, columns=columns), problem)[-1] for columns in (0, 2))
    profile = solved(apd(10), replace(problem, noise_method=None))[-1]
    for name in ("F", "M_local", "S_shot", "NEP", "F_lit", "M_local_lit", "S_shot_lit", "NEP_lit"):
        evidence.relative(SECTION, f"uniform across: {name} over that of one axis", two[name] / one[name], 1.0, 1e-8)
        evidence.relative(SECTION, f"{name} over that of the profile", one[name] / profile[name], 1.0, 5e-3)


@functools.cache
def ringed(symmetry: str = "cylinder", **light: Any) -> Device:
    """A diode whose junction ends in a corner, with a floating ring beside it."""
    table = {
        "width": 6.0,
        "symmetry": symmetry,
        "ionisation": True,
        "mesh": {"graded": {"first": "60 nm", "growth": 1.8, "cap": "500 nm"},
                 "across": {"first": "150 nm", "growth": 2.0, "cap": "1 um"}},
        "contacts": {"anode": {"y": [0.0, 2.0]}, "cathode": "ohmic"},
        "regions": [{"name": "p", "x": [0.0, 0.5], "y": [0.0, 2.5], "doping": -1e18},
                    {"name": "ring", "x": [0.0, 0.5], "y": [3.2, 3.8], "doping": -1e18}],
        "layers": [{"material": "Si", "thickness": 3.0, "n": 2e16}, {"material": "Si", "thickness": 0.5, "n": 1e18}],
        "light": {"wavelength": 850.0, "power": 1e-6, "side": "cathode", **light},
    }  # fmt: skip
    return device_of(read_settings("photodiode", table), Path())


@pytest.mark.slow
def test_gains_are_weighted_with_the_place_of_the_light(evidence: Evidence) -> None:
    problem = Problem((0.0, -22.0), ("dark",), mode="noise")
    device = ringed()
    inside = np.arange(device.grid.shape[1])[None, :] < int(np.argmax(device.nodes[1] > 2e-4))
    parts = [np.where(inside, device.generation, 0.0), np.where(inside, 0.0, device.generation)]
    whole, middle, edge = (
        solved(replace(device, generation=made), problem)[-1] for made in (device.generation, *parts)
    )
    shares = [float((made * device.volumes).sum()) for made in parts]
    shares = [share * row["collected"] for share, row in zip(shares, (middle, edge), strict=True)]
    total = sum(shares)
    gain = sum(s * row["M_local"] for s, row in zip(shares, (middle, edge), strict=True)) / total
    squares = sum(s * row["M_local"] ** 2 * row["F"] for s, row in zip(shares, (middle, edge), strict=True)) / total
    evidence.relative(SECTION, "guard ring: mean gain over that of both parts", whole["M_local"] / gain, 1.0, 1e-9)
    evidence.relative(SECTION, "guard ring: F over that of both parts", whole["F"] * gain**2 / squares, 1.0, 1e-9)
    assert middle["M_local"] > 1.05
    assert middle["F"] > 1.0
    print(whole["M_local"], whole["F"], middle["M_local"], middle["F"], edge["M_local"], edge["F"])


@pytest.mark.slow
def test_the_gain_is_that_of_weak_light(evidence: Evidence) -> None:
    device = ringed("plane")
    weak = replace(device, generation=1e-3 * device.generation)
    row = solved(weak, Problem((0.0, -22.0), ("dark", "lit"), mode="noise"))[-1]
    per_area = CHARGE * float((weak.generation * weak.volumes).sum()) / float(weak.areas[0][1].sum())
    found = (row["J"] - row["J_lit"]) / per_area
    evidence.relative(
        SECTION, "gain of weak light over that of the adjoint", found / row["M_local"] / row["collected"], 1.0, 1e-4
    )


@pytest.mark.slow
def test_the_same_bits_on_ranks() -> None:
    problem = replace(ADJOINT, bias=(-1.0,))
    one, two = (solved(window(), problem, ranks=ranks)[-1] for ranks in (1, 2))
    for name in ("F", "M_local", "S_shot"):
        assert one[name] == two[name]


def lossy() -> Device:
    """A silicon diode whose light generates a quarter of its pairs where they are lost to a contact."""
    parts = (("p", 0.5, {"p": 1e18}), ("i", 1.0, {"n": 1e16}), ("n", 0.5, {"n": 1e18}))
    table = {
        "ionisation": True,
        "recombination": ["srh"],
        "mesh": {"graded": {"first": "1 nm", "growth": 1.14, "cap": "50 nm"}},
        "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "layers": [{"name": name, "material": "Si", "thickness": thick, "tau_n": 1e-6, "tau_p": 1e-6,
                    "mobility_n": 1000.0, "mobility_p": 400.0, **doping} for name, thick, doping in parts],
        "light": {"wavelength": 633.0, "power": "1 mW/cm2", "side": "anode"},
    }  # fmt: skip
    return device_of(read_settings("photodiode", table), Path())


@pytest.mark.slow
def test_pairs_that_are_lost_are_no_noise_of_the_multiplication(evidence: Evidence) -> None:
    """Both methods agree in gain, F and the noise of the dark current, and in shot noise without a gain."""
    problem = Problem((0.0, -2.0, -31.0), ("dark", "lit"), gain=True, mode="noise", circuit=Circuit(1e-5))
    adjoint, profile = (solved(lossy(), replace(problem, noise_method=method))[1:] for method in ("adjoint", "profile"))
    assert 0.7 < adjoint[0]["collected"] < 0.8
    for name, rows in (("adjoint", adjoint), ("profile", profile)):
        low, high = rows
        what = f"pairs lost to contacts, {name}"
        evidence.relative(SECTION, f"{what}: F without a gain", low["F"], 1.0, 1e-5)
        evidence.relative(SECTION, f"{what}: noise of the photocurrent without a gain",
                          low["S_shot_lit"] / (-2.0 * CHARGE * low["J_lit"] * 1e-5), 1.0, 5e-3)  # fmt: skip
        evidence.relative(SECTION, f"{what}: M_local over the gain", high["M_local"] / high["gain"], 1.0, 2e-3)
        primary = (high["J"] - high["J_lit"]) / high["gain"] * 1e-5
        light = 2.0 * CHARGE * primary * high["gain"] ** 2 * high["F"]
        difference = (high["S_shot_lit"] - high["S_shot"]) / light
        evidence.relative(SECTION, f"{what}: noise of light over that of F", difference, 1.0, 5e-3)
    for name in ("F", "M_local", "S_shot", "S_shot_lit"):
        ratio = adjoint[1][name] / profile[1][name]
        evidence.relative(SECTION, f"pairs lost to contacts: {name} over that of the profile", ratio, 1.0, 5e-3)
