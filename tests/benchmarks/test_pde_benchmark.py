"""The benchmark of equations runs, and compares equal results. No speed is required here."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.pde.{name}")


@pytest.mark.slow
def test_a_problem_beside_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process of minga stands for the peer, and must find the same."""
    compare, problems = module("compare"), module("problems").GALLERY
    monkeypatch.setattr(compare, "_version", lambda peer, python: "0.0")
    chosen = {"schroedinger": problems["schroedinger"]}
    found = compare.compared("py-pde", "minga_text.py", chosen, True, Path(sys.executable))
    (row,) = found["rows"]
    assert row["largest_difference"] == 0.0
    assert row["times_as_fast"]["median"] > 0.0
    page = {
        "date": "2026-01-01",
        "machine": {"processor": "", "llvm_name": "znver4", "usable_cores": 1, "load": 0.0},
        "gallery": found,
    }
    assert "| Schroedinger, 128 | " in module("report").markdown(page)


def test_a_peer_that_is_not_installed_is_left_out(tmp_path: Path) -> None:
    compare = module("compare")
    found = compare.compared("Devito", "devito_text.py", module("problems").EXPLICIT, True, tmp_path / "python")
    assert found == {"peer": "Devito", "version": None, "rows": []}
    page = {
        "date": "2026-01-01",
        "machine": {"processor": "", "llvm_name": "znver4", "usable_cores": 1, "load": 0.0},
        "explicit": found,
    }
    assert "Devito was not installed." in module("report").markdown(page)


@pytest.mark.slow
def test_convolutions_are_those_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    part = module("convolutions")
    monkeypatch.setattr(part, "SIZES", (64,))
    found = part.convolutions(True)
    (row,) = found["rows"]
    assert row["largest_difference"] < 1e-14
    page = {
        "date": "2026-01-01",
        "machine": {"processor": "", "llvm_name": "znver4", "usable_cores": 1, "load": 0.0},
        "convolutions": found,
    }
    assert "| 64², 13 (fft) | " in module("report").markdown(page)


def test_the_page_shows_what_is_stored() -> None:
    files = sorted((ROOT / "benchmarks" / "results" / "pde").glob("*.json"))
    assert files
    for content in (json.loads(file.read_text()) for file in files):
        shown = module("report").markdown(content)
        assert shown in (ROOT / "docs" / "performance.md").read_text(), "run `make bench-pde`"
        rows = [row for part in ("gallery", "explicit") for row in content[part]["rows"]]
        assert len(content["gallery"]["rows"]) >= 8
        assert max(row["largest_difference"] for row in rows) < 1e-7, "the peers solve the same equations"
