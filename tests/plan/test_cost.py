"""The cost model: contacts of blocks, what a recorded step asks, messages as they are really sent, and the terms."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import minga as mg
from minga.cli.case import find_source, read_case
from minga.engine.begin import start
from minga.engine.comm import Comm, run_virtual
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.plan.contacts import contacts_of
from minga.plan.cost import busiest_uplinks, pairs_of, predict, reduce_seconds, work_of
from minga.plan.links import Link, Segment
from minga.plan.planner import make_plan
from minga.plan.speed import Speed
from minga.plan.work.recorded import enlarged
from minga.plan.work.weights import Weights
from minga.plan.work.work import HaloRound
from minga.space.box import Box
from minga.space.cuts import bisection, cartesian, slabs
from minga.space.layout import Layout
from rank_groups import group_of, work_on


def example(name: str, *overrides: str) -> Model:
    return read_case(find_source(name), overrides).model


# Contacts ------------------------------------------------------------------------------------------------------------
def touching(layout: Layout, periodic: tuple[bool, ...]) -> set[tuple[tuple[int, ...], int, int, tuple[int, ...]]]:
    """All contacts by comparing all pairs of blocks and their images."""
    found = set()
    images = [(-n, 0, n) if wraps else (0,) for n, wraps in zip(layout.domain.shape, periodic, strict=True)]
    for a, b in itertools.product(range(len(layout)), repeat=2):
        for shift in itertools.product(*images):
            lo, hi = layout.lo[b] + shift, layout.hi[b] + shift
            above, below = layout.hi[a] == lo, hi == layout.lo[a]
            shared = np.minimum(layout.hi[a], hi) - np.maximum(layout.lo[a], lo)
            if (a != b or any(shift)) and (above | below | (shared > 0)).all():
                towards = tuple((above.astype(int) - below).tolist())
                if next((sign for sign in towards if sign), 0) == 1:
                    found.add((towards, a, b, tuple(np.where(above | below, 1, shared).tolist())))
    return found


def test_contacts_are_all_there_are() -> None:
    rng = np.random.default_rng(2)
    for _ in range(25):
        ndim = int(rng.integers(1, 4))
        periodic = tuple(bool(p) for p in rng.integers(0, 2, ndim))
        domain = Box((0,) * ndim, tuple(int(n) for n in rng.integers(3, 12, ndim)))
        parts = [int(p) for p in rng.integers(1, 3, ndim)]
        for layout in (bisection(domain, list(rng.uniform(0.3, 3, 6)), 1), cartesian(domain, parts, granule=1)):
            found = [
                (each.towards, int(a), int(b), tuple(s.tolist()))
                for each in contacts_of(layout, periodic)
                for a, b, s in zip(each.block, each.beyond, each.shared, strict=True)
            ]
            assert len(found) == len(set(found))
            assert set(found) == touching(layout, periodic)


# Recorded steps ------------------------------------------------------------------------------------------------------
def test_what_recorded_steps_ask() -> None:
    heat = work_of(example("heat"))
    assert heat.exchanges == (HaloRound((1, 1), (1, 1), 8),)
    assert (heat.granule, heat.least, heat.cell_bytes, heat.points) == ((1, 64), (2, 2), 16, 1)  # it sums floats
    assert heat.moved == 16
    assert heat.deepest == 8
    assert heat.depth(3).exchanges == (HaloRound((3, 3), (3, 3), 8, corners=True),)
    assert [extent.low for extent in heat.depth(3).extents] == [(2, 2), (1, 1), (0, 0)]
    assert sum(extent.part for extent in heat.depth(3).extents) == pytest.approx(1)
    ising = work_of(example("ising"))  # two colours, each with an exchange
    assert (len(ising.exchanges), ising.rounds) == (1, 2)
    assert ising.depth(2).exchanges == (HaloRound((4, 4), (4, 4), 1, corners=True),)
    life = work_of(example("life"))
    assert (life.domain.shape, life.points, life.granule) == ((512, 8), 64, (1, 1))
    assert life.exchanges[0].corners


def test_kernels_have_one_name_on_grids_of_any_size() -> None:
    small, large = (work_of(example("laplace", f"grid.shape=[{n}, {n}]")) for n in (64, 96))
    assert small.kernel == large.kernel
    assert small.kernel != work_of(example("heat")).kernel


def test_what_a_model_says_cells_cost_is_planned_with() -> None:
    model = example("laplace", "grid.shape=[65, 65]")
    cost = np.ones(model.grid.shape)
    cost[:32] = 0.0
    work = work_of(replace(model, cost=cost))
    layout = make_plan(work, group_of("2x1", [1e6], between=[(0.0, 0.0)])).layout
    busy = [float(cost[layout.box(block).slices((0, 0))].sum()) for block in range(2)]
    assert busy[0] == pytest.approx(busy[1], rel=0.1)


def test_loops_and_sweeps() -> None:
    grid = mg.Grid((64, 64))
    u = mg.Field("u", grid, slots=2, boundary=mg.fixed(0.0))

    @mg.kernel
    def relax(u, new):  # type: ignore[no-untyped-def]
        new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
        return mg.max(u[0, 0])

    @mg.kernel(order="lexicographic")
    def sweep(u):  # type: ignore[no-untyped-def]
        u[0, 0] = 0.5 * (u[-1, 0] + u[1, 0])

    step = mg.Program("step")
    with step.repeat(5):
        largest = step.apply(relax, u.now, u.next)
        step.rotate(u)
    with step.repeat(until=largest < 0.5, limit=3):
        step.apply(relax, u.now, u.next, into=largest)
        step.rotate(u)
    work = work_of(Model("loop", grid, (u,), step))
    assert (len(work.exchanges), work.rounds, work.reductions) == (1, 8, 8)
    assert (work.deepest, work.swept) == (1, ())
    ordered = mg.Program("ordered")
    ordered.apply(sweep, u)
    assert work_of(Model("sweep", grid, (u,), ordered)).swept == (0, 1)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "layout", "depth"),
    [
        ("laplace", "cartesian:2x2", 1),
        ("laplace", "bisection", 3),
        ("gray-scott", "slabs:0", 1),
        ("heat", "bisection", 1),
        ("life-3d", "cartesian:1x2x2", 1),
        pytest.param("life-3d", "bisection", 2, marks=pytest.mark.slow),
    ],
)
def test_messages_are_those_that_are_sent(name: str, layout: str, depth: int) -> None:
    """Bytes and messages of every pair of ranks, against the transport's own counters; bisections have no mesh."""
    shape = "[24, 24, 128]" if name == "life-3d" else "[64, 192]"
    model = example(name, f"grid.shape={shape}")
    ranks, rounds = 5 if layout == "bisection" else 4, 3
    steps = rounds * depth

    def on_rank(comm: Comm) -> dict[int, tuple[int, int]]:
        with Engine(model.layouts(layout, ranks), comm=comm, halo_depth=depth) as engine:
            start(model, engine)
            sums = []
            for times in (steps, steps, 2 * steps):  # each run begins with an exchange of its own
                engine.run(model.step, times)
                sums.append(engine.traffic)
            return {
                peer: tuple(
                    getattr(sums[2][peer], what) - 2 * getattr(sums[1][peer], what) + getattr(sums[0][peer], what)
                    for what in ("messages", "bytes")
                )
                for peer in sums[2]
            }

    work = work_of(model)
    pairs = pairs_of(
        work, group_of(f"1x{ranks}", [1e8]), model.layouts(layout, ranks)[model.planned_grid], corners=True
    )
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for exchange in work.depth(depth).exchanges:
        for sender, receiver, size in zip(pairs.sender, pairs.receiver, pairs.bytes(exchange), strict=True):
            if size:
                messages, total = expected.get((int(sender), int(receiver)), (0, 0))
                expected[int(sender), int(receiver)] = messages + rounds, total + rounds * int(size)
    found = {
        (rank, peer): sent for rank, peers in enumerate(run_virtual(ranks, on_rank)) for peer, sent in peers.items()
    }
    assert {pair: sent for pair, sent in found.items() if sent[0]} == expected


