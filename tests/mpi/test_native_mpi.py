"""The native loop over real MPI ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.engine.loop_code import is_supported
from mpi_launch import run_ranks

SCRIPT = Path(__file__).parent / "native_ranks.py"
pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not is_supported(), reason="the native loop exists on Linux only"),
]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_native_loop_equals_the_interpreter(ranks: int) -> None:
    job = run_ranks(ranks, SCRIPT, "same_as_interpreted").check()
    assert job.out == ["ok\n"] * ranks


@pytest.mark.parametrize(
    "check",
    ["runs_again_and_frees", "without_persistent_collectives", "mpi_errors_are_run_errors", "functions_are_found"],
)
def test_two_ranks(check: str) -> None:
    assert run_ranks(2, SCRIPT, check).check().out == ["ok\n"] * 2
