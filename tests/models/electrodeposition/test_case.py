"""Cells from a case: what the table says is what is solved, and what is wrong is told with its key."""

from __future__ import annotations

import copy
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from minga.case.examples import examples
from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.electrodeposition.case import options_of, problem_of
from minga.models.electrodeposition.preflight import notes_of
from minga.models.electrodeposition.problem import (
    CATHODE,
    FLUID,
    INSULATOR,
    ButlerVolmer,
    Electrode,
    Flux,
    Held,
    Problem,
    Reversible,
)
from model_runs import assert_same, run_model

CASE: dict[str, Any] = {
    "electrolyte": "ZnSO4",
    "concentration": "0.1 M",
    "length": "2 mm",
    "gap": "500 um",
    "width": 1e-3,
    "voltage": 0.1,
    "time": {"end": 10.0},
}
SHAPE = (20, 5, 10)
FINGER = {"place": {"x": "500 um"}, "length": "1 mm", "size": "200 um"}


def problem(folder: Path, shape: tuple[int, ...] | None = SHAPE, ends: object = None, **changes: Any) -> Problem:
    section = copy.deepcopy(CASE) | changes
    section = {key: value for key, value in section.items() if value is not None}
    said = read_settings("electrodeposition", section)
    options_of(said)
    return problem_of(said, GridSettings(shape=shape, boundary=ends), folder)


def plane(folder: Path, **changes: Any) -> Problem:
    """A cell without a width."""
    return problem(folder, (20, 5), width=None, **changes)


def test_a_cell_is_what_the_table_says(tmp_path: Path) -> None:
    found = problem(tmp_path, periodic=["x"], orientation="horizontal")
    assert found.grid.axes == ("y", "z", "x")
    assert found.grid.periodic == (False, False, True)
    assert [float(found.grid.faces(a)[-1]) for a in "yzx"] == pytest.approx([2e-3, 5e-4, 1e-3])
    assert [(s.name, s.charge, s.bulk) for s in found.species] == [("Zn", 2, 100.0), ("SO4", -2, 100.0)]
    assert (found.voltage, found.current, found.flow) == (0.1, None, True)
    assert found.gravity == (0.0, -9.81, 0.0)
    assert (found.steps.end, found.steps.every, found.steps.first) == (10.0, 0.1, 1e-3)
    assert found.cathode == found.anode == Electrode({"Zn": Reversible(100.0)})


def test_orientations(tmp_path: Path) -> None:
    """Gravity points from the cathode to the anode where the cathode is above."""
    assert plane(tmp_path, orientation="cathode-above").gravity == (9.81, 0.0)
    assert plane(tmp_path, orientation="cathode-below").gravity == (-9.81, 0.0)
    assert plane(tmp_path, orientation=[0, -1.62]).gravity == (0.0, -1.62)
    still = plane(tmp_path)
    assert (still.gravity, still.flow) == ((0.0, 0.0), False)
    assert plane(tmp_path, flow=True).flow
    assert not plane(tmp_path, orientation="horizontal", flow=False).flow


def test_a_bath_with_acid_is_neutral(tmp_path: Path) -> None:
    found = problem(tmp_path, electrolyte="CuSO4", acid="H2SO4", acid_concentration="10 mM")
    assert {s.name: s.bulk for s in found.species} == {"Cu": 100.0, "SO4": 110.0, "H": 20.0}


def test_conditions_in_words_and_tables(tmp_path: Path) -> None:
    found = plane(
        tmp_path,
        cathode={"Zn": {"exchange": "3 mA/cm2", "equilibrium": "-20 mV"}, "SO4": "blocked", "stern": "0.5 nm"},
        anode="balance",
    )
    assert found.cathode == Electrode({"Zn": ButlerVolmer(30.0, 100.0, -0.02)}, 0.5e-9)
    assert found.anode == Electrode({"Zn": Flux(None)})
    found = plane(tmp_path, cathode="sink", anode={"Zn": {"flux": 2e-5}, "SO4": {"held": "50 mM"}})
    assert found.cathode == Electrode({"Zn": Held(0.0)})
    assert found.anode == Electrode({"Zn": Flux(2e-5), "SO4": Held(50.0)})


