"""Switches inferred from measurements that are made up, with noise, slow machines, gaps and outliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from minga.network.measuring.levels import levels_of
from minga.network.measuring.matrix import Medium, Pair, PairMatrix, Round, slow_nodes
from minga.network.measuring.switches import (
    as_at_one_switch,
    level_links,
    switch_remarks,
    switches_entry,
    switches_section,
)
from minga.plan.links import Link, Segment
from minga.plan.machine.machine_file import machine_of

WIRE = 20e-6
RATE = 1e8
PAIRS = [0, 0, 1, 1]
UNEQUAL = [0, 0, 0, 1, 1, 1, 1, 1]
RACKS = [[0] * 8 + [1] * 8, [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4]


def measured(
    count: int,
    levels: Sequence[tuple[Sequence[int], float]] = (),
    *,
    noise: float = 0.03,
    seed: int = 0,
    lines: Sequence[float] = (),
    rate: Callable[[int, int], float] = lambda i, j: RATE,
    lost: float = 0.0,
    late: float = 0.0,
) -> PairMatrix:
    """Every pair in both directions: levels, the outermost first, add seconds between their groups.

    ``noise`` only adds, as it does to the least of many times; ``late`` pairs take twice as long, ``lost`` ones are
    missing.
    """
    rng = np.random.default_rng(seed)
    pairs = []
    for i, j in ((i, j) for i in range(count) for j in range(count) if i != j and rng.random() >= lost):
        own = sum(lines[end] for end in (i, j)) if lines else 0.0
        far = sum(extra for groups, extra in levels if groups[i] != groups[j])
        latency = (WIRE + own + far) * (1 + noise * abs(rng.standard_normal())) * (1 + (rng.random() < late))
        wire = 1e6 / rate(i, j) * (1 + noise * abs(rng.standard_normal()))
        pairs.append(Pair(i, j, latency, 1_000_000, latency + wire))
    return PairMatrix(tuple(f"n{number}" for number in range(count)), "tcp", tuple(pairs))


def grouped(matrix: PairMatrix) -> list[list[int]] | None:
    """The groups on each level, numbered in order."""
    found = levels_of(matrix)
    if found is None:
        return None
    return [[list(dict.fromkeys(level)).index(number) for number in level] for level in found.of.tolist()]


@pytest.mark.few(3)
@pytest.mark.parametrize("noise", [0.003, 0.03, 0.1])
@pytest.mark.parametrize("count", [2, 3, 4, 8, 16])
def test_one_switch_has_no_levels(count: int, noise: float) -> None:
    for seed in range(10):
        assert grouped(measured(count, noise=noise, seed=seed)) is None
        slow = [60e-6, 40e-6] + [0.0] * (count - 2)
        assert grouped(measured(count, noise=noise, seed=seed, lines=slow)) is None


@pytest.mark.parametrize("noise", [0.003, 0.03])
@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([(PAIRS, 15e-6)], [PAIRS]),
        ([(UNEQUAL, 15e-6)], [UNEQUAL]),
        ([([0] * 2 + [1] * 10, 10e-6)], [[0] * 2 + [1] * 10]),
        ([([0] * 4 + [1] * 4 + [2], 15e-6)], [[0] * 4 + [1] * 4 + [2]]),
        ([(RACKS[0], 20e-6), (RACKS[1], 10e-6)], RACKS),
    ],
)
def test_switches_are_found(levels: list[tuple[list[int], float]], expected: list[list[int]], noise: float) -> None:
    count = len(expected[0])
    order = np.random.default_rng(1).permutation(count).tolist()  # machines come in any order
    mixed = [([groups[at] for at in order], extra) for groups, extra in levels]
    wanted = [[list(dict.fromkeys(level[at] for at in order)).index(level[at]) for at in order] for level in expected]
    for seed in range(5):
        assert grouped(measured(count, mixed, noise=noise, seed=seed)) == wanted


def test_slow_machines_outliers_and_missing_pairs_hide_no_switch() -> None:
    switch = [(UNEQUAL, 15e-6)]
    slow = [0, 50e-6, 0, 0, 0, 30e-6, 0, 0]
    for seed in range(5):
        for matrix in (
            measured(8, switch, noise=0.01, seed=seed, lines=slow),
            measured(8, switch, noise=0.01, seed=seed, late=0.05),
            measured(8, switch, noise=0.01, seed=seed, lost=0.15),
        ):
            assert grouped(matrix) in ([UNEQUAL], None)
    assert grouped(measured(8, switch, noise=0.01, lines=slow)) == [UNEQUAL]


def test_a_slower_line_between_switches_tells_them_as_well() -> None:
    def rate(i: int, j: int) -> float:
        return RATE if UNEQUAL[i] == UNEQUAL[j] else 0.4 * RATE

    found = levels_of(measured(8, rate=rate))
    assert found is not None
    assert found.basis == "bandwidth"
    assert grouped(measured(8, rate=rate)) == [UNEQUAL]
    own = [1.0, 1.0, 0.2, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert grouped(measured(8, rate=lambda i, j: RATE * min(own[i], own[j]))) is None
    # Whether the slow one is at the first or the second switch cannot be seen.
    assert grouped(measured(8, rate=lambda i, j: min(rate(i, j), RATE * min(own[i], own[j])))) is None


def test_a_hub_has_no_switches_and_what_was_not_measured_tells_nothing() -> None:
    apart = measured(4, [(PAIRS, 15e-6)])
    hub = PairMatrix(apart.names, apart.transport, apart.pairs, medium=Medium("hub", 0.0, ""))
    assert levels_of(hub) is None
    assert levels_of(PairMatrix(apart.names, "tcp", ())) is None
    assert levels_of(PairMatrix(apart.names, "tcp", apart.pairs[:4])) is None


def test_the_machine_file_has_the_switches_and_their_links() -> None:
    apart = measured(4, [([0, 1, 0, 1], 15e-6)], noise=0.003)
    rounds = (
        Round(((0, 1), (2, 3)), (0.3 * RATE, 0.3 * RATE), (RATE, RATE)),
        Round(((0, 2), (1, 3)), (0.9 * RATE, 0.9 * RATE), (RATE, RATE)),
    )
    matrix = PairMatrix(apart.names, "tcp", apart.pairs, rounds)
    levels = levels_of(matrix)
    section: dict[str, Any] = {
        "members": [{"number": number} for number in (0, 2, 4, 6)],  # the first ranks of nodes with two
        "links": [{"level": 2, "members": [0, 1]}, {"level": 0, "members": [0, 4]}],
        "switches": switches_section(matrix, levels),
    }
    nodes = [{"name": name, "hosts": [name], "cores": 2, "speed": 1e9} for name in ("ana", "berta", "carla", "dora")]
    assert switches_entry(section, nodes) == {
        "switches": {
            "levels": ["switch"],
            "groups": [["ana", "carla"], ["berta", "dora"]],
            "uplinks": {"switch": pytest.approx(0.6 * RATE)},
        }
    }
    links = level_links(section, Link((Segment(0, 30e-6, 1 / RATE),)))  # of a pair at one switch, by MPI
    assert links["inter-node"].time(0) == pytest.approx(30e-6)
    assert links["inter-switch"].time(0) == pytest.approx(45e-6, rel=0.02)
    entry = {name: {"latency": float(link.time(0)), "bandwidth": RATE} for name, link in links.items()}
    machine = machine_of(
        {"format": "minga machine", "version": 1, "nodes": nodes, "links": entry, **switches_entry(section, nodes)}
    )
    assert machine.levels[:2] == ("switch", "node")
    assert machine.link_levels().uplinks == (pytest.approx(1 / (0.6 * RATE)),)
    (said,) = switch_remarks(matrix, levels)
    assert "2 groups of machines (n0, n2; n1, n3)" in said
    section["switches"] = switches_section(matrix, None)
    assert switches_entry(section, nodes) == level_links(section, links["inter-node"]) == {}
    assert switch_remarks(matrix, None) == []


def test_machines_behind_another_switch_are_not_slow() -> None:
    groups = [0] * 2 + [1] * 10
    matrix = measured(12, [(groups, 25e-6)], noise=0.003)
    assert slow_nodes(as_at_one_switch(matrix, levels_of(matrix))) == {}
    lines = [0.0] * 11 + [60e-6]
    slow = measured(12, [(groups, 25e-6)], noise=0.003, lines=lines)
    assert list(slow_nodes(as_at_one_switch(slow, levels_of(slow)))) == [11]
    assert as_at_one_switch(matrix, None) is matrix
