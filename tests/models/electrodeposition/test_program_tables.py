"""Programs in CSV files, and runs whose intervals do not divide their duration."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.electrodeposition.protocols.reading import parts_of
from minga.models.electrodeposition.protocols.segments import Repeat, Segment
from minga.models.electrodeposition.protocols.settings import PartSettings
from minga.schema import validate

from .test_programs import BATH, run


def parts(path: Path) -> Repeat:
    (found,) = parts_of([validate(PartSettings, {"file": path.name}, "p")], directory=path.parent)
    assert isinstance(found, Repeat)
    return found


def test_levels_are_linear_between_rows_and_jump_at_equal_times(tmp_path: Path) -> None:
    path = tmp_path / "profile.csv"
    path.write_text("time, current\n0, 0\n2, 50\n2, 80\n5, 80\n")
    ramp, hold = parts(path).of
    assert ramp == Segment("current", 0.0, 25.0, duration=2.0)
    assert hold == Segment("current", 80.0, 0.0, duration=3.0)
    path.write_text("voltage,time\n0.1,0\n-0.1,4\n")
    assert parts(path).of == (Segment("voltage", 0.1, -0.05, duration=4.0),)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "has the columns"),
        ("time,current,voltage\n0,0,0\n", "has the columns"),
        ("time,current\n0,1\n", "has 0 intervals"),
        ("time,current\n1,1\n2,1\n", "begins at 1 s"),
        ("time,current\n0,1\n2,1\n1,1\n", "1 s follows 2 s"),
        ("time,current\n0,1\n2,x\n", "not a number"),
        ("time,current\n0,1\n2\n", "line 3 of profile.csv has 1 of 2 cells"),
        ("time,current\n0,1\n2,nan\n", "line 3 of profile.csv has a cell that is not a finite number"),
        ("\ntime,current\n\n0,1\n2,x\n", "line 5 of profile.csv has a cell"),
        ("time,current\n0,0\n1,1e308\n", r"line 3 of profile.csv has the current 1e\+308, beyond 1e\+09"),
        ("time,voltage\n0,0\n1e308,1\n", r"line 3 of profile.csv has the time 1e\+308"),
        ("time,current\n" + "".join(f"{n},{n % 2}\n" for n in range(300)), "has 299 intervals"),
        ("time,current\n0," + "1" * 200_000 + "\n1,1\n", "field larger than"),
    ],
)
def test_impossible_tables_are_refused(text: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.csv"
    path.write_text(text)
    with pytest.raises(CaseError, match=found):
        parts(path)


def test_spreadsheets_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "profile.csv"
    path.write_text("time,current\n0,1\n1,1\n", encoding="utf-8-sig")
    assert parts(path).of == (Segment("current", 1.0, 0.0, duration=1.0),)


@pytest.mark.parametrize("name", ["none.csv", "nul\0.csv"])
def test_a_missing_table_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="cannot read"):
        parts(tmp_path / name)


@pytest.mark.slow
def test_a_table_brings_its_charge(tmp_path: Path) -> None:
    (tmp_path / "profile.csv").write_text("time,current\n0,0\n2,20\n3,20\n")
    case = {**BATH, "program": [{"file": "profile.csv"}], "time": {"every": "0.7 s", "first": "1 ms"}}
    grid = validate(GridSettings, {"shape": [12]}, "grid")
    model = load_model("electrodeposition", {"electrodeposition": case}, grid, tmp_path)
    assert model.steps == 5
    seen = run((12,), program=[{"ramp": ["0 A/m2", "20 A/m2"], "time": "2 s"}, {"hold": "20 A/m2", "time": "1 s"}],
               time={"every": "0.7 s", "first": "1 ms"}).observables  # fmt: skip
    assert seen["charge"] == pytest.approx(40.0, rel=1e-6)


@pytest.mark.slow
def test_the_last_interval_is_shorter_where_it_does_not_divide_the_end() -> None:
    found = [
        run((12,), voltage=0.1, time={"end": "1 s", "every": every, "first": "1 ms"})
        for every in ("0.3 s", "0.5 s")
    ]  # fmt: skip
    assert [result.time for result in found] == [1.0, 1.0]
    assert found[0].observables["current"] == pytest.approx(found[1].observables["current"], rel=2e-3)
