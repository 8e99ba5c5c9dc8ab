"""Plans: never worse than the naive way, balanced, within memory, equal for equal arguments, and kept as files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.errors import CaseError, LayoutError
from minga.plan import partition
from minga.plan.candidates import options, refined, unhidden
from minga.plan.cost import predict
from minga.plan.links import Link, Segment
from minga.plan.plan import Plan, duration
from minga.plan.planner import make_plan
from minga.plan.ranks import RankGroup
from minga.plan.scaling import rank_counts, scaling
from minga.plan.speed import Speed
from minga.plan.work.weights import Weights
from minga.plan.work.work import Work
from minga.space.cuts import best_cartesian
from rank_groups import group_of, work_on

UNEQUAL = group_of("4x2", [4e8, 1e8], [0, 0, 0, 0, 1, 1, 1, 1])


# Partitions ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "cut",
    [
        lambda team: partition.slabs(team, 0),
        lambda team: partition.slabs(team, 1),
        lambda team: partition.mesh(team, (2, 4)),
        lambda team: partition.mesh(team, (4, 2)),
        lambda team: partition.columns(team, 0, 1),
        lambda team: partition.columns(team, 1, 0),
        partition.bisected,
        lambda team: partition.blocks(team, 3),
    ],
)
def test_all_partitions_follow_the_speeds(cut) -> None:  # type: ignore[no-untyped-def]
    work = work_on(800, 800)
    layout = cut(partition.team_of(work, UNEQUAL))
    layout.check()
    told = predict(work, UNEQUAL, layout)
    assert told.compute.max() < 1.02 * told.compute.mean()
    if len(layout) == layout.ranks:
        assert (layout.hi - layout.lo >= 2).all()


def test_partitions_follow_weights() -> None:
    work = work_on(256, 256)
    cost = np.zeros((32, 32))
    cost[8:24, 8:] = 64.0
    work = replace(work, weights=Weights(work.domain, (8, 8), cost))
    for cut in (partition.bisected, lambda team: partition.slabs(team, 1), lambda team: partition.blocks(team, 2)):
        layout = cut(partition.team_of(work, UNEQUAL))
        layout.check()
        told = predict(work, UNEQUAL, layout)
        assert told.compute.max() < 1.1 * told.compute.mean()


def test_columns_have_the_least_boundary() -> None:
    """Nine equal ranks on a square make three columns of three, the optimum."""
    layout = partition.columns(partition.team_of(work_on(90, 90), group_of("9x1", [1e8])), 0, 1)
    assert {tuple(size) for size in (layout.hi - layout.lo).tolist()} == {(30, 30)}


def test_bisection_halves_at_the_edges_of_nodes() -> None:
    group = group_of("[3, 5]", [1e8])
    layout = partition.bisected(partition.team_of(work_on(80, 40), group))
    first = layout.owner < 3
    assert layout.hi[first, 0].max() == layout.lo[~first, 0].min() == 30


# Plans ---------------------------------------------------------------------------------------------------------------
def rank_groups() -> st.SearchStrategy[RankGroup]:
    def made(nodes: int, cores: int, kinds: list[int], latency: float, overlap: float, shared: bool) -> RankGroup:
        ranks = nodes * cores
        speed_of = [kinds[rank // cores % len(kinds)] for rank in range(ranks)]
        between = [(latency, 1e-8), (1e-6, 1e-10)]
        return group_of(f"{nodes}x{cores}", [5e8, 1e8, 2e7], speed_of, between, overlap=overlap, shared=shared)

    return st.builds(
        made,
        st.integers(1, 4),
        st.integers(1, 3),
        st.lists(st.integers(0, 2), min_size=1, max_size=4),
        st.sampled_from([1e-6, 1e-4, 5e-3]),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.booleans(),
    )


def works() -> st.SearchStrategy[Work]:
    def made(shape: list[int], periodic: bool, corners: bool, granule: int, deepest: int) -> Work:
        granules = (*(1,) * (len(shape) - 1), granule)
        return work_on(*shape, periodic=periodic, corners=corners, granule=granules, deepest=deepest)

    lengths = st.lists(st.sampled_from([5, 40, 130, 700]), min_size=1, max_size=3)
    return st.builds(made, lengths, st.booleans(), st.booleans(), st.sampled_from([1, 64]), st.sampled_from([1, 4]))


@pytest.mark.slow
@settings(max_examples=8)
@given(works(), rank_groups())
def test_never_worse_than_the_naive_way(work: Work, group: RankGroup) -> None:
    plan = make_plan(work, group)
    naive = predict(work, group, best_cartesian(work.domain, group.ranks, work.granule[-1], 1))
    assert plan.prediction.seconds <= naive.seconds * (1 + 1e-9)
    assert plan.naive == pytest.approx(naive.seconds)
    plan.layout.check()
    assert plan.layout.aligned(work.granule[-1])
    again = predict(work, group, plan.layout, plan.halo_depth, plan.overlap)
    assert again.seconds == pytest.approx(plan.prediction.seconds)
    gains = sum(choice.gain for choice in plan.choices if (choice.name, choice.chosen) != ("overlap", "on"))
    assert gains == pytest.approx(plan.naive - plan.prediction.seconds, abs=1e-9)
    assert make_plan(work, group).as_dict() == plan.as_dict()


def test_milano_two_one() -> None:
    """Powers 20, 5, 5: 2.0 instead of 4.0 with equal parts; the fast one alone would take 3.0."""
    group = group_of("3x1", [20.0, 5.0, 5.0], [0, 1, 2], between=[(0.0, 0.0)])
    plan = make_plan(work_on(60), group)
    assert plan.layout.cells().tolist() == [40, 10, 10]
    assert (plan.prediction.seconds, plan.naive) == (pytest.approx(2.0), pytest.approx(4.0))


def test_nodes_that_do_not_pay_are_left_out() -> None:
    slow_network = group_of("3x1", [20e6, 5e6], [0, 1, 1], between=[(1e-3, 1e-8)], overlap=0.0)
    plan = make_plan(work_on(60, 60), slow_network)
    assert plan.layout.cells().tolist() == [3600, 0, 0]
    assert [name for name, _ in plan.left_out] == ["node 1", "node 2"]
    assert "with all nodes" in plan.left_out[0][1]
    assert plan.prediction.seconds == pytest.approx(180e-6)
    assert not make_plan(work_on(6000, 6000), slow_network).left_out


def test_slow_links_are_put_at_the_ends() -> None:
    """The middle one of three nodes has a slow link: as a slab at an end it has one neighbour."""
    group = group_of("3x1", [1e8], between=[(1e-6, 1e-9)], overlap=0.0)
    group = replace(group, links=replace(group.links, nodes={1: Link((Segment(0, 1e-3, 1e-8),), 0.0)}))
    plan = make_plan(work_on(4000, 1000, deepest=1), group)
    assert plan.prediction.exchange[1] == pytest.approx(1e-3 + 8e-5)
    assert plan.layout.lo[plan.layout.owner == 1, 0] in (0, plan.layout.lo[:, 0].max())


def test_a_fast_node_behind_a_slow_link_is_left_out() -> None:
    group = group_of("3x1", [1.1e8, 1e8], [0, 1, 1], between=[(1e-6, 1e-9)], overlap=0.0)
    group = replace(group, links=replace(group.links, nodes={0: Link((Segment(0, 0.1, 1e-6),))}))
    plan = make_plan(work_on(600, 600), group)
    assert [name for name, _ in plan.left_out] == ["node 0"]
    assert plan.prediction.seconds < 2e-3


def test_ranks_that_do_not_pay_are_left_out() -> None:
    plan = make_plan(work_on(16, 16), group_of("1x4", [1e9], between=[(1e-5, 0), (1e-5, 0)], overlap=0.0))
    assert (plan.layout.cells() > 0).sum() == 1
    assert "3 of 4 ranks" in plan.notes[0]


@pytest.mark.slow
def test_the_depth_is_the_best_of_all() -> None:
    group = group_of("4x1", [1e8], between=[(1e-3, 1e-8)], overlap=0.0)
    for length in (128, 1024):
        work = work_on(length, length)
        plan = make_plan(work, group)
        fixed = [make_plan(work, group, halo_depth=depth) for depth in range(1, 9)]
        assert plan.prediction.seconds <= min(each.prediction.seconds for each in fixed) * 1.01
        assert [each.halo_depth for each in fixed] == list(range(1, 9))
    assert make_plan(work_on(2048, 2048), group).halo_depth > 2
    assert make_plan(work_on(512, 512, deepest=1), group).halo_depth == 1


def test_overlap_is_left_where_nothing_can_be_hidden() -> None:
    work = work_on(512, 512)
    assert make_plan(work, group_of("2x1", [1e8], overlap=1.0)).overlap
    assert not make_plan(work, group_of("2x1", [1e8], overlap=0.0)).overlap
    assert make_plan(work, group_of("2x1", [1e8], overlap=0.0), overlap=True).overlap
    assert not make_plan(work, group_of("2x1", [1e8]), overlap=False).overlap


def test_blocks_are_not_split_for_less_than_that_costs() -> None:
    """Short rows at the sides of blocks cost more than the little that there is to hide."""
    group = group_of("1x2", [1e10], between=[(1e-6, 1e-12), (1e-6, 1e-12)])
    work = work_on(1024, 1024, one_axis=1)
    assert not make_plan(work, group).overlap
    told = [predict(work, group, make_plan(work, group).layout, 1, overlap) for overlap in (True, False)]
    assert told[0].compute[0] - told[1].compute[0] == pytest.approx(1024 * 5e-9)
    assert make_plan(work_on(1024, 1024, one_axis=0), group).overlap


def test_words_of_a_person_are_kept() -> None:
    plan = make_plan(work_on(8, 512), UNEQUAL, layout="slabs:1", mapping="round-robin", halo_depth=2, overlap=False)
    assert (plan.name, plan.mapping, plan.halo_depth, plan.overlap) == ("slabs:1", "round-robin", 2, False)
    assert set(plan.layout.cells().tolist()) == {512}
    with pytest.raises(LayoutError, match="did you mean"):
        make_plan(work_on(64, 64), UNEQUAL, mapping="tile")
    with pytest.raises(LayoutError, match="not a layout"):
        make_plan(work_on(64, 64), UNEQUAL, layout="stripes")


def test_placement_brings_neighbours_together() -> None:
    """An 8 x 8 torus on 16 nodes of four: tiles of 2 x 2 send less than rows of four."""
    group = group_of("16x4", [1e9], between=[(1e-5, 1e-8), (0.0, 0.0)], overlap=0.0)
    work = work_on(512, 512, periodic=True, deepest=1)
    plan = make_plan(work, group, layout="cartesian:8x8")
    rows = make_plan(work, group, layout="cartesian:8x8", mapping="sequential")
    assert (plan.mapping, rows.mapping) == ("tiles", "sequential")
    assert plan.prediction.seconds < 0.9 * rows.prediction.seconds


# Memory --------------------------------------------------------------------------------------------------------------
def test_shares_fit_into_memory() -> None:
    work = work_on(512, 512)
    small = group_of("2x1", [1e8], memory=[1 << 20, 1 << 30])
    plan = make_plan(work, small)
    assert plan.prediction.memory[0] <= 1 << 20
    assert plan.prediction.memory[0] > 0.9 * (1 << 20)
    assert plan.notes[0] == "equal parts would not fit into the memory of node 0"
    with pytest.raises(LayoutError, match="node 0 is too small") as error:
        make_plan(work, small, layout="slabs")
    assert "auto" in str(error.value)


def test_memory_that_nobody_knows_holds_all() -> None:
    """0 bytes stand for memory of unknown size: shares are corrected, and made to fit others, all the same."""
    group = group_of("5x1", [8e7, 4e7, 4e7, 2e7, 2e7], [0, 1, 2, 3, 4], ((1e-4, 1e-8),))
    work = work_on(120, 130, corners=True)
    team = partition.team_of(work, group)
    columns = next(option for option in options(team) if option.name == "columns:0x1")
    unknown = replace(group, memory=np.zeros(5, np.int64))
    assert refined(columns, group, 1, False) is not columns
    assert refined(columns, unknown, 1, False) is not columns
    pair = group_of("2x1", [1e8], [0, 0], memory=[0, 100 * 100 * 8])
    plan = make_plan(work_on(100, 100), pair)
    assert plan.prediction.memory[1] <= pair.memory[1]
    assert plan.layout.cells().min() > 3000


def test_a_ring_of_slabs_sends_across_its_ends() -> None:
    group = group_of("4x1", [1e8], between=((1e-3, 0.0),), overlap=0.0)
    for periodic, ends in ((False, 1e-3), (True, 2e-3)):
        team = partition.team_of(work_on(100, 100, periodic=periodic), group)
        assert unhidden(team, 0) == pytest.approx([ends, 2e-3, 2e-3, ends])


def test_a_machine_that_is_too_small_says_what_would_fit() -> None:
    group = replace(group_of("2x1", [1e8], memory=[1 << 20, 1 << 20]), names=("ada", "bob"))
    with pytest.raises(LayoutError) as error:
        make_plan(work_on(4096, 4096), group)
    text = str(error.value)
    assert "4096 x 4096 cells of 'test' need 256 MiB" in text
    assert "may fill 2 MiB" in text
    assert "ada is too small" in text
    assert "at most about 131072 cells" in text


def test_sizes_beyond_what_was_measured_are_said() -> None:
    group = group_of("2x1", [Speed.measured([100, 1000], [1e-6, 1e-5])], between=[(0.0, 0.0)])
    assert "measured up to 1000" in make_plan(work_on(64, 64), group).notes[0]
    assert not make_plan(work_on(40, 40), group).notes


# What a plan tells ---------------------------------------------------------------------------------------------------
def test_plans_survive_json() -> None:
    plan = make_plan(work_on(64, 64), UNEQUAL, source="by hand")
    again = Plan.from_dict(json.loads(json.dumps(plan.as_dict())))
    assert again.as_dict() == plan.as_dict()
    assert again.layout == plan.layout
    assert again.prediction.seconds == plan.prediction.seconds
    for wrong in ({}, {"format": "minga plan", "version": 2}, {"format": "minga plan", "version": 1}):
        with pytest.raises(CaseError):
            Plan.from_dict(wrong)


def test_a_plan_reads_well() -> None:
    text = repr(make_plan(work_on(4000, 4000), UNEQUAL))
    assert text.startswith("Plan: ")
    assert "a step predicted (equal parts: " in text
    assert "layout: " in text
    assert "by their speed" in text
    assert [duration(s) for s in (2.0, 1.25e-3, 9.9999e-7, 5e-9)] == ["2 s", "1.25 ms", "1 us", "5 ns"]


# Scale ---------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_many_ranks_are_planned_in_seconds() -> None:
    group = group_of("128x64", [1e8, 2e8], [rank // 4096 for rank in range(8192)], [(2e-6, 8e-11), (3e-7, 1e-10)])
    plan = make_plan(work_on(2048, 2048, 1024, periodic=True), group)
    assert plan.prediction.seconds < 0.7 * plan.naive
    assert plan.prediction.compute.max() < 1.02 * plan.prediction.compute.mean()


def test_scaling_curves() -> None:
    group = group_of("4x2", [1e8], between=[(1e-4, 1e-8), (1e-6, 1e-10)])
    curves = scaling(work_on(400, 400), group)
    assert [point.ranks for point in curves.strong] == [1, 2, 4, 8]
    assert [point.cells for point in curves.strong] == [160000] * 4
    assert curves.strong[0].efficiency == pytest.approx(1.0)
    assert all(0 < point.efficiency <= 1 for point in (*curves.strong, *curves.weak))
    times = [point.seconds for point in curves.strong]
    assert times == sorted(times, reverse=True)
    for point in curves.weak:
        assert point.cells == pytest.approx(160000 * point.ranks / 8, rel=0.02)
    json.dumps(curves.as_dict(), allow_nan=False)
    assert rank_counts(262144)[:2] == [1, 4]
    assert rank_counts(262144)[-1] == 262144
    assert rank_counts(6) == [1, 2, 4, 6]


def test_links_of_single_nodes_are_looked_up_once() -> None:
    group = group_of("2048x1", [1e8])
    slow = {node: Link((Segment(0, 1e-3, 1e-7),)) for node in range(1024)}
    told = predict(
        work_on(4096, 64), replace(group, links=replace(group.links, nodes=slow)), partition.slabs(
            partition.team_of(work_on(4096, 64), group), 0
        )
    )  # fmt: skip
    assert told.exchange[500] > 10 * told.exchange[1500]
