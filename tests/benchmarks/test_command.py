"""The command line of the benchmarks: a full run is stored, others only where they are told to."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("words", "complete", "kept", "stored"),
    [
        ([], True, True, True),
        (["--only", "b", "a"], True, True, True),
        (["--only", "a"], False, False, False),
        (["--quick"], False, False, False),
        (["--quick", "--out", "x.json"], False, True, False),
        (["--out", "x.json"], True, True, False),
    ],
)
def test_what_is_stored(
    monkeypatch: pytest.MonkeyPatch, in_tmp_path: Path, words: list[str], complete: bool, kept: bool, stored: bool
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    module = importlib.import_module("benchmarks.command")
    monkeypatch.setattr(module, "RESULTS", in_tmp_path / "results")
    found = module.asked("benchmarks.x", "x", ["a", "b"], "x.json", update=True, arguments=words)
    assert (found.complete, found.update, found.table) == (complete, False, False)
    assert found.store({"one": 1}) == stored
    assert [path.name for path in in_tmp_path.rglob("*.json")] == ["x.json"] * kept
    with pytest.raises(SystemExit):
        module.asked("benchmarks.x", "x", ["a"], "x.json", update=True, arguments=["--quick", "--update"])


@pytest.mark.parametrize("inside", [False, True], ids=["at the top", "among results"])
def test_a_part_can_be_measured_anew(monkeypatch: pytest.MonkeyPatch, in_tmp_path: Path, inside: bool) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    module = importlib.import_module("benchmarks.command")
    monkeypatch.setattr(module, "RESULTS", in_tmp_path / "results")

    def content(date: str, **parts: object) -> dict[str, object]:
        about = {"date": date, "machine": {}, "load_at_the_end": 0.1}
        return about | ({"results": parts} if inside else parts)

    def asked(*words: str) -> Any:
        return module.asked("benchmarks.x", "x", ["a", "b"], "x.json", table=True, update=True, arguments=words)

    with pytest.raises(SystemExit, match=r"x\.json is not there"):
        asked("--table").before()
    asked().store(content("then", a=1, b=2))
    anew = asked("--only", "a", "--update")
    found = anew.whole(content("now", a=3))
    assert anew.store(found)
    assert (found["results"] if inside else found)["a"] == 3
    assert (found["results"] if inside else found)["b"] == 2
    assert (found["date"], found["updated"]["a"]["date"]) == ("then", "now")
    assert asked("--table").before() == found
    asked().stored.unlink()
    first = asked("--only", "a", "--update").whole(content("later", a=4))  # as on a processor of another family
    assert (first["date"], (first["results"] if inside else first)["a"]) == ("later", 4)
    assert "b" not in (first["results"] if inside else first)


def test_a_table_takes_the_place_of_the_one_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- one -->\nold\n<!-- end of one -->\n<!-- two -->\nkept\n<!-- end of two -->\n")
    importlib.import_module("benchmarks.page").put_into_page("one", "new\n", page)
    assert page.read_text() == (
        "before\n<!-- one -->\nnew\n<!-- end of one -->\n<!-- two -->\nkept\n<!-- end of two -->\n"
    )
