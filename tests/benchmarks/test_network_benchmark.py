"""The benchmark of messages beside others: how turns are put together, and what is stored."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results" / "network.json"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.network.peers")


def test_ratios_are_of_the_medians_of_all_turns(peers: Any) -> None:
    ours = iter([{8: [1.0, 9.0]}, {8: [1.1, 1.2]}, {8: [1.0]}])
    theirs = iter([{8: [1.0]}, {8: [1.3]}, {8: [1.0]}])
    first, _, last = peers.round_robin(lambda: next(ours), lambda: next(theirs), [8, 16], 3)
    assert first[8]["ratio"] == 5.0
    assert last == {8: {"ours": 1.1, "theirs": 1.0, "ratio": 1.1, "ratio_of_least": 1.0}}
    assert peers.worst(last) == pytest.approx(0.1)


def test_means_of_exchanges_in_a_row(peers: Any) -> None:
    assert peers.means([1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 99.0]) == [2.0, 11.0]
    assert peers.means([1.0, 2.0]) == [1.5]


def test_what_is_stored(peers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = importlib.import_module("benchmarks.network.__main__")
    assert bench.headline({"netpipe": {"left_out": "not here"}, "intel": {"mpich": {"worst": 0.04}}}) == {
        "intel_mpich_difference": 0.04
    }
    stored = json.loads(STORED.read_text())
    assert stored["emulated"]
    for name, difference in bench.headline(stored["results"]).items():
        assert stored[name] == difference
        assert difference <= 0.10
    report = importlib.import_module("benchmarks.network.report")
    assert report.markdown(stored) in (ROOT / "docs" / "performance.md").read_text()