def test_scaled_cells(tmp_path: Path) -> None:
    found = problem_of(
        read_settings("electrodeposition", {"scaled": True, "debye": 0.05, "voltage": 4, "time": {"end": 1.0}}),
        GridSettings(shape=(16,)),
        tmp_path,
    )  # fmt: skip
    assert [(s.charge, s.diffusivity, s.bulk) for s in found.species] == [(1, 1.0, 1.0), (-1, 1.0, 1.0)]
    assert found.constants.permittivity == pytest.approx(2 * 0.05**2)
    assert (found.beta, float(found.grid.faces("y")[-1])) == (1.0, 1.0)
    assert found.cathode == found.anode == Electrode({"cation": Held(1.0)})


def test_cells_of_unequal_width(tmp_path: Path) -> None:
    found = problem(tmp_path, stretched={"y": "cosine", "z": {"geometric": 1.2}, "x": {"geometric": 1.1, "at": "low"}})
    y, z, x = (found.grid.widths(axis) for axis in "yzx")
    assert [w.sum() for w in (y, z, x)] == pytest.approx([2e-3, 5e-4, 1e-3])
    assert y[0] == pytest.approx(1e-3 * (1 - np.cos(np.pi / 20)))
    assert z[1:3] / z[:2] == pytest.approx(1.2)
    assert z[::-1] == pytest.approx(z)
    assert x[1:] / x[:-1] == pytest.approx(1.1)


def test_fingers_boxes_and_volumes(tmp_path: Path) -> None:
    kinds = problem(tmp_path, fingers=[FINGER]).kinds
    assert kinds is not None
    expected = np.zeros(SHAPE, np.uint8)
    expected[:10, 1:4, 4:6] = CATHODE
    assert np.array_equal(kinds, expected)
    half = {"kind": "insulator", "box": {"y": ["1 mm", "1.2 mm"], "x": [0, "500 um"]}}
    mixed = problem(tmp_path, fingers=[FINGER | {"place": {"x": "800 um"}}], solids=[half]).kinds
    assert mixed is not None
    assert (mixed[10:12, :, :5] == INSULATOR).all()
    assert np.count_nonzero(mixed == INSULATOR) == 2 * 5 * 5
    np.save(tmp_path / "all.npy", mixed)
    again = problem(tmp_path, solids=[{"file": "all.npy"}]).kinds
    assert again is not None
    assert np.array_equal(again, mixed)
    np.save(tmp_path / "mask.npy", mixed == CATHODE)
    masked = problem(tmp_path, solids=[{"file": "mask.npy", "kind": "insulator", "box": None}]).kinds
    assert masked is not None
    assert np.array_equal(masked == INSULATOR, mixed == CATHODE)


def test_an_image_is_extruded_across_the_gap(tmp_path: Path) -> None:
    """Of any number of pixels, the first row at the cathode."""
    pixels = np.full((40, 30), 255, np.uint8)
    pixels[:20, 9:12] = 0
    Image.fromarray(pixels).save(tmp_path / "finger.png")
    kinds = problem(tmp_path, solids=[{"image": "finger.png", "kind": "cathode", "across": [0, "200 um"]}]).kinds
    assert kinds is not None
    expected = np.zeros(SHAPE, np.uint8)
    expected[:10, :2, 3] = CATHODE
    assert np.array_equal(kinds, expected)
    turned = problem(tmp_path, solids=[{"image": "finger.png", "kind": "insulator", "plane": "zx"}]).kinds
    assert turned is not None
    assert (turned[:, :2, 3] == INSULATOR).all()
    assert np.count_nonzero(turned) == 20 * 2


def test_noise_keeps_the_bath_neutral(tmp_path: Path) -> None:
    first, again = (plane(tmp_path, noise=0.01, seed=seed).initial for seed in (1, 1))
    other = plane(tmp_path, noise=0.01, seed=2).initial
    assert np.array_equal(first["Zn"], again["Zn"])
    assert not np.array_equal(first["Zn"], other["Zn"])
    assert np.array_equal(first["Zn"], first["SO4"])
    assert 0.5 < np.abs(first["Zn"] - 100).max() <= 1.0


CELLS = [
    "couple", "electroconvection", "fingers", "growth", "membrane", "pnp-1d", "voltammetry", "zn-cell",
    "zn-cell-cathode-above", "zn-cell-cathode-below",
]  # fmt: skip


