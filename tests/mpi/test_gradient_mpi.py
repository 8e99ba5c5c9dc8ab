"""Gradients of a shot on real MPI ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpi_launch import run_ranks
from thinned import thinned

SCRIPT = Path(__file__).parent / "gradient_ranks.py"


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", thinned([2, 3], 3))
def test_ranks_find_the_gradient_of_one_process(ranks: int) -> None:
    assert run_ranks(ranks, SCRIPT).check().out == ["ok\n"] * ranks
