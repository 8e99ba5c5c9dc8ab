"""Breakdown at the curved edge of a planar junction, against Baliga's formula for cylinders."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.ionisation import IonisationSet, Piece
from minga.models.photodiode.structure.materials_file import shipped_materials
from minga.models.photodiode.structure.mesh import graded
from minga.models.photodiode.structure.regions import Polygon
from minga.models.photodiode.structure.stack import Contact, Layer, Stack

from .photodiodes import solved

FULOP: Final = (Piece(1.8e-35, 1.0, power=7.0),)
"""Fulop's coefficient of both carriers in silicon, 1.8e-35 E^7, on which the formula is based."""
SILICON: Final = replace(
    shipped_materials()["Si"], ionisation=IonisationSet("fulop", ("Si",), 0.0, math.inf, FULOP, FULOP, "")
)
DONORS: Final = 1e16
ACCEPTORS: Final = 1e18
WIDTH: Final = 2.67e10 * DONORS ** (-7 / 8)
"""Depletion width of the plane junction at breakdown, cm."""
BUILT_IN: Final = 0.02585 * math.log(DONORS * ACCEPTORS / 1e20)
ENDS: Final = Contact("anode", "top"), Contact("cathode", "bottom")


def edge(ratio: float, first: float, growth: float) -> Device:
    """A p region whose edge is a quarter of a cylinder; `ratio`: its radius over the depletion width."""
    radius, flat, room = ratio * WIDTH, 0.3 * WIDTH, 1.25 * WIDTH
    angles = np.linspace(0.0, 0.5 * math.pi, 25)
    arc = ((float(radius * np.cos(a)), float(flat + radius * np.sin(a))) for a in angles)
    layers = (Layer("body", SILICON, radius + room, (DONORS, DONORS)),)
    meshes = [
        graded([0.0, start, start + room], first, growth, 3e-5, [False] * 3, [False, True, False])
        for start in (radius, flat + radius)
    ]
    contacts = (Contact("anode", "top", (0.0, flat)), ENDS[1])
    return device_from(Stack(layers, contacts, (Polygon("p", ((0.0, 0.0), *arc), -ACCEPTORS),)), *meshes)


def breakdown(device: Device) -> float:
    """The voltage across the junction at breakdown."""
    found: dict[str, Any] = solved(device, Problem((-80.0,), ionisation=True))[-1]
    return BUILT_IN - float(found["breakdown"])


@pytest.mark.slow
def test_a_curved_edge_breaks_down_as_early_as_baliga_says() -> None:
    """To 5 %, as his formula agrees with the ionisation integral of a cylinder up to half the depletion width."""
    layers = (
        Layer("p", SILICON, 0.3 * WIDTH, (-ACCEPTORS, -ACCEPTORS)),
        Layer("n", SILICON, 1.25 * WIDTH, (DONORS, DONORS)),
    )
    mesh = graded([0.0, 0.3 * WIDTH, 1.55 * WIDTH], 2e-6, 1.15, 3e-5, [False] * 3, [False, True, False])
    plane = breakdown(device_from(Stack(layers, ENDS), mesh))
    assert plane == pytest.approx(5.34e13 * DONORS**-0.75, rel=0.02)
    for ratio in (0.2, 0.5):
        h = ratio ** (6 / 7)
        expected = 0.5 * (ratio**2 + 2.0 * h) * math.log(1.0 + 2.0 * ratio ** (-8 / 7)) - h
        assert breakdown(edge(ratio, 2e-6, 1.15)) / plane == pytest.approx(expected, rel=0.05)


@pytest.mark.slow
def test_multiplication_counts_what_passes_and_not_what_flows_in_a_circle() -> None:
    """Holes enter the p region at the surface and spread downwards before they turn to the contact."""
    device = edge(0.3, 3e-6, 1.3)
    seen, alone = (solved(device, Problem((-20.0, -28.0), ionisation=on))[-1] for on in (True, False))
    assert seen["M"] == pytest.approx(seen["J"] / alone["J"], rel=0.03)
    assert seen["M"] > 3.0
