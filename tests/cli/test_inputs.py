"""Files that a case names: relative to the person on a command line, copied into the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import SMALL, in_process
from minga.cli.inputs import absolute, keep


@pytest.fixture(autouse=True)
def files(in_tmp_path: Path) -> Path:
    for name in ("a/glider.rle", "b/glider.rle", "a/rules.py", "life"):
        path = in_tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {name}")
    return in_tmp_path


def test_words_that_name_no_file_stay() -> None:
    for value in ("B3/S23", "life", 3, 1.5, True, None, "missing.rle", "missing.py:rule", "x" * 5000, "a\n.b", ""):
        assert absolute(value) == value
        assert keep(value, Path(), Path("inputs")) == value
    assert not Path("inputs").exists()


def test_files_on_a_command_line(files: Path) -> None:
    value = {"pattern": "a/glider.rle", "at": [1, 2], "rules": ["a/rules.py:fire", "B3/S23"]}
    assert absolute(value) == {
        "pattern": str(files / "a/glider.rle"),
        "at": [1, 2],
        "rules": [f"{files / 'a/rules.py'}:fire", "B3/S23"],
    }


def test_files_are_copied_once_and_never_mixed_up(files: Path) -> None:
    Path("run").mkdir()
    value = ["a/glider.rle", {"deep": "b/glider.rle"}, "a/glider.rle", "a/rules.py:fire"]
    kept = keep(value, files, Path("run/inputs"))
    assert kept == ["inputs/glider.rle", {"deep": "inputs/glider-2.rle"}, "inputs/glider.rle", "inputs/rules.py:fire"]
    assert Path("run/inputs/glider-2.rle").read_text() == "content of b/glider.rle"
    assert len(list(Path("run/inputs").iterdir())) == 3


def test_nested_files_are_kept_with_the_run() -> None:
    Path("b/glider.rle").write_text("x = 3, y = 3\nbob$2bo$3o!\n")
    Path("small.toml").write_text(SMALL.replace("{soup = 0.3, seed = 1}", '{pattern = "b/glider.rle", at = [5, 6]}'))
    first = in_process("run", "small.toml", "--json")
    assert first.status == 0, first
    Path("b/glider.rle").unlink()
    again = in_process("run", "runs/small", "--json")
    assert again.status == 0, again
    assert json.loads(again.out)["digest"] == json.loads(first.out)["digest"]


def test_the_case_of_a_run_has_its_edits(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case that a run keeps repeats the edits from any working directory."""
    (files / "cases").mkdir()
    edit = {"step": 3, "field": "cell", "cells": [[4, 5, 1], [4, 6, 1], [4, 7, 1]]}
    (files / "cases/edits.jsonl").write_text(json.dumps(edit) + "\n")
    Path("cases/painted.toml").write_text(SMALL.replace("ranks = 1", 'ranks = 1\nedits = "edits.jsonl"'))
    said = in_process("run", "cases/painted.toml", "--out", "first")
    assert said.status == 0, said.err
    assert Path("first/inputs/edits.jsonl").is_file()
    (files / "cases").rename(files / "gone")
    monkeypatch.chdir(files / "a")
    said = in_process("run", "../first/case.toml", "--out", "again")
    assert said.status == 0, said.err
    results = files / "first/result.json", Path("again/result.json")
    first, again = (json.loads(result.read_text())["digest"] for result in results)
    assert first == again
