"""The native loop over real MPI ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.engine.loop_code import is_supported
from mpi_launch import run_ranks
from thinned import thinned

SCRIPT = Path(__file__).parent / "native_ranks.py"
pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(not is_supported(), reason="the native loop exists on Linux only"),
]


@pytest.mark.parametrize("ranks", thinned([1, 2, 3, 4], 3))
def test_the_native_loop_equals_the_interpreter(ranks: int) -> None:
    job = run_ranks(ranks, SCRIPT, "same_as_interpreted").check()
    assert job.out == ["ok\n"] * ranks


@pytest.mark.slow  # three ranks are as good
def test_two_ranks() -> None:
    checks = (
        "functions_are_found",
        "runs_again_and_frees",
        "without_persistent_collectives",
        "mpi_errors_are_run_errors",  # the last one: what MPI does after an error is not promised
    )
    assert run_ranks(2, SCRIPT, *checks).check().out == ["ok\n" * len(checks)] * 2
