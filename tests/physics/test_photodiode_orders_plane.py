"""Currents of devices with two axes on meshes of half the distances: the order of the error."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from minga.case.load import read_settings
from minga.models.photodiode.case import problem_of
from minga.models.photodiode.case_layers import stack_of
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.mesh import uniform

from .evidence import Evidence
from .photodiodes import EXAMPLES, merged, solved

SECTION = "photodiode: orders with two axes"
WELL: dict[str, Any] = {"name": "well", "x": [0.0, 1.5], "y": [0.0, 1.5], "doping": -4e15}
LIFETIMES = {"tau_n": 1e-8, "tau_p": 1e-8}
DIODE: dict[str, Any] = {
    "bias": [0.5],
    "width": 3.0,
    "contacts": {"anode": "ohmic", "cathode": "ohmic"},
    "recombination": ["srh"],
    "layers": [
        {"name": "p", "material": "Si", "thickness": 1.0, "p": 4e15} | LIFETIMES,
        {"name": "n", "material": "Si", "thickness": 2.0, "n": 1e15} | LIFETIMES,
    ],
    "regions": [WELL],
    "mesh": {"nodes": 31},
    "columns": 31,
}
"""A silicon diode whose p region is deeper on one side; its layers and regions end on nodes."""
SMOOTH = {"regions": [WELL | {"straggle": [0.2, 0.4]}]}
NARROW = {"contacts": {"anode": {"y": [0.0, 1.0]}, "cathode": "ohmic"}}


def current(said: dict[str, Any], nodes: int) -> float:
    """The forward current on equal distances along both axes."""
    settings = read_settings("photodiode", said)
    mesh = uniform(3e-4, nodes)
    device = device_from(stack_of(settings, EXAMPLES), mesh, replace(mesh, radial="symmetry" in said))
    row = solved(device, problem_of(settings))[-1]
    assert row["uniformity"] < 1e-10
    return float(row["J"])


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", ["plane", "cylinder"])
@pytest.mark.parametrize(
    ("name", "changes", "low", "high"),
    [("smooth well", SMOOTH, 1.85, 2.05), ("sharp well", {}, 1.85, 2.05), ("narrow contact", NARROW, 1.0, 1.5)],
)
def test_order_of_the_current(
    name: str, changes: dict[str, Any], low: float, high: float, symmetry: str, evidence: Evidence
) -> None:
    """Two with contacts across the device; one next to the edge of a contact, where fields have no slope."""
    said = merged(DIODE, changes | ({} if symmetry == "plane" else {"symmetry": symmetry}))
    coarse, middle, fine = (current(said, nodes) for nodes in (31, 61, 121))
    order = math.log2((middle - coarse) / (fine - middle))
    evidence.between(SECTION, f"{name}, {symmetry}: order of the current at 0.5 V", order, low, high)
