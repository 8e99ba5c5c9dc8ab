"""The benchmark of clusters in a box: what is stored, and a quick run in a real lab."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results" / "lab-hetero.json"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.lab.__main__")


def test_the_headline_is_of_the_worst_case(bench: Any) -> None:
    stored = json.loads(STORED.read_text())
    cases = stored["results"]["hetero"].values()
    assert stored["efficiency"] == min(case["efficiency"] for case in cases)
    assert stored["prediction_error"] == max(case["prediction_error"] for case in cases)
    assert bench.headline({}) == {}


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="builds a lab with quotas: run it as root")
def test_a_quick_run_in_a_lab(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks.lab", "--quick", "--only", "milano", "--out", str(tmp_path / "out.json")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())["results"]["milano"]
    assert found["same_digest"]
    cells, speeds = found["cells_planned"], found["speeds_one_by_one"]
    assert [speed > 0 for speed in speeds] == [count > 0 for count in cells], "a slow node may get nothing"
    assert sum(found["interface_bytes_of_all"].values()) > 0
