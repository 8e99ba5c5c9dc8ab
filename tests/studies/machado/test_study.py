"""`minga bench machado`: disks of a given speed, what runs should take, and a quick run of the experiment."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import in_process
from minga.studies.machado import one_run, study
from minga.studies.machado.arms import Order
from minga.studies.machado.disks import Cached, Paced
from minga.studies.machado.expected import expected

STORED = Path(__file__).parents[3] / "benchmarks" / "results" / "waves" / "znver3.json"


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
    cache = Cached(10.0, 30.0, clock=clock)
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
    disk = Paced(10.0, clock, sleep=clock.sleep)
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
    size = 8**3 * 4
    run = Order(arm, 8, 1, frames, rate=size / rho, depth=0.56 * 101 * size, copy=0.13)
    assert least < expected(run, 1.0) / expected(replace(run, arm="processes"), 1.0) < most


@pytest.mark.parametrize("rho", [0.62, 2.36])
@pytest.mark.parametrize("buffers", [2, 4])
def test_a_queue_takes_as_long_as_the_slower_side_and_one_step_of_the_other(rho: float, buffers: int) -> None:
    run = Order("overlapped", 8, 1, 50, rate=8**3 * 4 / rho, buffers=buffers)
    assert expected(run, 1.0) == pytest.approx(49 * max(1.0, rho) + rho)
    assert expected(replace(run, arm="durable"), 1.0) == pytest.approx(49 + 50 * rho)


def test_the_tables_show_the_papers_numbers_beside_those_found() -> None:
    text = study.tables(json.loads(STORED.read_text())["paper"])
    assert "hard disk 151 frames  0.998 (1.02)" in text
    assert "SSD       101 frames  1.1" in text
    assert "(1.131)" in text
    assert "The frames of all runs are equal." in text


@pytest.mark.slow
def test_the_experiment_leaves_equal_frames(in_tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs are in this process, and share what is compiled."""
    monkeypatch.setattr(study, "carry_out", lambda order, packages=None: one_run.carry_out(order))
    said = in_process("bench", "machado", "--quick", "-o", "found.json")
    assert said.status == 0, said.err
    assert "overlapped 2, rho 0.62" in said.out
    found = json.loads(Path("found.json").read_text())
    check_experiment(found)


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


def test_frames_that_differ_are_found(tmp_path: Path) -> None:
    run = study.Run("a", "buffered", 0.62, Order("buffered", 2, 1, 3))

    def frames(name: str, change: Callable[[np.ndarray], object]) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for number in range(3):
            values = np.full((2, 2, 2), number, np.float32)
            change(values) if number == 1 else None
            values.tofile(folder / f"{number:04}")
        return folder

    same = study.Frames()
    same.compare(run, frames("one", lambda values: None), {})
    same.compare(run, frames("two", lambda values: None), {})
    assert same.equal
    same.compare(run, frames("three", lambda values: values.fill(0.5)), {})
    assert not same.equal
