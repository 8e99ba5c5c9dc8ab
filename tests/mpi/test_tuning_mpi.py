"""Tuning on real MPI ranks, each of which chooses alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.engine.loop_code import is_supported
from mpi_launch import run_ranks
from thinned import thinned

SCRIPT = Path(__file__).parent / "tuning_ranks.py"


@pytest.mark.mpi
@pytest.mark.skipif(not is_supported(), reason="tuning needs the native loop: run on Linux with x86-64 or 64-bit Arm")
@pytest.mark.parametrize("ranks", thinned([1, 2, 3], 2))
def test_ranks_tune_alone_and_have_the_bits_of_one_process(ranks: int) -> None:
    assert run_ranks(ranks, SCRIPT).check().out == ["ok\n"] * ranks
