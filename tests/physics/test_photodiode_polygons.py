"""Polygons of another material with two axes, against rectangles, layers and exact integrals."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from minga.errors import CaseError
from minga.models.photodiode.boundary_notes import staircase_notes
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.materials_file import shipped_materials
from minga.models.photodiode.structure.mesh import placed, uniform
from minga.models.photodiode.structure.regions import Polygon, Region, nodes_inside

from .evidence import Evidence
from .photodiodes import solved
from .test_photodiode_boxes import BARE, LAYERED, made, region

SECTION = "photodiode: polygons of another material"
MESH, ACROSS = uniform(4.0, 41), placed([0.0, 1.0, 1.5, 3.0, 3.2, 7.0, 10.0])
GRADED = {"graded": {"first": "5 nm", "growth": 1.5}, "across": {"first": "50 nm", "growth": 1.6, "cap": "1 um"}}


def polygon(*corners: tuple[float, float], **changes: Any) -> dict[str, Any]:
    return region((0.0, 1.0), (0.0, 1.0), **{"x": None, "y": None, "polygon": [list(c) for c in corners]} | changes)


def built(regions: list[dict[str, Any]], changes: dict[str, Any]) -> Device:
    given = dict(changes)
    if "across" in given.get("mesh", {}):
        given["columns"] = None
    return made(BARE, regions=regions, **given)


def differing(one: Device, other: Device) -> set[str]:
    """The fields in which two devices do not have the same bits."""

    def parts(value: Any) -> list[Any]:
        if isinstance(value, np.ndarray):
            return [value]
        if isinstance(value, tuple):
            return [part for item in value for part in parts(item)]
        inner = getattr(type(value), "__dataclass_fields__", {})
        return [part for name in inner for part in parts(getattr(value, name))] or [value]

    found = set()
    for item in fields(Device):
        a, b = (parts(getattr(device, item.name)) for device in (one, other))
        same = len(a) == len(b) and all(
            np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y for x, y in zip(a, b)
        )
        if not same and item.name != "grid":
            found.add(item.name)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_nodes_in_a_polygon_are_those_that_it_winds_about(seed: int) -> None:
    """The sum of the angles under which the edges are seen is 2 pi inside and 0 outside."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.random(int(rng.integers(3, 12)))) * 2 * np.pi
    reach = rng.uniform(0.2, 1.0, angles.size)
    corners = np.stack((2 + 2 * reach * np.cos(angles), 5 + 5 * reach * np.sin(angles)), axis=1)
    found = nodes_inside(Polygon("star", tuple(map(tuple, corners.tolist())), 1e17), MESH, ACROSS)
    places = np.stack(np.meshgrid(MESH.nodes, ACROSS.nodes, indexing="ij"), axis=-1)[..., None, :]
    seen = np.arctan2(*np.moveaxis(corners - places, -1, 0))
    turns = np.diff(np.concatenate((seen, seen[..., :1]), axis=-1), axis=-1)
    winding = np.round(((turns + np.pi) % (2 * np.pi) - np.pi).sum(axis=-1) / (2 * np.pi))
    assert found.any()
    np.testing.assert_array_equal(found, winding != 0)


def test_a_node_on_an_edge_belongs_to_what_follows() -> None:
    inside = nodes_inside(Region("box", (1.0, 2.0), (1.5, 7.0), 1e17), MESH, ACROSS)
    expected = np.outer((MESH.nodes >= 0.999) & (MESH.nodes < 1.999), [False, False, True, True, True, False, False])
    np.testing.assert_array_equal(inside, expected)
    assert nodes_inside(Region("box", (0.0, 4.0), (0.0, 10.0), 1e17), MESH, ACROSS).all()


