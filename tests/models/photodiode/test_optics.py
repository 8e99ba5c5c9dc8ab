"""Optics of devices: absorption of materials, films by transfer matrices, and pairs where the power decreases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.models.photodiode.preflight import notes_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.build import device_from
from minga.models.photodiode.structure.composition import quaternary
from minga.models.photodiode.structure.illumination import Illumination, spectrum_of
from minga.models.photodiode.structure.indices import Index, index_of, read_index, shipped_index, shipped_names
from minga.models.photodiode.structure.materials_file import read_materials, shipped_materials
from minga.models.photodiode.structure.mesh import graded, placed, spaced
from minga.models.photodiode.structure.optics import absorption_of, film_of
from minga.models.photodiode.structure.stack import Coating, Contact, Layer, Light, Stack, Substrate
from minga.models.photodiode.structure.transfer_matrix import Film, Waves, waves_in

NM = 1e-7
MATERIALS = shipped_materials()
ENDS = (Contact("anode", "top"), Contact("cathode", "bottom"))

ABSORPTION = {
    "Si": {400: 9.2991e4, 500: 1.1100e4, 633: 3202.9, 700: 1890, 800: 850, 850: 534, 940: 183, 1000: 64.0, 1064: 9.74,
           1100: 3.5},
    "GaAs": {633: 3.92e4, 780: 1.448e4, 830: 8626, 850: 3535, 870: 1040},
    "InP": {633: 6.097e4, 800: 3.308e4, 900: 1.249e4, 920: 1174},
    "Ge": {850: 3.485e4, 1064: 1.787e4, 1310: 8258, 1500: 4692, 1550: 2042, 1600: 180},
    "InGaAs": {1000: 1.712e4, 1310: 1.020e4, 1550: 6164, 1600: 4406, 1650: 2309},
}  # fmt: skip
"""1/cm at wavelengths in nm, from the same tables by another program."""


@pytest.mark.parametrize("name", ABSORPTION)
def test_absorption_of_materials(name: str) -> None:
    for wavelength, known in ABSORPTION[name].items():
        assert shipped_index(name).absorption(wavelength) == pytest.approx(known, rel=3e-3)
        digits = len(f"{known:.4e}".split("e")[0].rstrip("0").replace(".", ""))
        assert shipped_index(name).absorption(wavelength) == pytest.approx(known, rel=0.6 * 10.0 ** (1 - digits))


def test_tables_say_where_they_are_from() -> None:
    for name in shipped_names():
        index = shipped_index(name)
        assert "refractiveindex.info (public domain), " in index.source
        assert len(index.wavelengths) > 30
    alloys = {f"AlGaAs-{x}" for x in ("0.097", "0.219", "0.342", "0.411", "0.452")}
    others = {"Si", "GaAs", "Ge", "InP", "InGaAs", "4H-SiC", "Si3N4", "SiO2", "Au", "Ag", "Al"}
    assert others | alloys | {"InGaAsP-0.24"} == set(shipped_names())


def test_the_index_of_ingaasp() -> None:
    index = shipped_index("InGaAsP-0.24")
    for wavelength, n, k in ((501.58, 3.6807, 0.55989), (1035.8, 3.4558, 0.070019), (1291.8, 3.2924, 0.0)):
        assert index.at(wavelength) == (n, k), "a row of the table"
    matched = quaternary(0.24, MATERIALS).gap  # Pearsall's formula
    assert 1239.84198 / 1062.1 < matched < 1239.84198 / 1035.8
    assert index.absorption(1062.1) == 0.0, "below the gap of 1.18 eV"
    assert shipped_index("InP").at(1550.0)[0] < index.at(1550.0)[0] < shipped_index("InGaAs").at(1550.0)[0]


def test_indices_of_algaas_fall_with_the_share_of_aluminium() -> None:
    shares = ("0.097", "0.219", "0.342", "0.411", "0.452")
    found = [shipped_index(f"AlGaAs-{x}").at(1000.0) for x in shares]
    assert [n for n, _ in found] == sorted((n for n, _ in found), reverse=True)
    # Adachi's model of 1985, A 6.3 + 19 x, B 9.4 - 10.2 x, which is one of the transparent region.
    for x, (n, k) in zip(map(float, shares), found, strict=True):
        gap, energy = 1.425 + 1.155 * x + 0.37 * x * x, 1.23984198
        ratios = energy / gap, energy / (gap + 0.34 - 0.04 * x)
        f, split = ((2.0 - (1.0 + r) ** 0.5 - (1.0 - r) ** 0.5) / (r * r) for r in ratios)
        model = (6.3 + 19.0 * x) * (f + 0.5 * (gap / (gap + 0.34 - 0.04 * x)) ** 1.5 * split) + 9.4 - 10.2 * x
        assert n == pytest.approx(model**0.5, abs=0.04)
        assert k == 0.0


def test_what_is_below_the_gap_or_given_is_not_looked_up() -> None:
    layer = Layer("window", MATERIALS["InP"], 1e-4, (1e15, 1e15))
    assert absorption_of(layer, MATERIALS["InP"], 1550.0) == 0.0
    assert absorption_of(layer, MATERIALS["InP"], 3000.0) == 0.0, "beyond the table, and below the gap"
    assert absorption_of(layer, MATERIALS["InGaAs"], 1550.0) == 6100.0, "the measured one"
    near = [absorption_of(layer, MATERIALS["InGaAs"], at, smooth=True) for at in (1549.999, 1550.0, 1550.001)]
    assert near == pytest.approx([6164.0] * 3, rel=1e-3), "the same table on both sides"
    assert absorption_of(replace(layer, changes={"absorption": 7.0}), MATERIALS["InP"], 500.0) == 7.0
    real = replace(layer, index=index_of(3.3, Path(), "key"))
    assert absorption_of(real, MATERIALS["InP"], 500.0) == absorption_of(layer, MATERIALS["InP"], 500.0) > 1e4
    assert film_of(real, 500.0).n == 3.3
    assert film_of(real, 500.0).k == film_of(layer, 500.0).k
    assert absorption_of(replace(layer, index=index_of((3.3, 0.0), Path(), "key")), MATERIALS["InP"], 500.0) == 0.0
    unknown = replace(MATERIALS["InP"], index=index_of(3.3, Path(), "key"))
    assert absorption_of(layer, unknown, 1550.0) == 0.0
    with pytest.raises(CaseError, match="the absorption of InP at 500 nm is unknown"):
        absorption_of(layer, unknown, 500.0)
    own = replace(layer, index=Index("mine", (3.0,), (0.1,)))
    assert absorption_of(own, MATERIALS["InP"], 500.0) == pytest.approx(4 * np.pi * 0.1 / 500e-7)


def test_indices_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("# measured\nwavelength; n; k\n\n400; 2.0; 0.4 # here\n500; 3.0; 0.1\n600; 3.5; 0.0\n")
    index = index_of("mine.csv", tmp_path, "key")
    assert index.source == "measured"
    assert index.at(450.0) == (2.5, pytest.approx(0.2))
    assert index.at(550.0) == (3.25, pytest.approx(0.05)), "next to 0, k itself is interpolated"
    assert index.at(600.0) == (3.5, 0.0)
    assert not index.covers(601.0)
    assert index_of((2.0, 0.1), tmp_path, "key").at(1.0) == (2.0, 0.1)
    for text, words in (
        ("", "no rows"), ("nm n k\n", "no rows"), ("400 1.5 x\n", "line 1.*three"), ("400 0 0\n", "n = 0"),
        ("400 1.5 -1\n", "k = -1"), ("400 1.5 0\n450 nan 0\n", "line 2.*three numbers"),
        ("0 1.5 0\n", "a wavelength of 0 nm"), ("400 1.5 0\n400 1.5 0\n", "line 2.*ascending"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(CaseError, match=words):
            read_index(path, "key")
    path.write_bytes(b"\xef\xbb\xbf400,2.0,0.4\n500,3.0,0.1\n")
    assert read_index(path, "key").wavelengths == (400.0, 500.0), "as spreadsheets write it"
    path.write_text("4O0 2.0 0.4\n500 3.0 0.1\n")
    with pytest.raises(CaseError, match=r"line 1.*three numbers, found '4O0 2.0 0.4'"):
        read_index(path, "key")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CaseError, match="cannot be read"):
        read_index(path, "key")


def test_a_material_of_ones_own_has_an_index_from_a_file(tmp_path: Path) -> None:
    numbers = ("gap", "affinity", "permittivity", "mobility_n", "mobility_p", "tau_n", "tau_p")
    (tmp_path / "own.csv").write_text("# an ellipsometer\n800 3.5 0.1\n900 3.6 0.05\n")
    path = tmp_path / "my.toml"
    path.write_text(
        "\n".join(["[Own]", "nc = 1e19", "nv = 1e19", 'index = "own.csv"', *(f"{name} = 1.0" for name in numbers)])
    )
    own = read_materials(path)["Own"]
    assert own.sources == {"index": "an ellipsometer"}
    layer = Layer("own", own, 1e-4, (1e15, 1e15))
    assert absorption_of(layer, own, 850.0) == pytest.approx(4 * np.pi * np.sqrt(0.1 * 0.05) / 850e-7)
    with pytest.raises(
        CaseError, match="'own': the absorption of Own at 700 nm is unknown; it is known from 800 to 900"
    ):
        absorption_of(layer, own, 700.0)
    path.write_text(path.read_text().replace("own.csv", "own.cvs"))
    with pytest.raises(CaseError, match=r"no refractive index 'own\.cvs'") as caught:
        read_materials(path)
    assert (caught.value.key, caught.value.suggestion) == ("Own.index", "own.csv")
    for wrong in ("gap = 1.0", "gap = -1.0"):
        path.write_text("\n".join(["[Own]", *(f"{name} = 1.0" for name in numbers if name != "gap")]))
        if wrong != "gap = 1.0":
            path.write_text(f"{path.read_text()}\n{wrong}")
        with pytest.raises(CaseError, match=r"Own\.gap") as caught:
            read_materials(path)
        assert caught.value.where == str(path), "the file of the materials, not the case"
        assert "--set" not in str(caught.value)


# Films ---------------------------------------------------------------------------------------------------------------
QUARTER = Film(np.sqrt(3.167), 0.0, 1550 * NM / 4 / np.sqrt(3.167))
WINDOW, ABSORBER = Film(3.167, 0.0, 500 * NM), Film(3.56, 0.0752405, 1000 * NM)


def whole(waves: Waves) -> float:
    return waves.reflected + waves.transmitted + sum(waves.absorbed)


def by_matrices(ambient: float, films: tuple[Film, ...], beyond: complex, wavelength: float) -> tuple[float, float]:
    """R and T by the characteristic matrices of textbooks."""
    matrix: NDArray[np.complex128] = np.eye(2, dtype=complex)
    for film in films:
        index = film.n + 1j * film.k
        delta = 2 * np.pi * index * film.thickness / (wavelength * NM)
        matrix = matrix @ np.array(
            [[np.cos(delta), -1j * np.sin(delta) / index], [-1j * index * np.sin(delta), np.cos(delta)]]
        )
    b, c = matrix @ np.array([1.0, beyond])
    return abs((ambient * b - c) / (ambient * b + c)) ** 2, 4 * ambient * beyond.real / abs(ambient * b + c) ** 2


def test_random_films_agree_with_characteristic_matrices() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        films = tuple(Film(*rng.uniform([1, 0], [4, 0.5]), rng.uniform(10, 400) * NM) for _ in range(6))
        beyond = complex(*rng.uniform([0.2, 0], [4, 10]))
        waves = waves_in(1.3, films, (beyond.real, beyond.imag), 633.0)
        assert (waves.reflected, waves.transmitted) == pytest.approx(by_matrices(1.3, films, beyond, 633.0), rel=1e-11)
        assert whole(waves) == pytest.approx(1.0, abs=1e-12)


def test_thick_metal_does_not_overflow() -> None:
    waves = waves_in(1.0, (Film(0.5, 11.5, 1.0), Film(3.5, 0.0, 1e-4)), (1.0, 0.0), 1550.0)
    assert waves.transmitted == 0.0
    assert whole(waves) == pytest.approx(1.0, abs=1e-12)


# Devices -------------------------------------------------------------------------------------------------------------
def lit(side: str, **options: object) -> Stack:
    """The InP/InGaAs/InP stack above, with a quarter-wave coating; indices are given, so that they are the same."""
    window = Index("InP", (3.167,), (0.0,))
    index = Index("InGaAs", (3.56,), (0.0752405,))
    layers = (
        Layer("top", MATERIALS["InP"], 500 * NM, (-1e18, -1e18), index=window),
        Layer("absorber", MATERIALS["InGaAs"], 1000 * NM, (1e15, 1e15), index=index),
        Layer("bottom", MATERIALS["InP"], 500 * NM, (1e18, 1e18), index=window),
    )
    coating = Coating(Index("coating", (QUARTER.n,), (0.0,)), QUARTER.thickness)
    light = Light(
        1550.0, flux=1e16, side=side, optics="transfer-matrix", coatings=(coating,), **options,  # type: ignore[arg-type]
    )  # fmt: skip
    return Stack(layers if side == "anode" else layers[::-1], ENDS, light=light)


MESHES = {
    "rows": spaced([10, 20, 10], [50 * NM] * 3),
    "graded": graded([0, 5e-5, 1.5e-4, 2e-4], 1e-7, 1.2, 1e-5, [False] * 4, [False, True, True, False]),
    "on the boundaries": placed(np.linspace(0, 2e-4, 41).tolist()),
    "astride": placed([0.0, 2e-5, 6.1e-5, 9e-5, 1.33e-4, 1.7e-4, 2e-4]),
}


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("side", ["anode", "cathode"])
def test_pairs_are_made_where_the_power_decreases(mesh: str, side: str) -> None:
    for options, reflected, absorbed in (
        ({}, 0.00776383, 0.45369875),
        ({"backing": Index("metal", (0.55,), (11.5,))}, 0.25656819, 0.71619975),
    ):
        stack = lit(side, **options)
        device = device_from(stack, MESHES[mesh])
        assert device.illumination is not None
        assert device.illumination.reflected == pytest.approx(reflected, abs=1e-8)
        assert device.illumination.layers == pytest.approx((0.0, absorbed, 0.0), abs=1e-8)
        pairs = device.generation * device.volumes / 1e16
        assert float(pairs.sum()) == pytest.approx(sum(device.illumination.layers), rel=1e-12)
        assert pairs[0] == pairs[-1] == 0.0
        total = device.illumination.reflected + device.illumination.transmitted + sum(device.illumination.layers)
        assert total + sum(device.illumination.coatings) == pytest.approx(1.0, abs=1e-12)


def test_a_mesh_too_coarse_for_the_light_is_reported() -> None:
    layers = (Layer("p", MATERIALS["Si"], 5e-4, (-1e17, -1e17)), Layer("n", MATERIALS["Si"], 5e-4, (1e17, 1e17)))
    stack = Stack(layers, ENDS, light=Light(450.0, power=1e-3, side="anode"))
    notes = dict(notes_of(device_from(stack, spaced([10, 10], [5e-5, 5e-5])), Problem(bias=(0.0,), curves=("lit",))))
    depth = shipped_index("Si").absorption(450.0) * 5e-5
    assert (
        f"{100 * (depth / (1 - np.exp(-depth)) - 1):.2g} % too large: refine the mesh where the light enters"
        in notes["light"]
    )
    fine = dict(notes_of(device_from(stack, spaced([2000, 2000], [2.5e-7] * 2)), Problem(bias=(0.0,), curves=("lit",))))
    assert "too large" not in fine["light"]


def test_a_matched_stack_decays_as_beer_and_lambert_say() -> None:
    stack = lit("anode")
    layers = tuple(replace(layer, index=Index("same", (3.5,), (0.05,))) for layer in stack.layers)
    assert stack.light is not None
    light = replace(stack.light, coatings=(), ambient=3.5)
    device = device_from(replace(stack, layers=layers, light=light), MESHES["astride"])
    alpha = 4 * np.pi * 0.05 / 1550e-7
    faces = MESHES["astride"].faces
    assert device.generation * device.volumes / 1e16 == pytest.approx(-np.diff(np.exp(-alpha * faces)), rel=1e-3)


@pytest.mark.parametrize("optics", ["beer-lambert", "transfer-matrix"])
def test_a_spectrum_has_no_step_at_a_wavelength_with_a_coefficient_of_its_own(optics: str) -> None:
    stack = replace(lit("anode"), light=None)
    layers = tuple(replace(layer, index=None) for layer in stack.layers)
    light = Light(1550.0, side="anode", optics=optics)  # type: ignore[arg-type]
    spectrum = spectrum_of(replace(stack, layers=layers), light, MESHES["rows"], (1549.9, 1550.0, 1550.1))
    before, at, after = (item.layers[1] for item in spectrum.illuminations)
    assert at == pytest.approx(0.5 * (before + after), rel=1e-5)


@pytest.mark.parametrize("side", ["anode", "cathode"])
def test_a_spectrum_without_interference_conserves_photons_on_any_mesh(side: str) -> None:
    stack = replace(lit("anode"), light=None)
    layers = tuple(replace(layer, index=None, changes={"absorption": 2e4}) for layer in stack.layers)
    light = Light(500.0, side=side)  # type: ignore[arg-type]
    for mesh in MESHES.values():
        spectrum = spectrum_of(replace(stack, layers=layers), light, mesh, (500.0, 600.0))
        for item in spectrum.illuminations:
            assert sum(item.layers) + item.transmitted == pytest.approx(1.0, abs=1e-14)
            assert item.transmitted == pytest.approx(np.exp(-4.0), rel=1e-12)
            first = item.nodes[0] if side == "anode" else item.nodes[-1]
            edge = mesh.volumes[0] if side == "anode" else mesh.volumes[-1]
            assert first == pytest.approx(1 - np.exp(-2e4 * edge), rel=1e-12)


# Wafers --------------------------------------------------------------------------------------------------------------
def on_wafer(at: str, thickness: float, k: float = 0.0) -> Stack:
    stack = lit("anode", backing=Index("metal", (0.55,), (11.5,)))
    assert stack.light is not None
    wafer = Substrate(Index("InP", (3.167,), (k,)), thickness, at)  # type: ignore[arg-type]
    return replace(stack, light=replace(stack.light, substrate=wafer))


@pytest.mark.parametrize("at", ["far", "near"])
@pytest.mark.parametrize("k", [0.0, 1e-5])
def test_a_wafer_is_the_mean_over_the_fringes_of_a_film(at: str, k: float) -> None:
    """Light of slightly different phases in a coherent film as thick, on average."""
    thickness = 350e-4
    found = illumination(on_wafer(at, thickness, k))
    total = found.reflected + found.transmitted + sum(found.layers) + sum(found.coatings) + found.substrate
    assert total == pytest.approx(1.0, abs=1e-12)
    assert found.nodes.sum() == pytest.approx(sum(found.layers), rel=1e-12)
    half = 1550 * NM / 2 / 3.167
    films = (WINDOW, ABSORBER, WINDOW)
    mean = np.zeros(3)
    for phase in np.arange(256) / 256:
        wafer = Film(3.167, k, thickness + phase * half)
        order = (QUARTER, *films, wafer) if at == "far" else (QUARTER, wafer, *films)
        waves = waves_in(1.0, order, (0.55, 11.5), 1550.0)
        mean += np.array([waves.reflected, waves.absorbed[order.index(ABSORBER)], waves.absorbed[order.index(wafer)]])
    mean /= 256
    assert (found.reflected, found.layers[1]) == pytest.approx((mean[0], mean[1]), rel=1e-4)
    assert found.substrate == pytest.approx(mean[2], rel=2e-3, abs=1e-14)


def test_light_through_a_wafer_from_either_side_finds_its_layers() -> None:
    for at in ("far", "near"):
        stack = on_wafer(at, 350e-4)
        assert stack.light is not None
        turned = replace(stack, layers=stack.layers[::-1], light=replace(stack.light, side="cathode"))
        one, other = illumination(stack), illumination(turned)
        assert other.layers == pytest.approx(one.layers[::-1], rel=1e-12)
        assert other.nodes == pytest.approx(one.nodes[::-1], rel=1e-9)


def illumination(stack: Stack) -> Illumination:
    found = device_from(stack, MESHES["rows"]).illumination
    assert found is not None
    return found
