"""The benchmarks run, compare equal results, and store what they say they store. No speed is required here."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thinned import thinned

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """peers.c with little optimisation, which compiles in a tenth of the time and gives the same bits."""
    found = module("peers")
    monkeypatch.setattr(found, "FLAGS", ("-O1", "-ffp-contract=off"))
    found.library.cache_clear()
    yield found
    found.library.cache_clear()


def bench(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280,
    )  # fmt: skip


def check_shape(content: dict[str, Any]) -> None:
    assert set(content) >= {"date", "seconds", "quick", "rounds", "machine", "load_at_the_end", "results"}
    machine = content["machine"]
    assert machine["processor"]
    assert machine["cores"] >= machine["usable_cores"] >= 1
    assert machine["bandwidth"]["memcpy_GB_per_second"] > 0
    for result in content["results"]:
        assert result["title"]
        assert result["unit"]
        assert all(value["best"] > 0 for value in result["values"].values())
        for pair, ratio in result["ratios"].items():
            assert set(pair.split(" / ")) <= set(result["values"])
            assert ratio["low"] <= ratio["median"] <= ratio["high"]
        for target in result["targets"]:
            below = target["found"] <= target["limit"]
            assert target["met"] == (
                below if target["sense"] == "at most" else not below or target["found"] == target["limit"]
            )
    assert str(ROOT) not in json.dumps(content)


@pytest.mark.slow
def test_a_run_without_gcc_says_so_and_measures_the_rest(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    done = bench("--quick", "--only", "jacobi", "--out", str(out), PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "No gcc found" in done.stderr
    content = json.loads(out.read_text())
    check_shape(content)
    assert content["quick"]
    assert content["machine"]["gcc"] == ""
    results = {result["name"]: result for result in content["results"]}
    assert set(results["jacobi-f4-192"]["values"]) == {"kernel", "engine"}
    shown = bench("--table", "--out", str(out)).stdout
    assert all(result["title"] in shown for result in content["results"])


def test_an_unknown_item_is_refused() -> None:
    done = bench("--only", "nonsense")
    assert done.returncode == 2
    assert "nonsense" in done.stderr


@pytest.mark.slow
def test_compiling_is_measured(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    done = bench("--quick", "--only", "compile", "--out", str(out))
    assert done.returncode == 0, done.stderr
    results = {result["name"]: result for result in json.loads(out.read_text())["results"]}
    assert set(results["compile-tti-ten"]["values"]) == {"trace", "compile", "cold", "load"}
    assert len(results["compile-tti-ten"]["targets"]) == 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="install gcc to compare with it")
@pytest.mark.parametrize(
    ("part", "measure"),
    thinned(
        [("tti", "measure_tti"), ("stencils", "measure_jacobi"), ("stencils", "measure_life")],
        ("stencils", "measure_jacobi"),
    ),
)
def test_kernels_have_the_bits_of_the_c_functions(peers: Any, part: str, measure: str) -> None:
    found = list(getattr(module(part), measure)(module("timing").Effort.least()))
    assert found
    for result in found:
        details = result.details
        assert set(result.values) >= {"kernel", "gcc", "engine"}
        if "cells_compared" in details:
            assert details["cells_with_equal_bits"] == details["cells_compared"] > 0, result.name
        else:
            assert details["equal_to_gcc"] is True, result.name
    flops = [result.details["flops_per_cell"] for result in found if result.name.startswith("tti-full")]
    assert flops == ([571] if part == "tti" else [])


def test_targets_and_ratios() -> None:
    results, timing = module("results"), module("timing")
    assert results.Target("a", 1.0, "at least", 0.9).met
    assert not results.Target("a", 0.8, "at least", 0.9).met
    assert results.Target("a", 2.5, "at most", 3.0, "us").met
    assert not results.Target("a", 3.5, "at most", 3.0, "us").met
    times = timing.Times({"kernel": [1.0, 2.0, 4.0], "gcc": [2.0, 2.0, 2.0]})
    assert times.ratio("kernel", "gcc") == {"median": 1.0, "low": 0.5, "high": 2.0, "of_best": 2.0}
    assert results.rates(times, 8.0)["kernel"] == {"median": 4.0, "best": 8.0}


def test_ways_are_timed_in_turns() -> None:
    timing = module("timing")
    order: list[str] = []

    def way(name: str) -> Any:
        return lambda times: order.append(name) or sum(range(20000 * times))

    times = timing.measure({"a": way("a"), "b": way("b")}, timing.Effort(rounds=4, sample=1e-4))
    assert order[-8:] == ["a", "b", "b", "a"] * 2
    assert {len(seconds) for seconds in times.seconds.values()} == {4}
    assert all(second > 0 for seconds in times.seconds.values() for second in seconds)


def test_the_page_shows_what_is_stored() -> None:
    content = json.loads((ROOT / "benchmarks" / "results" / "core.json").read_text())
    check_shape(content)
    assert not content["quick"]
    assert module("report").markdown(content) in (ROOT / "docs" / "performance.md").read_text(), "run `make bench`"
    assert {result["name"].split("-")[0] for result in content["results"]} >= {
        "jacobi",
        "life",
        "tti",
        "compile",
        "tiny",
    }
