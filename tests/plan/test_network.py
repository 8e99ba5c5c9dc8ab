"""Networks of nodes that are no trees: distances as a walk finds them, tables, halves."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.errors import LayoutError
from minga.plan.network import Network


def walked(shape: tuple[int, ...], closed: bool) -> np.ndarray:
    """Distances of all nodes from one another, by walking from neighbour to neighbour."""
    places = list(itertools.product(*(range(n) for n in shape)))
    number = {place: k for k, place in enumerate(places)}
    found = np.full((len(places),) * 2, -1)
    for start in places:
        found[number[start], number[start]] = 0
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for axis, step in itertools.product(range(len(shape)), (-1, 1)):
                there = list(here)
                there[axis] = (there[axis] + step) % shape[axis] if closed else there[axis] + step
                at = number.get(tuple(there))
                if at is not None and found[number[start], at] < 0:
                    found[number[start], at] = found[number[start], number[here]] + 1
                    queue.append(tuple(there))
    return found


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.booleans())
def test_distances_are_those_of_a_walk(shape: list[int], closed: bool) -> None:
    network = Network.torus(shape, closed=closed)
    nodes = np.arange(len(network))
    hops = network.hops(nodes[:, None], nodes[None, :])
    assert hops.tolist() == walked(tuple(shape), closed).tolist()
    some = nodes[::2]
    table = Network.of_distances(hops.tolist())
    for one in (network, table):
        assert one.part(some).hops(some[:, None] // 2, some[None, :] // 2).tolist() == hops[::2, ::2].tolist()


@pytest.mark.parametrize("kind", ["torus", "table"])
def test_halves_are_of_equal_size_and_close_together(kind: str) -> None:
    network = Network.torus((4, 8))
    nodes = np.arange(32)
    if kind == "table":
        network = Network.of_distances(network.hops(nodes[:, None], nodes[None, :]).tolist())
    halves = network.halves()
    assert halves.shape == (32, 5)
    assert len(np.unique(halves, axis=0)) == 32
    first = nodes[halves[:, 0] == 0]
    assert len(first) == 16
    within = network.hops(first[:, None], first[None, :]).mean()
    assert within < network.hops(first[:, None], nodes[halves[:, 0] == 1][None, :]).mean()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([], "0 nodes"),
        ([[0, 1]], "row 0 of 1"),
        ([[0, 1], [1]], "row 1 of 2"),
        ([[0, 1], [2, 0]], "1 hops apart in one direction, and 2"),
        ([[0, 0], [0, 0]], "nodes 0 and 1 is 0"),
        ([[1]], "nodes 0 and 0 is 1"),
        ([[0, True], [True, 0]], "nodes 0 and 1 is True"),
        ([[0, -3], [-3, 0]], "is -3"),
    ],
)
def test_tables_that_are_no_distances_are_explained(table: list[list[int]], words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        Network.of_distances(table)


@pytest.mark.parametrize("shape", [(), (0,), (2, 2, 2, 2), (1 << 11, 1 << 11)])
def test_shapes_that_are_no_network_are_explained(shape: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError, match="a torus of"):
        Network.torus(shape)