@pytest.mark.parametrize("name", CELLS)
def test_the_examples_say_what_to_expect(name: str) -> None:
    path = examples()[name]
    table = tomllib.loads(path.read_text())
    said = read_settings("electrodeposition", table["electrodeposition"])
    found = problem_of(said, GridSettings(**table["grid"]), path.parent)
    notes = dict(notes_of(found, scaled=said.scaled))
    assert {"ions", "Debye length", "groups", "time"} <= set(notes)
    assert ("limiting current" in notes) == (name not in ("couple", "voltammetry"))  # of a bath with acid none is known
    assert ("rolls" in notes) == (said.orientation == "horizontal")
    assert ("solid" in notes) == (name == "fingers")
    assert ("charging" in notes) == (name in ("couple", "voltammetry"))
    assert notes.get("flow", "").startswith(
        "kappa 1, " if name == "electroconvection" else "kappa 0.6" if said.flow else ""
    )
    assert "warning" not in notes


def test_times_of_scaled_cases_have_no_unit() -> None:
    for name, unit in (("pnp-1d", "1"), ("voltammetry", "s")):
        table = tomllib.loads(examples()[name].read_text())
        clock = load_model("electrodeposition", table, GridSettings(**table["grid"]), Path()).clock
        assert clock is not None
        assert clock.unit == unit


def test_a_program_that_outlasts_the_run_is_told(tmp_path: Path) -> None:
    for end, told in ((5.0, True), (20.0, False)):
        found = problem(
            tmp_path, voltage=None, program=[{"hold": "0.1 V", "time": "10 s"}], time={"end": end, "every": 1.0}
        )
        assert ("the run ends before, at 5 s" in dict(notes_of(found))["program"]) == told


def test_cells_too_wide_for_an_impedance_are_told(tmp_path: Path) -> None:
    """Ions diffuse sqrt(D / w), 107 um at 0.01 Hz; the first of 8 cells of 4 mm is 500 um wide."""
    for low, told in ((1e-2, True), (1e-6, False)):
        program = [{"impedance": "0 V", "amplitude": "1 mV", "frequencies": [low]}]
        found = problem(tmp_path, voltage=None, program=program, time={"every": 1.0})
        assert ("diffusion is right to 1 %" in dict(notes_of(found)).get("warning", "")) == told


def test_a_first_cell_whose_charging_delays_an_impedance_is_told(tmp_path: Path) -> None:
    """2 eps/h w L/sigma: in a bath of 2 mm with a first cell of 13 nm, but not with a reference 1 um away."""
    thin = {"y": {"geometric": 1.8, "at": "low"}}
    program = [{"impedance": "0 V", "amplitude": "1 mV", "frequencies": ["1 kHz"]}]
    given: Any = {"voltage": None, "program": program, "time": {"every": 1.0}, "stretched": thin}
    for more, told in (({}, True), ({"reference": "1 um"}, False), ({"cathode": {"capacity": 0.2}}, False)):
        found = problem(tmp_path, **given, **more)
        texts = [text for name, text in notes_of(found) if name == "warning" and "the current of the ions lags" in text]
        assert bool(texts) == told
        if told:
            first = float(found.grid.widths("y")[0])
            conductivity = sum(s.charge**2 * s.diffusivity * s.bulk for s in found.species) * 96485.33212 * found.beta
            lag = 2e3 * math.pi * 2 * found.constants.permittivity / first * 2e-3 / conductivity
            assert f"lags by {lag:.2g} rad" in texts[0]


@pytest.mark.parametrize(("gap", "told"), [("500 um", True), ("1 mm", False)])
def test_rolls_are_predicted_for_thin_cells_only(gap: str, told: bool, tmp_path: Path) -> None:
    assert ("rolls" in dict(notes_of(plane(tmp_path, orientation="horizontal", gap=gap)))) == told


def test_a_note_tells_that_diffusivities_are_those_of_25_c(tmp_path: Path) -> None:
    """Water is 1.63 times as viscous at 25 C as at 50 C (0.890 and 0.547 mPa s)."""
    notes = dict(notes_of(problem(tmp_path, constants={"temperature": 323.15})))
    assert "here ions diffuse about 1.76 times as fast" in notes["temperature"]
    assert "temperature" not in dict(notes_of(problem(tmp_path, constants={"temperature": 298.15})))