# Terms ---------------------------------------------------------------------------------------------------------------
def test_two_slabs_by_hand() -> None:
    work, group = work_on(100, 50), group_of("2x1", [1e6], between=[(1e-3, 1e-6)], overlap=0.5)
    told = predict(work, group, slabs(work.domain, 2, granule=1))
    assert told.compute == pytest.approx([2500e-6] * 2)
    assert told.exchange == pytest.approx([1e-3 + 400e-6] * 2)
    assert told.hidden == pytest.approx([0.7e-3] * 2)
    assert told.seconds == pytest.approx(3.2e-3)
    assert told.memory.tolist() == [52 * 52 * 16] * 2
    assert predict(work, group, slabs(work.domain, 2, granule=1), overlap=False).seconds == pytest.approx(3.9e-3)


def test_what_is_hidden_is_no_more_than_the_interior() -> None:
    work, group = work_on(6, 50), group_of("2x1", [1e6], between=[(1.0, 0.0)])
    told = predict(work, group, slabs(work.domain, 2, granule=1))
    assert told.hidden == pytest.approx([100e-6] * 2)  # two of three layers; the third is sent


def test_deep_halos_share_latency_and_compute_twice() -> None:
    work, group = work_on(100, 50), group_of("2x1", [1e6], between=[(1e-3, 0.0)], overlap=0.0)
    told = predict(work, group, slabs(work.domain, 2, granule=1), 4)
    assert told.exchange == pytest.approx([0.25e-3] * 2)
    assert told.compute == pytest.approx([(2500 + 1.5 * 50) * 1e-6] * 2)
    assert told.memory.tolist() == [58 * 58 * 16] * 2


