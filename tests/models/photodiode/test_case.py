"""Devices from a case as they are run: the examples, their bands, their curves and their pictures."""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from command_line import in_process
from minga.case.examples import examples
from minga.case.load import load_model, read_settings
from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.photodiode.biases import search_of
from minga.models.photodiode.case import device_of, pointwise_options
from minga.models.photodiode.review import of_search
from minga.models.photodiode.structure.depletion import Depletion

DEVICES = ("apd", "msm", "pin-ac", "pin-inp", "planar", "si-1")  # recovery is a transient, see test_transients.py


def example_model(name: str, grid: dict[str, Any] | None = None, **changes: Any) -> Model:
    path = examples()[name]
    tables = tomllib.loads(path.read_text())
    tables["photodiode"] |= changes
    return load_model("photodiode", tables, GridSettings(**grid or {}), path.parent)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", DEVICES)
def test_examples_are_devices(name: str) -> None:
    model = example_model(name)
    assert model.steps == {"apd": 31, "msm": 25, "pin-ac": 2, "pin-inp": 47, "planar": 3, "si-1": 9}[name]
    assert model.tables["iv"][:2] == ("V", "J")
    titles = [drawing.title for drawing in model.presentation.drawings]
    assert titles[0] == "Current density"
    assert ("Gain" in titles) == (name == "apd")
    assert any(title.startswith("Bands") for title in titles)
    assert {"conduction_band", "valence_band", "electron_fermi", "hole_fermi"} <= set(model.output)


@pytest.mark.few(1)
def test_noise_is_drawn_over_the_voltage() -> None:
    model = example_model("apd", mode="noise", noise={"area": 1e-5, "load": "1 kohm"})
    lines = {drawing.title: drawing.lines for drawing in model.presentation.drawings}
    assert lines["Excess noise factor"] == {"dark": "F", "lit": "F_lit"}
    assert lines["Noise-equivalent power"] == {"dark": "NEP", "lit": "NEP_lit"}


@pytest.mark.slow
def test_options_of_the_pointwise_scheme() -> None:
    options = {"across": "block", "segments": 7, "cost": "synthetic", "heavy": "Absorp", "inner_sweeps": 2}
    device_file = tomllib.loads(examples()["apd"].read_text())["photodiode"] | {"gain": False, "scheme": "pointwise"}
    device_file["mesh"]["coarsen"] = 20
    said = read_settings("photodiode", device_file | {"pointwise": options})
    how = pointwise_options(said, device_of(said, Path()))
    assert (how.across, how.cost, how.inner_sweeps) == ("block", "synthetic", 2)
    assert how.segments == (0, 13, 26, 39, 52, 65, 78, 91)
    assert how.heavy == (60, 66)
    model = load_model("photodiode", {"photodiode": device_file}, GridSettings(), Path())
    assert model.steps == 31
    for options, words in (
        ({"heavy": "Absorb"}, "there is no layer 'Absorb'"),
        ({"segments": 92}, "92 segments, but only 91 rows"),
    ):
        said = read_settings("photodiode", device_file | {"pointwise": options})
        with pytest.raises(CaseError, match=words):
            pointwise_options(said, device_of(said, Path()))
    with pytest.raises(CaseError, match="whose scheme is 'newton'"):
        example_model("apd", pointwise={"across": "block"})


def test_the_grid_is_the_devices_own() -> None:
    with pytest.raises(CaseError, match="follows from its layers"):
        example_model("si-1", {"shape": (100,)})


@pytest.mark.slow
def test_a_run_leaves_bands_tables_and_pictures(tmp_path: Path) -> None:
    run = tmp_path / "run"
    wanted = "photodiode.bias=[0.3, -1.9, -1.0]"  # -1.9 V would come back from kT/q as -1.9000000000000001
    said = in_process("run", "si-1", "-n", "1", "--set", wanted, "--json", "--out", run)
    assert said.status == 0, said.err
    table = json.loads(said.out)["iv"]
    assert [row["V"] for row in table] == [0.3, -1.9, -1.0]
    assert table[0]["J"] == pytest.approx(4.0301426225e-06, rel=1e-9)
    assert (run / "iv.csv").read_text().startswith("V,J\n0.3,4.03014262")
    pictures = {path.name for path in (run / "pictures").iterdir()}
    assert pictures == {"bands-dark.png", "carriers-dark.png", "current-density.png", "field.png"}
    page = (run / "report.html").read_text()
    for title in ("Current density", "Bands, dark, -1 V", "Carriers, dark, -1 V"):
        assert f"<h3>{title}" in page
    assert "built-in voltage" in page
    check_bands(run)


def check_bands(run: Path) -> None:
    """The gap between the bands, the voltage between the contacts, the majorities' levels flat, densities that fit."""
    import xarray

    with xarray.open_zarr(run / "fields.zarr", chunks=None) as found:
        last = found.isel(time=-1).load()
    conduction, valence = last.conduction_band.values, last.valence_band.values
    electron, hole = last.electron_fermi.values, last.hole_fermi.values
    assert electron[-1] == pytest.approx(0.0, abs=1e-12)
    assert hole[0] == pytest.approx(1.0, abs=1e-12)
    assert electron[0] == pytest.approx(1.0, abs=1e-9)
    vt = 0.0258519998
    gap = 2 * vt * np.log(np.sqrt(2.8e19 * 1.04e19) / 1e10)
    assert conduction - valence == pytest.approx(np.full(679, gap + 0 * gap), abs=0.25)
    density = 2.8e19 * np.exp((electron - conduction) / vt)
    assert density == pytest.approx(last.electrons.values, rel=1e-6)


