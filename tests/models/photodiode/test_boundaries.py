"""Boundaries between materials: where meshes have them, and what notes say about others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.models.photodiode.boundary_notes import boundary_notes
from minga.models.photodiode.case import device_of
from minga.models.photodiode.structure.device import Device

from ...physics.photodiodes import EXAMPLES, device


def made(boundary: float, mesh: dict[str, Any], second: str = "InGaAs", **entries: Any) -> Device:
    layers = [
        {"name": "cap", "material": "InP", "thickness": boundary, "p": 1e17},
        {"name": "absorber", "material": second, "thickness": round(1.0 - boundary, 9), "p": 1e17, **entries},
    ]
    table = {"bias": [0.0], "layers": layers, "mesh": mesh, "contacts": {"anode": "ohmic", "cathode": "ohmic"}}
    return device_of(read_settings("photodiode", table), EXAMPLES)


@pytest.mark.parametrize("name", ["apd", "pin-inp", "si-1", "msm"])
def test_examples_have_their_boundaries_where_they_are(name: str) -> None:
    assert not list(boundary_notes(device(name)))


@pytest.mark.parametrize("boundary", [0.2, 0.21, 0.237, 0.249])
def test_a_mesh_changes_the_material_half_way_between_nodes(boundary: float) -> None:
    """With nodes at multiples of 50 nm, the change lies at 0.225 um for all boundaries from 0.2 to 0.25 um."""
    found, first = made(boundary, {"nodes": 21}), made(0.21, {"nodes": 21})
    same = boundary > 0.2  # a node on a boundary belongs to the layer that begins there
    assert np.array_equal(found.permittivity, first.permittivity) == same
    ((label, words),) = boundary_notes(found)
    place = 225.0 if same else 175.0
    assert label == "boundaries"
    assert f"{abs(1e3 * boundary - place):.3g} nm beside the boundary" in words
    assert words.startswith("between cap and absorber")
    assert "% of cap" in words


def test_boundaries_that_are_not_reported() -> None:
    assert not list(boundary_notes(made(0.225, {"nodes": 21}))), "half-way"
    assert not list(boundary_notes(made(0.226, {"nodes": 21}))), "less than 1 % of the thinner layer"
    assert not list(boundary_notes(made(0.21, {"nodes": 21}, "InP"))), "no change of the material"
    assert not list(boundary_notes(made(0.21, {"graded": {"first": "2 nm"}}))), "the mesh fits the layers"
    assert not list(boundary_notes(replace(made(0.21, {"nodes": 21}), layers=()))), "no layers"


def test_a_change_of_the_composition_alone_is_reported() -> None:
    layers = [{"material": "InGaAsP", "y": y, "thickness": t, "p": 1e17} for y, t in ((0.2, 0.21), (0.8, 0.79))]
    table = {"bias": [0.0], "layers": layers, "mesh": {"nodes": 21}, "contacts": {"anode": "ohmic", "cathode": "ohmic"}}
    assert list(boundary_notes(device_of(read_settings("photodiode", table), EXAMPLES)))
