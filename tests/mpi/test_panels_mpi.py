"""Panels that go to all ranks by every route, over real MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpi_launch import run_ranks

SCRIPT = Path(__file__).parent / "panel_ranks.py"


@pytest.mark.slow
@pytest.mark.mpi
def test_all_routes_bring_equal_bits_while_panels_are_used() -> None:
    assert run_ranks(4, SCRIPT).check().out == ["ok\n"] * 4
