"""Findings about gains of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.physics.photodiodes import EXAMPLES, apd, merged, solved, table
from tests.physics.transients import followed, loaded

import minga as mg
from minga.case.load import read_settings
from minga.models.photodiode.case import device_of
from minga.models.photodiode.review import review_of
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.structure.device import Device
from minga.models.photodiode.transients.model import transient
from minga.models.photodiode.transients.problem import Transient
from minga.models.photodiode.transients.waveform import Waveform

NOISE = Problem((0.0, -1.0), ("dark", "lit"), gain=True, mode="noise")
CURRENTS = replace(NOISE, mode="iv")
ADMITTANCE = Problem((0.0, -1.0), mode="cv", frequencies=(1e6,))


@pytest.mark.parametrize(
    ("problem", "seen", "words"),
    [
        (NOISE, {"gain": 10.0, "M_local": 10.1, "M_local_lit": 10.1}, None),
        (NOISE, {"gain": 10.0, "M_local": 10.1, "M_local_lit": 10.3}, "M_local_lit, is 10.3: the mesh is too coarse"),
        (NOISE, {"gain": 90.0, "M_local": 91.0, "M_local_lit": 91.0}, "changes gain and F by 9.1 %"),
        (NOISE, {"gain": math.nan, "M_local": math.nan, "M_local_lit": math.nan}, None),
        (replace(NOISE, gain=False, noise_method="adjoint"), {"M_local": 5.0, "M_local_lit": 6.0}, None),
        (replace(NOISE, gain=False, noise_method="adjoint"), {"M_local": 50.1, "M_local_lit": 6.0}, "M_local is 50.1"),
        (CURRENTS, {"gain": 91.0, "breakdown": math.nan}, "the gain is 91: so close to breakdown"),
        (CURRENTS, {"gain": 49.9, "breakdown": math.nan}, None),
        (CURRENTS, {"gain": 91.0, "breakdown": -1.1}, None),
        (replace(CURRENTS, gain=False), {"M": 4.0, "M_lit": 51.0, "breakdown": math.nan}, "changes it by 5.1 %"),
        (ADMITTANCE, {"M": 70.0, "breakdown": math.nan}, "changes it and the admittance by 7 %"),
        (ADMITTANCE, {"M": 70.0, "breakdown": -1.1}, None),
        (replace(ADMITTANCE, mode="ac"), {"M": 300.0, "breakdown": math.nan}, "the response to light by 30 %"),
        (replace(ADMITTANCE, mode="qe", frequencies=()), {"M": 51.0, "breakdown": math.nan}, "changes it and QE"),
        (ADMITTANCE, {"M": math.nan, "breakdown": math.nan}, None),
        (replace(ADMITTANCE, mode="qe", frequencies=()), {"M": 49.0, "breakdown": math.nan}, None),
    ],
)
def test_gains_near_breakdown(problem: Problem, seen: dict[str, Any], words: str | None) -> None:
    review = review_of(apd(10), problem)
    assert review is not None
    finding = review({}, {"V": -1.0, **seen})
    assert (finding is None) if words is None else (finding is not None and words in finding.text)


def test_imposed_currents_and_runs_without_ionisation_have_none() -> None:
    for problem in (replace(NOISE, ionisation=False, gain=False), Problem(current=(1e-3,), ionisation=True)):
        assert review_of(apd(10), problem) is None


def pin(bias: float) -> tuple[Device, Transient]:
    """The coarse InP diode, and a transient at a voltage."""
    changes = {"mesh": {"graded": {"first": "2 nm", "growth": 1.6, "cap": "200 nm"}}}
    device = device_of(read_settings("photodiode", merged(table("pin-inp"), changes)), EXAMPLES)
    return device, Transient(1e-12, Waveform((0.0,), (bias,)), Waveform((0.0,), (0.0,)))


@pytest.mark.slow
def test_a_transient_has_the_gain_of_a_curve_and_its_finding() -> None:
    bias = -43.25
    device, what = pin(bias)
    steady = solved(device, Problem((bias,), ionisation=True))[-1]
    for ionisation in (True, False):
        model = transient(device, Problem((bias,), ionisation=ionisation), what)
        found = mg.run(model, 3).isel(observed=-1)
        assert ("M" in found) == ionisation == (model.review is not None)
        if model.review is not None:
            assert float(found.M) == pytest.approx(steady["M"], rel=1e-6)
            assert float(found.M) > 50.0
            last = {"V": float(found.V), "M": float(found.M)}
            finding = model.review({}, last)
            assert finding is not None
            assert "changes it and the times of response" in finding.text
            assert model.review({}, last | {"M": 49.0}) is None
            assert model.review({}, last | {"M": math.nan}) is None


@pytest.mark.slow
def test_a_growing_avalanche_has_no_gain() -> None:
    device, what = pin(-40.0)
    circuit = loaded(100.0)
    what = replace(what, until=1e-6, voltage=Waveform((0.0, 1e-10), (-40.0, -46.0)), circuit=circuit, tolerance=5e-2)
    rows = followed(device, what, physics=Problem((0.0,), ionisation=True))
    steady = solved(device, Problem((-40.0, -46.0), ionisation=True))
    assert rows[0]["M"] == pytest.approx(steady[0]["M"], rel=1e-4), "30 uV are lost in the load"
    grows = [row for row in rows if math.isnan(row["M"])]
    assert grows
    assert max(row["V"] for row in grows) < steady[-1]["breakdown"] + 0.01
    assert min(row["M"] for row in rows if not math.isnan(row["M"])) >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("growth", "nodes", "gain"), [(1.4, 77, 273.4), (1.1, 197, 216.5)])
def test_gains_just_before_breakdown_depend_on_the_mesh(growth: float, nodes: int, gain: float) -> None:
    graded = {"first": "0.5 nm", "growth": growth, "cap": "100 nm"}
    device = device_of(read_settings("photodiode", merged(table("pin-inp"), {"mesh": {"graded": graded}})), EXAMPLES)
    assert device.doping.size == nodes
    problem = Problem((-20.0, -40.0, -43.0, -43.3), ionisation=True)
    row = solved(device, problem)[-1]
    assert row["M"] == pytest.approx(gain, rel=2e-3)
    review = review_of(device, problem)
    assert review is not None
    assert review({}, row) is not None
