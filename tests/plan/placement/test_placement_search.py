"""What is searched for placements: edges as messages are, closed forms as sums, unequal nodes, kinds, links, scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from counting import counted
from minga.errors import LayoutError
from minga.plan.contacts import mesh_of
from minga.plan.links import Link, Links, Segment
from minga.plan.placement import (
    Pricing,
    arrange,
    best_grid,
    cost_of,
    distribute,
    edges_of,
    grids_by_cost,
    place,
    portfolio,
)
from minga.plan.placement.tiles import Faces, cheapest_tilings, group_counts, tiled
from minga.plan.topology import Tree
from minga.plan.work.work import HaloRound, Work
from minga.space.cuts import bisection, blocks, cartesian, factorings
from minga.space.layout import Layout
from minga.space.transfer import halo_transfer
from thinned import thinned


# What is sent --------------------------------------------------------------------------------------------------------
def transferred(grid: mg.Grid, layout: Layout, exchange: HaloRound) -> dict[tuple[int, int], tuple[int, int]]:
    """Bytes and copies of every message, as ranks plan them."""
    found = {}
    for rank in range(layout.ranks):
        part = halo_transfer(grid, layout, rank, exchange.low, exchange.high, faces_only=not exchange.corners)
        for message in part.sends:
            found[rank, message.peer] = (message.cells * exchange.bytes, len(message.copies))
    return found


@st.composite
def layouts(draw: st.DrawFn) -> tuple[mg.Grid, Layout]:
    shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))
    periodic = [draw(st.booleans()) for _ in shape]
    shift = {}
    if len(shape) > 1 and periodic[0] and periodic[1] and draw(st.booleans()):
        shift = {0: {1: draw(st.integers(-3, 3))}}
    grid = mg.Grid(shape, periodic=periodic, shift=shift)
    ranks = draw(st.integers(1, 6))
    weights = [draw(st.floats(0.1, 3)) for _ in range(ranks)]
    kind = draw(st.sampled_from(["cartesian", "bisection", "blocks"]))
    if kind == "bisection":
        return grid, bisection(grid.box, weights, granule=1)
    if kind == "blocks":
        return grid, blocks(grid.box, ranks, 3, weights, granule=1)
    parts = [draw(st.integers(1, min(4, n))) for n in shape]
    return grid, cartesian(grid.box, parts, granule=1)


@settings(max_examples=40, deadline=None)
@given(layouts(), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_edges_are_the_messages_that_ranks_plan(
    case: tuple[mg.Grid, Layout], low: int, high: int, corners: bool
) -> None:
    grid, layout = case
    exchange = HaloRound((low,) * grid.ndim, (high,) * grid.ndim, 8, corners)
    edges = edges_of(layout, grid.periodic, (exchange,), grid.shift)
    columns = (edges.sender, edges.receiver, edges.bytes, edges.copies)
    found = {(a, b): (size, copies) for a, b, size, copies in zip(*(c.tolist() for c in columns), strict=True)}
    assert found == transferred(grid, layout, exchange)


def test_every_exchange_is_a_message_of_its_own() -> None:
    layout = cartesian(mg.Grid((8, 8)).box, (2, 1), granule=1)
    twice = (HaloRound((1, 0), (1, 0), 8), HaloRound((2, 0), (0, 0), 4))
    edges = edges_of(layout, (), twice)
    rows = zip(edges.sender.tolist(), edges.receiver.tolist(), edges.bytes.tolist(), strict=True)
    assert list(rows) == [(0, 1, 64), (1, 0, 64), (0, 1, 64)]
    assert len(edges) == 3


# What it costs -------------------------------------------------------------------------------------------------------
def link(alpha: float, beta: float) -> Link:
    return Link((Segment(0, alpha, beta),))


def test_costs_by_links_are_their_times() -> None:
    """A slow node of its own, and two levels besides: the sum of what Links says of every message."""
    layout, seats = cartesian(mg.Grid((32, 48)).box, (4, 3), granule=1), Tree.parse("3x4")
    links = Links((link(5e-5, 8e-9), link(1e-6, 1e-10), link(0.0, 0.0)), nodes={1: link(1e-4, 8e-8)})
    exchange = (HaloRound((1, 1), (1, 1), 8),)
    placed = place(layout, seats, "round-robin")
    edges = edges_of(placed, (), exchange)
    seconds = links.time(seats, edges.sender, edges.receiver, edges.bytes).sum()
    assert cost_of(placed, seats, (), exchange, links).total * 1e-12 == pytest.approx(seconds, rel=1e-6)
    best = portfolio(layout, seats, (), exchange, links)[0]
    assert best.cost.total < cost_of(placed, seats, (), exchange, links).total


def test_a_slow_node_is_left_at_the_rim() -> None:
    """A row of blocks on three nodes of two cores: the node with the slow link gets an end, where one face leaves."""
    layout, seats = cartesian(mg.Grid((12,)).box, (6,), granule=1), Tree.parse("3x2")
    links = Links((link(1e-5, 0), link(1e-6, 0), link(0.0, 0.0)), nodes={1: link(1e-3, 0)})
    owner = place(layout, seats, "auto", links=links).owner
    assert seats.paths[owner, 0].tolist() in (
        [1, 1, 0, 0, 2, 2],
        [1, 1, 2, 2, 0, 0],
        [0, 0, 2, 2, 1, 1],
        [2, 2, 0, 0, 1, 1],
    )


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(2, 9), min_size=3, max_size=3),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
def test_what_tiles_cost_needs_no_visit_to_the_blocks(
    parts: list[int], lengths: list[int], nodes: int, periodic: bool, corners: bool
) -> None:
    """The closed form is the sum over all messages, for every tiling of blocks of unequal sizes."""
    ranks = math.prod(parts)
    nodes = nodes if ranks % nodes == 0 else 1
    seats, around = Tree.parse(f"{nodes}x1x{ranks // nodes}"), (periodic,) * len(parts)
    shape = [n + extra for n, extra in zip(parts, lengths, strict=False)]
    layout = cartesian(mg.Grid(shape).box, parts, granule=1)
    exchange = (HaloRound((1,) * len(parts), (1,) * len(parts), 3, corners),)
    mesh, counts = mesh_of(layout), group_counts(seats)
    assert mesh is not None
    assert counts is not None
    faces = Faces.of(mesh.sizes, around, exchange, 3)
    pricing = Pricing(edges_of(layout, around, exchange), seats)
    for cost, tiling in cheapest_tilings(counts, faces, 100):
        assert pricing.cost(tiled(mesh, seats, tiling)).total == cost


def test_nodes_are_equal_by_their_shape_whatever_their_numbers() -> None:
    machine = Tree.parse("4x3x2")
    some = Tree(machine.levels, machine.paths[machine.paths[:, 0] % 2 == 1])
    assert group_counts(some) == (2, 3, 2)
    assert group_counts(Tree.parse("[[2, 2], [2, 2, 2]]")) is None
    assert group_counts(Tree.parse("[[2, 2], [2, 3]]")) is None
    assert group_counts(Tree.parse("2x2").seats(8)) is None  # ranks share cores
    assert group_counts(Tree.parse("8").seats(1)) == (1,)
    layout = cartesian(mg.Grid((16, 12)).box, (4, 3), granule=1)
    assert cost_of(place(layout, some, "tiles"), some).total <= cost_of(place(layout, some), some).total


# Any machine ---------------------------------------------------------------------------------------------------------
@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    groups = draw(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=4))
    seats = Tree.nested(groups)
    seats = Tree(seats.levels, seats.paths[draw(st.permutations(range(len(seats))))])
    grid = mg.Grid(draw(st.sampled_from([(60,), (30, 20), (12, 10, 8)])), periodic=draw(st.booleans()))
    weights = [draw(st.floats(0.5, 2)) for _ in range(len(seats))]
    alike = draw(st.booleans())
    layout = (
        bisection(grid.box, weights, granule=1) if draw(st.booleans()) else blocks(grid.box, len(seats), 2, granule=1)
    )
    links = Links.uniform(3, [(1e-5, 1e-8), (1e-6, 1e-9), (1e-7, 1e-10)]) if draw(st.booleans()) else None
    kinds = None if alike else np.array([draw(st.integers(0, 2)) for _ in range(len(seats))])
    return {"layout": layout, "seats": seats, "periodic": grid.periodic, "links": links, "kinds": kinds}


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(problems())
def test_automatic_placement_is_never_worse_than_sequential(problem: dict[str, Any]) -> None:
    found = portfolio(**problem)
    by_name = {candidate.mapping: candidate.cost.total for candidate in found}
    assert found[0].cost.total == min(by_name.values()) <= by_name["sequential"]
    order = [(c.cost.total, c.cost.messages[0], c.cost.busiest) for c in found]
    assert order == sorted(order)
    best = arrange(mapping="auto", **problem)
    assert best.tolist() == found[0].ranks.tolist()
    layout, seats, kinds = problem["layout"], problem["seats"], problem["kinds"]
    for candidate in found:
        assert sorted(candidate.ranks.tolist()) == list(range(len(seats)))
        if kinds is not None:
            assert (kinds[candidate.ranks] == kinds).all()
        moved = Layout(layout.domain, layout.ranks, layout.lo, layout.hi, candidate.ranks[layout.owner])
        assert cost_of(moved, seats, problem["periodic"], links=problem["links"]) == candidate.cost
    for mapping in ("sequential", "round-robin", "bisection"):
        ranks = arrange(mapping=mapping, **problem)
        assert sorted(ranks.tolist()) == list(range(len(seats)))
        assert kinds is None or (kinds[ranks] == kinds).all()


def test_unequal_nodes_gain_from_bisection() -> None:
    """A cube of 10 x 10 x 10 blocks on a pile of machines of 8 to 72 cores."""
    seats = Tree.parse(str([[4, 4]] * 5 + [[8, 8]] * 12 + [[16, 16]] * 21 + [[64, 8], [16, 8]]))
    layout = cartesian(mg.Grid((40, 40, 40)).box, (10, 10, 10), granule=1)
    assert len(seats) == layout.ranks
    found = portfolio(layout, seats)
    by_name = {candidate.mapping: candidate.cost.total for candidate in found}
    assert found[0].cost.total < 0.8 * by_name["sequential"]


def test_ranks_as_they_were_started_stay_where_nothing_is_better() -> None:
    """Dealt out to two nodes in turn, on a ring of four where each node's blocks face each other: nothing to gain."""
    seats = Tree(("node", "core"), np.array([[0, 0], [0, 1], [1, 1], [1, 0]]))
    layout = cartesian(mg.Grid((16,)).box, (4,), granule=1)
    assert portfolio(layout, seats)[0].ranks.tolist() == [0, 1, 2, 3]


