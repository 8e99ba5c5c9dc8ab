"""The command line of the benchmarks: a full run is stored, others only where they are told to."""

from __future__ import annotations

import importlib
from pathlib import Path

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
    found = module.asked("benchmarks.x", "x", ["a", "b"], "x.json", flags={"update": "anew"}, arguments=words)
    assert (found.complete, found.flags) == (complete, frozenset())
    assert found.store({"one": 1}) == stored
    assert [path.name for path in in_tmp_path.rglob("*.json")] == ["x.json"] * kept
    with pytest.raises(SystemExit):
        module.asked("benchmarks.x", "x", ["a"], "x.json", flags={"update": "anew"}, arguments=["--quick", "--update"])