def test_deep_halos_on_all_sides_count_every_cell() -> None:
    """A block of 10 x 10 cells computes 14 x 14, 12 x 12 and its own: more than three times the mean width squared."""
    work, group = work_on(20, 20, periodic=True), group_of("4x1", [1e6], between=[(0.0, 0.0)], overlap=0.0)
    told = predict(work, group, cartesian(work.domain, (2, 2), granule=1), 3, False)
    rows = 2 / 3 * 20 * 5e-9  # two steps of three are split, with short rows at both ends
    assert told.compute == pytest.approx([(196 + 144 + 100) / 3 * 1e-6 + rows] * 4)


def test_ranks_of_a_node_share_its_way_out() -> None:
    work = work_on(64, 64, periodic=True)
    layout = cartesian(work.domain, (4, 2), granule=1)
    group = group_of("2x4", [1e6], between=[(0.0, 1e-6), (0.0, 0.0)])
    switch = predict(work, group, layout)
    # Ranks 2 and 3 of node 0 and, around the torus, 0 and 1 send 32 cells of 8 bytes each to node 1.
    assert switch.exchange == pytest.approx([4 * 32 * 8e-6] * 8)
    hub = predict(work, replace(group, links=replace(group.links, shared=True)), layout)
    assert hub.exchange == pytest.approx([8 * 32 * 8e-6] * 8)


def test_a_slow_link_of_one_node_counts_for_both_ends() -> None:
    work, group = work_on(90, 10), group_of("3x1", [1e6], between=[(1e-6, 0.0)])
    slow = Link((Segment(0, 1e-3, 0.0),), 0.25)
    told = predict(work, replace(group, links=replace(group.links, nodes={2: slow})), slabs(work.domain, 3, granule=1))
    assert told.exchange == pytest.approx([1e-6, 1e-6 + 1e-3, 1e-3])
    assert told.hidden[2] == pytest.approx(0.25e-3 * 1.0, rel=0.2)


