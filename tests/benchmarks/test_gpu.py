"""The benchmark of GPUs, on a fake one: it runs and stores what it says it stores. No speed is required here."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from fake_device import FakeDevice

ROOT = Path(__file__).parents[2]


class Clocked(FakeDevice):
    """A fake GPU with a clock, and a schedule that makes no difference."""

    def __init__(self, schedule: Any = "auto") -> None:
        super().__init__()
        self.schedule = schedule

    def elapsed(self, work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("benchmarks.gpu.__main__")
    monkeypatch.setattr(module, "CupyDevice", Clocked)
    monkeypatch.setattr(module, "copy_bandwidth", lambda size: 2e12)
    monkeypatch.setattr(module, "versions", lambda: {"cupy": "none"})
    return module


@pytest.mark.slow
def test_it_stores_every_schedule_apart(benchmark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results" / "gpu.json"
    assert benchmark.main(["--quick", "--only", "jacobi", "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["about"]["device"] == "a fake GPU"
    lines = found["lines"]
    assert [line["schedule"] for line in lines] == ["straight", "tile", "march"]
    assert [line["same_as"] for line in lines] == ["", "straight", ""]
    for line in lines:
        assert line["predicted"] == 2e12 / 16
        assert 0 < line["lowest"] <= line["rate"] <= line["highest"]
        assert line["of_bound"] == pytest.approx(line["rate"] / line["predicted"])
    assert capsys.readouterr().out.count("jacobi") == 3


def test_the_stored_numbers_are_those_on_the_page(benchmark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--table"]) == 0
    assert capsys.readouterr().out in (ROOT / "docs" / "performance.md").read_text()


@pytest.mark.slow
def test_it_measures_conjugate_gradients_with_multigrid(benchmark: Any, tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    assert benchmark.main(["--quick", "--only", "multigrid", "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    solve = found["multigrid"]
    assert found["lines"] == []
    assert solve["iterations"] > 1
    assert solve["kernels"] > 3 * solve["levels"]
    assert solve["bytes"] > 8 * 15**3 * 8
    assert solve["bound"] == solve["bytes"] / 2e12
    assert 0 < solve["lowest"] <= solve["seconds"] <= solve["highest"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["life bits", "tti"])
def test_its_cases_have_the_processors_bits(benchmark: Any, name: str) -> None:
    case = next(case for case in benchmark.CASES if case.name == name)
    model = case.model(case.small)
    left = []
    for device in ("cpu", FakeDevice()):
        with mg.Engine(model.layouts("single", 1), device=device) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            assert engine.run(model.step, 3)
            left.append(engine.gather(model.fields[0]))
    assert left[0].any()
    np.testing.assert_array_equal(left[0], left[1])
