"""Derivatives of the currents of round devices, against differences of full solutions."""

from __future__ import annotations

from typing import Any

import pytest

from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.varied import Varied

from .test_photodiode_slopes import assert_slopes

BASE: dict[str, Any] = {
    "bias": [0.0],
    "contacts": {"anode": {"kind": "ohmic", "y": [0.0, 2.0]}, "cathode": "ohmic"},
    "symmetry": "cylinder",
    "width": 5.0,
    "columns": 6,
    "mesh": {"graded": {"first": "40 nm", "growth": 2.0, "cap": "400 nm"}},
}


def pin(middle: str) -> list[dict[str, Any]]:
    """A p-i-n diode between layers of InP."""
    return [
        {"name": "p", "material": "InP", "thickness": 0.5, "p": 1e18},
        {"name": "i", "material": middle, "thickness": 1.0, "n": 1e15},
        {"name": "n", "material": "InP", "thickness": 0.5, "n": 1e18},
    ]


@pytest.mark.slow
def test_a_silicon_diode_with_a_narrow_anode() -> None:
    layers = [
        {"name": "p", "material": "Si", "thickness": 0.5, "p": 1e18},
        {"name": "n", "material": "Si", "thickness": 2.0, "n": 1e16},
    ]
    devices = Varied(BASE | {"layers": layers, "recombination": ["srh"]}, ["layers.p.p", "layers.n.thickness"])
    assert_slopes(devices, [1e18, 2.0], Problem((0.4, -3.0)))


@pytest.mark.slow
def test_a_lit_detector_with_velocities_that_saturate() -> None:
    light = {"wavelength": 1550.0, "power": 1e-3, "side": "cathode"}
    devices = Varied(
        BASE | {"layers": pin("InGaAs"), "mobility": "field", "light": light}, ["layers.i.n", "layers.i.thickness"]
    )
    assert_slopes(devices, [1e15, 1.0], Problem((-5.0,), ("dark", "lit")))


@pytest.mark.slow
def test_an_ionising_diode() -> None:
    devices = Varied(BASE | {"layers": pin("InP")}, ["layers.i.n", "temperature"])
    assert_slopes(devices, [1e15, 300.0], Problem((-30.0,)))
