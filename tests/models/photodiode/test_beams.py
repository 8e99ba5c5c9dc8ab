"""Light on a part of a side, light across the layers, and pairs from a file: exact over the nodes' volumes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import read_settings
from minga.errors import CaseError
from minga.models.photodiode.case import device_of
from minga.models.photodiode.case_pairs import read_pairs
from minga.models.photodiode.preflight import notes_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.beam import Beam
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.structure.illumination import spectrum_of
from minga.models.photodiode.structure.materials_file import shipped_materials
from minga.models.photodiode.structure.mesh import Mesh, graded, placed, spaced
from minga.models.photodiode.structure.pairs import Pairs
from minga.models.photodiode.structure.stack import Contact, Layer, Light, Stack

SILICON = shipped_materials()["Si"]
UM = 1e-4
ALPHA = (0.0, 3e3, 2e4)
"""Absorption in layers of 1, 2 and 1 um, 1/cm."""
MESH = graded([0.0, 1 * UM, 3 * UM, 4 * UM], 2e-6, 1.4, 5e-5, [False, True, True, False], [True] * 4)
ACROSS = placed([0.0, 1 * UM, 1.5 * UM, 3 * UM, 7 * UM, 10 * UM])
ROUND = replace(ACROSS, radial=True)
FLUX = 1e16


def stack(**light: Any) -> Stack:
    layers = tuple(
        Layer(f"layer {k}", SILICON, thickness * UM, (doping, doping), changes={"absorption": alpha})
        for k, (thickness, doping, alpha) in enumerate(zip((1, 2, 1), (-1e17, 1e15, 1e17), ALPHA))
    )
    contacts = (Contact("anode", "top"), Contact("cathode", "bottom"))
    return Stack(layers, contacts, light=Light(700.0, flux=FLUX, **light))


def photons(device: Device) -> np.ndarray:
    """Pairs in each node's volume over the photons per cm2 and second."""
    return device.generation * device.volumes / FLUX


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("window", [None, (1.2 * UM, 2.9 * UM)])
def test_each_row_absorbs_what_it_receives(side: str, window: tuple[float, float] | None) -> None:
    device = device_from(stack(side=side, beam=Beam(window)), MESH, ACROSS)
    alpha = np.array(ALPHA)[device.layer[:, 0]]
    low, high = window or (0.0, 4 * UM)
    lit = (np.minimum(MESH.faces[1:], high) - np.maximum(MESH.faces[:-1], low)).clip(0.0)
    depths = ACROSS.faces if side == "left" else 10 * UM - ACROSS.faces
    expected = lit[:, None] * np.abs(np.diff(np.exp(-np.outer(alpha, depths)), axis=1))
    assert photons(device) == pytest.approx(expected, rel=1e-9, abs=1e-22)
    left = float((lit * np.exp(-alpha * 10 * UM)).sum())
    assert photons(device).sum() + left == pytest.approx(high - low, rel=1e-14)
    light = device.illumination
    assert light is not None
    assert light.transmitted == pytest.approx(left / (high - low), rel=1e-13)
    assert math.fsum(light.layers) + light.transmitted == pytest.approx(1.0, abs=1e-14)
    assert device.lit_section == pytest.approx((high - low) / (10 * UM), rel=1e-14)
    note = dict(notes_of(device, Problem((0.0,), ("lit",))))["light"]
    current = CHARGE * FLUX * (high - low - left) / (10 * UM)
    assert note.startswith(f"700 nm from the {side}, on {100 * device.lit_section:.4g} % of the area of the device")
    assert f"primary photocurrent {current:.4g} A/cm2" in note