def test_ranks_of_one_core_are_placed_too() -> None:
    seats = Tree.parse("2x2").seats(16)
    layout = cartesian(mg.Grid((32, 32)).box, (4, 4), granule=1)
    assert sorted(arrange(layout, seats, "auto").tolist()) == list(range(16))
    assert cost_of(place(layout, seats, "auto"), seats).total <= cost_of(place(layout, seats), seats).total


def test_ranks_without_blocks_are_no_obstacle() -> None:
    layout = Layout.single(mg.Grid((8, 8)).box, 6, owner=2)
    found = portfolio(layout, Tree.parse("2x3"))[0]
    assert found.cost.total == 0
    assert found.ranks.tolist() == list(range(6))


# Blocks of many sizes ------------------------------------------------------------------------------------------------
def test_blocks_are_shared_out_by_what_ranks_can_do() -> None:
    """16 x 16 blocks on ranks with shares 4, 2, 2 and 1 and one that can do nothing, near one another."""
    grid = mg.Grid((128, 128))
    layout = cartesian(grid.box, (16, 16), granule=1)
    layout = Layout(grid.box, 5, layout.lo, layout.hi, layout.owner % 5)
    capacities, seats = np.array([4.0, 2.0, 0.0, 2.0, 1.0]), Tree.parse("5x1")
    shared = distribute(layout, seats, capacities)
    shares = shared.cells() / grid.size
    assert shares == pytest.approx(capacities / capacities.sum(), abs=1 / 256)
    assert cost_of(shared, seats).total < 0.25 * cost_of(layout, seats).total
    weights = np.where(layout.lo[:, 0] < 64, 3.0, 1.0)
    weighed = distribute(layout, seats, capacities, weights)
    carried = np.bincount(weighed.owner, weights, 5) / weights.sum()
    assert carried == pytest.approx(capacities / capacities.sum(), abs=0.02)