def test_ions_run_out_beyond_the_limiting_current_only(tmp_path: Path) -> None:
    for current, words in (("1 mA/cm2", "ions never run out"), ("5 mA/cm2", "the cathode runs out of ions")):
        notes = dict(notes_of(problem(tmp_path, voltage=None, current=current)))
        assert words in notes["Sand's time"]


def test_the_current_that_charges_the_first_cell_is_that_of_a_plate_capacitor(tmp_path: Path) -> None:
    given: Any = {"voltage": None, "program": [{"cycle": ["0 V", "0.1 V", "0 V"], "rate": "0.5 V/s"}]}
    found = problem(tmp_path, **given)
    current = found.constants.permittivity * 0.5 / (0.5 * found.grid.widths("y")[0])
    assert dict(notes_of(found))["charging"].startswith(f"{current:.3g} A/m2")


BAD_SPECIES = [
    {"name": "Zn", "charge": 2, "diffusivity": 1e-9, "bulk": 100.0},
    {"name": "Cl", "charge": -1, "diffusivity": 1e-9, "bulk": 150.0},
]
NO_BATH = {"electrolyte": None, "concentration": None}
UNKNOWN = [BAD_SPECIES[0] | {"name": "Me"}, BAD_SPECIES[1] | {"bulk": 200.0}]
NO_IONS = [BAD_SPECIES[0] | {"bulk": 0.0}, {"name": "water", "charge": 0, "diffusivity": 1e-9, "bulk": 5e4}]
WALL = {"kind": "insulator", "box": {"y": ["0.9 mm", "1.2 mm"]}}
LID = {"kind": "insulator", "box": {"y": ["1.9 mm", "2 mm"]}}
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"electrolyte": "ZnSO5"}, "electrodeposition.electrolyte", "did you mean 'ZnSO4'"),
    ({"constants": {"temperature": 25}}, "electrodeposition.constants.temperature", "at least 200"),
    ({"electrolyte": None, "concentration": None}, "electrodeposition.electrolyte", "what is in the bath"),
    ({"concentration": None}, "electrodeposition.concentration", "missing"),
    ({"concentration": -5.0}, "electrodeposition.concentration", "above 0"),
    ({"concentration": "5 miles"}, "electrodeposition.concentration", "mol/m3"),
    ({"acid": "H2SO3", "acid_concentration": 1.0}, "electrodeposition.acid", "did you mean 'H2SO4'"),
    ({"acid_concentration": 1.0}, "electrodeposition.acid_concentration", "there is no acid"),
    ({"species": BAD_SPECIES}, "electrodeposition.electrolyte", "both species and"),
    (
        {"species": BAD_SPECIES, "electrolyte": None, "concentration": None},
        "electrodeposition.species",
        "with 200 mol/m3 of Cl it would be",
    ),
    (
        {
            "species": [BAD_SPECIES[0] | {"bulk": -1.0}, BAD_SPECIES[1]],
            "electrolyte": None,
            "concentration": None,
        },
        "electrodeposition.species[0].bulk",
        "-1 mol/m3",
    ),
    ({"metal": "Cu"}, "electrodeposition.metal", "name one of Zn, SO4"),
    ({"length": None}, "electrodeposition.length", "no length"),
    ({"length": -1.0}, "electrodeposition.length", "above 0"),
    ({"gap": None}, "grid.shape", "gap (z)"),
    ({"voltage": None}, "electrodeposition.voltage", "neither"),
    ({"current": 5.0}, "electrodeposition.voltage", "both"),
    ({"cathode": "hold"}, "electrodeposition.cathode", "did you mean 'held'"),
    ({"cathode": {"So4": "held"}}, "electrodeposition.cathode.So4", "did you mean 'SO4'"),
    ({"cathode": {"Zn": {"held": 1.0, "flux": 1.0}}}, "electrodeposition.cathode.Zn", "found held, flux"),
    ({"cathode": {"Zn": {"held": 1.0, "transfer": 0.3}}}, "electrodeposition.cathode.Zn.transfer", "exchange"),
    ({"cathode": {"SO4": {"exchange": 1.0}}}, "electrodeposition.cathode.SO4", "cations"),
    ({"cathode": {"SO4": {"exchange": 1.0, "electrons": 2}}}, "electrodeposition.cathode.SO4", "cations"),
    ({"cathode": {"stern": "thin"}}, "electrodeposition.cathode.stern", "expected metres"),
    ({"cathode": "balance", "anode": "balance"}, "electrodeposition.anode.Zn", "at both"),
    ({"cathode": "blocked", "anode": "balance"}, "electrodeposition.anode", "does not pass"),
    ({"anode": {"Zn": "balance", "SO4": "balance"}}, "electrodeposition.anode.SO4", "one ion balances"),
    ({"voltage": None, "current": 5.0, "anode": "balance"}, "electrodeposition.anode.Zn", "the current is given"),
    ({"voltage": None, "current": 5.0, "cathode": {"Zn": {"flux": -1e-5}}}, "electrodeposition.cathode", "prescribed"),
    ({"voltage": None, "current": 5.0, "anode": "blocked"}, "electrodeposition.anode", "no ion passes"),
    ({"fingers": [FINGER | {"length": "2 mm"}]}, "electrodeposition.fingers[0].length", "electrodes touch"),
    ({"fingers": [FINGER | {"length": "1.99 mm"}]}, "electrodeposition.fingers", "electrodes touch"),
    ({"fingers": [FINGER | {"place": {"x": "2 mm"}}]}, "electrodeposition.fingers[0].place.x", "leaves the cell"),
    ({"fingers": [FINGER | {"size": "700 um"}]}, "electrodeposition.fingers[0].size", "0.0005 along z"),
    ({"fingers": [FINGER | {"size": "1 um"}]}, "electrodeposition.fingers[0].size", "thinner than the cells"),
    ({"solids": [{"kind": "anode"}]}, "electrodeposition.solids[0]", "none of them"),
    ({"solids": [{"box": {"y": [0, 1e-3]}}]}, "electrodeposition.solids[0].kind", 'write kind = "cathode"'),
    ({"solids": [{"box": {"y": [0, 3e-3]}, "kind": "cathode"}]}, "electrodeposition.solids[0].box.y", "inside"),
    ({"solids": [{"box": {}, "kind": "insulator"}]}, "electrodeposition.solids", "no cell is left"),
    ({"solids": [{"box": {"y": [0, 1e-3]}, "kind": "anode"}]}, "electrodeposition.solids", "electrodes touch"),
    ({"solids": [{"file": "none.npy"}]}, "electrodeposition.solids[0].file", "there is no file"),
    ({"solids": [{"file": "short.npy"}]}, "electrodeposition.solids[0].file", "has the shape [3]"),
    ({"solids": [{"file": "floats.npy"}]}, "electrodeposition.solids[0].file", "float64"),
    ({"solids": [{"file": "words.txt"}]}, "electrodeposition.solids[0].file", "not a .npy file"),
    ({"solids": [{"file": "broken.npy"}]}, "electrodeposition.solids[0].file", "cannot be read"),
    ({"solids": [{"image": "words.txt", "kind": "anode"}]}, "electrodeposition.solids[0].image", "as a picture"),
    ({"scheme": "explicit"}, "electrodeposition.scheme", "'semi-implicit' or 'relaxation'"),
    ({"relaxation": {"order": "red-black"}}, "electrodeposition.relaxation", 'scheme = "relaxation"'),
    ({"time": {"end": 10.0, "every": 30.0}}, "electrodeposition.time.every", "every (30 s) is longer than end (10 s)"),
    ({"time": {"end": 1.0, "every": 4.0}}, "electrodeposition.time.every", "every (4 s) is longer than end (1 s)"),
    ({"time": {"end": 10.0, "first": 3.0}}, "electrodeposition.time.first", "or shorter"),
    ({"orientation": [1.0]}, "electrodeposition.orientation", "y, z, x"),
    ({"orientation": "upright"}, "electrodeposition.orientation", "horizontal"),
    ({"constants": {"permittivity": 1.0}, "debye": 1e-6}, "electrodeposition.debye", "leave one of them out"),
    ({"stretched": {"y": {"geometric": 3.0, "at": "low"}}}, "electrodeposition.stretched.y", "nearer to 1"),
    ({"periodic": ["y"]}, "electrodeposition.periodic[0]", "'z' or 'x'"),
    ({"metal": "SO4"}, "electrodeposition.metal", "only cations can be deposited"),
    ({"growth": True, "species": UNKNOWN, **NO_BATH}, "electrodeposition.growth.volume", "molar volume"),
    ({"growth": True, "cathode": "blocked"}, "electrodeposition.growth", "Zn does not pass at the cathode"),
    ({"species": NO_IONS, **NO_BATH}, "electrodeposition.species", "nothing conducts"),
    ({"solids": [WALL]}, "electrodeposition.solids", "no solution leads from the cathode to the anode"),
    ({"solids": [WALL], "periodic": ["x"]}, "electrodeposition.solids", "keep them apart"),
    ({"solids": [LID], "fingers": [FINGER]}, "electrodeposition.fingers", "beside each of them"),
    ({"voltags": 1.0, "voltage": None}, "electrodeposition.voltags", "did you mean 'voltage'"),
    (
        {
            "scheme": "relaxation",
            "flow": True,
            "solids": [{"kind": "insulator", "box": {"y": [5e-4, 8e-4], "z": [1e-4, 4e-4], "x": [2e-4, 6e-4]}}],
        },
        "electrodeposition.scheme",
        "attached to no wall",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "key", "words"), WRONG, ids=lambda value: str(value)[:40])
