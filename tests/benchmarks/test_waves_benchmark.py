"""The benchmark of waves: what is stored, disks of a given speed, and a quick run of each part."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results" / "waves.json"
FRAME = {"date": "2000-01-01", "machine": {"processor": "a", "llvm_name": "b", "usable_cores": 1}}


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.waves.{name}")


class Clock:
    """Seconds that pass when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_cache_takes_what_fits_at_once_and_then_what_the_disk_takes() -> None:
    clock = Clock()
    cache = module("disks").Cached(10.0, 30.0, clock=clock)
    assert [cache.delay(15), cache.delay(15)] == [0.0, 0.0]
    assert cache.delay(20) == pytest.approx(2.0)
    clock.sleep(2.0)
    assert cache.backlog == pytest.approx(3.0)
    clock.sleep(10.0)
    assert cache.backlog == 0.0
    assert cache.delay(30) == 0.0


@pytest.mark.parametrize(("real", "total", "late"), [(0.5, 3.5, 0.5), (2.0, 7.0, 4.0)])
def test_a_paced_disk_takes_the_time_that_the_real_one_does_not(real: float, total: float, late: float) -> None:
    clock = Clock()
    disk = module("disks").Paced(10.0, clock, sleep=clock.sleep)
    for _ in range(3):
        disk(10)
        clock.sleep(real)
    assert (clock.now, disk.late) == pytest.approx((total, late))


@pytest.mark.parametrize(
    ("arm", "rho", "frames", "least", "most"),
    [
        ("buffered", 0.62, 101, 1.12, 1.14),
        ("buffered", 0.62, 151, 1.12, 1.14),
        ("buffered", 2.36, 101, 1.06, 1.10),
        ("buffered", 2.36, 151, 0.99, 1.01),
    ],
)
def test_the_model_of_the_page_cache_has_the_shape_of_the_papers_numbers(
    arm: str, rho: float, frames: int, least: float, most: float
) -> None:
    expected, order = module("expected").expected, module("arms").Order
    size = 8**3 * 4
    run = order(arm, 8, 1, frames, rate=size / rho, depth=0.56 * 101 * size, copy=0.13)
    assert least < expected(run, 1.0) / expected(replace(run, arm="processes"), 1.0) < most


@pytest.mark.parametrize("rho", [0.62, 2.36])
@pytest.mark.parametrize("buffers", [2, 4])
def test_a_queue_takes_as_long_as_the_slower_side_and_one_step_of_the_other(rho: float, buffers: int) -> None:
    expected, order = module("expected").expected, module("arms").Order
    run = order("overlapped", 8, 1, 50, rate=8**3 * 4 / rho, buffers=buffers)
    assert expected(run, 1.0) == pytest.approx(49 * max(1.0, rho) + rho)
    assert expected(replace(run, arm="durable"), 1.0) == pytest.approx(49 + 50 * rho)


def test_the_page_shows_what_is_stored() -> None:
    content = json.loads(STORED.read_text())
    assert not content["quick"]
    assert content["paper"]["frames_equal"] is True
    shown = module("report").markdown(content)
    assert shown in (ROOT / "docs" / "performance.md").read_text(), "run `make bench-waves`"


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """C with little optimisation, and all runs in this process, which share what is compiled."""
    peers = importlib.import_module("benchmarks.peers")
    monkeypatch.setattr(peers, "FLAGS", ("-O1", "-ffp-contract=off"))
    monkeypatch.setattr(module("bounds"), "FLAGS", peers.FLAGS)
    monkeypatch.setattr(module("paper"), "carry_out", module("one_run").carry_out)
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
@pytest.mark.usefixtures("quickly")
def test_the_papers_experiment_leaves_equal_frames() -> None:
    paper = module("paper").measure_paper(True)
    check_experiment(paper)
    assert "overlapped 2, rho 0.62" in module("report").markdown({**FRAME, "paper": paper})


def check_experiment(paper: dict[str, Any]) -> None:
    assert paper["frames_equal"] is True
    assert {run["order"]["arm"] for run in paper["results"].values()} == {
        "none", "buffered", "processes", "durable", "overlapped",
    }  # fmt: skip
    for run in paper["results"].values():
        assert 0 < run["compute"]["median"] <= run["returned"]["median"] <= run["durable"]["median"]
    overlapped = next(run for run in paper["results"].values() if run["order"]["arm"] == "overlapped")
    assert overlapped["counters"]["frames"] == overlapped["order"]["frames"]
    assert {target["what"].split(" / ")[-1] for target in paper["targets"]} >= {"(max(compute, write) + drain)"}


@pytest.mark.slow
def test_a_quick_run_of_everything(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks.waves", "--quick", "--out", str(tmp_path / "out.json")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    assert content["quick"]
    assert content["machine"]["usable_cores"] >= 1
    assert str(ROOT) not in json.dumps(content)
    check_experiment(content["paper"])
    assert len(content["speed"]) >= 1


def test_frames_that_differ_are_found(tmp_path: Path) -> None:
    paper, arms = module("paper"), module("arms")
    run = paper.Run("a", "buffered", 0.62, arms.Order("buffered", 2, 1, 3))

    def frames(name: str, change: Callable[[np.ndarray], object]) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for number in range(3):
            values = np.full((2, 2, 2), number, np.float32)
            change(values) if number == 1 else None
            values.tofile(folder / f"{number:04}")
        return folder

    same = paper.Frames()
    same.compare(run, frames("one", lambda values: None), {})
    same.compare(run, frames("two", lambda values: None), {})
    assert same.equal
    same.compare(run, frames("three", lambda values: values.fill(0.5)), {})
    assert not same.equal
