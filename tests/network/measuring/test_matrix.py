"""Verdicts about networks that are made up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minga.network.measuring.matrix import (
    Pair,
    PairMatrix,
    Round,
    capacities,
    medium,
    node_costs,
    slow_nodes,
    tournament,
)

WIRE = 12.5e6


@pytest.mark.parametrize("players", [1, 2, 3, 4, 7, 16])
def test_each_meets_each_once(players: int) -> None:
    rounds = tournament(players)
    met = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert len(met) == len(set(met)) == players * (players - 1) // 2
    for pairs in rounds:
        busy = [player for pair in pairs for player in pair]
        assert len(busy) == len(set(busy))
    assert len(rounds) <= players


def at_once(pairs: list[tuple[int, int]], share: float, noise: float = 0.0) -> Round:
    shaky = 1 + noise * np.random.default_rng(len(pairs)).standard_normal(len(pairs))
    return Round(tuple(pairs), tuple(share * WIRE * shaky), (WIRE,) * len(pairs))


@pytest.mark.parametrize("players", [2, 3, 4, 8, 16])
def test_hub_and_switch(players: int) -> None:
    rounds = tournament(players)
    hub = medium([at_once(pairs, 1 / (2 * len(pairs)), 0.1) for pairs in rounds])
    switch = medium([at_once(pairs, 0.95, 0.1) for pairs in rounds])
    assert (hub.kind, switch.kind) == ("hub", "switch")
    assert hub.freedom == pytest.approx(0, abs=0.15)
    assert switch.freedom == pytest.approx(1, abs=0.1)
    assert f"{2 * len(rounds[0])} streams" in hub.evidence


def test_what_processors_limit_is_no_hub() -> None:
    """Two nodes of one host, whose messages are copies: streams of both directions share the processors."""
    copied = medium([Round(((0, 1),), (0.8e9,), (1.5e9,))])
    assert copied.kind == "unknown"
    assert "processors" in copied.evidence


def test_two_switches_with_one_uplink_are_mixed() -> None:
    rounds = []
    for pairs in tournament(8):
        across = sum((i < 4) != (j < 4) for i, j in pairs)
        speed = [WIRE / max(across, 1) if (i < 4) != (j < 4) else WIRE for i, j in pairs]
        rounds.append(Round(tuple(pairs), tuple(speed), (WIRE,) * len(pairs)))
    assert medium(rounds).kind == "mixed"
    assert medium(rounds).evidence.endswith("when disjoint pairs talk at the same time")
    three = medium([at_once([pair], 0.77) for pair in ((0, 1), (0, 2), (1, 2))])
    assert three.kind == "mixed"
    assert three.evidence.endswith("when a pair talks both ways at the same time")
    assert medium([]).kind == "unknown"
    assert math.isnan(medium([]).freedom)


def test_parts_of_nodes_in_latency() -> None:
    parts, wire = np.array([0, 2, 5, 20, 1]) * 1e-6, 50e-6
    table = parts[:, None] + parts + wire
    table *= 1 + 0.003 * np.random.default_rng(0).standard_normal(table.shape)
    table[1, 4] = table[4, 1] = 2 * table[1, 4]
    np.fill_diagonal(table, np.nan)
    costs = node_costs(table)
    assert costs is not None
    assert np.allclose(costs.nodes, parts, atol=0.6e-6)
    assert costs.wire == pytest.approx(wire, rel=0.03)
    assert set(costs.odd) == {(1, 4), (4, 1)}


def test_two_nodes_cannot_be_told_apart() -> None:
    assert node_costs(np.array([[np.nan, 1e-5], [1e-5, np.nan]])) is None


def matrix_of(speeds: np.ndarray, latency: float = 50e-6) -> PairMatrix:
    count = len(speeds)
    pairs = [
        Pair(i, j, latency, 100_000, latency + 100_000 / speeds[i, j])
        for i in range(count)
        for j in range(count)
        if i != j
    ]
    return PairMatrix(tuple("abcdefgh"[:count]), "tcp", tuple(pairs))


def test_slow_machines_odd_pairs_and_asymmetry() -> None:
    caps = np.array([12.0, 12, 1.2, 12]) * 1e6
    speeds = np.minimum(caps[:, None], caps)
    matrix = matrix_of(speeds)
    assert np.allclose(capacities(matrix.values("bandwidth")), caps)
    assert (matrix.odd(), matrix.asymmetric()) == ([], [])
    assert slow_nodes(matrix) == {2: (0.0, pytest.approx(10))}
    speeds[0, 3] = 4e6
    worse = matrix_of(speeds)
    assert worse.odd() == [(0, 3)]
    assert [(i, j, round(ratio)) for i, j, ratio in worse.asymmetric()] == [(3, 0, 3)]
    assert worse.as_dict()["odd"] == [[0, 3]]