@pytest.mark.parametrize("mesh", [{"nodes": 61}, GRADED])
def test_a_rectangle_as_a_polygon_has_the_same_bits(mesh: dict[str, Any]) -> None:
    changes = {"mesh": mesh, "columns": 9}
    corners = [(0.7, 1.2), (1.3, 1.2), (1.3, 2.9), (0.7, 2.9)]
    box = built([region((0.7, 1.3), (1.2, 2.9))], changes)
    assert differing(box, built([region((0.7, 1.3), (1.2, 2.8))], changes)) > {"permittivity", "nie"}
    for order in (corners, corners[2:] + corners[:2], corners[::-1]):
        assert differing(box, built([polygon(*order)], changes)) == set()
    # One more corner, on an edge: the shares of the volumes, and with them the doping, follow from other sums.
    more = built([polygon((1.0, 1.2), *corners[1:], corners[0])], changes)
    assert differing(box, more) <= {"doping", "mobility_n", "mobility_p"}
    np.testing.assert_allclose(more.doping, box.doping, rtol=1e-12)


def test_an_angle_is_two_rectangles() -> None:
    shape = [(0.7, 0.0), (1.3, 0.0), (1.3, 2.0), (1.0, 2.0), (1.0, 4.0), (0.7, 4.0)]
    two = [region((0.7, 1.3), (0.0, 2.0)), region((0.7, 1.0), (2.0, 4.0), name="arm")]
    for changes in ({"columns": 9}, {"mesh": GRADED}):
        assert differing(built([polygon(*shape)], changes), built(two, changes)) <= {"doping"}