def test_what_is_wrong_is_told_with_its_key(tmp_path: Path, changes: dict[str, Any], key: str, words: str) -> None:
    np.save(tmp_path / "short.npy", np.zeros(3, np.uint8))
    np.save(tmp_path / "floats.npy", np.zeros(SHAPE))
    (tmp_path / "words.txt").write_text("words\n")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY and then nothing")
    with pytest.raises(CaseError) as caught:
        problem(tmp_path, **changes)
    assert caught.value.key == key
    assert words in str(caught.value)
    assert caught.value.remedy or caught.value.suggestion


def test_a_grid_must_fit_the_cell(tmp_path: Path) -> None:
    for shape, words in ((None, "shape = [64, 64, 64]"), ((20, 5), "y, z, x"), ((3, 5, 5), "too few")):
        with pytest.raises(CaseError, match=r"grid\.shape") as caught:
            problem(tmp_path, shape)
        assert words in str(caught.value)
    with pytest.raises(CaseError, match="periodic"):
        problem(tmp_path, ends="periodic")
    with pytest.raises(CaseError, match="no axis 'x' to be stretched along"):
        plane(tmp_path, stretched={"x": "cosine"})
    with pytest.raises(CaseError, match="no axis 'x' to be periodic along"):
        plane(tmp_path, periodic=["x"])
    with pytest.raises(CaseError, match="along one axis"):
        problem(tmp_path, (20,), gap=None, width=None, flow=True)


