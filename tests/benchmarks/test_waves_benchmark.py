"""The benchmark of waves: what is stored, and a quick run of each part."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STORED = sorted((ROOT / "benchmarks" / "results" / "waves").glob("*.json"))
FRAME = {"date": "2000-01-01", "machine": {"processor": "a", "llvm_name": "b", "usable_cores": 1}}


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.waves.{name}")


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_the_page_shows_what_is_stored(path: Path) -> None:
    content = json.loads(path.read_text())
    assert not content["quick"]
    assert content["speed"]
    assert content.get("paper", {"frames_equal": True})["frames_equal"] is True
    shown = module("report").markdown(content)
    assert shown in (ROOT / "docs" / "performance.md").read_text(), "run `make bench-waves`"


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """C with little optimisation."""
    peers = importlib.import_module("benchmarks.peers")
    monkeypatch.setattr(peers, "FLAGS", ("-O1", "-ffp-contract=off"))
    monkeypatch.setattr(module("bounds"), "FLAGS", peers.FLAGS)
    peers.library.cache_clear()
    yield
    peers.library.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_speed_is_measured_on_one_core_and_on_all() -> None:
    results = [found.as_json() for found in module("speed").measure_speed(True)]
    assert {result["details"]["threads"] for result in results} == {1, len(os.sched_getaffinity(0))}
    for result in results:
        values = result["values"]
        assert set(values) >= {"forward", "forward, homogeneous", "update"}
        assert all(value["best"] > 0 for value in values.values())
        if "gcc" in values:
            assert {target["what"] for target in result["targets"]} >= {"update / gcc", "forward / gcc"}
    assert results[0]["title"] in module("report").markdown({**FRAME, "speed": results})


@pytest.mark.slow
def test_a_quick_run_of_everything(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks.waves", "--quick", "--out", str(tmp_path / "out.json")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    assert content["quick"]
    assert content["machine"]["usable_cores"] >= 1
    assert str(ROOT) not in json.dumps(content)
    assert content["paper"]["frames_equal"] is True
    assert "overlapped 2, rho 0.62" in module("report").markdown(content)
    assert len(content["speed"]) >= 1