@pytest.mark.parametrize(
    ("capacities", "weights", "words"),
    [
        ([1.0, 1.0], None, "capacities are a number for each of 4"),
        ([0.0] * 4, None, "not all zero"),
        ([1.0, 1.0, -1.0, 1.0], None, "none negative"),
        ([1.0] * 4, [1.0], "weights are a number for each of 4 blocks"),
        ([1.0] * 4, [1.0, 1.0, 1.0, math.nan], "weights"),
    ],
)
def test_shares_that_cannot_be_meant(capacities: list[float], weights: list[float] | None, words: str) -> None:
    layout = cartesian(mg.Grid((8, 8)).box, (2, 2), granule=1)
    with pytest.raises(LayoutError, match=words):
        distribute(layout, Tree.parse("2x2"), np.array(capacities), None if weights is None else np.array(weights))


# Process grids -------------------------------------------------------------------------------------------------------
def work(shape: tuple[int, ...], granule: int = 1, least: int = 1, one_axis: int | None = None) -> Work:
    ndim = len(shape)
    exchange = (HaloRound((1,) * ndim, (1,) * ndim, 8),)
    granules = (*(1,) * (ndim - 1), granule)
    box = mg.Grid(shape).box
    return Work("w", "k", box, (False,) * ndim, granules, (least,) * ndim, 8, exchange, one_axis=one_axis)


