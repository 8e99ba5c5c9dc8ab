"""Nodes and messages of real MPI ranks; MPIR_CVAR_NUM_CLIQUES makes MPICH play several nodes on one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpi_launch import run_ranks

SCRIPT = Path(__file__).parent / "traffic_ranks.py"
pytestmark = pytest.mark.mpi

TWO_IN_TURN = {"MPIR_CVAR_NUM_CLIQUES": "2"}
TWO_ONE_AFTER_THE_OTHER = TWO_IN_TURN | {"MPIR_CVAR_CLIQUES_BY_BLOCK": "1"}


def answers(ranks: int, mapping: str, env: dict[str, str], *ways: str) -> list[Any]:
    job = run_ranks(ranks, SCRIPT, mapping, *ways, env=env).check()
    found: list[Any] = json.loads(job.out[0])
    return found


@pytest.mark.slow
def test_the_counters_of_mpi_ranks() -> None:
    """2 x 2 blocks of 16 x 16 cells, open: eight faces of 16 numbers at each of ten exchanges."""
    for found in answers(4, "sequential", TWO_ONE_AFTER_THE_OTHER, "native", "interpreted"):
        assert found["nodes"] == [0, 0, 1, 1]
        assert found["owner"] == [0, 1, 2, 3]
        face = 16 * 8
        levels = list(found["levels"].items())
        assert levels[0] == ("inter-node", [40, 40 * face, 40])
        assert sum(level[0] for _, level in levels) == 80
        assert sum(level[1] for _, level in levels) == 80 * face
        assert all(rows > 20 and messages == 20 for rows, messages in found["events"])


@pytest.mark.slow
def test_blocks_are_moved_to_where_the_ranks_are() -> None:
    """Ranks that were dealt out to two nodes in turn: neighbouring blocks still come to one node."""
    (dealt,) = answers(4, "sequential", TWO_IN_TURN, "native")
    assert dealt["nodes"] == [0, 1, 0, 1]
    assert dealt["owner"] == [0, 2, 1, 3]
    assert dealt["levels"]["inter-node"][0] == 40


@pytest.mark.slow  # tests/plan/placement has the costs
def test_automatic_placement_counts_on_what_is_sent() -> None:
    """6 ranks dealt out to two nodes: 3 x 2 blocks, of which each node best gets a column of three."""
    (dealt,) = answers(6, "auto", TWO_IN_TURN, "native")
    assert dealt["nodes"] == [0, 1, 0, 1, 0, 1]
    assert next(iter(dealt["levels"].values()))[:2] == dealt["expected"] == [60, 10 * 32 * 8 * 2]
    assert sum(level[0] for level in dealt["levels"].values()) == 10 * 14
