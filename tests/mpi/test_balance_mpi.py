"""Real ranks of which one is slow: its work moves to the others, the bits stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slow_ranks
from mpi_launch import run_ranks

pytestmark = pytest.mark.mpi


@pytest.mark.slow  # tests/plan/test_balance.py has a run of ranks of one process
def test_work_leaves_a_slow_rank() -> None:
    job = run_ranks(3, Path(slow_ranks.__file__)).check()
    still, balanced, unseen, rarely = json.loads(job.out[0])
    assert balanced["digest"] == still["digest"]
    assert balanced["energy"] == still["energy"]
    assert all(found["on one rank"] for found in (still, balanced, unseen, rarely))
    assert unseen["digest"] == rarely["digest"]  # messages also arrive where nobody looks while computing
    assert still["cells"] == [3840] * 3
    assert still["decisions"] == []
    assert 1 <= len(balanced["decisions"]) <= 4
    # A rank with a third of the others' speed does a seventh of the work: 1645 cells.
    assert balanced["cells"][2] < 2400
    assert min(balanced["cells"][:2]) > 3840
    assert balanced["seconds"] < 0.9 * still["seconds"]
    first = balanced["decisions"][0]
    assert first["imbalance"] > 1.5
    assert first["bytes"] >= 8 * (3840 - 2400)
    # Two slots of 8 bytes a cell, before and after, and the padding of their rows.
    assert 2 * 8 * 3840 < first["peak"] < 2 * 2 * 8 * 6000 * 2
