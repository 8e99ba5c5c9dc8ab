"""The stored experiments after Tinetti: what is kept, and which pictures are drawn from it."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from minga.studies.figures import panel
from minga.studies.tinetti.study import NAMES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.tinetti.__main__")


def found(names: Any, say: Any, pictures: Any, *, quick: bool) -> dict[str, Any]:
    """What `measure` would find, without a lab."""
    result = {
        "title": "a title",
        "claim": "a claim",
        "panels": [panel([1, 3], {"one": [1.0, 2.0]}, "receivers", "ms")],
        "shape": {"it holds": True},
    }
    return {"experiments": dict.fromkeys(names, result)}


@pytest.mark.slow
def test_pictures_of_the_page_are_drawn(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "IMAGES", tmp_path)
    bench.draw_shown(found(NAMES, None, None, quick=True)["experiments"])
    assert {path.name for path in tmp_path.iterdir()} == {f"tinetti-{name}.png" for name in bench.SHOWN}


def test_a_part_is_stored_where_it_is_said(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure", found)
    monkeypatch.setattr(bench, "measured", lambda measure, quick, effort: {"date": "today", **measure()})
    out = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["tinetti", "--only", "E6", "--out", str(out)])
    assert bench.main() == 0
    stored = json.loads(out.read_text())
    assert stored["emulated"] is True
    assert list(stored["results"]) == ["E6"]


def test_what_is_stored_is_what_the_pages_say() -> None:
    stored = json.loads((ROOT / "benchmarks" / "results" / "tinetti.json").read_text())
    results, page = stored["results"], (ROOT / "docs" / "tinetti.md").read_text()
    assert list(results) == list(NAMES)
    assert [name for name, found in results.items() if not all(found["shape"].values())] == []
    (large,) = [p for p in results["E8"]["panels"] if p["ylabel"] == "ms" and p["xlabel"].endswith("1000000 bytes")]
    times = {name: [round(value) for value in values] for name, values in large["curves"].items()}
    one, three, seven, thirteen = times.pop("minga.broadcast")
    assert f"{one}, {three}, {seven} and {thirteen} ms to 1, 3, 7 and 13 receivers" in page
    assert min(values[-1] for values in times.values()) >= 11_400
    assert max(values[-1] for values in times.values()) <= 13_000
    (switch,) = [p for p in results["E10"]["panels"] if "100 Mb/s" in p["curves"]]
    found = dict(zip(switch["labels"], map(round, switch["curves"]["100 Mb/s"]), strict=True))
    assert f"multicast {found['minga: multicast']} ms" in page
    assert f"minga's chain {found['minga: chain']}" in page
    assert f"{found['MPICH']} to {found['Open MPI']}" in page
    multicast, chain, pipeline = (found[way] for way in found if "minga" in way or "pipeline" in way)
    assert f"(+{100 * pipeline / multicast - 100:.0f} %)" in page
    assert f"takes {100 * chain / multicast - 100:.0f} % longer" in page


def test_the_page_says_when_each_experiment_was_measured() -> None:
    stored = json.loads((ROOT / "benchmarks" / "results" / "tinetti.json").read_text())
    page = (ROOT / "docs" / "tinetti.md").read_text()
    day, _, clock = stored["date"].partition("T")
    assert f"{day} on two cores" in page
    assert f"in one run at {clock[:5]} UTC" in page
    for name, entry in stored["updated"].items():
        assert entry["date"].startswith(day)
        assert f"{name} at {entry['date'][11:16]}" in page


def test_the_page_says_what_small_messages_take() -> None:
    stored = json.loads((ROOT / "benchmarks" / "results" / "tinetti.json").read_text())
    page = " ".join((ROOT / "docs" / "tinetti.md").read_text().split())
    panels = {p["xlabel"]: p["curves"] for p in stored["results"]["E8"]["panels"] if p["ylabel"] == "ms"}
    for size in (8, 1000):
        row = panels[f"receivers, {size} bytes"]["minga.broadcast"]
        assert "{:.1f}, {:.1f}, {:.1f} and {:.1f} ms".format(*row) in page
    others = [panels["receivers, 8 bytes"][name] for name in ("MPICH", "Open MPI", "PVM")]
    assert "MPICH takes {:.1f} ms, Open MPI {:.1f}, PVM {:.1f}".format(*(row[1] for row in others)) in page
    assert "{:.1f}, {:.1f} and {:.1f} ms".format(*(row[3] for row in others)) in page
    assert "{:.0f}, {:.0f}, {:.0f} and {:.0f} ms".format(*panels["receivers, 60000 bytes"]["minga.broadcast"]) in page


def test_the_page_says_what_products_took() -> None:
    stored = json.loads((ROOT / "benchmarks" / "results" / "tinetti.json").read_text())
    page = " ".join((ROOT / "docs" / "tinetti.md").read_text().split())
    curves = {p["xlabel"]: p["curves"] for p in stored["results"]["E13"]["panels"]}
    slow, fast = curves["n, 100 Mb/s"], curves["n, 1000 Mb/s"]
    ways = ("rows", "equal", "alone")
    assert (
        "{:.1f} s ({:.1f} predicted), equal rows {:.1f} ({:.1f}), the fastest machine alone {:.1f} ({:.1f})".format(
            *(slow[key][-1] for way in ways for key in (way, f"{way}, predicted"))
        )
        in page
    )
    assert (
        "{:.1f} s ({:.1f}), {:.1f} ({:.1f}), {:.1f} ({:.1f})".format(
            *(fast[key][-1] for way in ways for key in (way, f"{way}, predicted"))
        )
        in page
    )
    assert f"{fast['rows'][-2]:.2f} s against {fast['alone'][-2]:.2f} s alone" in page
