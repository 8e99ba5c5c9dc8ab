"""What is said where a device cannot be solved, and where it breaks down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.models.photodiode.model import photodiode
from minga.models.photodiode.solver.failures import place_words
from minga.models.photodiode.solver.problem import Problem

sys.path.insert(0, str(Path(__file__).parents[2]))

from physics.photodiodes import apd, silicon


@pytest.mark.slow
def test_a_failure_names_curve_voltage_layer_and_what_to_do() -> None:
    model = photodiode(silicon(101), Problem((0.5,), ionisation=False, limit=1))
    with pytest.raises(mg.RunError, match=r"the dark curve could not be followed beyond [0-9.]+ V") as caught:
        mg.run(model, steps=1)
    assert "layer 'p'" in str(caught.value) or "layer 'n'" in str(caught.value)
    assert "photodiode.limit" in str(caught.value)


def test_where_gummels_iteration_fails_it_is_not_the_dopings_fault() -> None:
    problem = Problem((0.9,), ionisation=False, scheme="gummel", limit=1, smallest_step=0.05)
    with pytest.raises(mg.RunError, match='write scheme = "newton"') as caught:
        mg.run(photodiode(silicon(101), problem), steps=1)
    assert "doping" not in str(caught.value)


@pytest.mark.slow
def test_a_run_ends_well_at_breakdown() -> None:
    found = mg.run(photodiode(apd(10), Problem((-60.0, -70.0, -80.0))), steps=3)
    assert "breakdown at 66.5" in found.attrs["ended"]
    assert found.attrs["steps"] == 2
    assert found.attrs["V"] == pytest.approx(-66.5, abs=0.1)


@pytest.mark.slow
def test_a_row_has_results_of_its_own_voltage_only() -> None:
    """Curves break down at different voltages: what belongs to another one, or to the row before, is NaN."""
    layers: list[dict[str, Any]] = [
        {"material": "InP", "thickness": 0.3, "p": 1e18},
        {"material": "InP", "thickness": 1.0, "n": 1e15},
        {"material": "InP", "thickness": 0.3, "n": 1e18},
    ]
    table = {
        "bias": [-40.0, -50.0], "curves": ["dark", "lit"], "ionisation": True, "quasistatic_capacitance": True,
        "current_parts": True, "layers": layers, "contacts": {"anode": "ohmic", "cathode": "ohmic"},
        "light": {"wavelength": 920.0, "power": "1 mW/cm2", "side": "anode"},
        "mesh": {"graded": {"first": "5 nm", "growth": 1.6, "cap": "200 nm"}},
    }  # fmt: skip
    model = load_model("photodiode", {"photodiode": table}, GridSettings(), Path())
    found = mg.run(model, model.steps).isel(observed=slice(1, None))
    volts, broken = found["V"].values, ~np.isnan(found["breakdown"].values)
    assert broken.tolist() == [False, True]
    assert volts[1] == pytest.approx(-43.96, abs=0.05)
    assert np.isfinite(found["J"].values).all()
    assert found["M"].values[1] > 100.0
    for name in ("J_lit", "M_lit", "E_max_lit", "uniformity_lit", "J_light_lit", "C_quasistatic", "C_quasistatic_lit"):
        assert np.isnan(found[name].values).tolist() == [False, True], name


def test_places_are_layers_depths_and_nodes() -> None:
    assert place_words(apd(10), 100) == "layer 'Charge', 2.512 um from the anode (node 100)"
    assert place_words(apd(10, columns=3), 301) == "layer 'Charge', 2.512 um from the anode (node 100)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no voltage is given"),
        ({"bias": (1.0,), "current": (1.0,)}, "both voltages and currents"),
        ({"current": (1.0,), "curves": ("dark", "lit")}, "more than one curve"),
        ({"bias": (1.0,), "curves": ()}, "curves"),
        ({"bias": (1.0,), "gain": True}, "gain requires both curves"),
        ({"bias": (1.0,), "gain": True, "curves": ("dark", "lit"), "ionisation": False}, "requires ionisation"),
    ],
)
def test_problems_that_cannot_be_meant(options: dict[str, object], message: str) -> None:
    with pytest.raises(mg.CaseError, match=message):
        Problem(**options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_transient_holds_currents_that_imposing_them_does_not() -> None:
    layers: list[dict[str, Any]] = [
        {"material": "InP", "thickness": 0.3, "p": 1e18},
        {"material": "InP", "thickness": 1.0, "n": 1e15},
        {"material": "InP", "thickness": 0.3, "n": 1e18},
    ]
    said: dict[str, Any] = {"ionisation": True, "layers": layers, "contacts": {"anode": "ohmic", "cathode": "ohmic"}}
    held = load_model("photodiode", {"photodiode": said | {"current": [-1e-6, -1e-4, -1e-2]}}, GridSettings(), Path())
    with pytest.raises(mg.RunError, match=r"the current without limit here.*let a transient behind a resistance"):
        mg.run(held, held.steps)
    wave = {"kind": "step", "to": -45.03, "rise": "1 us"}
    circuit = {"until": "1 ms", "voltage": wave, "load": "1 Mohm", "area": "0.01 mm2"}
    said |= {"mode": "transient", "bias": -40.0, "transient": circuit}
    model = load_model("photodiode", {"photodiode": said}, GridSettings(), Path())
    found = mg.run(model, model.steps).attrs
    assert found["J"] == pytest.approx(-1.0035e-2, rel=1e-3)
    assert found["V"] == pytest.approx(-44.0265, abs=1e-3)
    assert found["J_displacement"] == pytest.approx(0.0, abs=1e-9)
