"""Gradients of a shot on real MPI ranks."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from mpi_launch import run_ranks
from thinned import thinned

SCRIPT = Path(__file__).parent / "gradient_ranks.py"


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "medium"), thinned(itertools.product([2, 3], ["free", "tilted", "elastic"]), (3, "free"))
)
def test_ranks_find_the_gradient_of_one_process(ranks: int, medium: str) -> None:
    assert run_ranks(ranks, SCRIPT, medium).check().out == ["ok\n"] * ranks
