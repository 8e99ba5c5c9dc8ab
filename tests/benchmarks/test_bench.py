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

import numpy as np
import pytest

from minga.compile.numpy import BoundArray, evaluate
from minga.engine.storage import allocate
from minga.lang.kernel import infer_signature
from minga.space.box import Box
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


@pytest.mark.slow
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
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc: apt-get install gcc")
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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc: apt-get install gcc")
@pytest.mark.parametrize("case", thinned(["jacobi-fixed", "life-periodic", "gray-scott", "waves"], "gray-scott"))
def test_bare_kernels_take_their_slots_in_turn(peers: Any, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """After three steps the newest slot has the cells that NumPy computes, with boundary cells that never change."""
    steps = module("small_steps")
    kept: list[Any] = []
    monkeypatch.setattr(steps, "allocate", lambda *about: kept.append(allocate(*about)) or kept[-1])
    of, size = steps.CASES[case], 12
    starts = [np.random.default_rng(k).random((size, size)).round().astype(of.dtype) for k in range(of.fields)]
    way = steps._bare(of, size, starts)
    slots = [[each.copy() for each in kept[k * of.fields : (k + 1) * of.fields]] for k in range(2)]
    way(3)
    box = Box((0, 0), (size, size))
    graph = of.kernel.graph(infer_signature(2, [(of.dtype, (0, 1))] * 2 * of.fields))
    for _ in range(3):
        evaluate(graph, (box.lo, box.hi), [BoundArray(array, (-1, -1)) for arrays in slots for array in arrays])
        slots.reverse()
    assert [array.tobytes() for array in kept] == [array.tobytes() for array in (*slots[1], *slots[0])]


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
    contents = module("families").stored("core")
    assert contents
    assert module("__main__").page(contents) in (ROOT / "docs" / "performance.md").read_text(), "run `make bench`"
    for content in contents.values():
        check_shape(content)
        assert not content["quick"]
        check_parts(content)


def check_parts(content: dict[str, Any]) -> None:
    assert {result["name"].split("-")[0] for result in content["results"]} >= {
        "jacobi",
        "life",
        "tti",
        "compile",
        "tiny",
    }


def content_of(**medians: float) -> dict[str, Any]:
    """Results with a ratio each."""
    results = [
        {
            "name": name, "title": f"case {name}",
            "ratios": {"kernel / gcc": {"median": median, "of_best": median, "low": median, "high": median}},
            "targets": [{"what": "kernel / gcc", "met": median >= 1}],
        }
        for name, median in medians.items()
    ]  # fmt: skip
    return {"date": "2026-11-26T00:00:00", "results": results}


def test_parts_take_their_places_among_stored_results() -> None:
    before, now = content_of(a=1.0, b=1.0), {**content_of(b=2.0, c=3.0), "date": "2026-11-28T00:00:00"}
    found = module("families").updated(before, now)
    assert found["date"] == before["date"]
    medians = {result["name"]: result["ratios"]["kernel / gcc"]["median"] for result in found["results"]}
    assert medians == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert [result.get("date") for result in found["results"]] == [None, now["date"], now["date"]]


def test_families_are_shown_side_by_side_with_what_they_miss() -> None:
    families = module("families")
    assert not [*families.side_by_side({"znver4": content_of(a=1.0)})]
    lines = [*families.side_by_side({"icelake": content_of(a=0.9, b=1.2), "znver4": content_of(a=1.1)})]
    assert lines[0] == "|  | icelake | znver4 |"
    assert lines[2:] == [
        "| case a | kernel / gcc 0.90 (MISSED) | kernel / gcc 1.10 |",
        "| case b | kernel / gcc 1.20 |  |",
    ]


@pytest.mark.parametrize(("now", "status"), [({"a": 0.95, "b": 3.0}, 0), ({"a": 0.89, "b": 3.0}, 1), ({"c": 0.1}, 0)])
def test_a_check_compares_ratios_with_those_of_the_family(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], now: dict[str, float], status: int
) -> None:
    check = module("check")
    monkeypatch.setattr(check, "stored", lambda name: {check.family(): content_of(a=1.0, b=2.0)})
    assert check.main([], lambda names, effort: content_of(**now)) == status
    said = capsys.readouterr().out
    assert said.count("SLOWER") == status
    assert f"{len({'a', 'b'} & set(now))} ratios compared" in said


def test_a_family_without_numbers_cannot_be_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = module("check")
    monkeypatch.setattr(check, "stored", lambda name: {"other": content_of(a=1.0)})
    assert check.main([]) == 2
    assert "nothing is stored for processors of the family" in capsys.readouterr().out
