"""Linear systems that are not solved: the time step is given up and tried again shorter, and in the end explained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import minga as mg
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.soft import soft_cell

pytestmark = pytest.mark.slow  # what a failed solve leaves is tested in tests/solve


def run(problem: Problem, **options: Any) -> dict[str, Any]:
    """What the observables say after one step."""
    model = electrodeposition(problem, **options)
    with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
        mg.drive(model, engine, 1)
        names = ("time", "steps_taken", "steps_rejected")
        return {name: engine.read(model.observables[name]) for name in names}  # type: ignore[arg-type]


def bath() -> Problem:
    return replace(soft_cell({"y": 12, "z": 6}, dt=0.05, steps=1, voltage=2.0), flow=False)


def test_steps_become_shorter_until_systems_are_solved() -> None:
    """Few iterations do for short steps only."""
    found = run(bath(), limit=15)
    assert found["time"] == pytest.approx(0.05)
    assert found["steps_rejected"] > 0


@pytest.mark.parametrize(
    ("problem", "limit", "system"),
    [
        pytest.param(bath(), 1, "the potential", id="limit"),
        pytest.param(
            soft_cell({"y": 12, "z": 6}, dt=0.05, steps=1, voltage=2.0, gravity=1e250), 500, "the flow",
            id="overflow",
        ),
    ],
)  # fmt: skip
def test_what_is_never_solved_is_named(problem: Problem, limit: int, system: str) -> None:
    """With the place and what to do, where iterations are too few and where numbers overflow."""
    with pytest.raises(mg.RunError, match=rf"linear systems of {system} were not solved at t = 0 s") as caught:
        run(problem, limit=limit)
    assert "cell (" in str(caught.value)
    assert "[electrodeposition.semi_implicit] limit" in str(caught.value)


def test_a_voltage_that_nothing_follows_is_to_be_lowered() -> None:
    """The remedy names what is given: there is no current to lower."""
    with pytest.raises(mg.RunError, match="the potential did not converge") as caught:
        run(replace(bath(), voltage=1e12))
    assert "lower the voltage" in str(caught.value)
    assert "a current beyond" not in str(caught.value)
