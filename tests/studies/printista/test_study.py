"""`minga bench printista`: counts are those of the paper, and the times of real ranks come with equal bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import in_process
from minga.studies.printista import study
from minga.studies.printista.ranks import time_all


def result(**changes: Any) -> dict[str, Any]:
    """Counts on a small lattice, and times that were not measured."""
    row = {"size": 64, "ranks": 1, "mesh": [1, 1], "mapping": "sequential", "strategy": "system", "crc": 7}
    slow, quick = {"seconds": 2e-5, "compute": 1.5e-5}, {"seconds": 1e-5, "compute": 8e-6}
    return {
        "sizes": {"lattices": [64], "counted": 64},
        "cores": 2,
        "table 1": [study.volume(mesh, 64) for mesh in study.PAPER_VOLUMES],
        "figure 5": [study.messages(mapping) for mapping in ("sequential", "round-robin", "tiles", "auto")],
        "times": [{**row, **slow}, {**row, **quick, "ranks": 2, "mesh": [2, 1], **changes}],
    }


@pytest.mark.slow
def test_counts_are_those_of_the_paper() -> None:
    found = result()
    assert study.failed(found) == []
    text = study.tables(found)
    assert "mesh 4x4      256 cells (256)" in text
    assert "10 (10)" in text
    assert "8 (8)" in text
    assert "2.00" in text  # the speedup on two ranks


@pytest.mark.slow
def test_other_counts_and_other_bits_are_noticed() -> None:
    found = result(crc=8)
    found["table 1"][1]["bytes"] += 8
    found["figure 5"][2]["a node"] = [10.0, 2.0, 4.0]
    assert study.failed(found) == [
        "Table 1, mesh 2x2: cells and bytes of a process",
        "Fig. 5, tiles: messages of a node",
        "64 x 64: the same bits on any number of cores and with any mapping",
    ]


@pytest.mark.parametrize(
    ("ranks", "expected"), [(1, [(1, 1)]), (2, [(2, 1)]), (4, [(4, 1), (2, 2)]), (8, [(8, 1), (4, 2)])]
)
def test_meshes_of_one_and_two_dimensions(ranks: int, expected: list[tuple[int, int]]) -> None:
    assert study.meshes(ranks) == expected


@pytest.mark.parametrize("ranks", [1, 4])
def test_all_meshes_and_mappings_leave_the_same_bits(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from minga.engine.comm import run_virtual

    monkeypatch.setenv("MINGA_PIN", "off")
    order = {"sizes": [32], "meshes": study.meshes(ranks), "mappings": ["sequential", "auto"], "steps": 3, "rounds": 2}
    found = run_virtual(ranks, lambda comm: time_all(comm, order))[0]
    assert not found["pinned"]
    assert len({row["crc"] for row in found["rows"]}) == 1
    assert len(found["rows"]) == 2 * len(study.meshes(ranks))
    assert all(0 < row["compute"] <= row["seconds"] for row in found["rows"])


@pytest.mark.mpi
@pytest.mark.slow
def test_the_command(in_tmp_path: Path) -> None:
    said = in_process("bench", "printista", "--quick", "-o", "found.json")
    assert said.status == 0, said.err
    assert "measured on this machine" in said.out
    found = json.loads(Path("found.json").read_text())
    assert {row["ranks"] for row in found["times"]} >= {1}
    assert study.failed(found) == []
