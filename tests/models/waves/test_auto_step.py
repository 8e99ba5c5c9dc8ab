"""Automatic time steps of cases: below the stability limit, and a divisor of the times that the case gives."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.waves.auto_step import auto_step, sample_steps
from minga.options import RunOptions
from minga.running.defaults import completed
from minga.schema import validate

LIMIT = 2.7e-3
SECTIONS: dict[str, dict[str, Any]] = {
    "fletcher": {"medium": {"vp": 2000.0}, "sources": [{"position": [50.0, 50.0]}]},
    "elastic": {"medium": {"vp": 2000.0, "vs": 1000.0, "rho": 2000.0}, "sources": [{"position": [50.0, 50.0]}]},
}


@pytest.mark.parametrize(
    ("times", "step"),
    [
        ({}, 2e-3),
        ({"output.every": "10 ms"}, 2e-3),
        ({"output.every": 0.007}, 1.75e-3),
        ({"output.every": "12 ms", "run.until": "0.9 s"}, 2e-3),
        ({"output.every": "9 ms", "output.observe": "6 ms"}, 1.5e-3),
        ({"output.every": "0.3333 s"}, 0.3333 / 165),
    ],
)  # fmt: skip
def test_the_longest_step_that_divides_all_times(times: dict[str, float | str], step: float) -> None:
    assert auto_step(LIMIT, times) == pytest.approx(step, rel=1e-15)


def test_a_step_far_shorter_than_stability_asks_for_is_refused() -> None:
    with pytest.raises(CaseError, match=r"no time step near 0.002 s divides output.every \(0.4 ms\)"):
        auto_step(LIMIT, {"output.every": "0.4 ms"})


def test_samples_of_receivers_are_steps_or_times() -> None:
    assert sample_steps(3, 1e-3, "k") == 3
    assert sample_steps(4e-3, 1e-3, "k") == 4
    with pytest.raises(CaseError, match="not a multiple of the model's time step"):
        sample_steps(2.5e-3, 1e-3, "k")


def made(table: str, folder: Path, run: dict[str, Any], **changes: Any) -> Model:
    section = SECTIONS[table] | {"spacing": 10.0, "boundary": {"sponge": 4}} | changes
    return load_model(table, {table: section, **run}, GridSettings(shape=(12, 14)), folder)


@pytest.mark.parametrize("table", SECTIONS)
def test_cases_run_to_their_times(table: str, tmp_path: Path) -> None:
    line = {"first": [50.0, 0.0], "last": [50.0, 100.0], "count": 3, "every": "3 ms"}
    run = {"output": {"every": "9 ms"}, "run": {"until": "63 ms"}, "checkpoint": {"every": "off"}}
    model = made(table, tmp_path, run, receivers=line)
    dt, limit = float(str(model.parameters["dt"])), float(str(model.parameters["dt_limit"]))
    assert 0.5 * limit < dt <= 0.75 * limit
    assert model.traces is not None
    assert model.traces.every * dt == pytest.approx(3e-3, rel=1e-15)
    said = dict(model.notes)["time step"]
    assert said.endswith(f"it divides run.until (63 ms), output.every (9 ms) and {table}.receivers.every (0.003 s)")
    options = completed(validate(RunOptions, run | {"run": {"until": "63 ms", "steps": 0}}), model)
    assert options.output.every * dt == pytest.approx(9e-3, rel=1e-12)
    free = made(table, tmp_path, {})
    assert "divides" not in dict(free.notes)["time step"]
    assert math.isclose(float(str(free.parameters["dt"])) / dt, 1.0, rel_tol=0.4)


@pytest.mark.parametrize("table", SECTIONS)
def test_a_given_step_that_does_not_divide_a_time_is_told(table: str, tmp_path: Path) -> None:
    line = {"positions": [[50.0, 0.0]], "every": "3 ms"}
    with pytest.raises(CaseError, match="not a multiple") as error:
        made(table, tmp_path, {}, receivers=line, dt=1.4e-3)
    assert error.value.key == f"{table}.receivers.every"
