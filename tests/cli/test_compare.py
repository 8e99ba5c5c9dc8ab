"""The command ``minga compare``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.cli.compare import as_json, compare, text
from minga.errors import CaseError


def run(folder: Path, name: str, seed: int = 1, steps: int = 6, width: int = 16) -> Path:
    model = mg.automaton("B3/S23", (16, width), init={"soup": 0.4, "seed": seed})
    mg.run(model, steps=steps, every=2, out=folder / name)
    return folder / name


def test_equal_runs_differ_in_nothing(tmp_path: Path) -> None:
    found = compare(run(tmp_path, "a"), run(tmp_path, "b"))
    assert found.same
    assert not found.settings
    assert not found.observables
    assert [(each.name, each.differing, each.largest) for each in found.fields] == [("cell", 0.0, 0.0)]
    assert "the same bits" in text(found)


def test_differences_are_those_of_the_last_common_frame(tmp_path: Path) -> None:
    a, b = run(tmp_path, "a"), run(tmp_path, "b", seed=2, steps=4)
    found = compare(a, b)
    one, other = (mg.open(each).cell.sel(time=4).values for each in (a, b))
    (field,) = found.fields
    assert not found.same
    assert field.step == 4
    assert field.differing == pytest.approx(np.mean(one != other))
    assert field.largest == 1.0
    assert one[field.where] != other[field.where]
    names = [each.name for each in found.observables]
    assert "population" in names
    population = found.observables[names.index("population")]
    assert population.relative == pytest.approx((population.b - population.a) / max(population.a, population.b))


def test_grids_of_other_shapes_are_named(tmp_path: Path) -> None:
    found = compare(run(tmp_path, "a"), run(tmp_path, "b", width=24))
    assert found.fields[0].reason == "grids of 16 x 16 and 16 x 24 points"
    assert json.loads(as_json(found))["fields"][0]["largest"] is None


def test_cells_of_different_places_are_not_compared(tmp_path: Path) -> None:
    for name, at in (("a", 0), ("b", 64)):
        init = {"pattern": [[1, 1], [1, 1]], "at": [0, at]}
        model = mg.automaton("B3/S23", (2, 2), init=init, boundary="unbounded")
        mg.run(model, steps=2, every=2, out=tmp_path / name)
    found = compare(tmp_path / "a", tmp_path / "b")
    assert not found.same
    assert found.fields[0].reason == "points of different coordinates"
    assert "cell: points of different coordinates" in text(found)


def test_one_that_is_no_number_differs(tmp_path: Path) -> None:
    from minga.cli.compare import _field

    a = np.array([1.0, np.nan, np.inf, 2.0])
    equal = _field("u", 1, a, a.copy())
    assert (equal.differing, equal.largest) == (0.0, 0.0)
    apart = _field("u", 1, a, np.array([1.0, 3.0, np.inf, 2.5]))
    assert apart.differing == 0.5
    assert apart.where == (1,)
    assert np.isnan(apart.largest)


def test_a_case_that_is_no_toml_is_named(tmp_path: Path) -> None:
    a = run(tmp_path, "a")
    (a / "case.toml").write_text("x = [")
    with pytest.raises(CaseError, match=r"case\.toml cannot be read"):
        compare(a, a)


def test_a_run_without_a_result_is_refused(tmp_path: Path) -> None:
    a = run(tmp_path, "a")
    (a / "result.json").write_text('{"steps": 3}')
    with pytest.raises(CaseError, match="has no result"):
        compare(a, a)
    (a / "result.json").unlink()
    with pytest.raises(CaseError, match="has no result"):
        compare(a, a)
    with pytest.raises(CaseError, match="not a run directory"):
        compare(tmp_path / "none", a)
