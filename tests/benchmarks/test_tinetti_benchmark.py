"""The stored experiments after Tinetti: what is kept, and which pictures are drawn from it."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from minga.papers.figures import panel
from minga.papers.tinetti import NAMES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.tinetti.__main__")


def found(names: Any, say: Any, pictures: Any, *, quick: bool) -> dict[str, Any]:
    """What `measure` would find, without a lab."""
    result = {
        "title": "a title",
        "claim": "a claim",
        "panels": [panel([1, 3], {"one": [1.0, 2.0]}, "receivers", "ms")],
        "shape": {"it holds": True},
    }
    return {"experiments": dict.fromkeys(names, result)}


def test_pictures_of_the_page_are_drawn(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "IMAGES", tmp_path)
    bench.draw_shown(found(NAMES, None, None, quick=True)["experiments"])
    assert {path.name for path in tmp_path.iterdir()} == {f"tinetti-{name}.png" for name in bench.SHOWN}


def test_a_part_is_stored_where_it_is_said(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure", found)
    monkeypatch.setattr(bench, "measured", lambda measure, quick, effort: {"date": "today", **measure()})
    out = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["tinetti", "--only", "E6", "--out", str(out)])
    assert bench.main() == 0
    stored = json.loads(out.read_text())
    assert stored["emulated"] is True
    assert list(stored["results"]) == ["E6"]
