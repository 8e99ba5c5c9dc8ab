"""Thermionic emission: at metals and between materials it limits what drift and diffusion alone would carry."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.models.photodiode.case import device_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.barrier import image_lowering, tunnelling_energy
from minga.models.photodiode.structure.constants import CHARGE, thermal_voltage
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.emission import emission_velocity
from minga.models.photodiode.structure.tunnelling import trap_field

from .evidence import Evidence
from .photodiodes import solved

SECTION = "photodiode: barriers"
THERMAL = thermal_voltage(300.0)
FAST = 1e7  # cm2/Vs: nothing but emission limits the current
BARRIER, STATES = 0.7, 2.8e19  # eV; 1/cm3, of silicon's conduction band


def metal(electrons: float, *, emission: bool, **changes: Any) -> Device:
    """1 um of n silicon between a Schottky contact and an ohmic one."""
    layer = {"material": "Si", "thickness": 1.0, "n": 1e16, "mobility_n": electrons}
    table = {
        "layers": [layer],
        "contacts": {"anode": {"kind": "schottky", "barrier": BARRIER}, "cathode": "ohmic"},
        "mesh": {"graded": {"first": "0.2 nm", "growth": 1.2, "cap": "20 nm"}},
        "emission": emission,
    }
    return device_of(read_settings("photodiode", table | changes), Path())


def lowered(side: str, kind: str, columns: int = 0, **options: bool) -> Device:
    """1 um of silicon with 1e17 of either kind, and a Schottky contact on one side."""
    layer = {
        "material": "Si",
        "thickness": 1.0,
        kind: 1e17,
        "mobility_n": 1.0,
        "mobility_p": 1.0,
        f"mobility_{kind}": FAST,
    }
    contact = {"kind": "schottky", "barrier": BARRIER if kind == "n" else 1.12 - BARRIER, **options}
    table = {
        "layers": [layer],
        "contacts": {"anode": "ohmic", "cathode": "ohmic", side: contact},
        "mesh": {"graded": {"first": "0.5 nm", "growth": 1.2, "cap": "20 nm"}},
        "emission": True,
    }
    wide = {"width": float(columns), "columns": columns} if columns else {}
    return device_of(read_settings("photodiode", table | wide), Path())


def steps(*, emission: bool) -> Device:
    """InGaAs between InP, all n: electrons climb 0.258 eV on either side."""
    layers = [{"material": name, "thickness": 0.2, "n": 1e16, "mobility_n": FAST} for name in ("InP", "InGaAs", "InP")]
    table = {"layers": layers, "contacts": {"anode": "ohmic", "cathode": "ohmic"}, "emission": emission}
    return device_of(read_settings("photodiode", table), Path())


def test_velocity_is_richardsons() -> None:
    """A* T^2 = q v N, with A* = 4 pi q m k^2 / h^3 and 120.17 A/cm2K2 for free electrons."""
    mass = 0.08
    states = 2.5094e19 * mass**1.5  # 1/cm3 at 300 K
    constant = CHARGE * float(emission_velocity(states, 300.0)) * states / 300.0**2
    assert constant == pytest.approx(120.17 * mass, rel=1e-4)


@pytest.mark.slow
def test_emission_limits_a_schottky_diode(evidence: Evidence) -> None:
    volts = (0.0, 0.1, 0.2, 0.3)
    rows = solved(metal(FAST, emission=True), Problem(volts, ionisation=False))
    assert rows[0]["J"] == 0.0
    velocity = float(emission_velocity(STATES, 300.0))
    saturation = CHARGE * velocity * STATES * math.exp(-BARRIER / THERMAL)
    for row, bias in zip(rows[1:], volts[1:], strict=True):
        expected = saturation * math.expm1(bias / THERMAL)
        evidence.relative(SECTION, f"J at {bias:g} V of an ideal Schottky diode, A/cm2", row["J"], expected, 1e-4)


@pytest.mark.slow
def test_drift_and_emission_in_series() -> None:
    """1/J is what each would take alone (Crowell and Sze), as both go by the same difference at the barrier."""
    one, other, both = (
        solved(device, Problem((0.2,), ionisation=False))[0]["J"]
        for device in (metal(1330.0, emission=False), metal(FAST, emission=True), metal(1330.0, emission=True))
    )
    assert 1 / both == pytest.approx(1 / one + 1 / other, rel=3e-3)


@pytest.mark.slow
def test_emission_between_materials() -> None:
    """Where nothing else limits, electrons cross both steps with q v n of the barrier's node for each kT/q."""
    device = steps(emission=True)
    bias = 1e-4
    rest, driven = solved(device, Problem((0.0, bias), ionisation=False))
    density = rest["fields"]["electrons"]
    constants = [float(emission_velocity(n, 300.0)) * n for n in (5.7e17, 2.1e17)]
    left, right = device.layers[0].last, device.layers[2].first
    conductances = [CHARGE * min(constants) / 5.7e17 * density[k] / THERMAL for k in (left, right)]
    expected = bias / sum(1 / g for g in conductances)
    assert driven["J"] == pytest.approx(expected, rel=5e-3)
    assert rest["J"] == 0.0
    assert not device_of_nothing()[0].any()


