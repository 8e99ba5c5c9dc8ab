"""`minga bench bounanos`: cheap experiments as people start them, and all of them at a size for tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import in_process
from minga.studies.bounanos import study as bench
from minga.studies.bounanos.experiments import EXPERIMENTS


@pytest.mark.slow
def test_tables_figures_and_a_page(tmp_path: Path) -> None:
    out, page, pictures = tmp_path / "found.json", tmp_path / "page.html", tmp_path / "pictures"
    said = in_process(
        "bench", "bounanos", "--quick", "--only", "E0", "--only", "E11",
        "-o", str(out), "--html", str(page), "--pictures", str(pictures),
    )  # fmt: skip
    assert said.status == 0, said.err
    assert "layer Absorp  first 1201  last 1320" in said.out
    assert "DOES NOT HOLD" not in said.out
    found = json.loads(out.read_text())["experiments"]
    assert found["E11"]["ideal for weight 10, equal and balanced"]["37"] == [5.918, 36.25]
    assert (pictures / "bounanos-E11.png").read_bytes()[:4] == b"\x89PNG"
    html = page.read_text()
    assert "data:image/png;base64," in html
    assert "rows are those of Table 1" in html


def test_what_does_not_hold_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPERIMENTS, "E0", ("a title", lambda bench: {"shape": {"pigs fly": False}}))  # type: ignore[arg-type]
    said = in_process("bench", "bounanos", "--quick", "--only", "E0")
    assert said.status == 1
    assert "[DOES NOT HOLD] pigs fly" in said.out
    assert "does not hold: E0: pigs fly" in said.err


def test_an_unknown_experiment() -> None:
    said = in_process("bench", "bounanos", "--only", "E13")
    assert said.status == 2
    assert "there is no experiment 'E13'" in said.err


def test_runs_in_a_lab_are_shown_beside(tmp_path: Path) -> None:
    lab, page = tmp_path / "lab.json", tmp_path / "page.html"
    run = {"nodes": 2, "cut": "equal", "seconds": 3.0, "emulated": 2.9, "efficiency": 0.83}
    lab.write_text(json.dumps({"results": {"distributed": {"runs": [run]}}}))
    said = in_process("bench", "bounanos", "--quick", "--only", "E0", "--lab", str(lab), "--html", str(page))
    assert said.status == 0, said.err
    assert "In a lab, distributed" in said.out
    assert "      2  equal             3       2.9        0.83" in said.out
    assert "In a lab, distributed" in page.read_text()
    for text in ("{}", "no json", json.dumps({"results": {"distributed": {"runs": [{}]}}})):
        lab.write_text(text)
        said = in_process("bench", "bounanos", "--quick", "--only", "E0", "--lab", str(lab))
        assert said.status == 2
        assert "does not hold runs in a lab" in said.err


def test_experiments_are_in_their_order() -> None:
    assert (*(f"E{k}" for k in range(13)), "efficiency") == bench.NAMES


@pytest.mark.slow
def test_all_of_it(tmp_path: Path) -> None:
    """Everything the paper says of its figures, as far as it is looked at, holds."""
    found = bench.measure(bench.sizes(quick=True), bench.NAMES, print, None)
    assert bench.failed(found) == []
    assert found["experiments"]["efficiency"]["best efficiency"]["rows move, too (minga)"] >= 0.90
    assert found["experiments"]["E6"]["curves"]["sub-cycles observed"][0] == 3179