def test_solids_that_reach_a_wall_are_attached(tmp_path: Path) -> None:
    """The flow's vector potential is known on them; without flow it does not matter."""
    pillar = {"kind": "insulator", "box": {"y": [5e-4, 8e-4], "x": [2e-4, 6e-4]}}
    assert problem(tmp_path, scheme="relaxation", flow=True, solids=[pillar]).kinds is not None
    loose = {"kind": "insulator", "box": {"y": [5e-4, 8e-4], "z": [1e-4, 4e-4], "x": [2e-4, 6e-4]}}
    assert problem(tmp_path, scheme="relaxation", solids=[loose]).kinds is not None
    kinds = problem(tmp_path, flow=True, solids=[loose]).kinds
    assert kinds is not None
    assert (kinds == FLUID).sum() == kinds.size - 3 * 3 * 4


def example_model(name: str, **changes: Any) -> Model:
    path = examples()[name]
    table = tomllib.loads(path.read_text())
    table["electrodeposition"] |= changes
    return load_model("electrodeposition", table, GridSettings(**table["grid"]), path.parent)


@pytest.mark.slow
def test_the_current_through_a_double_layer() -> None:
    """The example of one dimension, on three ranks as on one, against the exact steady current (four digits)."""
    found = run_model(example_model("pnp-1d"), 2)
    assert_same(found, run_model(example_model("pnp-1d"), 2, ranks=3))
    assert found.observables["J_over_Jlim"] == pytest.approx(0.8590507, abs=5e-5)
    assert found.observables["total_anion"] == pytest.approx(1.0, abs=1e-10)
    assert 0.44 < found.observables["depleted_to"] < 0.46
    assert 0.56 < found.observables["enriched_to"] < 0.58
    assert example_model("pnp-1d").steps == 20
    assert example_model("pnp-1d").conserved == ("total_cation", "total_anion")