@pytest.mark.parametrize("machine", ["4x2x2", "16x2x2", "6x2x3", "[4, 4, 5]", "[[2, 2], [4, 4]]"])
def test_the_best_grid_is_the_cheapest_of_all(machine: str) -> None:
    seats = Tree.parse(machine)
    step = work((512, 256))
    best = {}
    for parts in factorings(len(seats), 2):
        layout = cartesian(step.domain, parts, granule=1)
        best[parts] = portfolio(layout, seats, exchanges=step.exchanges)[0].cost.total
    found = grids_by_cost(step, seats)
    assert best_grid(step, seats) == found[0][1]
    assert best[found[0][1]] == min(best.values())
    # Exchanges of single blocks may better a tiling, but never the best grid's here.
    assert all(cost >= best[parts] for cost, parts in found)
    assert found[0][0] == min(best.values()) or machine[0] == "["


def test_grids_keep_to_granules_and_least_widths() -> None:
    seats = Tree.parse("4x4")
    assert best_grid(work((256, 256)), seats) == (4, 4)
    assert best_grid(work((256, 256), granule=128), seats) == (8, 2)
    assert best_grid(work((256, 16), least=16), seats) == (16, 1)
    assert best_grid(work((256, 256), one_axis=1), seats) == (1, 16)
    with pytest.raises(LayoutError, match="cannot be cut into 16 Cartesian parts"):
        best_grid(work((30, 30), least=10), seats)


# Scale ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("machine", ["32x2x16", str([[4, 4]] * 16 + [[16, 16]] * 28)])
def test_a_thousand_ranks_take_few_calls(machine: str) -> None:
    seats = Tree.parse(machine)
    layout = cartesian(mg.Grid((1024, 1024)).box, (32, 32), granule=1)
    assert len(seats) == 1024
    (best, *_), calls = counted(lambda: portfolio(layout, seats, (True, True)))
    assert calls < 16 * len(seats)  # 0.04 s
    assert best.cost.total < 0.7 * cost_of(place(layout, seats), seats, (True, True)).total


@pytest.mark.parametrize("across", thinned([128, 512], 128))
def test_a_quarter_of_a_million_ranks_take_few_calls(across: int) -> None:
    """512 x 512 blocks on 4096 nodes of 64 cores: each node gets a square of 8 x 8, with 32 faces to others."""
    nodes = across**2 // 64
    seats = Tree.parse(f"{nodes}x64")
    layout = cartesian(mg.Grid((8192, 8192)).box, (across, across), granule=1)
    (best, *_), calls = counted(lambda: portfolio(layout, seats, (True, True)))
    assert calls < 4 * across**2  # 0.1 s for 16384 ranks
    assert best.cost.copies[0] == nodes * 32
