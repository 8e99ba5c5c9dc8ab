"""The benchmark of shots and gradients: a quick run, and its table."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STORED = sorted((ROOT / "benchmarks" / "results" / "seismics").glob("*.json"))


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.seismics.__main__")


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_the_page_shows_what_is_stored(main: Any, path: Path) -> None:
    content = json.loads(path.read_text())
    assert not content["quick"]
    assert main.markdown(content) in (ROOT / "docs" / "performance.md").read_text(), "run `make bench-seismics`"


@pytest.mark.slow
def test_a_quick_run_has_a_table(main: Any) -> None:
    content = main.run([*main.PARTS], quick=True)
    rows = content["speed"]
    assert [row["order"] for row in rows] == [4, 8]
    assert all(row["seconds"][name] > 0 for row in rows for name in ("forward", "gradient"))
    text = main.markdown(content)
    assert text.count("| order ") == 2
    assert all(f"| {row['shot']} |" in text for row in content["forward"])
    found = content["inversion"]["minga"]
    assert found["misfits"][-1] < 0.5
    assert found["errors"][-1] < found["errors"][0]
    assert f"{found['misfits'][-1]:.1e}" in text


def test_what_was_not_measured_is_left_empty(main: Any) -> None:
    machine = {"processor": "P", "llvm_name": "p"}
    row = {"order": 8, "steps": 9, "seconds": {"forward": 0.5, "gradient": 1.25}, "ratios": {}}
    text = main.markdown({"date": "2026-01-01T00", "machine": machine, "speed": [row]})
    assert "| order 8, 9 steps | 0.50 |  | 1.25 |  |  |  |" in text
    assert all(name in text for name in main.COLUMNS)
