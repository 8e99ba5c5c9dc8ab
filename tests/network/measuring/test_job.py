"""Measuring inside a real MPI job; its ranks are on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpi_launch import run_ranks

RANKS = Path(__file__).with_name("network_ranks.py")


@pytest.mark.slow
@pytest.mark.mpi
def test_a_job_measures_itself(tmp_path: Path) -> None:
    run_ranks(3, RANKS, tmp_path / "found").check()
    sections = [json.loads((tmp_path / f"found.{rank}").read_text()) for rank in range(3)]
    assert sections[0] == sections[1] == sections[2]
    (entry,) = sections[0]["links"]
    assert (entry["level"], entry["transport"], entry["members"]) == (1, "mpi", [0, 1])
    assert entry["fit_median"]["zero"] > 0
    assert entry["samples"][0]["bytes"] == 0
    found = json.loads((tmp_path / "found").read_text())
    assert set(found["pairs"]) == {"01", "10", "12"}
    assert len(found["matrix"]["pairs"]) == 6
    (overlap,) = found["overlap"]
    assert overlap["bytes"] == 100_000
    assert 0 <= overlap["overlap"] <= 1
    assert overlap["test"] > 0


@pytest.mark.mpi
def test_an_error_reaches_all_ranks() -> None:
    job = run_ranks(2, RANKS, "fail").check()
    assert job.out[0] == "0 a host is on fire\n"
    assert "failed on rank 0: a host is on fire" in job.out[1]
