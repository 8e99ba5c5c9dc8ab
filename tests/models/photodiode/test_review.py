"""Findings about gains of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.physics.photodiodes import EXAMPLES, apd, merged, solved, table

from minga.case.load import read_settings
from minga.models.photodiode.case import device_of
from minga.models.photodiode.review import review_of
from minga.models.photodiode.solver.problem import Problem

NOISE = Problem((0.0, -1.0), ("dark", "lit"), gain=True, mode="noise")
CURRENTS = replace(NOISE, mode="iv")


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
    ],
)
def test_gains_near_breakdown(problem: Problem, seen: dict[str, Any], words: str | None) -> None:
    review = review_of(apd(10), problem)
    assert review is not None
    finding = review({}, {"V": -1.0, **seen})
    assert (finding is None) if words is None else (finding is not None and words in finding.text)


def test_other_modes_have_none() -> None:
    imposed = Problem(current=(1e-3,), ionisation=True)
    for problem in (
        replace(NOISE, mode="cv", frequencies=(1e6,)),
        replace(NOISE, ionisation=False, gain=False),
        imposed,
    ):
        assert review_of(apd(10), problem) is None


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
