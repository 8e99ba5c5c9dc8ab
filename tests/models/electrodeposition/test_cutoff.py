"""Runs that cannot go on as the model has it: the voltage passes its cut-off, or a salt would not be dissolved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.engine import Engine
from minga.errors import CaseError
from minga.running.loop import Result, drive
from minga.schema import validate
from thinned import thinned

BATH = {"electrolyte": "ZnSO4", "concentration": "0.1 M", "length": "1 mm"}
TIME = {"end": "2 s", "every": "0.25 s", "first": "0.05 s", "tolerance": 0.03}


def run(**said: Any) -> Result:
    grid = validate(GridSettings, {"shape": [8]}, "grid")
    model = load_model("electrodeposition", {"electrodeposition": {**BATH, "time": TIME, **said}}, grid, Path())
    with Engine(model.layouts("slabs", 1), threads=1) as engine:
        return drive(model, engine, model.steps or 0)


@pytest.mark.slow
@pytest.mark.parametrize("condition", thinned(["reversible", "butler-volmer"], "reversible"))
def test_a_run_past_sands_time_ends_at_its_cut_off(condition: str) -> None:
    """In good order: with what was computed, and the reason."""
    result = run(current="1000 A/m2", cathode=condition, anode=condition)
    assert result.outcome.ok
    assert 0 < result.steps < 8
    said = str(result.ended)
    assert "the voltage passed its cut-off of 5 V at t =" in said
    assert "the current is 18.1 times the limiting one" in said
    assert "run out of ions" not in said  # its cells are too wide for that: they are full
    assert "too wide" in said
    # By Butler and Volmer's law half a cell cannot carry the current at any voltage: there is no step that ends nearer.
    assert 5.0 < result.observables["voltage"] < (6.0 if condition == "reversible" else math.inf)
    assert result.observables["current"] == pytest.approx(1000.0, rel=1e-6)
    assert result.observables["total_SO4"] == pytest.approx(0.1, rel=1e-9)


@pytest.mark.slow
def test_a_cut_off_of_its_own() -> None:
    said = str(run(current="1000 A/m2", cutoff="0.5 V").ended)
    assert "its cut-off of 0.5 V" in said
    assert run(current="10 A/m2").ended.reason == "steps"


@pytest.mark.slow
def test_a_depleted_electrode_is_named_and_the_last_step_ends_near_the_cut_off() -> None:
    """The state before it, which is kept too, is within the cut-off."""
    result = run(current="100 A/m2", time={"end": "80 s", "every": "4 s", "tolerance": 0.03}, cutoff="1 V")
    assert 1.0 < result.observables["voltage"] <= 1.2
    assert "times the limiting one, 55.19 A/m2, and the electrode has run out of ions" in str(result.ended)


def test_a_bath_that_needs_more_than_the_cut_off_does_not_start() -> None:
    """As said before the start: 30 A/m2 across 2 m."""
    with pytest.raises(CaseError, match=r"the bath alone needs 22.4 V, more than the cut-off of 1 V") as raised:
        run(length="2 m", current="30 A/m2", cutoff="1 V")
    assert raised.value.key == "electrodeposition.cutoff"
    solids = [{"kind": "cathode", "box": {"y": [0.0, 1.0]}}]  # half of it: that changes the voltage, and is told only
    bath = {**BATH, "length": "2 m", "current": "30 A/m2", "cutoff": "20 V", "solids": solids, "time": TIME}
    model = load_model(
        "electrodeposition", {"electrodeposition": bath}, validate(GridSettings, {"shape": [8]}, "grid"), Path()
    )
    assert "the bath alone would need 22.4 V" in dict(model.notes)["warning"]


def test_a_cut_off_goes_with_a_given_current() -> None:
    with pytest.raises(CaseError, match="the voltage is given"):
        run(voltage=0.1, cutoff=2.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bath", "told"),
    [
        ({"electrolyte": "CuSO4", "concentration": "1 M"}, True),
        pytest.param({"electrolyte": "CuSO4", "concentration": "0.1 M"}, False, marks=pytest.mark.slow),
        # Of a bath ion by ion, without sulphate, no solubility is known.
        pytest.param(
            {
                "electrolyte": None, "concentration": None,
                "species": [
                    {"name": "Cu", "charge": 2, "diffusivity": 0.7e-9, "bulk": 1000.0},
                    {"name": "NO3", "charge": -1, "diffusivity": 1.9e-9, "bulk": 2000.0},
                ],
            },
            False,
            marks=pytest.mark.slow,
        ),
        # The case may give it.
        pytest.param(
            {
                "electrolyte": None, "concentration": None,
                "species": [
                    {"name": "Cu", "charge": 2, "diffusivity": 0.7e-9, "bulk": 1000.0, "solubility": "1.3 M"},
                    {"name": "NO3", "charge": -1, "diffusivity": 1.9e-9, "bulk": 2000.0},
                ],
            },
            True,
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_a_salt_that_would_not_be_dissolved_is_told(bath: Mapping[str, Any], told: bool) -> None:
    """At the anode there is more and more of it."""
    result = run(**{**BATH, **bath}, current="2000 A/m2", time={**TIME, "end": "10 s", "every": "5 s"}, cutoff="20 V")
    texts = [finding.text for finding in result.findings]
    assert any("oversaturated" in text and "Cu 1300 mol/m3" in text and "y = " in text for text in texts) == told


SILVER = [
    {"name": "Ag", "charge": 1, "diffusivity": 1.648e-9, "bulk": 40.0},
    {"name": "NO3", "charge": -1, "diffusivity": 1.9e-9, "bulk": 40.0},
    {"name": "H", "charge": 1, "diffusivity": 9.31e-9, "bulk": 10.0},
]


@pytest.mark.slow
@pytest.mark.parametrize(("anion", "told"), [("SO4", True), ("ClO4", False)])
def test_a_pair_of_ions_that_precipitates_is_told(anion: str, told: bool) -> None:
    """Silver dissolves at the anode, where sulphate gathers; the bath itself is below the solubility product."""
    charge = -2 if anion == "SO4" else -1
    other = {"name": anion, "charge": charge, "diffusivity": 1.07e-9, "bulk": 10.0 / abs(charge)}
    bath = {"electrolyte": None, "concentration": None, "species": [*SILVER, other]}
    times = {**TIME, "end": "10 s", "every": "5 s"}
    result = run(**{**BATH, **bath}, current="20 A/m2", time=times, cutoff="20 V")
    texts = [finding.text for finding in result.findings]
    assert any("product of Ag2SO4, at cell (7,)" in text for text in texts) == told


def test_a_bath_with_a_pair_of_ions_that_precipitates_is_told_before_it_starts() -> None:
    """0.1 M of silver and 0.05 M of sulphate: 5e-4 mol3/l3 against 1.2e-5."""
    grid = validate(GridSettings, {"shape": [8]}, "grid")
    own = {"acid": "H2SO4", "acid_concentration": "0.05 M", "concentration": "0.1 M"}
    texts = {}
    for salt in ("AgNO3", "CuSO4"):
        settings = {**BATH, **own, "electrolyte": salt, "current": "1 A/m2", "time": TIME}
        model = load_model("electrodeposition", {"electrodeposition": settings}, grid, Path())
        texts[salt] = [text for name, text in model.notes if name == "warning" and "Ag2SO4" in text]
    assert texts["CuSO4"] == []
    assert len(texts["AgNO3"]) == 1
    assert "41.7 times its solubility product" in texts["AgNO3"][0]


@pytest.mark.slow
def test_a_bath_that_is_saturated_from_the_beginning_is_told_before_it_starts() -> None:
    grid = validate(GridSettings, {"shape": [8]}, "grid")
    model = load_model(
        "electrodeposition",
        {"electrodeposition": {**BATH, "concentration": "4 M", "time": TIME, "voltage": 0.1}},
        grid,
        Path(),
    )
    assert dict(model.notes)["warning"] == "4000 mol/m3 of Zn: its salt is saturated at about 3300 mol/m3"


@pytest.mark.slow
def test_cell_updates_are_those_of_time_steps() -> None:
    """A step of the run takes as many as errors ask for."""
    result = run(current="10 A/m2")
    assert result.observables["steps_taken"] > result.steps
    rate = 8 * result.observables["steps_taken"] / result.seconds
    assert result.cells_per_second == pytest.approx(rate)
