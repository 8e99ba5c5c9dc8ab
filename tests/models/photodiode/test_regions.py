"""Regions: exact shares of polygons and of smooth edges in the volumes of nodes, also in rings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.structure.mesh import Mesh, graded, placed, spaced
from minga.models.photodiode.structure.regions import Polygon, Region

UM = 1e-4
MESH = graded([0.0, 1 * UM, 4 * UM], 4e-6, 1.5, 5e-5, [False] * 3, [False, True, True])
ACROSS = placed([0.0, 1 * UM, 1.5 * UM, 3 * UM, 7 * UM, 10 * UM])
ROUND = replace(ACROSS, radial=True)

Point = tuple[float, float]


def clipped(corners: Sequence[Point], axis: int, limit: float, sign: int) -> list[Point]:
    """Sutherland and Hodgman: what is left of a polygon on one side of a line along an axis."""
    found: list[Point] = []
    for a, b in zip(corners, (*corners[1:], *corners[:1])):
        inside = sign * (limit - a[axis]) >= 0, sign * (limit - b[axis]) >= 0
        if inside[0]:
            found.append(a)
        if inside[0] != inside[1]:
            t = (limit - a[axis]) / (b[axis] - a[axis])
            found.append((a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])))
    return found


def content(corners: Sequence[Point], radial: bool) -> float:
    """Area of a polygon, or the volume that it sweeps about the axis y = 0, by Pappus's theorem."""
    pairs = list(zip(corners, (*corners[1:], *corners[:1])))
    crosses = [a[0] * b[1] - b[0] * a[1] for a, b in pairs]
    if not radial:
        return abs(0.5 * math.fsum(crosses))
    return abs(math.fsum((a[1] + b[1]) * c for (a, b), c in zip(pairs, crosses)) * math.pi / 3.0)


def expected(corners: Sequence[Point], mesh: Mesh, across: Mesh) -> np.ndarray:
    found = np.zeros((mesh.nodes.size, across.nodes.size))
    for i in range(found.shape[0]):
        row = clipped(clipped(corners, 0, mesh.faces[i + 1], 1), 0, mesh.faces[i], -1)
        for j in range(found.shape[1]):
            cell = clipped(clipped(row, 1, across.faces[j + 1], 1), 1, across.faces[j], -1) if row else []
            found[i, j] = content(cell, across.radial) if len(cell) > 2 else 0.0
    return found / np.outer(mesh.volumes, across.sections)


