"""The benchmark of electrodeposition runs, and compares equal results. No speed is required here."""

from __future__ import annotations

import importlib
import itertools
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
    return importlib.import_module(f"benchmarks.cell.{name}")


@pytest.mark.slow
def test_both_schemes_reach_the_residual() -> None:
    found = module("schemes").measure_schemes(True)
    for row in found["rows"]:
        assert row["semi_implicit"]["residual"] <= row["tolerance"] < 1e-4
        assert row["relaxation"]["residual"] <= row["tolerance"]
    assert "| 2 x 12 x 2 |" in module("report").markdown(frame() | {"schemes": found})


@pytest.mark.slow
def test_a_line_beside_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A substitute for FiPy prints a fixed number; the benchmark leaves out a peer whose package is missing."""
    line = module("line")
    peer = tmp_path / "peer.py"
    peer.write_text(f"print({json.dumps(json.dumps({'seconds': 10.0, 'J_over_Jlim': 0.9}))})")
    (tmp_path / "fipy.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(line, "PEERS", {"FiPy": (("fipy",), peer), "Nobody": (("no_such_package",), peer)})
    found = line.measure_line(True, Path(sys.executable))
    (row,) = found["rows"]
    assert row["peer"] == "FiPy"
    assert row["theirs"]["error"] == pytest.approx(0.9 / 0.8590507 - 1.0)
    assert row["minga"]["error"] < row["theirs"]["error"]
    assert row["times_as_fast"] > 0.0
    assert "| FiPy | 20, 4.8e-02, 10 s | 24, " in module("report").markdown(frame() | {"line": found})


def test_the_page_shows_what_is_stored() -> None:
    files = sorted((ROOT / "benchmarks" / "results" / "cell").glob("*.json"))
    assert files
    contents = [json.loads(file.read_text()) for file in files]
    for content in contents:
        shown = module("report").markdown(content)
        assert shown in (ROOT / "docs" / "performance.md").read_text(), "run `make bench-cell`"
        check_schemes(content.get("schemes"))
        check_multigrid(content.get("multigrid"))
        check_lines(content.get("line"))
    assert all(any(part in content for content in contents) for part in ("schemes", "multigrid", "line"))


def check_schemes(found: dict[str, Any] | None) -> None:
    """Check that the scheme with systems of equations is far faster, if it was measured."""
    assert all(row["times_as_fast"] >= 100.0 for row in (found or {"rows": []})["rows"])


def check_multigrid(rows: list[dict[str, Any]] | None) -> None:
    """Check the iterations that docs/solvers.md tells, if they were measured."""
    if rows:
        labyrinth = [row["iterations"] for row in rows if row["problem"] == "labyrinth"]
        others = [row["iterations"] for row in rows if row["problem"] != "labyrinth"]
        assert len(labyrinth) == 3
        assert max(labyrinth) <= 14
        assert (min(others), max(others)) == (8, 12)


def check_lines(found: dict[str, Any] | None) -> None:
    """Check that each peer has three sizes, whose errors fall with the square of their cells, if it was measured."""
    if found is None:
        return
    rows = found["rows"]
    assert all(row["times_as_fast"] >= {"FiPy": 100.0, "DEVSIM": 10.0}[row["peer"]] for row in rows)
    for peer in ("FiPy", "DEVSIM"):
        errors = [row["theirs"]["error"] for row in rows if row["peer"] == peer]
        assert len(errors) == 3
        assert all(3.0 < coarse / fine < 5.0 for coarse, fine in itertools.pairwise(errors)), peer


@pytest.mark.slow
def test_multigrid_is_measured() -> None:
    multigrid = module("multigrid")
    found = [multigrid._measure(name, 8) for name in ("glass needles", "plates", "thin gap")]
    assert all(0 < row["iterations"] <= 15 for row in found)
    assert "| three metal plates of one cell | " in module("report").markdown(frame() | {"multigrid": found})


@pytest.mark.slow
def test_without_the_peer(tmp_path: Path) -> None:
    found = module("line").measure_line(True, tmp_path / "python")
    assert found["rows"] == []
    assert "FiPy and DEVSIM were not installed" in module("report").markdown(frame() | {"line": found})


def frame() -> dict[str, Any]:
    return {"date": "2000-01-01", "machine": {"processor": "a", "llvm_name": "znver4", "usable_cores": 1, "load": 0.0}}
