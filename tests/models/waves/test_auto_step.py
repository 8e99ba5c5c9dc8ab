"""Automatic time steps of cases: below the stability limit, and a divisor of the times that the case gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.comm import SerialComm
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.waves import (
    Attenuation,
    Cpml,
    Inversion,
    Medium,
    PointSource,
    Random,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    Survey,
    prepare,
)
from minga.models.waves.auto_step import auto_step, sample_steps
from minga.models.waves.elastic import ElasticMedium, Explosion, elastic, prepare_elastic
from minga.models.waves.elastic.settings import ElasticSettings
from minga.models.waves.elastic.waves import ElasticWaves
from minga.models.waves.settings import FletcherSettings
from minga.models.waves.survey_case import make_survey
from minga.models.waves.survey_settings import SurveySettings
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


STEPS: dict[str, Callable[..., Model]] = {
    "fletcher": lambda **options: mg.fletcher((12, 14), 10.0, medium=Medium(2000.0), **options),
    "elastic": lambda **options: elastic((12, 14), 10.0, medium=ElasticMedium(2000.0, 1000.0, 2000.0), **options),
}


@pytest.mark.parametrize("table", STEPS)
def test_models_in_python_have_the_step_of_cases(table: str, tmp_path: Path) -> None:
    model, case = STEPS[table](boundary=Sponge(4)), made(table, tmp_path, {})
    assert {name: model.parameters[name] for name in ("dt", "dt_limit")} == {
        name: case.parameters[name] for name in ("dt", "dt_limit")
    }
    assert model.clock == case.clock


@pytest.mark.parametrize("boundary", [Sponge(4), Random(4), Cpml(4)], ids=repr)
@pytest.mark.parametrize("options", [{}, {"time_order": 4}, {"attenuation": Attenuation(30.0)}], ids=repr)
def test_chosen_steps_are_three_quarters_of_the_limit(boundary: Any, options: dict[str, Any]) -> None:
    """With two digits, so that the part is 0.675 to 0.75; any longer step than the limit is refused."""
    model = mg.fletcher((12, 14), 10.0, medium=Medium(2000.0), boundary=boundary, **options)
    dt, limit = (float(str(model.parameters[name])) for name in ("dt", "dt_limit"))
    assert 0.675 * limit < dt <= 0.75 * limit
    with pytest.raises(CaseError, match="above the stability limit"):
        mg.fletcher((12, 14), 10.0, dt=1.001 * limit, medium=Medium(2000.0), boundary=boundary, **options)


@pytest.mark.parametrize("medium", [np.linspace(1500.0, 3000.0, 60), 3000.0])
def test_all_shots_of_a_survey_have_the_step_of_its_medium(medium: Any, tmp_path: Path) -> None:
    vp = np.broadcast_to(medium, (12, 60)).copy()
    shots = [
        Shot([PointSource((50.0, x), Ricker(15.0))], Receivers([(50.0, x + 30.0)], every=2)) for x in (60.0, 500.0)
    ]
    survey, given = (Survey((12, 60), 10.0, dt, Medium(vp), shots, Sponge(4), aperture=40.0) for dt in (None, 1.9e-3))
    assert survey.step == prepare((12, 60), 10.0, medium=Medium(vp), boundary=Sponge(4)).dt
    assert [survey.of(number)[0].dt for number in range(2)] == [survey.step] * 2
    assert given.step == 1.9e-3
    rock = ElasticMedium(vp, 0.5 * vp, 2000.0)
    blows = [Shot([Explosion((50.0, x))], Receivers([(50.0, x)])) for x in (60.0, 500.0)]
    ground = Survey((12, 60), 10.0, None, rock, blows, Sponge(4), aperture=40.0)
    assert ground.step == ground.of(0)[0].dt == prepare_elastic((12, 60), 10.0, medium=rock).dt


@pytest.mark.parametrize("table", SECTIONS)
def test_surveys_of_cases_have_automatic_steps(table: str, tmp_path: Path) -> None:
    section: dict[str, Any] = {key: value for key, value in SECTIONS[table].items() if key != "sources"}
    settings = validate(
        FletcherSettings if table == "fletcher" else ElasticSettings, section | {"spacing": 10.0}, table
    )
    said = validate(
        SurveySettings,
        {"wavelet": {"ricker": 15.0}, "length": 0.2, "interval": 4e-3, "shots": {"first": [50, 20], "step": [0, 20],
         "count": 2}, "receivers": {"positions": [[50, 50]]}},
        "survey",
    )  # fmt: skip
    found = make_survey(settings, said, GridSettings(shape=(12, 14)), tmp_path)
    waves, _ = found.survey.of(0)
    limit = waves.limit if isinstance(waves, ElasticWaves) else waves.extremes.dt_limit
    assert found.interval == pytest.approx(4e-3, rel=1e-15)
    assert found.survey.step == waves.dt == pytest.approx(4e-3 / found.survey.shots[0].receivers.every)
    assert 0.5 * limit < waves.dt <= 0.75 * limit


def test_an_inversion_has_one_step_for_all_media() -> None:
    """A step that follows from the medium changes with it: samples would not be at the times of the data."""
    shot = Shot([PointSource((50.0, 50.0), Ricker(15.0))], Receivers([(50.0, 90.0)]), np.zeros((3, 1)))
    search = Inversion([shot], lambda values, shot: prepare((12, 14), 10.0, medium=Medium(values["vp"])))
    assert search.perform("step", {"vp": np.full((12, 14), 2000.0)}, SerialComm())
    with pytest.raises(CaseError, match=r"the time step of shots\[0\] is") as error:
        search.gradient({"vp": np.full((12, 14), 3000.0)})
    assert error.value.remedy is not None
    assert "stable for the largest velocity" in error.value.remedy
