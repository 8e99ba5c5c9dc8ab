"""Surfaces that recombine carriers: the collection from a front layer, planes, and the linear solvers."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.device import Device

sys.path.insert(0, str(Path(__file__).parents[2]))

from physics.photodiodes import solved

PHOTONS = 1e10  # 1/cm2s: few carriers beside 1e17
MOBILITY, LIFETIME, ABSORPTION, DEPTH = 1000.0, 1e-8, 1e4, 1e-4  # cm2/Vs, s, 1/cm, cm
OHMIC = {"anode": "ohmic", "cathode": "ohmic"}
DIODE = [{"material": "Si", "thickness": 0.5, "p": 1e18}, {"material": "Si", "thickness": 2.0, "n": 1e16}]
PLANE = {"x": 0.5, "velocity_n": 1e4, "velocity_p": 2e4}


def made(**table: Any) -> Device:
    return device_of(read_settings("photodiode", {"contacts": OHMIC, "layers": DIODE} | table), Path())


def front(velocity: float, nodes: int, kind: str) -> Device:
    """A layer of one kind, lit from a contact where its minority carriers recombine at a velocity."""
    layer = {
        "material": "Si", "thickness": 1.0, kind: 1e17, "absorption": ABSORPTION,
        "tau_n": LIFETIME, "tau_p": LIFETIME, "mobility_n": MOBILITY, "mobility_p": MOBILITY,
    }  # fmt: skip
    return made(
        layers=[layer],
        contacts={"anode": {"recombination": velocity}, "cathode": "ohmic"},
        recombination=["srh"],
        mesh={"nodes": nodes},
        light={"wavelength": 600.0, "flux": PHOTONS, "side": "anode"},
    )


def collected(velocity: float, nodes: int, kind: str = "p", scheme: Any = "newton") -> float:
    """Minority carriers that arrive at the far contact, for each photon."""
    device = front(velocity, nodes, kind)
    problem = Problem((0.0,), curves=("lit",), ionisation=False, scheme=scheme)
    density = solved(device, problem)[0]["fields"]["electrons_lit" if kind == "p" else "holes_lit"]
    spacing, diffusion = device.nodes[0][1], MOBILITY * device.thermal_voltage
    made_there = device.generation[-1] * device.volumes[-1]
    return float((diffusion * (density[-2] - density[-1]) / spacing + made_there) / PHOTONS)


def exact(velocity: float) -> float:
    """Diffusion with recombination, generation by light, and a surface."""
    diffusion = MOBILITY * 0.025852
    length = math.sqrt(diffusion * LIFETIME)
    s, a, d = velocity * length / diffusion, ABSORPTION * length, DEPTH / length
    left = math.exp(-ABSORPTION * DEPTH)
    first = (s + a - left * (s * math.cosh(d) + math.sinh(d))) / (s * math.sinh(d) + math.cosh(d))
    return a / (a * a - 1.0) * (first - a * left)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("velocity", "known", "kind"),
    [(0.0, 0.6231412, "p"), (1e3, 0.6217721, "n"), (1e5, 0.5236883, "p"), (1e7, 0.2724583, "n")],
)
def test_front_layer(velocity: float, known: float, kind: str) -> None:
    """Known efficiencies, with errors that fall by 4 where the spacing is halved."""
    assert exact(velocity) == pytest.approx(known, abs=5e-8)
    errors = [collected(velocity, nodes, kind) - known for nodes in (21, 41, 81)]
    assert abs(errors[-1]) < 1.3e-5
    for coarse, fine in pairwise(errors):
        assert coarse / fine == pytest.approx(4.0, rel=2e-2)
    assert collected(velocity, 41, kind, "gummel") == pytest.approx(collected(velocity, 41, kind), rel=1e-8)


@pytest.mark.slow
def test_infinite_velocity_is_an_ohmic_contact() -> None:
    problem = Problem((0.5, -2.0), ionisation=False)
    fast, ohmic = (
        [row["J"] for row in solved(made(contacts={"anode": anode, "cathode": "ohmic"}), problem)]
        for anode in ({"recombination": 1e12}, "ohmic")
    )
    assert fast == pytest.approx(ohmic, rel=1e-5)
    slow = solved(made(contacts={"anode": {"recombination": 1e3}, "cathode": {"recombination": 0.0}}), problem)
    assert 0.0 < slow[0]["J"] < 0.1 * ohmic[0]


@pytest.mark.slow
def test_plane_in_a_diode() -> None:
    """Its part is that of the densities, all parts make the current, and schemes, axes, solvers and ranks agree."""
    contacts = {"anode": {"recombination": 1e3}, "cathode": {"recombination": 1e2}}
    flat = made(contacts=contacts, surfaces=[PLANE])
    wide = made(contacts=contacts, surfaces=[PLANE], width=3.0, columns=6)
    volts = (0.5, -2.0)
    rows = solved(flat, Problem(volts, ionisation=False, current_parts=True))
    for row in rows:
        parts = [value for name, value in row.items() if name.startswith("J_")]
        assert sum(parts) == pytest.approx(row["J"], rel=1e-9)
        node = int(np.argmin(np.abs(flat.nodes[0] - 0.5e-4)))
        n, p, nie = row["fields"]["electrons"][node], row["fields"]["holes"][node], flat.nie[node]
        plane = CHARGE * (n * p - nie * nie) / ((n + nie) / 2e4 + (p + nie) / 1e4)
        assert row["J_surface"] == pytest.approx(plane, rel=1e-6)
    found = [row["J"] for row in rows]
    options: list[tuple[Device, dict[str, Any], int]] = [
        (flat, {"scheme": "gummel"}, 1),
        (wide, {"linear": "sparse"}, 1),
        (wide, {"linear": "krylov"}, 1),
        (wide, {"linear": "krylov"}, 2),
    ]
    others = [
        [row["J"] for row in solved(device, Problem(volts, ionisation=False, **option), ranks=ranks)]
        for device, option, ranks in options
    ]
    for other in others:
        assert other == pytest.approx(found, rel=1e-8)
    assert others[2] == others[3]


def test_side_walls_have_their_own_area() -> None:
    device = made(surfaces=[{"y": 0.0, "x": [0.5, 2.5], "velocity_n": 1e4, "velocity_p": 1e4}], width=3.0, columns=6)
    assert device.surface is not None
    area = device.surface.area
    assert area[:, 0].sum() == pytest.approx(2e-4 - device.volumes[-1, 0] / device.areas[0][1, 0], rel=1e-3)
    assert not area[:, 1:].any()


PARTIAL = {
    "layers": [{"material": "Si", "thickness": 1.0, "n": 1e16}],
    "width": 6.0,
    "columns": 6,
    "mesh": {"graded": {"first": "2 nm", "growth": 1.4, "cap": "80 nm"}},
    "contacts": {
        "anode": {"kind": "schottky", "barrier": 0.7, "at": "top", "y": [0.0, 2.0], "image_force": True},
        "cathode": {"at": "top", "y": [4.0, 6.0], "recombination": 1e4},
    },
}


@pytest.mark.slow
def test_contacts_on_one_side() -> None:
    """A lowered barrier and a slow contact beside a surface: Newton's method and Gummel's iteration agree."""
    surfaces = [{"x": 0.0, "y": [2.0, 4.0], "velocity_n": 1e4, "velocity_p": 1e4}]
    device = made(surfaces=surfaces, **PARTIAL)
    newton, gummel = (
        solved(device, Problem((0.3, -2.0), ionisation=False, current_parts=True, **choice))
        for choice in ({"linear": "sparse"}, {"scheme": "gummel"})
    )
    for one, other in zip(newton, gummel, strict=True):
        assert other["J"] == pytest.approx(one["J"], rel=1e-6)
        assert sum(v for k, v in one.items() if k.startswith("J_")) == pytest.approx(one["J"], rel=1e-9)
    with pytest.raises(CaseError, match="krylov"):
        photodiode(device, Problem((0.3,), linear="krylov"))


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"surfaces": [PLANE | {"x": 9.0}]}, "outside the device"),
        ({"surfaces": [PLANE | {"y": [0.0, 1.0]}]}, "one axis"),
        ({"surfaces": [PLANE, PLANE]}, "meets another one"),
        ({"surfaces": [PLANE | {"x": 0.0}]}, "covers no node"),
        ({"surfaces": [{"velocity_n": 1.0, "velocity_p": 1.0}]}, "no position"),
        ({"surfaces": [PLANE | {"velocity_n": -1.0}]}, "velocity_n"),
        (
            {"contacts": OHMIC | {"anode": {"kind": "schottky", "barrier": 0.6, "recombination": 1e3}}},
            "velocity of recombination",
        ),
        (
            {"contacts": OHMIC | {"anode": {"recombination": 1e3}}, "layers": [{"material": "Si", "thickness": 1.0}]},
            "not doped",
        ),
        ({"surfaces": [PLANE], "scheme": "pointwise"}, "recombination at surfaces"),
    ],
)
def test_refusals(table: dict[str, Any], word: str) -> None:
    with pytest.raises(CaseError, match=word) as caught:
        photodiode(made(**table), Problem((0.0,), scheme=table.get("scheme", "newton")))
    assert caught.value.remedy
