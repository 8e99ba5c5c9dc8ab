"""The benchmark of products: what is stored of several turns, and the slower BLAS."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the benchmark, by name."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.matmul.{name}")


def turn(seconds: float, predicted: float) -> dict[str, Any]:
    return {"seconds": seconds, "predicted_seconds": predicted, "speeds": [3e9, 1e9], "error": 1e-3}


def test_turns_are_summed_up(module: Any) -> None:
    summed_up, headline = module("turns").summed_up, module("__main__").headline
    ours = summed_up(1000, [turn(0.6, 0.5), turn(0.5, 0.5), turn(0.625, 0.5)])
    assert ours["seconds"] == {"median": 0.6, "least": 0.5, "most": 0.625}
    assert ours["prediction_error"] == pytest.approx(0.2)
    assert ours["efficiency"] == pytest.approx(2e9 / 0.6 / 4e9)
    peer = summed_up(1000, [{"seconds": 1.2, "error": 0.0}])
    found = headline({"compared": {"ways": {"minga": ours, "SUMMA": peer}}})
    assert found["times_as_fast_as"] == {"SUMMA": pytest.approx(2.0)}
    assert found["efficiency"] == ours["efficiency"]


def test_a_slower_blas_computes_the_same(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = module("slow")
    once, calls = np.matmul, []

    def counted(a: Any, b: Any, out: Any = None) -> Any:
        calls.append(1)
        return once(a, b, out=out)

    monkeypatch.setattr(np, "matmul", counted)
    monkeypatch.setitem(slow.TIMES, slow.os.uname().nodename, 5)
    monkeypatch.setenv("MINGA_SLOWNESS", "")
    assert slow.slow_down() == 5
    a = np.arange(6.0).reshape(2, 3)
    out = np.empty((2, 2))
    assert np.array_equal(np.matmul(a, a.T, out=out), a @ a.T)
    assert len(calls) == 5


def test_the_page_shows_what_is_stored(module: Any) -> None:
    stored = json.loads((ROOT / "benchmarks" / "results" / "matmul.json").read_text())
    assert not stored["quick"]
    assert module("report").markdown(stored) in (ROOT / "docs" / "performance.md").read_text()
    assert stored["efficiency"] >= 0.85
    assert stored["prediction_error"] <= 0.15
    assert min(stored["times_as_fast_as"][name] for name in ("SUMMA", "pdgemm", "Dask", "minga, equal rows")) > 1.0
    assert max(way["error_over_rounding"] for way in stored["results"]["compared"]["ways"].values()) < 1.0
