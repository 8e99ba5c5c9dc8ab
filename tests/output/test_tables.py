"""Tables of observables, a row a step."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import minga as mg
from minga.output.series import Series
from minga.output.tables import tables_of


def counting(tables: dict[str, tuple[str, ...]]) -> mg.Model:
    """Counts its steps, and has their squares."""
    grid = mg.Grid((4,))
    u = mg.Field("u", grid)
    n, square = mg.Register("n"), mg.Register("square")
    step, observe = mg.Program("step"), mg.Program("observe")
    step.let(n, n + 1.0)
    observe.let(square, n * n)
    return mg.Model(
        "counting", grid, (u,), step, observe=observe, observables={"n": n, "square": square}, tables=tables
    )


def test_a_run_leaves_its_tables(tmp_path: Path) -> None:
    mg.run(counting({"squares": ("n", "square")}), steps=3, out=tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["squares"] == [{"n": 1.0, "square": 1.0}, {"n": 2.0, "square": 4.0}, {"n": 3.0, "square": 9.0}]
    assert (tmp_path / "run" / "squares.csv").read_text() == "n,square\n1.0,1.0\n2.0,4.0\n3.0,9.0\n"


def test_what_is_not_finite_is_left_empty() -> None:
    series = Series()
    for step, value in enumerate((0.0, math.nan, 2.0)):
        series.add(step, None, {"n": float(step), "square": value})
    rows = tables_of(counting({"squares": ("n", "square")}), series)
    assert rows == {"squares": [{"n": 1.0, "square": None}, {"n": 2.0, "square": 2.0}]}


def test_columns_are_observables() -> None:
    with pytest.raises(mg.ProgramError, match="table 'squares' of \\['cube'\\], which are not among its observables"):
        counting({"squares": ("n", "cube")})


def test_lists_have_a_row_for_each_entry() -> None:
    series = Series()
    series.add(1, None, {"n": 0.5, "square": [3.0, math.nan]})
    rows = tables_of(counting({"squares": ("n", "square")}), series)
    assert rows == {"squares": [{"n": 0.5, "square": 3.0}, {"n": 0.5, "square": None}]}


def test_lists_of_a_table_share_a_dimension(tmp_path: Path) -> None:
    plain = counting({})
    n, square = (plain.observables[name] for name in ("n", "square"))
    lists: dict[str, Any] = {"n": n, "low": (n, square), "high": (square, n)}
    model = replace(plain, observables=lists, tables={"powers": ("n", "low", "high")})
    here = mg.run(model, steps=3, observe=1, out=tmp_path / "run")
    for found in (here, mg.open(tmp_path / "run")):
        assert found["low"].dims == found["high"].dims == ("observed", "powers_row")
        assert (found["low"] * found["high"]).shape == (4, 2)
