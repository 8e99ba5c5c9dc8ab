"""[stop], output.observe and automaton.update as a case says them: what a run leaves, and what is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from command_line import SMALL, Said, in_process, nothing_written


@pytest.fixture(autouse=True)
def case(in_tmp_path: Path) -> Path:
    """A correct small case, ``small.toml``, in the working directory."""
    path = in_tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def run(*settings: str) -> Said:
    return in_process("run", "small.toml", "--json", *(word for text in settings for word in ("--set", text)))


def left(said: Said) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The result, the series and the resolved case of a run."""
    assert said.status == 0, said
    result = json.loads(said.out)
    directory = Path(result["run"])
    series = json.loads((directory / "series.json").read_text())
    return result, series, tomllib.loads((directory / "case.toml").read_text())


@pytest.mark.slow
def test_a_period_ends_a_run_and_is_no_interruption() -> None:
    said = run("run.steps=5000", "stop.period=30", "output.every=1000", "output.observe=7")
    result, series, resolved = left(said)
    ended = result["ended"]
    assert (ended["reason"], ended["step"]) == ("period", result["steps"])
    assert 0 < result["steps"] == ended["since"] + ended["period"] < 5000
    assert series["step"][:3] == [0, 7, 14]
    assert series["step"][-1] == result["steps"]
    assert {name: values[-1] for name, values in series.items() if name != "step"} == result["observables"]
    assert json.loads(Path(result["run"], "progress.json").read_text())["step"] == result["steps"]
    assert resolved["stop"] == {"fixed_point": False, "period": 30, "every": 1}
    again = json.loads(in_process("run", Path(result["run"]) / "case.toml", "--json").out)
    assert (again["digest"], again["ended"]) == (result["digest"], ended)


def test_a_run_that_does_all_steps() -> None:
    result, series, resolved = left(run())
    assert result["ended"] == {"reason": "steps", "step": 10, "text": "all 10 steps done"}
    assert series["step"] == [0, 5, 10]
    assert "stop" not in resolved


def test_the_summary_says_why() -> None:
    said = in_process("run", "small.toml", "--set", 'stop.when="step >= 3"')
    assert "ended: condition at step 3" in said.out.splitlines()[1]


@pytest.mark.slow
def test_second_order_and_observers_of_a_case() -> None:
    observe = 'automaton.observe=["entropy", "bounding_box", {avalanches = true}]'
    result, series, _ = left(run('automaton.update="second-order"', "automaton.before={soup = 0.1, seed = 2}", observe))
    assert len(result["observables"]["bounding_box"]) == 4
    assert len(series["entropy"]) == 3
    assert result["observables"]["avalanches"] == 0


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ('stop.when="populaton < 3"', ["stop.when", "did you mean 'population'?"]),
        ('stop.when="population"', ["stop.when", "neither true nor false"]),
        ("stop.period=0", ["stop.period", "a whole number of at least 1"]),
        ('stop.wall_time="soon"', ["stop.wall_time", "10 min"]),
        ("stop.perod=3", ["stop.perod", "did you mean 'period'?"]),
        ("output.observe=0", ["output.observe", "at least 1"]),
        ('automaton.update="sometimes"', ["automaton.update", "second-order"]),
        ('automaton.observe=["popultion"]', ["automaton.observe", "did you mean 'population'?"]),
        ("automaton.before=[[1]]", ["automaton.before", "second-order"]),
    ],
)
def test_what_cannot_be_meant(in_tmp_path: Path, setting: str, expected: list[str]) -> None:
    with nothing_written(in_tmp_path):
        said = run(setting)
    assert said.status == 2
    for word in expected:
        assert word in said.err
    assert "Traceback" not in said.err
