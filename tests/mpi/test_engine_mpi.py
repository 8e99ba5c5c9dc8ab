"""The engine over real MPI ranks: the bits of one process, however it is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import minga as mg
from mpi_launch import run_ranks
from thinned import thinned

from .engine_ranks import CASES, digest

SCRIPT = Path(__file__).parent / "engine_ranks.py"


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", thinned([1, 2, 3, 4], 3))
def test_every_way_to_run_gives_the_bits_of_one_process(ranks: int) -> None:
    job = run_ranks(ranks, SCRIPT, timeout=280).check()
    found = json.loads(job.out[0])
    assert len(found["sent"]) == ranks
    assert all(sent > 0 for sent in found["sent"]) or ranks == 1
    for name, make in CASES.items():
        case = make()
        alone, _ = digest(case, mg.Layout.single(case.grid.box, 1), mg.SerialComm(), native=False)
        assert found["digests"][name] == [alone], name
