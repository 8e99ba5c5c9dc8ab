"""Plans: rows by speed, what pays, panels that hide what comes next, memory, and rectangles where they win."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from matmul_hands import plan_for, workers_of
from minga.models.matmul.columns import half_perimeters, in_columns
from minga.models.matmul.plan import Plan, Size, break_even, break_even_from_one, make_plan
from minga.models.matmul.workers import Wire, described
from minga.plan.machine.machine import read_machine
from minga.plan.speed import Speed

FOUR = (4e10, 2e10, 1e10, 1e10)


def test_rows_in_proportion_to_speeds() -> None:
    plan = plan_for(4096, 4096, 4096, FOUR, layout="rows")
    (column,) = plan.columns
    assert sum(column.rows) == 4096
    assert np.abs(np.array(column.rows) - [2048, 1024, 512, 512]).max() <= 12
    equal = plan_for(4096, 4096, 4096, FOUR, layout="equal")
    assert equal.columns[0].rows == (1024,) * 4
    assert equal.timing.seconds / plan.timing.seconds == pytest.approx(2, rel=0.1)


def test_thin_blocks_that_are_slow_get_fewer_rows() -> None:
    """Speed is a function of size: the second worker is slow until it has many rows."""
    from dataclasses import replace

    workers = workers_of([1e10, 1e10])
    slow = Speed.measured([1e8, 1e9], [1e8 / 2e9, 1e9 / 1e10])
    workers = replace(workers, group=replace(workers.group, speeds=(workers.group.speeds[0], slow)))
    (column,) = make_plan(Size(256, 20480, 1024, 8), workers, layout="rows").columns
    assert column.rows[0] > 1.5 * column.rows[1]


def test_break_even() -> None:
    """n* = 4 beta S: there multiplying takes as long as bringing B to all."""
    workers = workers_of(FOUR, beta=1 / 117e6)
    side = break_even(workers, 8)
    assert side == pytest.approx(4 / 117e6 * 1.6e11)
    assert side * 8e10**-1 * side**2 == pytest.approx(8 * side**2 / 117e6)
    own, total = 4e10, 8e10
    n = break_even_from_one(workers, 8)
    assert n**3 / own == pytest.approx(n**3 / total + 24 * n**2 / 117e6)
    assert break_even_from_one(workers_of([1e10]), 8) == np.inf


def test_the_plan_says_when_it_does_not_pay() -> None:
    workers = workers_of(FOUR, beta=1 / 11.7e6)
    side = round(break_even_from_one(workers, 8))
    small = make_plan(Size(side // 8, side // 8, side // 8, 8, False, False), workers)
    large = make_plan(Size(3 * side, 3 * side, 3 * side, 8, False, False), workers)
    assert small.name == "alone"
    assert small.ranks == (0,)
    assert len(large.ranks) > 1
    assert large.timing.seconds < dict(large.others)["rank 0 alone"]


def test_slow_ranks_are_left_out_where_they_only_cost() -> None:
    plan = plan_for(1000, 1000, 1000, [1e10, 1e10, 1e6])
    assert 2 not in plan.ranks or plan.columns[0].rows[plan.columns[0].ranks.index(2)] <= 1


def test_panels_hide_the_latency() -> None:
    """At least ten latencies long, 128 columns where memory allows, and no wider than the matrix."""
    size = Size(512, 65536, 512, 8)
    for alpha in (1e-5, 2e-3):
        workers = workers_of([1e10] * 4, alpha=alpha, beta=1e-9)
        plan = make_plan(size, workers, layout="rows")
        assert plan.width >= 128
        assert plan.timing.panel >= 10 * workers.wire.time(0, 4) * 0.95  # all panels but the last are a little wider
    assert plan_for(500, 60, 500, [1e9, 1e9], layout="rows").width <= 60


@pytest.mark.parametrize("anywhere", [True, False])
def test_memory_is_never_exceeded(anywhere: bool) -> None:
    """Rows of A, panels and blocks of C of every rank, in every pass."""
    possible = 0
    for rows, columns, depth, cap in itertools.product((100, 3000), (50, 2000), (64, 1500), (1e5, 1e6, 2e7)):
        try:
            plan = plan_for(rows, columns, depth, [3e9, 1e9], anywhere=anywhere, memory=int(cap), layout="rows")
        except mg.CaseError:
            continue
        possible += 1
        for column in plan.columns:
            for rank, count in zip(column.ranks, column.rows):
                part = -(-count // plan.passes)
                held = (
                    part * depth
                    + (5 if len(column.ranks) > 1 else 1) * depth * plan.width
                    + part * plan.width * (1 if anywhere or rank == 0 else 2)
                )
                if rank == 0 and not anywhere:
                    held += (-(-rows // plan.passes) - part) * plan.width
                assert 8 * held <= cap + 8 * (depth + 2 * plan.width)  # a row more, as parts are rounded
    assert possible > 12


def test_columns_of_beaumont() -> None:
    """Never below the lower bound, never far above it, and the best of all cuts of the sorted workers."""
    chance = np.random.default_rng(0)
    for _ in range(30):
        speeds = chance.uniform(0.2, 5, chance.integers(2, 8)).tolist()
        best = min(half_perimeters(speeds, in_columns(speeds, c)) for c in range(1, len(speeds) + 1))
        bound = 2 * sum(np.sqrt(np.array(speeds) / sum(speeds)))
        assert bound <= best <= 1.75 * bound
        order = sorted(range(len(speeds)), key=lambda worker: -speeds[worker])
        for columns in range(1, len(speeds) + 1):
            found = half_perimeters(speeds, in_columns(speeds, columns))
            cuts = itertools.combinations(range(1, len(speeds)), columns - 1)
            every = [[order[i:j] for i, j in itertools.pairwise((0, *cut, len(order)))] for cut in cuts]
            assert found == pytest.approx(min(half_perimeters(speeds, cut) for cut in every))


@pytest.mark.slow
def test_rectangles_win_on_many_ranks_at_a_switch_and_cover_all() -> None:
    size = Size(5000, 5000, 5000, 8)
    many = [1e10] * 8 + [5e9] * 8
    plan = make_plan(size, workers_of(many, beta=1e-8))
    assert plan.name == "columns"
    assert sorted(plan.ranks) == list(range(16))
    assert [column.first for column in plan.columns[1:]] == [column.end for column in plan.columns[:-1]]
    assert (plan.columns[0].first, plan.columns[-1].end) == (0, 5000)
    assert all(sum(column.rows) == 5000 for column in plan.columns)
    hub = make_plan(size, workers_of(many, beta=1e-8, hub=True))
    assert hub.name != "columns"
    few = make_plan(size, workers_of([1e10] * 3, beta=1e-9))
    assert few.name == "rows"


def test_a_machine_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    node = {"name": "pc", "count": 3, "cores": 2, "memory": "8 GB", "speeds": {"cpu": {"matmul f8": "10 Gcells/s"}}}
    links = {"inter-node": {"latency": "50 us", "bandwidth": "1 Gb/s"}}
    content = {"format": "minga machine", "version": 1, "name": "pcs", "nodes": [node], "links": links}
    file.write_text(json.dumps(content))
    machine = read_machine(file)
    workers = described(machine, np.dtype("f8"))
    assert workers.ranks == 6
    assert workers.rates == pytest.approx(1e10)
    with pytest.raises(mg.CaseError, match=r"multiplies matrices of f4(.|\n)*matmul f4"):
        described(machine, np.dtype("f4"))


def test_wire_for_other_numbers_of_ranks() -> None:
    switch, hub = Wire(1e-4, 1e-8, 4), Wire(1e-4, 1e-8, 4, shared=True)
    assert switch.time(1e6, 1) == 0
    assert switch.time(1e6, 4) == pytest.approx(1e-4 + 1e-2)
    assert switch.time(1e6, 2) == pytest.approx(switch.time(1e6, 4) * 2 / 3)
    assert hub.time(1e6, 2) == pytest.approx(hub.time(1e6, 4) / 3)


def test_plans_are_plain_data() -> None:
    plan = plan_for(100, 100, 100, [1e9, 1e9])
    assert isinstance(plan, Plan)
    assert json.loads(json.dumps(plan.as_dict()))["name"] == plan.name


@pytest.mark.parametrize(("how", "said"), [({"layout": "ring"}, "no layout"), ({"width": 0}, "panels of 0")])
def test_wrong_wishes_are_told(how: dict[str, object], said: str) -> None:
    with pytest.raises(mg.CaseError, match=said):
        plan_for(10, 10, 10, [1e9, 1e9], **how)


def test_times_of_all_ranks_at_once() -> None:
    from dataclasses import replace

    curves = (Speed.measured([10, 100, 1000], [2, 11, 90]), Speed.constant(5.0), Speed.measured([50, 60], [1, 1]))
    workers = workers_of([1.0] * 3)
    workers = replace(workers, group=replace(workers.group, speeds=curves))
    timer = workers.timer([2, 0, 1])
    for amount in (0.0, 0.5, 1.0, 10.0, 55.0, 60.0, 61.0, 500.0, 1000.0, 1e6):
        expected = [float(curves[rank].time(amount)) for rank in (2, 0, 1)]
        assert timer(np.full(3, amount)) == pytest.approx(expected)
