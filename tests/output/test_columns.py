"""Tables of comma-separated values, read back as text."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from minga.cli.export import export
from minga.engine.clock import Clock
from minga.errors import CaseError
from minga.output import columns
from minga.output.store import FrameStore
from minga.output.variables import variables_of
from minga.space.field import Field
from minga.space.grid import Grid

GRID = Grid((3, 4), spacing=([1.0, 2.0, 4.0], 0.1), axes="yx", units="m")


def make(path: Path, fields: list[Field], clock: Clock | None = None) -> tuple[Path, list[dict[str, np.ndarray]]]:
    """A run with two frames, after 0 and 10 steps."""
    (run := path / "run").mkdir()
    variables = variables_of(fields)
    store = FrameStore(run / "fields.zarr", variables, {}, clock)
    frames = []
    for k in range(2):
        random = np.random.default_rng(k)
        frames.append({v.name: (random.standard_normal(v.shape) * 99).astype(v.dtype) for v in variables})
        store.append(10 * k, frames[-1], None if clock is None else 10 * k * 0.1)
    return run, frames


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as stream:
        head, *rows = csv.reader(stream)
    return head, rows


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8"])
def test_numbers_come_back_with_the_same_bits(tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_ROWS", 5)  # which does not divide 12 rows
    run, frames = make(tmp_path, [Field("p", GRID, dtype)])
    assert "p at step 10" in export(run, None, None, tmp_path / "p.csv", "-1")
    head, rows = read(tmp_path / "p.csv")
    assert head == ["y", "x", "p"]
    found = np.array([row[2] for row in rows]).astype("u1" if dtype == "bool" else dtype).astype(dtype)
    assert found.tobytes() == frames[1]["p"].tobytes()
    places = np.array([row[:2] for row in rows]).astype(float)
    assert places[:, 0].tolist() == np.repeat([0.5, 2.0, 5.0], 4).tolist()
    assert places[:4, 1].tolist() == GRID.centres("x").tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv", "run"]


def test_what_is_no_number(tmp_path: Path) -> None:
    (run := tmp_path / "run").mkdir()
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.1], "f4")
    FrameStore(run / "fields.zarr", variables_of([Field("p", Grid((5,)), "f4")]), {}).append(0, {"p": values})
    export(run, None, None, tmp_path / "p.csv", "0")
    assert [row[1] for row in read(tmp_path / "p.csv")[1]] == ["nan", "inf", "-inf", "-0.0", "0.1"]


@pytest.mark.parametrize(("clock", "name", "times"), [(None, "step", [0, 10]), (Clock(dt=0.1), "time", [0.0, 1.0])])
def test_several_frames_have_a_column_of_times(
    tmp_path: Path, clock: Clock | None, name: str, times: list[float]
) -> None:
    run, frames = make(tmp_path, [Field("p", GRID), Field("q", GRID, "i4")], clock)
    export(run, None, None, tmp_path / "all.csv", "all")
    head, rows = read(tmp_path / "all.csv")
    assert head == [name, "y", "x", "p", "q"]
    assert [float(row[0]) for row in rows] == np.repeat(times, 12).tolist()
    assert [float(row[3]) for row in rows] == [value for frame in frames for value in frame["p"].ravel()]
    assert [int(row[4]) for row in rows] == [value for frame in frames for value in frame["q"].ravel()]


def test_fields_at_other_points_are_left_out_or_refused(tmp_path: Path) -> None:
    run, frames = make(tmp_path, [Field("a", GRID, centre="x"), Field("b", GRID), Field("c", GRID, axes=("x",))])
    said = export(run, None, None, tmp_path / "all.csv", "-1")
    assert said.endswith("left out: a, c, which lie at other points; export them with --field")
    assert read(tmp_path / "all.csv")[0] == ["y", "x", "b"]
    export(run, ["a"], None, tmp_path / "a.csv", "-1")
    head, rows = read(tmp_path / "a.csv")
    assert head == ["y", "x_face", "a"]
    assert [float(row[2]) for row in rows] == frames[1]["a"].ravel().tolist()
    with pytest.raises(CaseError, match="a lies at other points than b"):
        export(run, ["b", "a"], None, tmp_path / "both.csv", "-1")
    assert not (tmp_path / "both.csv").exists()
