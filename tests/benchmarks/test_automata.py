"""The benchmark of automata runs, compares populations, and stores what it says. No speed is required here."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.automata.{name}")


def test_the_soup_is_the_one_that_others_can_make() -> None:
    cells = module("soup").soup(64, 64)
    assert int(cells.sum()) == 1501
    assert zlib.crc32(cells.tobytes()) == 0x31583052


def test_what_is_written_for_golly_reads_back(tmp_path: Path) -> None:
    from minga.models.automaton.patterns import read_pattern

    soup = module("soup")
    for cells in (soup.soup(9, 31), np.array([[0, 1, 2], [0, 0, 0], [2, 0, 0]], np.uint8)):
        soup.write_rle(tmp_path / "soup.rle", cells, "B3/S23:T31,9")
        assert read_pattern(tmp_path / "soup.rle").cells.tolist() == cells.tolist()


@pytest.mark.slow
def test_a_quick_run_stores_rates_and_says_who_was_left_out(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks.automata", "--quick", "--only", "life-64", "brian-1024"]
    environment = {**os.environ, "PATH": str(tmp_path)}  # where no bgolly is
    done = subprocess.run(
        [*words, "--out", str(tmp_path / "out.json")], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "out.json").read_text())
    life, brian = content["results"]
    assert "bgolly" in life["left_out"]
    assert "bgolly" in brian["left_out"]
    assert {"minga bits", "minga bytes", "numpy"} <= set(life["rates"])
    assert all(rate["median"] > 0 for rate in life["rates"].values())
    assert content["machine"]["usable_cores"] >= 1
    assert content["peers"]["bgolly"] is None


def test_a_peer_with_another_population_ends_the_run(tmp_path: Path) -> None:
    main, peers = module("__main__"), module("peers")
    contest = next(c for c in main.contests(quick=True) if c.name == "life-64")

    def wrong(cells: Any, generations: int, rounds: int, folder: Path) -> Any:
        right = peers.numpy_rolls(cells, generations, rounds, folder)
        return replace(right, population=right.population + 1)

    small = replace(contest, ways={"minga bytes": contest.ways["minga bytes"], "numpy": (wrong, 2)})
    with pytest.raises(SystemExit, match="numpy has"):
        main.hold(small, 1, tmp_path)