@pytest.mark.parametrize(("across", "area"), [(ACROSS, 1.7 / 10.0), (ROUND, (2.2**2 - 0.5**2) / 10.0**2)])
@pytest.mark.parametrize("optics", ["beer-lambert", "transfer-matrix"])
def test_a_window_lights_its_columns_and_parts_of_two(across: Mesh, area: float, optics: str) -> None:
    beam = Beam((0.5 * UM, 2.2 * UM))
    whole, part = (device_from(stack(side="anode", optics=optics, beam=b), MESH, across) for b in (Beam(), beam))
    assert part.lit_section == pytest.approx(area, rel=1e-12)
    assert whole.lit_section == 1.0
    assert photons(part).sum() == pytest.approx(area * photons(whole).sum(), rel=1e-12)
    ratio = part.generation[-1] / whole.generation[-1]
    third = (2.2**2 - 1.25**2) / (2.25**2 - 1.25**2) if across.radial else 0.95
    assert ratio == pytest.approx([0.0, 1.0, third, 0.0, 0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("mesh", [ACROSS, ROUND])
@pytest.mark.parametrize("window", [None, (0.7 * UM, 6 * UM)])
def test_gaussian_beams_agree_with_quadrature(mesh: Mesh, window: tuple[float, float] | None) -> None:
    middle, radius = (0.0 if mesh.radial else 2.5 * UM), 2 * UM
    for k, found in enumerate(Beam(window, middle, radius).over(mesh)):
        s, step = np.linspace(*mesh.faces[k : k + 2], 40_001, retstep=True)
        values = np.exp(-2 * ((s - middle) / radius) ** 2)
        values[(s < (window or (0, 1))[0]) | (s > (window or (0, 1))[1])] = 0.0
        weight = 2 * np.pi * s if mesh.radial else np.ones(s.size)
        expected = np.trapezoid(values * weight, dx=step) / np.trapezoid(weight, dx=step)
        assert found == pytest.approx(expected, abs=2e-5)
    if mesh.radial and window is None:
        assert Beam(None, 0.0, radius).over(mesh) @ mesh.sections == pytest.approx(0.5 * np.pi * radius**2, rel=1e-12)


def test_a_spectrum_across_the_layers_conserves_photons() -> None:
    light = Light(500.0, side="right", beam=Beam((0.5 * UM, 3.5 * UM)))
    for item in spectrum_of(replace(stack(), light=None), light, MESH, (500.0, 800.0), ACROSS).illuminations:
        assert item.nodes.shape == (MESH.nodes.size, ACROSS.nodes.size)
        assert math.fsum(item.nodes.ravel()) + item.transmitted == pytest.approx(1.0, abs=1e-14)
        assert item.layers == pytest.approx([item.nodes[device_rows(k)].sum() for k in range(3)], abs=1e-14)


def device_rows(layer: int) -> np.ndarray:
    return device_from(stack(), MESH).layer == layer


# Pairs from a file ---------------------------------------------------------------------------------------------------
X, Y = np.array([0.0, 1.3, 2.0, 4.0]) * UM, np.array([0.0, 4.4, 10.0]) * UM


@pytest.mark.parametrize("across", [ACROSS, ROUND])
def test_pairs_are_the_means_over_volumes(across: Mesh) -> None:
    """A product of straight lines, which any table describes exactly; and the sum of any table on any mesh."""
    slopes = Pairs("slopes", (X, Y), np.outer(1 + X / UM, 20 - Y / UM))
    found = slopes.over(MESH, across)
    means = [0.5 * (faces[1:] + faces[:-1]) for faces in (MESH.faces / UM, across.faces / UM)]
    if across.radial:
        f = across.faces / UM
        means[1] = 2 / 3 * np.diff(f**3) / np.diff(f**2)
    assert found == pytest.approx(np.outer(1 + means[0], 20 - means[1]), rel=1e-12)
    rough = Pairs("rough", (X, Y), np.random.default_rng(3).random((4, 3)))
    sums = [(np.multiply.outer(MESH.volumes, m.sections) * rough.over(MESH, m)).sum() for m in (across, fine(across))]
    assert sums[0] == pytest.approx(sums[1], rel=1e-12)
    peak = Pairs("peak", (X,), np.array([0.0, 0.0, 1.0, 0.0]))
    assert (MESH.volumes * peak.over(MESH)).sum() == pytest.approx(0.5 * 2.7 * UM, rel=1e-12)


def fine(mesh: Mesh) -> Mesh:
    return replace(spaced([137], [10 * UM / 137]), radial=mesh.radial)


def test_tables_are_read_in_any_order(tmp_path: Path) -> None:
    values = np.arange(12.0).reshape(4, 3)
    rows = [(x, y, values[i, j]) for j, y in enumerate(Y / UM) for i, x in enumerate(X / UM)]
    text = "# from a solver of Maxwell's equations\nx,y,G\n" + "\n".join(f"{x:.3f},{y:.3f},{g:g}" for x, y, g in rows)
    (tmp_path / "pairs.csv").write_text(text)
    np.savez(tmp_path / "pairs.npz", x=X / UM, y=Y / UM, G=values)
    (tmp_path / "line.csv").write_text("0 1e20\n3 0\n")
    for name in ("pairs.csv", "pairs.npz"):
        found = read_pairs(tmp_path / name)
        assert (found.values == values).all()
        assert found.places[0] == pytest.approx(X)
        assert found.places[1] == pytest.approx(Y)
    line = read_pairs(tmp_path / "line.csv")
    assert line.places[0] == pytest.approx([0.0, 3e-4])
    assert line.values.tolist() == [1e20, 0.0]


WRONG_FILES = {
    "words.csv": ("1 2 many\n", "cannot read words.csv as numbers"),
    "empty.csv": ("x y G\n", "empty.csv has rows of no numbers"),
    "ragged.csv": ("0 0 1\n0 1\n", r"rows of \[2, 3\] numbers"),
    "hole.csv": ("0 0 1\n0 9 1\n3 0 1\n", "has 3 rows; its places form a rectangle of 2 x 2 points"),
    "twice.csv": ("0 0 1\n0 9 1\n3 0 1\n3 0 1\n", "has 4 rows; its places form"),
    "negative.csv": ("0 0 1\n0 9 1\n3 0 -1\n3 9 1\n", "G = -1; pairs are generated"),
    "nan.csv": ("0 0 1\n0 9 1\n3 0 nan\n3 9 1\n", "not all numbers are finite"),
    "single.csv": ("0 0 1\n", "x has 1 values; expected two or more"),
    "broken.npz": ("PK\x03\x04", "cannot read broken.npz"),
    "text.npz": ("0 0 1\n", "cannot read text.npz as numbers: it is no .npz file"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_files(name: str, tmp_path: Path) -> None:
    text, words = WRONG_FILES[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(CaseError, match=words) as caught:
        read_pairs(tmp_path / name)
    assert caught.value.key == "photodiode.light.generation"
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": X}, "has no array 'G'; it has x"),
        ({"x": X, "G": np.ones((4, 2))}, "G is 4 x 2, its places are 4"),
        ({"x": X[::-1], "G": np.ones(4)}, "in ascending order"),
        ({"x": np.ones((2, 2)), "G": np.ones(4)}, "x is 2 x 2; expected a list"),
        ({"x": X, "G": np.array(list("abcd"))}, "G has 4 values of type <U1"),
        ({"x": X, "G": np.full(4, np.inf)}, "G has values that are not finite"),
    ],
)
def test_wrong_arrays(arrays: dict[str, np.ndarray], words: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "pairs.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(CaseError, match=words):
        read_pairs(tmp_path / "pairs.npz")


# Cases ---------------------------------------------------------------------------------------------------------------
LIGHT = {"wavelength": 700.0, "power": 1e-3}
PLANE: dict[str, Any] = {"width": 10.0, "columns": 5}
TABLE: dict[str, Any] = {
    "bias": [0.0],
    "mesh": {"nodes": 21},
    "contacts": {"anode": "ohmic", "cathode": "ohmic"},
    "layers": [
        {"name": "p", "material": "Si", "thickness": 1.0, "p": 1e17},
        {"name": "n", "material": "Si", "thickness": 3.0, "n": 1e17},
    ],
}

WRONG: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("side", {"side": "left"}, {}, "light from the left of a device with one axis"),
    ("side", {"side": "right"}, PLANE | {"symmetry": "cylinder"}, "from the right of a device that is round"),
    ("optics", {"side": "left", "optics": "transfer-matrix"}, PLANE, "'transfer-matrix' of light from the left"),
    ("y", {"side": "left", "y": [0.0, 1.0]}, PLANE, "y of light from the left"),
    ("x", {"x": [0.0, 1.0]}, PLANE, "x of light from the cathode"),
    ("y", {"y": [0.0, 1.0]}, {}, "light on a part of a device with one axis"),
    ("gaussian", {"gaussian": {"radius": 1.0}}, {}, "light on a part of a device with one axis"),
    ("y", {"y": [5.0, 11.0]}, PLANE, "the light falls on 5 to 11 um, the device reaches from 0 to 10 um"),
    ("y", {"y": [5.0, 4.0]}, PLANE, "the light falls on 5 to 4 um"),
    ("x", {"side": "left", "x": [3.0, 4.5]}, PLANE, "the light falls on 3 to 4.5 um, the device reaches from 0 to 4"),
    ("gaussian.middle", {"gaussian": {"middle": 99.0, "radius": 1.0}}, PLANE, "around 99 um does not reach"),
    ("gaussian.middle", {"gaussian": {"middle": 1.0, "radius": 1.0}}, PLANE | {"symmetry": "cylinder"},
     "1 um beside the axis"),
    ("gaussian.radius", {"gaussian": {"radius": 0.0}}, PLANE, "above 0"),
    ("side", {"side": "front"}, PLANE, "left"),
    ("power", {"generation": "pairs.csv"}, PLANE, "generation from a file, and power and wavelength"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "light", "changes", "words"), WRONG)
def test_wrong_light(key: str, light: dict[str, Any], changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=words) as caught:
        device_of(read_settings("photodiode", TABLE | changes | {"light": LIGHT | light}), tmp_path)
    assert caught.value.key == f"photodiode.light.{key}"


def test_cases_with_pairs_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("0 0 1\n3 0 1\n0 10 1\n3 10 1\n")
    (tmp_path / "none.csv").write_text("0 0 0\n4 0 0\n0 10 0\n4 10 0\n")
    (tmp_path / "pairs.csv").write_text("0 0 1e20\n4 0 1e20\n0 10 0\n4 10 0\n")

    def made(name: str, **changes: Any) -> Device:
        table = TABLE | PLANE | {"light": {"generation": name}} | changes
        return device_of(read_settings("photodiode", table), tmp_path)

    for name, words in (
        ("short.csv", "short.csv reaches from 0 to 3 um along x, the device from 0 to 4 um"),
        ("none.csv", "none.csv: no pairs at all"),
        ("absent.csv", "there is no file"),
    ):
        with pytest.raises(CaseError, match=words):
            made(name)
    with pytest.raises(CaseError, match="has x and y, the device has one axis"):
        made("pairs.csv", width=None, columns=None)
    device = made("pairs.csv")
    assert device.generation[7] == pytest.approx([9e19, 7e19, 5e19, 3e19, 1e19])
    note = dict(notes_of(device, Problem((0.0,), ("lit",))))["light"]
    assert note == f"pairs of a table, in p, n: primary photocurrent {CHARGE * 5e19 * 4 * UM:.4g} A/cm2"
