"""Capacitance and field of junctions that are cylinders, against Poisson's equation along the radius.

A core of p silicon in n silicon: on the axis of a round device, and as a quarter of a circle in the corner of a plane,
whose mirror images complete it. Where the contacts do not disturb it, the potential depends on the radius alone.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import solve_banded
from scipy.optimize import brentq

from minga.case.load import read_settings
from minga.models.photodiode.case import device_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.constants import CHARGE, VACUUM
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.materials_file import shipped_materials
from minga.models.photodiode.structure.mesh import uniform
from minga.models.photodiode.structure.regions import Polygon
from minga.models.photodiode.structure.stack import Contact, Layer, Stack

from .evidence import Evidence
from .photodiodes import EXAMPLES, solved

Floats = NDArray[np.float64]
SECTION = "photodiode: junctions that are cylinders"
RADIUS: Final = 0.5e-4
OUTSIDE: Final = 2e-4
LENGTH: Final = 1e-4
ACCEPTORS, DONORS = 1e17, 1e16
EPSILON: Final = 11.7 * VACUUM
INTRINSIC: Final = 1e10
THERMAL: Final = 0.0258519998
BIASES = (0.0, -1.0, -5.0)


def poisson(volts: float, count: int = 8001) -> tuple[Floats, Floats, float]:
    """Faces (cm), field at them (V/cm) and charge of the holes (C/cm), by finite volumes around the axis and scipy.

    Quasi-Fermi levels are those of the contacts, everywhere: no current flows.
    """
    edges = np.linspace(0.0, OUTSIDE, count)
    middles, h = 0.5 * (edges[1:] + edges[:-1]), edges[1]
    area = math.pi * np.diff(edges**2)
    inside = np.clip((RADIUS**2 - edges[:-1] ** 2) / np.diff(edges**2), 0.0, 1.0)
    doping = -ACCEPTORS * inside + DONORS * (1.0 - inside)
    bias = volts / THERMAL
    phi = np.arcsinh(doping / (2.0 * INTRINSIC)) + np.where(middles < RADIUS, bias, 0.0)
    coupling = 2.0 * math.pi * edges[1:-1] * EPSILON * THERMAL / (CHARGE * h)
    for _ in range(200):
        n, p = INTRINSIC * np.exp(phi), INTRINSIC * np.exp(bias - phi)
        flow = np.concatenate(([0.0], coupling * np.diff(phi), [0.0]))
        gap = np.diff(flow) + area * (p - n + doping)
        bands = np.zeros((3, phi.size))
        bands[0, 1:], bands[2, :-1] = coupling, coupling
        bands[1] = -area * (n + p) - np.append(coupling, 0.0) - np.append(0.0, coupling)
        change = solve_banded((1, 1), bands, -gap)
        phi += np.clip(change, -1.0, 1.0)
        if np.abs(change).max() < 1e-11:
            break
    else:
        raise AssertionError("Poisson's equation was not solved")
    field = np.concatenate(([0.0], -THERMAL * np.diff(phi) / h, [0.0]))
    return edges, field, CHARGE * float((area * p).sum())


@functools.cache
def capacitance(volts: float) -> float:
    """Capacitance per length, F/cm: the slope of the charge of the holes, which only the anode supplies."""
    step = 1e-3
    more, less = (poisson(volts + sign * step)[2] for sign in (1, -1))
    return (more - less) / (2.0 * step)


def depleted(volts: float) -> tuple[float, float]:
    """Inner and outer radius of the depletion layer with sharp ends, without what carriers take of the voltage."""
    across = THERMAL * (math.log(ACCEPTORS * DONORS / INTRINSIC**2) - 2.0) - volts

    def drop(inner: float) -> float:
        outer = math.sqrt(RADIUS**2 + (RADIUS**2 - inner**2) * ACCEPTORS / DONORS)
        half = CHARGE / (2.0 * EPSILON)
        p = half * ACCEPTORS * (0.5 * (RADIUS**2 - inner**2) - inner**2 * math.log(RADIUS / inner))
        n = half * DONORS * (outer**2 * math.log(outer / RADIUS) - 0.5 * (outer**2 - RADIUS**2))
        return p + n - across

    inner = float(brentq(drop, 0.6 * RADIUS, RADIUS * (1.0 - 1e-9), xtol=1e-18))
    return inner, math.sqrt(RADIUS**2 + (RADIUS**2 - inner**2) * ACCEPTORS / DONORS)


def coaxial(first: float) -> Device:
    """The core on the axis; contacts touch the core at the top and the shell at the bottom."""
    table: dict[str, Any] = {
        "symmetry": "cylinder", "width": 2.0, "bias": [0.0], "recombination": ["srh"],
        "contacts": {"anode": {"at": "top", "y": [0.0, 0.2]}, "cathode": {"at": "bottom", "y": [1.8, 2.0]}},
        "layers": [{"name": "body", "material": "Si", "thickness": 1.0, "n": DONORS}],
        "regions": [{"name": "core", "x": [0.0, 1.0], "y": [0.0, 0.5], "doping": -ACCEPTORS}],
        "mesh": {"nodes": 5, "across": {"first": first, "growth": 1.1, "cap": 4.0 * first}},
    }  # fmt: skip
    return device_of(read_settings("photodiode", table), EXAMPLES)


def quarter(nodes: int) -> Device:
    """The core in the corner of a square, whose lower side is the cathode."""
    angles = np.linspace(0.0, 0.5 * math.pi, 91)
    reach = RADIUS * math.sqrt(angles[1] / math.sin(angles[1]))  # for the area of the circle
    arc = ((float(reach * np.cos(a)), float(reach * np.sin(a))) for a in angles)
    layers = (Layer("body", shipped_materials()["Si"], OUTSIDE, (DONORS, DONORS)),)
    contacts = Contact("anode", "top", (0.0, 0.2e-4)), Contact("cathode", "bottom")
    mesh = uniform(OUTSIDE, nodes)
    core = Polygon("core", ((0.0, 0.0), *arc), -ACCEPTORS)
    return device_from(Stack(layers, contacts, (core,)), mesh, replace(mesh))


def admittances(device: Device) -> list[dict[str, Any]]:
    return solved(device, Problem(BIASES, ionisation=False, mode="cv", frequencies=(1e5,)))


def area(device: Device) -> float:
    """Area to which currents and capacitances refer; of a plane, the width."""
    return float(device.areas[0][1].sum())


@pytest.mark.parametrize("volts", BIASES)
def test_the_exact_solution_is_that_of_sharp_depletion_but_for_its_soft_ends(volts: float) -> None:
    inner, outer = depleted(volts)
    assert capacitance(volts) == pytest.approx(2.0 * math.pi * EPSILON / math.log(outer / inner), rel=3e-4)
    strongest = CHARGE * ACCEPTORS * (RADIUS**2 - inner**2) / (2.0 * EPSILON * RADIUS)
    assert np.abs(poisson(volts)[1]).max() == pytest.approx(strongest, rel=3e-3)


def worst(device: Device, row: dict[str, Any]) -> float:
    """Largest error of the components of the field where the shell is depleted, relative to the field there."""
    edges, field, _ = poisson(row["V"])
    errors = []
    for axis, name in enumerate(device.grid.axes):
        places = [np.array(nodes) for nodes in device.nodes]
        places[axis] = 0.5 * (places[axis][1:] + places[axis][:-1])
        x, y = np.meshgrid(*places, indexing="ij")
        radius = y if name == "r" else np.hypot(x, y)
        if axis == 0 and "r" in device.grid.axes:
            share = np.zeros_like(radius)
        else:
            share = (x, y)[axis] / radius
        exact = np.interp(radius, edges, field)
        found = np.take(row["fields"][f"field_{name}"], range(1, places[axis].size + 1), axis)
        seen = (radius > 1.1 * RADIUS) & (radius < 1.4 * RADIUS)
        errors.append(np.abs((found - share * exact)[seen] / exact[seen]).max())
    return float(max(errors))


@pytest.mark.slow
def test_a_coaxial_junction(evidence: Evidence) -> None:
    device = coaxial(0.005)
    for row in admittances(device):
        what, found = f"coaxial, {row['V']:g} V", row["C"] * area(device) / LENGTH
        evidence.relative(SECTION, f"{what}: capacitance, F/cm", found, capacitance(row["V"]), 2e-4)
        evidence.at_most(SECTION, f"{what}: error of the field", worst(device, row), 2e-3)


@pytest.mark.slow
def test_the_field_of_a_coaxial_junction_converges() -> None:
    coarse, fine = ([worst(device, row) for row in admittances(device)] for device in (coaxial(0.02), coaxial(0.005)))
    assert all(4.0 * after < before for before, after in zip(coarse, fine, strict=True))


@pytest.mark.slow
def test_a_quarter_of_a_cylinder(evidence: Evidence) -> None:
    coarse, device = quarter(41), quarter(81)
    for before, row in zip(admittances(coarse), admittances(device), strict=True):
        what, found = f"quarter of a cylinder, {row['V']:g} V", 4.0 * row["C"] * area(device)
        evidence.relative(SECTION, f"{what}: capacitance, F/cm", found, capacitance(row["V"]), 2e-3)
        error = worst(device, row)
        evidence.at_most(SECTION, f"{what}: error of the field", error, 5e-3)
        assert 2.0 * error < worst(coarse, before)
