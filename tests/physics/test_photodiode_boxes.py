"""Boxes of another material with two axes, against layers and against devices side by side."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.preflight import notes_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.materials_file import shipped_materials

from .evidence import Evidence
from .photodiodes import EXAMPLES, solved

SECTION = "photodiode: boxes of another material"
LIGHT = {"wavelength": 1550.0, "power": "1 mW/cm2", "side": "cathode"}
METAL = {"kind": "schottky", "barrier": 0.9, "tunnelling": True}
P, I, N = {"p": 1e18}, {"n": 1e15}, {"n": 1e18}


def made(layers: list[tuple[str, float, dict[str, float]]], **changes: Any) -> Device:
    table: dict[str, Any] = {
        "bias": [0.0], "contacts": {"anode": "ohmic", "cathode": "ohmic"}, "ionisation": True, "light": LIGHT,
        "mesh": {"nodes": 61}, "width": 4.0, "columns": 4,
        "layers": [{"material": m, "thickness": t, **doping} for m, t, doping in layers],
        "recombination": ["srh", "radiative", "auger"], "mobility": "doping", "emission": True,
    }  # fmt: skip
    return device_of(read_settings("photodiode", table | changes), EXAMPLES)


def region(along: tuple[float, float], over: tuple[float, float], **changes: Any) -> dict[str, Any]:
    found = {"name": "island", "x": list(along), "y": list(over), "doping": 1e15, "material": "InGaAs"} | changes
    return {key: value for key, value in found.items() if value is not None}


LAYERED = [("InP", 0.5, P), ("InP", 0.2, I), ("InGaAs", 0.6, I), ("InP", 0.2, I), ("InP", 0.5, N)]
BARE = [("InP", 0.5, P), ("InP", 1.0, I), ("InP", 0.5, N)]


def test_a_box_across_the_device_is_a_layer() -> None:
    layered, boxed = made(LAYERED), made(BARE, regions=[region((0.7, 1.3), (0.0, 4.0))])
    for name in (
        "permittivity", "theta_n", "theta_p", "nie", "nc", "nv", "mobility_n", "mobility_p", "tau_n", "tau_p",
        "radiative", "auger_n", "auger_p", "generation", "absorption",
    ):  # fmt: skip
        np.testing.assert_allclose(getattr(boxed, name), getattr(layered, name), rtol=1e-14, err_msg=name)
    np.testing.assert_allclose(boxed.doping, layered.doping, rtol=1e-12)
    for axis in (0, 1):
        np.testing.assert_array_equal(boxed.ionisation_n[axis].a, layered.ionisation_n[axis].a)
        np.testing.assert_array_equal(boxed.ionisation_p[axis].b, layered.ionisation_p[axis].b)
        np.testing.assert_allclose(boxed.emission[axis], layered.emission[axis], rtol=1e-13)


def test_the_first_node_sets_the_zero_of_potentials() -> None:
    """A box at the anode: potentials count from the material of the first layer, and differ by the offset."""
    boxed, layered = made(BARE, regions=[region((0.0, 0.3), (0.0, 1.9))], light=None), made(BARE, light=None)
    other = made([("InGaAs", 0.5, P), *BARE[1:]])
    found = boxed.theta_n[0, 0] - layered.theta_n[0, 0]
    assert found == pytest.approx(other.theta_n[0, 0] - other.theta_n[-1, 0], rel=1e-12)
    assert boxed.theta_n[0, -1] == layered.theta_n[0, 0]


def test_a_box_away_from_a_contact_with_tunnelling() -> None:
    device = made(BARE, regions=[region((0.7, 1.3), (0.0, 1.9))], contacts={"anode": "ohmic", "cathode": METAL})
    assert device.terminal("cathode").tunnelling_mass == shipped_materials()["InP"].tunnelling_mass


@pytest.mark.parametrize("over", [(0.0, 1.2), (1.2, 2.8)])
def test_light_that_a_box_absorbs_in_some_columns_is_not_too_much(over: tuple[float, float]) -> None:
    device = made(BARE, regions=[region((0.7, 1.3), over)])
    notes = dict(notes_of(device, Problem(bias=(-3.0,), curves=("lit",))))
    current = CHARGE * float((device.generation * device.volumes).sum()) / float(device.areas[0][1].sum())
    assert notes["light"].endswith(f"primary photocurrent {current:.4g} A/cm2")


@pytest.mark.slow
def test_currents_of_a_box_across_the_device(evidence: Evidence) -> None:
    layered, boxed = made(LAYERED), made(BARE, regions=[region((0.7, 1.3), (0.0, 4.0))])
    problem = Problem(bias=(0.4, -2.0, -5.0), curves=("dark", "lit"), ionisation=True)
    for one, other in zip(solved(layered, problem), solved(boxed, problem), strict=True):
        for name in ("J", "J_lit"):
            evidence.relative(SECTION, f"box across, {name} at {one['V']:g} V", other[name], one[name], 1e-9)


@pytest.mark.slow
def test_currents_of_half_a_box_are_those_of_two_devices(evidence: Evidence) -> None:
    """Far from the edge of the box, the device is one with and one without it side by side; light tells them apart."""
    columns, width = 4, 400.0
    half = made(BARE, regions=[region((0.7, 1.3), (0.0, 200.0))], columns=columns, width=width)
    whole = made(LAYERED, columns=columns, width=width)
    none = made(BARE, columns=columns, width=width, light=None)
    problem = Problem(bias=(-3.0,), curves=("lit",), ionisation=False)
    both, with_it = (solved(one, problem)[0]["J_lit"] for one in (half, whole))
    without = solved(none, Problem(bias=(-3.0,)))[0]["J"]
    covered = float(half.generation.any(axis=0) @ half.areas[0][1]) / float(half.areas[0][1].sum())
    expected = covered * with_it + (1.0 - covered) * without
    evidence.relative(SECTION, "half a box, J_lit at -3 V", both, expected, 5e-3)


@pytest.mark.parametrize(
    ("changes", "entry", "words"),
    [
        ({}, {"material": "InGaAss"}, "region 'island': there is no material 'InGaAss'"),
        ({}, {"straggle": 0.1}, "region 'island': a material in a region with smooth edges"),
        ({}, {"x": [5.0, 6.0]}, "no node lies in region 'island'"),
        ({}, {"material": "InAlAs"}, "region 'island': no ionisation coefficients of InAlAs are known"),
        ({"gap_narrowing": True}, {}, "region 'island' has a material of its own, with gap_narrowing"),
        ({"tunnelling": {"trap_assisted": True}}, {}, "region 'island' has a material of its own, with tunnelling"),
        ({"light": LIGHT | {"optics": "transfer-matrix"}}, {}, 'with optics = "transfer-matrix"'),
        ({"light": LIGHT | {"side": "left"}}, {}, "with light across the layers"),
        ({"mode": "qe", "qe": {"wavelengths": [1550.0]}}, {}, "a material of its own in mode 'qe'"),
        ({}, {"doping": -1e22}, "region 'island': 1e+22 acceptors per cm3 exceed the solubility in InGaAs"),
        ({"contacts": {"anode": METAL, "cathode": "ohmic"}}, {"x": [0.0, 1.5]}, "a material of its own at the anode"),
        ({"width": None, "columns": None}, {}, "region 'island' in a device with one axis"),
    ],
)
def test_refusals(changes: dict[str, Any], entry: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        made(BARE, regions=[region((0.5, 1.5), (0.0, 2.0), **entry)], **changes)