@pytest.mark.parametrize(
    ("field", "permittivity", "expected"), [(1e5, 11.7, 35.0819), (1e6, 11.7, 110.9387), (1e5, 12.5, 33.9407)]
)
def test_image_force(field: float, permittivity: float, expected: float) -> None:
    """mV, in Si and InP."""
    assert 1e3 * image_lowering(field, permittivity) == pytest.approx(expected, rel=1e-6)


def test_energy_of_tunnelling() -> None:
    """E00 in meV of Si and InP with 1e18, and E0 = E00 coth(E00/kT)."""
    silicon, inp = 1e3 * tunnelling_energy(1e18, 0.26, 11.7), 1e3 * tunnelling_energy(1e18, 0.077, 12.5)
    assert (silicon, inp) == pytest.approx((10.6450, 18.9246), rel=5e-6)
    assert silicon / math.tanh(1e-3 * silicon / THERMAL) == pytest.approx(27.2968, rel=3e-6)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"image_force": True}, {"image_force": True, "tunnelling": True}])
def test_lowered_barrier_emits_by_its_field(options: dict[str, bool], evidence: Evidence) -> None:
    """J = q v Nc exp(-(barrier - image force)/kT) (1 + Gamma) with the field of the solution, of either carrier."""
    for side, kind, sign in (("cathode", "n", 1.0), ("anode", "p", 1.0)):
        device = lowered(side, kind, **options)
        zero, row = solved(device, Problem((0.0, 3.0 * sign), ionisation=False))
        assert zero["J"] == 0.0
        nodes, potential = device.nodes[0], row["fields"]["potential"]
        low = 0 if side == "anode" else -2
        field = abs((potential[low + 1] - potential[low]) / (nodes[low + 1] - nodes[low]))
        height = BARRIER if kind == "n" else device_gap(device) - (1.12 - BARRIER)
        states = 2.8e19 if kind == "n" else 1.04e19
        gain = math.exp(image_lowering(field, 11.7) / THERMAL) if options.get("image_force") else 1.0
        if options.get("tunnelling"):
            u = np.linspace(0.0, 1.0, 200_001) ** 2
            a = height / THERMAL
            gain *= 1.0 + a * np.trapezoid(np.exp(a * u - trap_field(height, 0.25) / field * u**1.5), u)
        expected = sign * CHARGE * float(emission_velocity(states, 300.0)) * states * math.exp(-height / THERMAL) * gain
        found = f"J at {3 * sign:g} V of {kind} Si, {side}, {' and '.join(options)}, A/cm2"
        evidence.relative(SECTION, found, row["J"], expected, 1e-3)


def device_gap(device: Device) -> float:
    """Gap that goes with the densities, eV; it decides on the barrier of holes."""
    return THERMAL * math.log(float(device.nc[0] * device.nv[0] / device.nie[0] ** 2))


@pytest.mark.slow
def test_lowered_barriers_by_all_schemes_axes_and_ranks() -> None:
    options = {"image_force": True, "tunnelling": True}
    flat, wide = lowered("anode", "n", **options), lowered("anode", "n", 6, **options)
    volts = (0.2, -1.0)
    found = [row["J"] for row in solved(flat, Problem(volts, ionisation=False))]
    choices: list[tuple[Device, dict[str, Any], int, float]] = [
        (flat, {"scheme": "gummel"}, 1, 2e-6),
        (wide, {"linear": "sparse"}, 1, 1e-9),
        (wide, {"linear": "krylov"}, 1, 1e-9),
        (wide, {"linear": "krylov"}, 2, 1e-9),
    ]
    others = []
    for device, choice, ranks, tolerance in choices:
        others.append([row["J"] for row in solved(device, Problem(volts, ionisation=False, **choice), ranks=ranks)])
        assert others[-1] == pytest.approx(found, rel=tolerance)
    assert others[2] == others[3]


def device_of_nothing() -> np.ndarray:
    """Emission of a device of one material between ohmic contacts."""
    table = {"layers": [{"material": "Si", "thickness": 1.0, "n": 1e16}], "emission": True,
             "contacts": {"anode": "ohmic", "cathode": "ohmic"}}  # fmt: skip
    return device_of(read_settings("photodiode", table), Path()).emission[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"mobility": "field"}, pytest.param({"mobility": "field", "statistics": "fermi-dirac"}, marks=pytest.mark.slow)],
)
def test_gummel_knows_what_limits_carriers(changes: dict[str, Any]) -> None:
    """Emission, mobilities that fall with the field, and degenerate carriers, as Newton's method does."""
    device = metal(1330.0, emission=True, **changes)
    newton, gummel = (
        [row["J"] for row in solved(device, Problem((0.2, -1.0), ionisation=False, scheme=scheme))]
        for scheme in ("newton", "gummel")
    )
    assert gummel == pytest.approx(newton, rel=1e-6)
