"""The benchmark of the paper's parallel runs: its words, its chain of messages, and a quick run in a real lab."""

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


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.milano.paper")


def test_the_papers_tables_follow_from_its_times(paper: Any) -> None:
    """Speed-up and efficiency of 14 processes as printed, and the shape that is looked for."""
    printed = {"40x100x40": (3.02, 7.41), "40x200x40": (5.05, 10.48), "40x400x40": (7.56, 11.88)}
    for mesh, ways in paper.TIMES.items():
        found = paper.derived(paper.PROCESSES, ways)
        for way, expected in zip(("blocking", "overlapped"), printed[mesh], strict=True):
            assert found[way]["speed_up"][-1] == pytest.approx(expected, abs=0.01)
            assert found[way]["wasted"][-1] == pytest.approx(1 - expected / 14, abs=1e-3)
    shapes = {mesh: paper.shape(paper.PROCESSES, ways) for mesh, ways in paper.TIMES.items()}
    assert [s["fastest_with"]["blocking"] for s in shapes.values()] == [6, 10, 14]
    assert [s["blocking_peaks"] for s in shapes.values()] == [True, True, False]
    assert all(s["overlapped_rises"] for s in shapes.values())


def test_what_is_stored_has_the_papers_shape(paper: Any) -> None:
    """Blocking peaks and falls on the shortest mesh, and overlap gains; overlapped it still rises on the longest."""
    stored = ROOT / "benchmarks" / "results" / "milano.json"
    if not stored.exists():
        pytest.skip("nothing is stored: make bench-milano")
    content = json.loads(stored.read_text())
    assert not content["quick"]
    times = content["results"]["times"]
    for mesh, ways in times["seconds_a_sweep"].items():
        assert paper.derived(times["processes"], ways) == times["derived"][mesh]
    first, *_, last = times["shape"].values()
    assert first["blocking_peaks"]
    assert last["overlapped_rises"]
    assert first["gain_with_most"] > 0.2


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="builds a lab with quotas: run it as root")
def test_a_quick_run_in_a_lab(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    words = [sys.executable, "-m", "benchmarks.milano", "--quick", "--only", "times", "messages", "--out", str(out)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text())["results"]
    (ways,) = results["times"]["seconds_a_sweep"].values()
    assert {way: len(seconds) for way, seconds in ways.items()} == {"blocking": 3, "overlapped": 3}
    assert results["times"]["network"]["interface_bytes_of_two"] > results["times"]["network"]["bytes_a_plane"]
    assert set(results["messages"]["milliseconds"]["21504"]) == {"Send", "Recv", "Isend", "Irecv"}
