"""Averages of a run's observables on the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from command_line import in_process
from minga.space.field import Field
from minga.space.grid import Grid
from run_files import make_run


@pytest.fixture(autouse=True)
def run(in_tmp_path: Path) -> Path:
    """A run whose observable alternates between 1 and 3, and whose last interval is shorter."""
    made = make_run(in_tmp_path / "run", Field("cell", Grid((4, 5)), "u1"), {0: np.zeros((4, 5), "u1")})
    count = 40
    times = [0.5 * n for n in range(count - 1)] + [0.5 * (count - 2) + 0.1]
    series = {
        "flow": [9.0] * 8 + [1.0, 3.0] * 16, "name": ["text"] * count, "time_observed": times,
        "step": list(range(count)),
    }  # fmt: skip
    made.series.write_text(json.dumps(series))
    return made.path


def test_mean_and_fluctuation() -> None:
    """Without the last sample, where the run ended."""
    said = in_process("average", "run", "--of", "flow", "--after", "3.9")
    assert said.status == 0, said.err
    assert said.out.startswith("flow: mean 1.97 +- 0.18, fluctuation (rms) 0.9995 +- ")
    assert "31 samples from t = 4 to 19" in said.out


def test_samples_at_unequal_intervals_are_refused() -> None:
    content = json.loads(Path("run/series.json").read_text())
    content["time_observed"][20] += 0.1
    Path("run/series.json").write_text(json.dumps(content))
    said = in_process("average", "run", "--of", "flow", "--after", "4.1")
    assert said.status == 2
    assert "apart" in said.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--of", "flo"), "no observable 'flo'"), (("--of", "name"), "no observable 'name'"),
        (("--after", "18"), "samples lie from 18 on"), (("--after", "nan"), "0 samples"),
    ],
)  # fmt: skip
def test_what_cannot_be_averaged(words: tuple[str, ...], complaint: str) -> None:
    said = in_process("average", "run", *words)
    assert said.status == 2
    assert complaint in said.err
    assert "Traceback" not in said.err


def test_a_run_states_units_and_takes_a_time_with_one(in_tmp_path: Path) -> None:
    model = mg.pde({"u": "1"}, mg.Grid((4,)), units={"u": "K"}, unit="s", initial=1.0, integrator="euler", dt=0.125)
    mg.run(model, 20, observe=1, out="warm")
    said = in_process("average", "warm", "--of", "largest_u", "--after", "500 ms")
    assert said.status == 0, said.err
    assert " K, fluctuation" in said.out
    assert "17 samples from t = 0.5 to 2.5 s" in said.out
    assert "expected a positive time" in in_process("average", "warm", "--after", "5 parsec").err


def test_times_and_counts_are_averaged_only_by_name(run: Path) -> None:
    series = {"flow": [1.0, 3.0] * 8, "time": [0.5] * 16, "dt": [0.1] * 16, "segment": [1] * 16, "all_sweeps": [2] * 16}
    (run / "series.json").write_text(json.dumps(series | {"step": list(range(16))}))
    lines = in_process("average", "run").out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["flow"]
    assert in_process("average", "run", "--of", "dt").out.startswith("dt: mean 0.1")


def test_a_state_that_still_changes_is_told(run: Path) -> None:
    wave = [math.sin(1.3 * n) for n in range(64)]
    series = {"steady": wave, "falling": [5.0 - 0.05 * n + value for n, value in enumerate(wave)]}
    (run / "series.json").write_text(json.dumps(series | {"step": list(range(64))}))
    assert "halves" not in in_process("average", "run", "--of", "steady").out
    said = in_process("average", "run", "--of", "falling").out
    first, second = 5.0 - 0.05 * 15.5 + np.mean(wave[:32]), 5.0 - 0.05 * 47.5 + np.mean(wave[32:])
    assert f"its halves, {first:.4g} and {second:.4g}, differ" in said


def test_few_samples_need_more_observations(run: Path) -> None:
    (run / "series.json").write_text(json.dumps({"flow": [1.0, 2.0], "step": [0, 5]}))
    assert "output.observe = 1" in in_process("average", "run").err
