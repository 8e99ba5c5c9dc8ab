"""Observables over time as a file: whole at any time, and never what a run spends its time on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minga.output import series as module
from minga.output.directory import RunDirectory
from minga.output.series import SeriesFile


def test_a_long_series_is_written_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long one writing takes, writing takes a fiftieth of the time."""
    now, writing = 100.0, 0.3
    real = module.write_whole

    def slow(*arguments: object, **options: object) -> None:
        nonlocal now
        real(*arguments, **options)  # type: ignore[arg-type]
        now += writing

    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    monkeypatch.setattr(module, "write_whole", slow)
    directory = RunDirectory(tmp_path)
    series = SeriesFile(directory)

    def steps_on_disk() -> int:
        return len(json.loads(directory.series.read_text())["step"])

    series.add(0, 0.0, {"population": 5})
    assert steps_on_disk() == 1
    for step in range(1, 15):
        now += 1
        series.add(step, None, {"population": 5})
    assert steps_on_disk() == 1
    now += 2
    series.add(15, 1.5, {"population": float("inf")})
    assert steps_on_disk() == 16
    series.add(16, 1.6, {"population": 5})
    series.write(lasting=True)
    assert steps_on_disk() == 17
    assert json.loads(directory.series.read_text())["population"][14:] == [5, None, 5]