def test_a_layer_is_changed_by_its_name_or_number() -> None:
    for place in ("layers.Charge", "layers[2]"):
        said = in_process("plan", "apd", "--set", f"photodiode.{place}.n=2e16", "--set", "photodiode.bias=nothing")
        assert "photodiode.bias: expected" in said.err, "what is set there is right"
        said = in_process("plan", "apd", "--set", f"photodiode.{place}.n=-2e16")
        assert "photodiode.layers[2].n: expected a number of at least 0 (1/cm3)" in said.err
        assert f"at: --set photodiode.{place}.n=-2e16" in said.err
    said = in_process("plan", "apd", "--set", "photodiode.layers.Charges.n=2e16")
    assert "did you mean 'Charge'?" in said.err
    said = in_process("plan", "apd", "--set", "photodiode.layers[7].n=2e16")
    assert "no entry '7' in a list of 7" in said.err


@pytest.mark.slow
def test_breakdown_is_searched_for() -> None:
    found = mg.run((model := example_model("pin-inp", mode="breakdown", bias=None)), model.steps).attrs
    assert found["breakdown"] == pytest.approx(-43.33, abs=0.03)  # where 1/M is extrapolated from
    short = example_model("pin-inp", mode="breakdown", bias=None, breakdown={"to": -20.0})
    assert math.isnan(mg.run(short, short.steps).attrs["breakdown"])


SILICON = [
    {"name": "p", "material": "Si", "thickness": 0.2, "p": 1e18},
    {"name": "drift", "material": "Si", "thickness": 30.0, "n": 1e14},
    {"name": "n", "material": "Si", "thickness": 0.2, "n": 1e18},
]


def searched(layers: list[dict[str, Any]], **changes: Any) -> tuple[float, ...]:
    """The voltages of a search for breakdown."""
    said = {
        "mode": "breakdown", "ionisation": True, "layers": layers, "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "mesh": {"graded": {"first": "5 nm", "growth": 1.5, "cap": "1 um"}},
    }  # fmt: skip
    settings = read_settings("photodiode", said | changes)
    return search_of(settings, device_of(settings, Path()))


@pytest.mark.slow
def test_a_search_goes_in_reverse_and_beyond_the_estimate() -> None:
    found = searched(SILICON)
    estimate = Depletion.of(device_of(read_settings("photodiode", {
        "bias": 0.0, "ionisation": True, "layers": SILICON, "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "mesh": {"graded": {"first": "5 nm", "growth": 1.5, "cap": "1 um"}}}), Path()))  # fmt: skip
    assert estimate is not None
    voltage = estimate.breakdown()
    assert voltage is not None
    assert voltage < -400.0
    assert found[0] == 0.0
    assert found[-1] == pytest.approx(1.25 * voltage, rel=5e-3)
    assert searched([SILICON[0], SILICON[1] | {"thickness": 3.0}, SILICON[2]])[-1] == -200.0
    mirrored = [SILICON[2], {"name": "drift", "material": "Si", "thickness": 3.0, "p": 1e15}, SILICON[0]]
    assert searched(mirrored)[-1] == 200.0
    assert searched(mirrored, breakdown={"to": 60.0})[-1] == 60.0
    with pytest.raises(CaseError, match="forward direction, up to -60 V: the n side is at the anode") as caught:
        searched(mirrored, breakdown={"to": -60.0})
    assert caught.value.key == "photodiode.breakdown.to"
    with pytest.raises(CaseError, match="forward direction, up to 60 V: the p side is at the anode"):
        searched(SILICON, breakdown={"to": 60.0})


def test_a_search_without_a_breakdown_says_so() -> None:
    review = of_search(None)
    finding = review({}, {"V": -20.0, "breakdown": math.nan})
    assert finding is not None
    assert "no breakdown up to -20 V" in finding.text
    assert "to = -40" in finding.text
    assert review({}, {"V": -20.0, "breakdown": -19.5}) is None
    model = example_model("pin-inp", mode="breakdown", bias=None)
    assert model.review is not None
    assert model.review({}, {"V": -20.0, "M": 2.0, "breakdown": math.nan}) is not None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mode": "breakdown"}, 'mode = "breakdown" with bias: it chooses the voltages itself'),
        ({"mode": "breakdown", "bias": None, "ionisation": False}, 'mode = "breakdown" without ionisation'),
        ({"mode": "breakdown", "bias": None, "breakdown": {"to": 0.0}}, "a search for breakdown up to 0 V"),
        ({"breakdown": {"to": -20.0}}, "[photodiode.breakdown] in a case whose mode is 'iv'"),
    ],
)
def test_wrong_searches_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError, match=re.escape(words)):
        example_model("pin-inp", **changes)