def test_masked_cells_cost_nothing() -> None:
    work = work_on(40, 40)
    cost = np.zeros((4, 4))
    cost[:2] = 100.0
    work = replace(work, weights=Weights(work.domain, (10, 10), cost))
    told = predict(work, group_of("2x1", [1e6]), slabs(work.domain, 2, granule=1))
    assert told.compute == pytest.approx([800e-6, 0.0])


def test_speed_depends_on_size() -> None:
    curve = Speed.measured([100.0, 1000.0], [1e-6, 1e-4])
    told = predict(work_on(20, 50), group_of("2x1", [curve]), slabs(Box((0, 0), (20, 50)), 2, granule=1))
    assert told.compute == pytest.approx([float(curve.time(500))] * 2)


def test_reductions_are_logarithmic() -> None:
    group = group_of("4x8", [1e6], between=[(1e-3, 0.0), (1e-6, 0.0)])
    assert reduce_seconds(group) == pytest.approx(2e-3 + 3e-6)
    told = predict(work_on(64, 64, reductions=2), group, slabs(Box((0, 0), (64, 64)), 32, granule=1))
    assert told.reduce == pytest.approx(2 * (2e-3 + 3e-6))


def test_sweeps_wait_for_the_blocks_before() -> None:
    group, layout = group_of("4x1", [1e8]), slabs(Box((0, 0), (1024, 1024)), 4, granule=1)
    plain, swept = work_on(1024, 1024), work_on(1024, 1024, swept=(0,))
    assert predict(swept, group, layout).compute.min() > 1.1 * predict(plain, group, layout).compute.max() - 1e-3
    assert (predict(swept, group, layout).compute > predict(plain, group, layout).compute).all()


# Above the nodes -----------------------------------------------------------------------------------------------------
def test_bytes_of_a_switch_queue_at_its_uplink() -> None:
    """Two switches of two nodes in a row of four slabs: one face passes each uplink, in both directions at once."""
    work, slow = work_on(64, 64), 1e-6
    group = group_of("switch=2 node=2 core=1", [1e9], [0] * 4, between=[(1e-5, 1e-9)])
    layout = slabs(work.domain, 4, 0, granule=1)
    pairs = pairs_of(work, group, layout, corners=False)
    assert busiest_uplinks(work, group, pairs) == (("switch", 64 * 8), ("node", 2 * 64 * 8))
    plain = predict(work, group, layout, overlap=False).exchange
    narrow = replace(group, links=replace(group.links, uplinks=(slow,)))
    told = predict(work, narrow, layout, overlap=False).exchange
    assert told == pytest.approx([plain[0], 1e-5 + 64 * 8 * slow, 1e-5 + 64 * 8 * slow, plain[3]])


def test_messages_take_longer_by_each_hop() -> None:
    group = group_of("ring 6", [1e9], between=[(1e-5, 0.0)])
    links = replace(group.links, hop=1e-6)
    far = links.time(group.seats, np.zeros(6, np.int64), np.arange(6), 8)
    assert far == pytest.approx([1e-5, 1e-5, 1.1e-5, 1.2e-5, 1.1e-5, 1e-5])


def test_work_on_a_finer_grid_costs_in_proportion() -> None:
    """Tiles of the coarse grid become larger; the last ones along an axis are cut off as the finer grid says."""
    weights = Weights(Box((0, 0), (5, 4)), (2, 1), np.array([[2.0, 0, 2, 2], [2, 2, 2, 2], [1, 1, 0, 1]]))
    work = replace(work_on(5, 4), weights=weights)
    fine = enlarged(work, (19, 8))
    assert (fine.domain.shape, fine.weights.tile) == ((19, 8), (8, 2))  # type: ignore[union-attr]
    of = fine.weights.of(np.array([[0, 0], [0, 2], [16, 0]]), np.array([[19, 8], [8, 4], [19, 8]]))  # type: ignore[union-attr]
    assert of.tolist() == [(3 + 4) * 16 + 3 * 6, 0.0, 3 * 6]