@pytest.mark.parametrize("across", [False, True])
def test_a_polygon_across_the_device_is_a_layer(across: bool) -> None:
    """Graded meshes have the boundaries of regions, as those of layers, half-way between two nodes."""
    mesh = GRADED if across else {"graded": GRADED["graded"]}
    changes: dict[str, Any] = {"mesh": mesh, "columns": None if across else 4}
    shape = [(0.7, 0.0), (1.3, 0.0), (1.3, 4.0), (0.7, 4.0), (0.7, 2.0)]
    found, layered = built([polygon(*shape)], changes), made(LAYERED, **changes)
    np.testing.assert_allclose(found.nodes[0], layered.nodes[0], rtol=1e-12)
    for name in ("permittivity", "theta_n", "nie", "mobility_p", "generation"):
        np.testing.assert_allclose(getattr(found, name), getattr(layered, name), rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(found.doping, layered.doping, rtol=1e-9)


def absorbed(nodes: int, columns: int) -> float:
    """The pairs in a triangle of absorber over those that light makes in it, of 1e17 photons per cm2 and second."""
    light = {"wavelength": 1550.0, "flux": 1e17, "side": "cathode"}
    shape = [(0.7, 0.4), (1.3, 0.4), (1.3, 3.6)]
    device = built([polygon(*shape)], {"mesh": {"nodes": nodes}, "columns": columns, "light": light})
    depth = 0.6e-4 * float(device.absorption.max())
    expected = 1e17 * 3.2e-4 * (1.0 + math.expm1(-depth) / depth)
    return float((device.generation * device.volumes).sum()) / expected


@pytest.mark.slow
def test_the_pairs_in_a_staircase_converge(evidence: Evidence) -> None:
    """The edge of the staircase is less than a distance between nodes away from the oblique one."""
    for nodes, columns in ((41, 17), (161, 65), (641, 257)):
        error = absorbed(nodes, columns) - 1.0
        spacing = 2.0 / (nodes - 1)
        evidence.at_most(SECTION, f"triangle, {nodes} x {columns} nodes: error of the pairs", abs(error), spacing / 0.4)


@pytest.mark.slow
def test_currents_across_an_oblique_boundary_converge(evidence: Evidence) -> None:
    """Differences between meshes fall with the distances."""
    shape = [(0.7, 0.0), (1.3, 0.0), (1.3, 4.0), (1.0, 4.0)]
    found: list[float] = []
    for nodes, columns in ((61, 9), (121, 17), (241, 33)):
        device = built([polygon(*shape)], {"mesh": {"nodes": nodes}, "columns": columns})
        found.append(solved(device, Problem(bias=(-3.0,), curves=("lit",)))[0]["J_lit"])
    ratio = (found[1] - found[0]) / (found[2] - found[1])
    evidence.between(SECTION, "oblique: ratio of differences of J_lit between meshes", ratio, 1.5, 3.0)


@pytest.mark.slow
def test_an_oblique_boundary_conserves_currents(evidence: Evidence) -> None:
    """What enters leaves, all pairs are collected, and a mirrored device has the same currents."""
    shape = [(0.71, 0.0), (1.31, 0.0), (1.31, 4.0), (1.013, 4.0)]
    problem = Problem(bias=(-5.0,), curves=("dark", "lit"))
    found = {}
    for what, corners in (("plain", shape), ("mirrored", [(x, 4.0 - y) for x, y in shape])):
        device = built([polygon(*corners)], {"mesh": {"nodes": 61}, "columns": 9})
        row = found[what] = solved(device, problem)[0]
        evidence.at_most(SECTION, f"oblique, {what}: uniformity", row["uniformity"], 1e-12)
        area = float(device.areas[0][1].sum())
        pairs = CHARGE * float((device.generation * device.volumes).sum()) / area
        evidence.relative(SECTION, f"oblique, {what}: photocurrent", row["J"] - row["J_lit"], pairs, 5e-3)
    for name in ("J", "J_lit"):
        evidence.relative(SECTION, f"oblique, mirrored: {name}", found["mirrored"][name], found["plain"][name], 1e-9)


@pytest.mark.slow
def test_currents_of_a_polygon_across_the_device(evidence: Evidence) -> None:
    changes: dict[str, Any] = {"mesh": {"graded": GRADED["graded"]}, "columns": 4}
    shape = [(0.7, 0.0), (1.3, 0.0), (1.3, 4.0), (0.7, 4.0), (0.7, 2.0)]
    problem = Problem(bias=(0.4, -5.0), curves=("dark", "lit"), ionisation=True)
    one, other = (solved(device, problem) for device in (made(LAYERED, **changes), built([polygon(*shape)], changes)))
    for known, row in zip(one, other, strict=True):
        for name in ("J", "J_lit"):
            evidence.relative(SECTION, f"across, {name} at {row['V']:g} V", row[name], known[name], 1e-9)


@pytest.mark.slow
def test_ranks_agree() -> None:
    device = built([polygon((0.7, 0.0), (1.3, 0.0), (1.3, 4.0), (1.0, 4.0))], {"mesh": {"nodes": 31}, "columns": 5})
    problem = Problem(bias=(-2.0,), curves=("lit",), ionisation=True)
    assert solved(device, problem)[0]["J_lit"] == solved(device, problem, ranks=3)[0]["J_lit"]


def test_oblique_edges_are_told() -> None:
    device = built([], {"mesh": {"nodes": 41}, "columns": 5, "light": None})
    material, shape = shipped_materials()["Ge"], ((0.0, 0.0), (1e-4, 0.0), (1e-4, 4e-4), (0.5e-4, 4e-4))
    ((label, words),) = staircase_notes(device, [Polygon("wedge", shape, 1e17, material)])
    assert label == "region wedge"
    assert words.startswith("oblique edges are staircases of nodes up to 50 nm along x and 800 nm across apart")
    straight = Region("box", (0.0, 1e-4), (0.0, 4e-4), 1e17, material=material)
    assert not list(staircase_notes(device, [straight, Polygon("doping alone", shape, 1e17)]))


@pytest.mark.parametrize(
    ("changes", "entry", "words"),
    [
        ({}, {"polygon": [[0.5, 0.0], [1.5, 2.0], [1.5, 0.0], [0.5, 2.0]]}, "the edge after corner 1 crosses the edge"),
        ({}, {"polygon": [[0.5, 0.0], [1.5, 0.0], [1.5, 9.0]]}, "corner 3 is at y = 9 um, outside the device"),
        ({}, {"polygon": [[0.51, 0.1], [0.52, 0.1], [0.52, 0.2]]}, "no node lies in region 'island'"),
        ({}, {"straggle": 0.1}, "both polygon and straggle"),
        ({"gap_narrowing": True}, {}, "region 'island' has a material of its own, with gap_narrowing"),
        ({"mode": "qe", "qe": {"wavelengths": [1550.0]}}, {}, "a material of its own in mode 'qe'"),
        ({}, {"doping": -1e22}, "region 'island': 1e+22 acceptors per cm3 exceed the solubility in InGaAs"),
    ],
)
def test_refusals(changes: dict[str, Any], entry: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        made(BARE, regions=[polygon((0.5, 0.0), (1.5, 0.0), (1.5, 2.0), **entry)], **changes)