def star(seed: int) -> tuple[Point, ...]:
    """A polygon without crossings, convex or not."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.random(int(rng.integers(5, 12)))) * 2 * np.pi
    reach = rng.uniform(0.2, 1.0, angles.size)
    return tuple(zip((2 + 2 * reach * np.cos(angles)) * UM, (5 + 5 * reach * np.sin(angles)) * UM))


@pytest.mark.parametrize("across", [ACROSS, ROUND, replace(spaced([9], [10 * UM / 9]), radial=True)])
def test_shares_of_polygons_are_exact(across: Mesh) -> None:
    shapes = [star(seed) for seed in range(12)]
    shapes.append(((0.0, 0.0), (2 * UM, 0.0), (1 * UM, 1 * UM), (2 * UM, 2 * UM), (0.0, 2 * UM)))  # edges on faces
    for corners in shapes:
        found = Polygon("star", corners, 1e17).inside(MESH, across)
        assert found == pytest.approx(expected(corners, MESH, across), abs=1e-9)
        turned = Polygon("star", corners[::-1], 1e17).inside(MESH, across)
        assert found == pytest.approx(turned, abs=1e-12)
        whole = (found * np.outer(MESH.volumes, across.sections)).sum()
        assert whole == pytest.approx(content(corners, across.radial), rel=1e-9)


@pytest.mark.parametrize("across", [ACROSS, ROUND])
def test_a_polygon_with_right_angles_is_a_rectangle(across: Mesh) -> None:
    (a, b), (c, d) = x, y = (0.0, 1.1 * UM), (1.2 * UM, 6 * UM)
    polygon = Polygon("p", ((a, c), (b, c), (b, d), (a, d)), -1e18)
    assert polygon.x == x
    assert polygon.inside(MESH, across) == pytest.approx(Region("r", x, y, -1e18).inside(MESH, across), abs=1e-12)


@pytest.mark.parametrize("across", [ACROSS, ROUND])
@pytest.mark.parametrize("y", [(2 * UM, 6 * UM), (0.0, 4 * UM), (3 * UM, 12 * UM)])
def test_smooth_edges_have_their_means_over_cells(across: Mesh, y: tuple[float, float]) -> None:
    straggle = (0.3 * UM, 0.8 * UM)
    found = Region("diffused", (0.0, 1 * UM), y, -1e18, straggle).inside(MESH, across)
    wanted = []
    for mesh, span, width in ((MESH, (0.0, 1 * UM), straggle[0]), (across, y, straggle[1])):
        means = []
        for low, high in zip(mesh.faces, mesh.faces[1:]):
            s, share = np.linspace(low, high, 2001), np.ones(2001)
            for edge, sign, there in ((span[0], -1, span[0] > 0.0), (span[1], 1, span[1] < mesh.faces[-1])):
                tails = [0.5 * math.erfc(sign * (at - edge) / (math.sqrt(2) * width)) for at in s]
                share = share + (np.array(tails) - 1.0) * there
            weight = s if mesh.radial else np.ones(s.size)
            means.append(np.trapezoid(share * weight, s) / np.trapezoid(weight, s))
        wanted.append(np.array(means))
    assert found == pytest.approx(np.outer(*wanted), abs=2e-6)
    assert ((found == 0.0) | (found > 1e-10)).all()


def test_sharp_edges_are_the_limit_of_smooth_ones() -> None:
    for across in (ACROSS, ROUND):
        sharp, smooth = (
            Region("r", (0.2 * UM, 1.1 * UM), (1.2 * UM, 6 * UM), 1.0, (s, s)).inside(MESH, across) for s in (0.0, 1e-9)
        )
        assert smooth == pytest.approx(sharp, abs=1e-3)


# Cases ---------------------------------------------------------------------------------------------------------------
TABLE: dict[str, Any] = {
    "bias": [0.0],
    "width": 10.0,
    "mesh": {"graded": {"first": "20 nm", "growth": 1.5, "cap": "1 um"}, "across": {"first": "50 nm", "cap": "1 um"}},
    "contacts": {"anode": "ohmic", "cathode": "ohmic"},
    "layers": [{"name": "body", "material": "Si", "thickness": 4.0, "n": 1e15}],
}
BOX: dict[str, Any] = {"name": "box", "x": [0.0, 1.0], "y": [0.0, 5.0], "doping": -1e18}


def made(folder: Path, **region: Any) -> Any:
    entry = {k: v for k, v in (BOX | region).items() if v is not None}
    return device_of(read_settings("photodiode", TABLE | {"regions": [entry]}), folder)


def polygon(*corners: Sequence[float]) -> dict[str, Any]:
    return {"x": None, "y": None, "polygon": [list(corner) for corner in corners]}


@pytest.mark.parametrize(
    ("key", "region", "words"),
    [
        ("", polygon((0, 0), (1, 5), (1, 0), (0, 5)), "'box': the edge after corner 1 crosses the edge after corner 3"),
        ("", polygon((0, 0), (1, 1), (2, 2)), "'box': its corners enclose nothing"),
        ("", polygon((0, 0), (5, 0), (2, 2)), r"'box': corner 2 is at x = 5 um, outside the device, from 0 to 4 um"),
        ("", polygon((0, 0), (3, 0), (2, -2)), r"'box': corner 3 is at y = -2 um, outside"),
        ("[0].polygon", polygon((0, 0), (3, 0)), "3"),
        ("[0].polygon[0][0]", polygon(("far", 0), (3, 0), (1, 1)), "micrometres"),
        ("[0].x", {"polygon": [[0, 0], [1, 0], [1, 1]]}, "'box': both polygon and x"),
        ("[0].straggle", polygon((0, 0), (1, 0), (1, 1)) | {"straggle": 0.1}, "'box': both polygon and straggle"),
        ("[0].y", {"y": None}, "'box' has no y"),
        ("[0].straggle", {"straggle": 0.0}, "above 0"),
        ("[0].doping", polygon((0, 0), (1, 0), (1, 1)) | {"doping": -1e22}, "exceed the solubility in Si of layer 'b"),
    ],
)
def test_wrong_regions(key: str, region: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=words) as caught:
        made(tmp_path, **region)
    assert caught.value.key is not None
    assert caught.value.key.startswith(f"photodiode.regions{key}")


def test_profiles_are_those_under_the_anode(tmp_path: Path) -> None:
    """On the axis of a round device, whose second axis is the radius; and pictures have x downwards, as depth."""
    table = TABLE | {"regions": [BOX], "contacts": {"anode": {"y": [1.0, 4.0]}, "cathode": "ohmic"}}
    plane = load_model("photodiode", {"photodiode": table}, GridSettings(), tmp_path)
    device = device_of(read_settings("photodiode", table), tmp_path)
    assert device.nodes[1][device.middle] == pytest.approx(2.5e-4, abs=1e-5)
    assert plane.grid.axes == ("x", "y")
    assert plane.grid.down == ("x",)
    assert {drawing.point for drawing in plane.presentation.drawings if drawing.over is None} == {device.middle}
    assert plane.presentation.style("electrons").logarithmic
    assert plane.presentation.style("field_y").signed
    assert not plane.presentation.style("potential").signed
    table |= {"symmetry": "cylinder", "contacts": {"anode": {"y": [0.0, 4.0]}, "cathode": "ohmic"}}
    disc = load_model("photodiode", {"photodiode": table}, GridSettings(), tmp_path)
    assert disc.grid.axes == ("x", "r")
    assert "field_r" in disc.output
    assert device_of(read_settings("photodiode", table), tmp_path).middle == 0
    rings = table | {"contacts": {"anode": {"y": [6.0, 8.0]}, "cathode": "ohmic"}}
    found = device_of(read_settings("photodiode", rings), tmp_path)
    assert found.nodes[1][found.middle] == pytest.approx(7e-4, abs=1e-4)


def test_cases_with_polygons_and_smooth_edges(tmp_path: Path) -> None:
    sharp = made(tmp_path)
    same = made(tmp_path, **polygon((0, 0), (1, 0), (1, 5), (0, 5)))
    assert same.grid.shape == sharp.grid.shape
    assert same.doping == pytest.approx(sharp.doping, rel=1e-12)
    smooth = made(tmp_path, straggle=["200 nm", 0.15])
    x, y = (1e4 * nodes for nodes in smooth.nodes)
    assert np.abs(x - 1.6).min() < 0.011, "the mesh is fine three straggles outside the edge"
    assert np.abs(y - 5.45).min() < 0.026
    tail = 0.5 * math.erfc(0.6 / (math.sqrt(2) * 0.2))
    row = int(np.abs(x - 1.6).argmin())
    assert smooth.doping[row, 0] == pytest.approx((1 - tail) * 1e15 - tail * 1e18, rel=0.05)
    assert smooth.doping[0, 0] == pytest.approx(-1e18, rel=1e-3)
    assert smooth.doping[-1, 0] == 1e15
