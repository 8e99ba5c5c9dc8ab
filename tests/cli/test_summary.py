"""The last lines of a run: what came out, short enough to read, and which picture is the last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minga.cli.finish import summary
from minga.output.directory import RunDirectory


def lines(run: Path, observables: dict[str, Any]) -> list[str]:
    result = {
        "model": "still", "shape": [2, 3], "seconds": 1.0, "cells_per_second": 6.0, "steps": 1, "ranks": 1,
        "ended": {"reason": "steps"}, "observables": observables, "digest": "0123",
    }  # fmt: skip
    return summary(result, RunDirectory(run)).splitlines()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.23456789, "1.23457"),
        ([1, 2, 3], "[1, 2, 3]"),
        (float("nan"), "no value"),
        ("nan", "no value"),
        (["nan", *[-0.25] * 9], "10 values, the largest magnitude 0.25, 1 not finite"),
        ([0.5, -2.0, *[0.25] * 98], "100 values, the largest magnitude 2"),
        ([float("nan"), *[-0.25] * 9], "10 values, the largest magnitude 0.25, 1 not finite"),
        ([[0] * 20] * 9, str([[0] * 20] * 9)[:97] + "..."),
    ],
)
def test_many_numbers_are_counted(tmp_path: Path, value: object, said: str) -> None:
    assert lines(tmp_path, {"seen": value})[1] == f"  seen {said}"


def test_the_last_picture_is_that_of_the_last_step(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for name in ("p-782.png", "p-4000.png", "p-0000.png", "history.png"):
        (tmp_path / "pictures" / name).touch()
    assert lines(tmp_path, {})[-1].endswith("the last picture is " + str(tmp_path / "pictures" / "p-4000.png"))


def test_the_time_of_the_model_is_told(tmp_path: Path) -> None:
    result = {
        "model": "still", "shape": [2, 3], "seconds": 1.0, "cells_per_second": 6.0, "steps": 7, "ranks": 1,
        "ended": {"reason": "steps"}, "observables": {"heat": 2.0}, "units": {"heat": "J"}, "digest": "0123",
        "time": 2.5, "time_unit": "ms",
    }  # fmt: skip
    assert summary(result, RunDirectory(tmp_path)).splitlines()[1:3] == ["  time 2.5 ms", "  heat 2 J"]
