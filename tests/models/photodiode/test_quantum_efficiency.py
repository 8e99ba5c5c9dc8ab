"""Quantum efficiencies: the collection of carriers by one transposed solution, against steady states and formulas."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.comm import Comm
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.photodiode import (
    Contact,
    Layer,
    Light,
    Problem,
    Stack,
    device_from,
    photodiode,
    spectrum_of,
)
from minga.models.photodiode.structure.constants import CHARGE
from minga.models.photodiode.structure.materials_file import shipped_materials
from minga.models.photodiode.structure.mesh import spaced

FOLDER = examples()["si-qe"].parent
SHIPPED = shipped_materials()
SILICON: dict[str, Any] = tomllib.loads(examples()["si-qe"].read_text())["photodiode"] | {
    "mesh": {"graded": {"first": "5 nm", "growth": 1.3, "cap": "500 nm"}},
    "qe": {"wavelengths": [450.0, 700.0]},
}

# With dead space Newton's method converges linearly, so that solutions are only as accurate as the tolerance.
DEAD: dict[str, Any] = {"bias": [-45.0, -60.0, -66.0], "tolerance": 1e-10, "limit": 300}


def model(table: dict[str, Any], **changes: Any) -> Model:
    changed = {k: v for k, v in (table | changes).items() if v is not None}
    return load_model("photodiode", {"photodiode": copy.deepcopy(changed)}, GridSettings(), FOLDER)


def test_a_row_for_each_voltage_and_wavelength() -> None:
    said = model(SILICON, bias=[0.0, -1.0])
    assert said.steps == 4
    assert said.tables == {
        "qe": ("V", "J", "wavelength", "R", "T", "A", "A_coatings", "A_p", "A_i", "A_n", "QE", "responsivity")
    }
    found = mg.run(said, 4)
    rows = {name: found[name].values[-4:] for name in said.tables["qe"]}
    assert rows["V"].tolist() == [0.0, 0.0, -1.0, -1.0]
    assert rows["wavelength"].tolist() == [450.0, 700.0, 450.0, 700.0]
    assert rows["R"] + rows["T"] + rows["A"] + rows["A_coatings"] == pytest.approx(np.ones(4), abs=1e-12)
    assert rows["A_p"] + rows["A_i"] + rows["A_n"] == pytest.approx(rows["A"], rel=1e-14)
    assert rows["responsivity"] == pytest.approx(rows["QE"] * rows["wavelength"] / 1239.841984, rel=1e-9)
    units = {name: said.units[name] for name in said.tables["qe"]}
    assert {name for name, (unit, _) in units.items() if unit == "1"} == {*rows} - {
        "V",
        "J",
        "wavelength",
        "responsivity",
    }
    assert units["R"] == ("1", "fraction of the incident photons reflected")
    assert units["responsivity"] == ("A/W", "photocurrent over the incident power")
    assert (rows["QE"] < rows["A"]).all()
    assert (rows["QE"] > rows["A_i"]).all(), "all of the intrinsic layer, and some of the others"
    assert rows["J"][0] == rows["J"][1] == 0.0
    assert rows["J"][2] == rows["J"][3] < 0.0
    notes = dict(said.notes)
    assert notes["wavelengths"] == "2, 450 to 700 nm"
    assert notes["at 700 nm"].startswith("0.472 % reflected, 0.834 % transmitted, absorbed: 5.49 % in p, ")
    titles = [drawing.title for drawing in said.presentation.drawings]
    assert titles[:3] == ["Quantum efficiency", "Responsivity", "Absorbed light"]
    assert titles[-1] == "Collection"


def difference(table: dict[str, Any], wavelength: float, flux: float, **changes: Any) -> float:
    """The quantum efficiency from steady states with and without weak light."""
    light = table["light"] | {"wavelength": wavelength, "flux": flux, "power": None}
    light = {k: v for k, v in light.items() if v is not None}
    said = model(
        table, **{"mode": None, "qe": None, "light": light, "curves": ["dark", "lit"], "gain": False} | changes
    )
    seen = mg.run(said, said.steps).attrs
    return float(-(seen["J_lit"] - seen["J"]) / (CHARGE * flux))


@pytest.mark.parametrize(("bias", "flux"), [([-5.0], 1e13), pytest.param([0.4], 1e13, marks=pytest.mark.slow)])
def test_weak_light_changes_the_current_as_much(bias: list[float], flux: float) -> None:
    said = model(SILICON, bias=bias, qe={"wavelengths": [600.0]})
    seen = mg.run(said, said.steps).attrs["QE"]
    assert difference(SILICON, 600.0, flux, bias=bias) == pytest.approx(seen, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"contacts": {"anode": {"recombination": 1e3}, "cathode": "ohmic"}},
        pytest.param({"surfaces": [{"x": 0.2, "velocity_n": 1e5, "velocity_p": 1e5}]}, marks=pytest.mark.slow),
        pytest.param(
            {"bias": [-5.0], "tunnelling": {"band_to_band": True, "trap_assisted": True}}, marks=pytest.mark.slow
        ),
        pytest.param({"incomplete_ionisation": True, "gap_narrowing": True}, marks=pytest.mark.slow),
    ],
)
def test_models_of_surfaces_and_dopants_count(more: dict[str, Any]) -> None:
    said = model(SILICON, qe={"wavelengths": [450.0]}, **({"bias": [-1.0]} | more))
    seen = mg.run(said, said.steps).attrs["QE"]
    assert difference(SILICON, 450.0, 1e12, **({"bias": [-1.0]} | more)) == pytest.approx(seen, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wavelength", "flux", "changes"),
    [
        ("apd", 1550.0, 1e10, {"bias": [-30.0, -55.0, -60.0], "statistics": "fermi-dirac"}),
        ("apd", 1550.0, 1e10, {"bias": [-60.0], "ionisation": False, "mobility": "doping-field"}),
        ("msm", 850.0, 1e10, {"bias": [1.0]}),
        ("apd", 1550.0, 1e11, DEAD | {"dead_space": {"electrons": 2.0, "holes": 3.0}}),
        ("apd", 1550.0, 1e11, DEAD | {"dead_space": {"electrons": 3.0, "holes": 0.0, "coefficients": "enabled"}}),
    ],
)
def test_quantum_efficiencies_of_examples(name: str, wavelength: float, flux: float, changes: dict[str, Any]) -> None:
    """With gain, local or not, saturating velocities and Fermi-Dirac statistics, and between Schottky contacts."""
    table = tomllib.loads(examples()[name].read_text())["photodiode"] | {"gain": False, "curves": None}
    table["light"] |= {"optics": "transfer-matrix"}  # of which both modes integrate the light exactly
    for layer in table["layers"]:
        layer["index"] = [3.56, 0.0752] if layer["material"] == "InGaAs" else 3.2
    if name == "apd":
        table["mesh"]["coarsen"] = 20
    said = model(table, mode="qe", qe={"wavelengths": [wavelength]}, **changes)
    seen = mg.run(said, said.steps).attrs["QE"]
    assert difference(table, wavelength, flux, **changes) == pytest.approx(seen, rel=2e-6)


@pytest.mark.slow
def test_columns_side_by_side_are_one_device() -> None:
    mesh = {"graded": {"first": "50 nm", "growth": 2.0, "cap": "2 um"}}
    changes = {"qe": {"wavelengths": [700.0]}, "mesh": mesh}
    one, three = (mg.run(model(SILICON, **changes, **more), 1) for more in ({}, {"width": 2.0, "columns": 3}))
    assert three.attrs["QE"] == pytest.approx(one.attrs["QE"], rel=1e-12)
    seen = three["collection"].values[-1]
    assert seen == pytest.approx(np.repeat(one["collection"].values[-1][:, None], 3, axis=1), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("linear", ["rows", "sparse", "krylov"])
def test_a_device_with_a_window(linear: str) -> None:
    """Two axes, with a contact on a part of one side, against steady states."""
    table = tomllib.loads(examples()["planar"].read_text())["photodiode"] | {"bias": [-1.0], "linear": linear}
    table["light"] = {"side": "anode", "optics": "transfer-matrix"}
    table["mesh"] = {
        "graded": {"first": "40 nm", "growth": 2.0, "cap": "400 nm"},
        "across": {"first": "200 nm", "growth": 2.0, "cap": "2 um"},
    }
    said = model(table, mode="qe", qe={"wavelengths": [1310.0]}, curves=None)
    seen = mg.run(said, said.steps).attrs["QE"]
    assert difference(table, 1310.0, 1e12) == pytest.approx(seen, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "section"),
    [
        ({"light": {"side": "left", "x": [1.0, 2.5]}}, 1.5 / 12.0),
        ({"light": {"side": "right"}}, 3.0 / 12.0),
        ({"light": {"side": "anode", "optics": "transfer-matrix", "y": [1.0, 4.0]}}, 3.0 / 12.0),
        ({"symmetry": "cylinder", "light": {"optics": "transfer-matrix", "y": [1.0, 4.0]}}, (16 - 1) / 144.0),
    ],
)
def test_a_device_lit_in_part(changes: dict[str, Any], section: float) -> None:
    """Per incident photon; currents are those of the whole device."""
    table = tomllib.loads(examples()["planar"].read_text())["photodiode"] | {"bias": [-1.0]} | changes
    table["mesh"] = {
        "graded": {"first": "40 nm", "growth": 2.0, "cap": "400 nm"},
        "across": {"first": "200 nm", "growth": 2.0, "cap": "2 um"},
    }
    said = model(table, mode="qe", qe={"wavelengths": [1310.0]}, curves=None)
    seen = mg.run(said, said.steps).attrs["QE"]
    assert difference(table, 1310.0, 1e12) / section == pytest.approx(seen, rel=1e-7)
    assert 0.1 < seen < 1.0


def test_collection_in_a_neutral_layer() -> None:
    """Between a contact and a junction, carriers reach the junction as sinh(x/L) says."""
    p = {"name": "p", "material": "Si", "thickness": 3.0, "p": 1e18, "mobility_n": 1000.0, "tau_n": 1e-9}
    n = {"name": "n", "material": "Si", "thickness": 3.0, "n": 1e16}
    mesh = {"graded": {"first": "2 nm", "growth": 1.1, "cap": "40 nm"}}
    said = model(SILICON, layers=[p, n], mesh=mesh, recombination=["srh"], bias=[0.0], qe={"wavelengths": [700.0]})
    found = mg.run(said, 1)
    x, seen = found["x"].values, found["collection"].values[-1]
    length = 1e4 * np.sqrt(1000.0 * 0.0258519998 * 1e-9)
    inside = (x > 0.1) & (x < 2.5)
    shape = np.sinh(x[inside] / length)
    assert seen[inside] / shape == pytest.approx(np.full(shape.size, seen[inside][-1] / shape[-1]), rel=2e-3)
    assert seen[0] == 0.0
    assert 0.99 < seen.max() <= 1.0


@pytest.mark.slow
def test_light_in_addition_to_light() -> None:
    """Quantum efficiencies of the lit state are the slope of its current; strong light lowers the field."""
    flux = 1e19

    def lit(share: float) -> Any:
        light = SILICON["light"] | {"wavelength": 700.0, "flux": share * flux}
        said = model(SILICON, curves=["lit"], bias=[0.0], light=light, qe={"wavelengths": [700.0]})
        return mg.run(said, 1).attrs

    seen = lit(1.0)
    more, less = (lit(share)["J_lit"] for share in (1.01, 0.99))
    assert seen["QE"] == pytest.approx((less - more) / (0.02 * CHARGE * flux), rel=1e-5)
    dark = mg.run(model(SILICON, bias=[0.0], qe={"wavelengths": [700.0]}), 1).attrs["QE"]
    assert seen["QE"] > dark + 2e-3


def mirrored(table: dict[str, Any], contacts: dict[str, Any]) -> dict[str, Any]:
    return table | {"layers": table["layers"][::-1], "contacts": contacts}


@pytest.mark.slow
def test_light_enters_at_the_side_of_the_contact_that_is_named() -> None:
    """A mirror image of the device with its contacts exchanged has the same light, currents and collection."""
    upside_down = mirrored(SILICON, {"anode": {"at": "bottom"}, "cathode": {"at": "top"}})
    one, other = (mg.run(model(table), 2).attrs for table in (SILICON, upside_down))
    for name in ("R", "T", "A_p", "A_i", "A_n", "QE"):
        assert other[name] == pytest.approx(one[name], rel=1e-6), name
    bottom = model(SILICON, light=SILICON["light"] | {"side": "bottom"})
    cathode = model(SILICON, light=SILICON["light"] | {"side": "cathode"})
    assert mg.run(bottom, 2).attrs["QE"] == mg.run(cathode, 2).attrs["QE"]
    assert dict(bottom.notes)["at 700 nm"] != dict(model(SILICON).notes)["at 700 nm"]


def test_the_photocurrent_of_reverse_bias_counts_as_positive() -> None:
    """With the n side at the anode, reverse bias is a positive voltage, and the photocurrent is one, too."""
    turned = mirrored(SILICON, SILICON["contacts"]) | {"light": SILICON["light"] | {"side": "cathode"}}
    one, other = (mg.run(model(table, bias=[bias]), 2).attrs["QE"] for table, bias in ((SILICON, -5.0), (turned, 5.0)))
    assert one > 0.5
    assert other == pytest.approx(one, rel=1e-6)


@pytest.mark.slow
def test_a_breakdown_has_no_quantum_efficiency() -> None:
    layers = [
        {"name": "p", "material": "Si", "thickness": 0.5, "p": 1e18},
        {"name": "n", "material": "Si", "thickness": 2.0, "n": 1e17},
    ]
    said = model(SILICON, layers=layers, bias=[-1.0, -30.0], ionisation=True)
    found = mg.run(said, said.steps)
    volts, seen = found["V"].values, found["QE"].values
    assert seen[volts == -1.0].min() > 0.1
    assert not np.isnan(found["breakdown"].values[-1])
    assert np.isnan(seen[volts < -1.0]).all()
    assert np.isnan(found["responsivity"].values[volts < -1.0]).all()


def test_problems_and_spectra_fit_each_other() -> None:
    layers = (Layer("p", SHIPPED["Si"], 1e-4, (-1e17, -1e17)), Layer("n", SHIPPED["Si"], 4e-4, (1e15, 1e15)))
    stack = Stack(layers, (Contact("anode", "top"), Contact("cathode", "bottom")))
    mesh = spaced([20, 40], [5e-6, 1e-5])
    device, spectrum = device_from(stack, mesh), spectrum_of(stack, Light(500.0), mesh, (450.0, 700.0))
    seen = []
    for repeats in (1, 5):
        said = photodiode(device, Problem((0.0, -1.0), mode="qe", repeats=repeats), spectrum)
        assert said.steps == 4
        seen.append(mg.run(said, 4)["QE"].values[-4:].tolist())
    assert seen[0] == seen[1]
    assert abs(seen[0][0] - seen[0][1]) > 1e-2
    for problem, given in ((Problem((0.0,), mode="qe"), None), (Problem((0.0,)), spectrum)):
        with pytest.raises(CaseError, match="spectrum"):
            photodiode(device, problem, given)
    with pytest.raises(CaseError, match="0 steps at each voltage"):
        Problem((0.0,), repeats=0)


@pytest.mark.slow
def test_the_bits_do_not_depend_on_ranks() -> None:
    said = model(SILICON)

    def on_rank(comm: Comm) -> tuple[str, float]:
        found = mg.run(said, 2, comm=comm)
        return str(found.attrs["digest"]), float(found.attrs["QE"])

    single = mg.run_virtual(1, on_rank)[0]
    assert set(mg.run_virtual(3, on_rank)) == {single}


def test_absorption_keeps_its_value_at_other_temperatures() -> None:
    notes = dict(model(SILICON, temperature=320.0).notes)
    assert notes["temperature"].startswith("320 K; values at 300 K used for: ")
    assert notes["temperature"].endswith("; absorption")


def test_ranges_of_wavelengths() -> None:
    said = model(SILICON, qe={"wavelengths": {"from": "0.5 um", "to": 525.0, "step": 10.0}})
    assert said.steps == 4
    assert dict(said.notes)["wavelengths"] == "4, 500 to 525 nm"


WRONG: Sequence[tuple[str, dict[str, Any], str]] = (
    ("photodiode.qe", {"mode": "iv"}, "in a case whose mode is 'iv'"),
    ("photodiode.qe", {"qe": None}, "without wavelengths"),
    ("photodiode.qe.wavelengths", {"qe": {"wavelengths": []}}, "0 wavelengths"),
    ("photodiode.qe.wavelengths[0]", {"qe": {"wavelengths": [0.0]}}, "above 0"),
    ("photodiode.qe.wavelengths.step", {"qe": {"wavelengths": {"from": 400, "to": 1100, "step": 1e-3}}}, "700,001"),
    ("photodiode.qe.wavelengths", {"qe": {"wavelengths": [1500.0]}}, "layer 'p': .*'Si' is known from 250 to 1450"),
    ("photodiode.qe.wavelengths", {"qe": {"wavelengths": [2000.0]}, "light": None}, "no layer absorbs light of 2000"),
    ("photodiode.gain", {"gain": True, "ionisation": True, "curves": ["dark", "lit"]}, "with gain"),
    ("photodiode.scheme", {"scheme": "gummel"}, "with scheme"),
    (
        "photodiode.contacts",
        {
            "width": 2.0,
            "columns": 4,
            "contacts": {"anode": {"y": [0.0, 0.9]}, "cathode": {"at": "top", "y": [1.1, 2.0]}},
        },
        "on the same side",
    ),
    ("photodiode.current", {"bias": None, "current": -1e-3}, "with current"),
    ("photodiode.curves", {"curves": ["dark", "lit"]}, "two curves"),
    ("photodiode.light.wavelength", {"curves": ["lit"]}, "'wavelength' is missing"),
    ("photodiode.mode", {"mode": "qi"}, "iv"),
    (
        "photodiode.layers[0].name",
        {"layers": [SILICON["layers"][0] | {"name": "coatings"}, *SILICON["layers"][1:]]},
        "a layer called 'coatings': A_coatings would mean two things",
    ),
)


@pytest.mark.parametrize(("key", "changes", "words"), WRONG)
def test_wrong_input(key: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=words) as caught:
        model(SILICON, **changes)
    assert caught.value.key == key


def test_the_example_is_shipped(tmp_path: Path) -> None:
    said = load_model("photodiode", tomllib.loads(examples()["si-qe"].read_text()), GridSettings(), tmp_path)
    assert said.steps == 36
