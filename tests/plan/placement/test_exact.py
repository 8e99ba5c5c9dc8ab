"""The exact search for a few ranks, against enumeration of all placements and a table of known optima."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.plan.links import Link, Links, Segment
from minga.plan.placement import Pricing, edges_of, level_costs, portfolio
from minga.plan.placement.exact import cheaper
from minga.plan.topology import Tree
from minga.space.cuts import bisection, cartesian
from minga.space.layout import Layout

MUCH = 1 << 60


def by_level(*costs: int) -> Links:
    """Messages that cost so many picoseconds a byte, by levels in common."""
    return Links(tuple(Link((Segment(0, 0.0, cost * 1e-12),)) for cost in costs), hop=0.0)


def neighbours(parts: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Pairs of neighbours in a grid of processes, each once, with the axis across which they meet."""
    places = list(itertools.product(*(range(n) for n in parts)))
    number = {place: k for k, place in enumerate(places)}
    found = []
    for place in places:
        for axis in range(len(parts)):
            beyond = tuple(c + (a == axis) for a, c in enumerate(place))
            if beyond in number:
                found.append((number[place], number[beyond], axis))
    return found


@pytest.mark.parametrize(
    ("parts", "weights", "machine", "links", "optimum"),
    [
        ((4, 2), (1, 1), "2x2x2", by_level(6, 4, 2, 0), 36),
        ((2, 4), (1, 1), "2x2x2", by_level(6, 4, 2, 0), 36),
        ((4, 2), (4, 1), "2x2x2", by_level(6, 4, 2, 0), 88),
        ((4, 2), (4, 1), "rack=2 switch=2 node=2", by_level(6, 4, 2, 0, 0), 88),
        ((3, 3), (1, 1), "3x3", by_level(4, 2, 0), 36),
        ((2, 2, 2), (1, 1, 1), "ring 8", None, 20),
        ((3, 3), (1, 1), "ring 9", None, 19),
        ((2, 4), (1, 1), "torus 4x2", None, 10),
    ],
)
def test_placements_have_the_known_optima(
    parts: tuple[int, ...], weights: tuple[int, ...], machine: str, links: Links | None, optimum: int
) -> None:
    """Weight times distance, each pair of neighbours once: minga counts both directions, and ten for a byte and hop."""
    faces = [np.prod(weights) // weight for weight in weights]  # blocks whose faces across an axis have its weight
    layout = cartesian(mg.Grid([n * face for n, face in zip(parts, faces, strict=True)]).box, parts, granule=1)
    seats = Tree.parse(machine)
    best = portfolio(layout, seats, links=links)[0]
    assert best.cost.total == optimum * (2 if links is not None else 20)
    place = best.ranks
    if links is not None:
        distance = 2 * (len(seats.levels) - seats.common(place[:, None], place[None, :]))
        distance = np.where(distance > 6, 6, distance) if machine.startswith("rack") else distance
    else:
        distance = seats.hops(place[:, None], place[None, :])
    if not machine.startswith("rack"):
        assert sum(weights[axis] * int(distance[a, b]) for a, b, axis in neighbours(parts)) == optimum


@pytest.mark.parametrize(("parts", "nodes", "cut"), [((4, 4), "4x4", 8), ((4, 3), "3x4", 6)])
def test_the_fewest_edges_are_cut(parts: tuple[int, int], nodes: str, cut: int) -> None:
    layout, seats = cartesian(mg.Grid(parts).box, parts, granule=1), Tree.parse(nodes)
    best = portfolio(layout, seats)[0]
    node = seats.nodes[best.ranks]
    assert sum(node[a] != node[b] for a, b, _ in neighbours(parts)) == cut == best.cost.copies[0] // 2


MACHINES = [
    "2x3", "3x2x1", "[[2, 1], [3]]", "[[1, 1], [2], [2]]", "rack=2 node=1 core=3", "rack node core: [[2, 1], [2, 1]]",
    "ring 6", "mesh 3x2", "torus 3x2", "ring 3 core=2", "torus 2x3",
]  # fmt: skip


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    seats = Tree.parse(draw(st.sampled_from(MACHINES)))
    if draw(st.booleans()):
        seats = seats.part(np.array(draw(st.permutations(range(len(seats))))))
    grid = mg.Grid(draw(st.sampled_from([(24,), (12, 10), (8, 6, 6)])), periodic=draw(st.booleans()))
    layout = bisection(grid.box, [draw(st.floats(0.5, 2)) for _ in range(len(seats))], granule=1)
    links = None
    if draw(st.booleans()):
        levels = [(1e-5, 1e-8), (2e-6, 3e-9), (1e-6, 1e-9), (1e-7, 1e-10)]
        own = {1: Link((Segment(0, 3e-5, 2e-8),))} if draw(st.booleans()) else {}
        links = Links(Links.uniform(len(seats.levels), levels).levels, own, hop=1e-6)
    kinds = [draw(st.integers(0, 1)) for _ in range(len(seats))] if draw(st.booleans()) else [0] * len(seats)
    return {
        "layout": layout,
        "periodic": grid.periodic,
        "seats": seats,
        "links": links,
        "kinds": np.array(kinds),
    }


def enumerated(layout: Layout, periodic: tuple[bool, ...], seats: Tree, links: Links | None, kinds: np.ndarray) -> int:
    """The least cost of all placements, from the time of each message, or its bytes, at each pair of places."""
    edges, count = edges_of(layout, periodic), len(seats)
    every = np.arange(count)
    a, b = np.indices((count, count))
    table = np.zeros((count, count, count, count), np.int64)
    for one, other, size in zip(edges.sender, edges.receiver, edges.bytes.tolist(), strict=True):
        if links is not None:
            cost = np.rint(links.time(seats, a, b, size) / 1e-12).astype(np.int64)
        else:
            cost = size * np.array(level_costs(len(seats.levels)))[seats.common(a, b)] * np.maximum(seats.hops(a, b), 1)
        table[one, other] += cost
    best = MUCH
    for order in itertools.permutations(range(count)):
        places = np.array(order)
        if (kinds[places] == kinds).all():
            best = min(best, int(table[every[:, None], every[None, :], places[:, None], places[None, :]].sum()))
    return best


@settings(max_examples=12, deadline=None)
@given(problems())
def test_the_search_finds_the_cheapest_of_all_placements(problem: dict[str, Any]) -> None:
    """Whatever exchanges of equal parts of the machine it leaves out."""
    least = enumerated(**problem)
    layout, seats, kinds = problem["layout"], problem["seats"], problem["kinds"]
    pricing = Pricing(edges_of(layout, problem["periodic"]), seats, problem["links"])
    found = cheaper(pricing, kinds, MUCH)
    assert found is not None
    assert sorted(found.tolist()) == list(range(len(seats)))
    assert (kinds[found] == kinds).all()
    assert pricing.cost(found).total == least
    assert cheaper(pricing, kinds, least) is None
    best = portfolio(layout, seats, problem["periodic"], links=problem["links"], kinds=kinds)[0]
    assert best.cost.total == least


@pytest.mark.parametrize("nodes", [(0, 1, 2, 4, 5, 10), (0, 1, 2, 3, 7, 11)])
def test_part_of_a_torus_is_not_symmetric(nodes: tuple[int, ...]) -> None:
    """Some nodes of a torus of 4 x 4: it matters to which of them the first block goes."""
    whole = Tree.parse("torus 4x4")
    assert whole.network is not None
    paths = whole.paths[: len(nodes)]
    seats = Tree(whole.levels, paths, whole.network.part(np.array(nodes)))
    layout = cartesian(mg.Grid((12, 10)).box, (3, 2), granule=1)
    kinds = np.zeros(len(nodes), np.int64)
    pricing = Pricing(edges_of(layout, (False, False)), seats, None)
    found = cheaper(pricing, kinds, MUCH)
    assert found is not None
    assert pricing.cost(found).total == enumerated(layout, (False, False), seats, None, kinds)


def test_more_ranks_are_left_to_heuristics() -> None:
    layout, seats = cartesian(mg.Grid((26,)).box, (13,), granule=1), Tree.parse("13x1")
    assert "exact" not in {candidate.mapping for candidate in portfolio(layout, seats)}


def test_a_cube_on_a_torus_of_the_same_shape_has_neighbours_only() -> None:
    """64 nodes: the axes of the torus as levels of a tree."""
    layout, seats = cartesian(mg.Grid((16, 16, 16)).box, (4, 4, 4), granule=1), Tree.parse("torus 4x4x4")
    best = portfolio(layout, seats.part(np.random.default_rng(3).permutation(64)), (True,) * 3)[0]
    assert best.cost.total == 10 * best.cost.bytes[0]  # each byte goes one hop
