"""The emulator against times that can be worked out by hand, and against a plain walk through all tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from minga.errors import LayoutError
from minga.studies.bounanos.balancers import Balance, queues, refine, round_robin
from minga.studies.bounanos.costs import RowCosts, synthetic_costs
from minga.studies.bounanos.cuts import equal, even, fullest
from minga.studies.bounanos.emulator import emulate
from minga.studies.bounanos.systems import MINGA, SYSTEMS, Link, System
from minga.studies.bounanos.weights import mean_cost

FREE = Link(latency=0.0, rate=1e30, overhead=0.0)
PLAIN = System("plain", link=FREE)
EVERY = synthetic_costs(samples=40)


def flat(rows: int, samples: int, subcycles: int = 5) -> RowCosts:
    """All rows cost 1 s an iteration."""
    return RowCosts(np.full((samples, subcycles, rows), 1.0 / subcycles), samples)


def test_one_node_takes_the_serial_time() -> None:
    for segments in (1, 2, 7):
        run = emulate(EVERY, equal(EVERY.rows, segments), 1, PLAIN)
        assert run.seconds == pytest.approx(EVERY.serial, rel=1e-5)
        assert run.busy[0] == pytest.approx(EVERY.serial, rel=1e-12)


def test_equal_work_without_messages_scales_perfectly() -> None:
    run = emulate(flat(40, 10), equal(40, 8), 8, PLAIN)
    assert run.seconds == pytest.approx(10 * 5.0, rel=1e-12)
    assert run.efficiency == pytest.approx(1.0, rel=1e-12)


def test_messages_lengthen_every_iteration() -> None:
    link = Link(latency=0.25, rate=624.0, overhead=0.125)
    run = emulate(flat(40, 10), equal(40, 4), 4, System("slow", link=link))
    # Inner segments send and receive two messages each; the last iteration's are not waited for.
    assert run.seconds == pytest.approx(10 * (10.0 + 4 * 0.125) + 9 * (0.25 + 1.0), rel=1e-12)


def test_two_segments_a_node_hide_messages() -> None:
    """While one waits for its neighbours, the other one computes."""
    link = Link(latency=4.0, rate=1e30, overhead=0.0)
    costs = flat(64, 20)
    one, two = (emulate(costs, equal(64, p), 4, System("far", link=link)).seconds for p in (4, 8))
    assert one == pytest.approx(20 * 16.0 + 19 * 4.0, rel=1e-12)
    assert two == pytest.approx(20 * 16.0, rel=0.03)


def test_a_pipeline_fills_and_drains() -> None:
    """One sweep down the rows: the last of four segments is done three segments' time after the first."""
    costs = flat(40, 1, subcycles=1)
    run = emulate(costs, equal(40, 4), 4, PLAIN, directions=(1,))
    assert run.seconds == pytest.approx(40.0, rel=1e-12)
    down = emulate(flat(40, 10, 2), equal(40, 4), 4, PLAIN, directions=(1, 1))
    both = emulate(flat(40, 10, 2), equal(40, 4), 4, PLAIN, directions=(1, -1))
    assert down.seconds < 0.6 * both.seconds
    assert both.seconds == pytest.approx(400.0, rel=1e-12)  # down and up again: one after another


@pytest.mark.parametrize("directions", [(0,), (1, 1, -1), (0, 1, 1, -1, 0)])
def test_tasks_wait_for_what_they_read(directions: tuple[int, ...]) -> None:
    """Each on a node of its own: the recurrence, task by task."""
    segments, samples = 6, 8
    seconds = np.random.default_rng(3).uniform(0.5, 2.0, (samples, len(directions), segments))
    link = Link(latency=0.3, rate=1e30, overhead=0.0)
    run = emulate(
        RowCosts(seconds, samples), np.arange(segments + 1), segments, System("x", link=link),
        directions=None if directions == (0,) else directions,
    )  # fmt: skip
    done = np.zeros(segments)
    for sample in range(samples):
        for wave, way in enumerate(directions):
            first = done.copy()
            inf = np.array([-np.inf])
            travel = 0.3 if (sample, wave) > (0, 0) else 0.0  # at the start all know their neighbours' rows
            around = first + travel
            begin = np.maximum(first, np.maximum(np.concatenate([inf, around[:-1]]), np.concatenate([around[1:], inf])))
            if way == 0:
                done = begin + seconds[sample, wave]
                continue
            order = range(segments) if way > 0 else reversed(range(segments))
            done = np.zeros(segments)
            for i in order:
                start, behind, ahead = first[i], i - way, i + way
                if 0 <= behind < segments:
                    start = max(start, done[behind] + 0.3)
                if 0 <= ahead < segments:
                    start = max(start, first[ahead] + travel)
                done[i] = start + seconds[sample, wave, i]
    assert run.seconds == pytest.approx(done.max(), rel=1e-12)


def test_a_parent_serves_one_after_another() -> None:
    """Five children on nodes of their own: their messages arrive together, and each takes the parent a while."""
    link = Link(latency=0.0, rate=1e30, overhead=0.125)
    run = emulate(flat(40, 10), equal(40, 5), 5, System("hub", "centralised", link=link))
    grown = emulate(flat(40, 10), equal(40, 10), 10, System("hub", "centralised", link=link))
    assert run.seconds == pytest.approx(10 * (8.0 + 0.125 + 2 * 5 * 0.125), rel=0.02)
    assert grown.seconds == pytest.approx(10 * (4.0 + 0.125 + 2 * 10 * 0.125), rel=0.02)


def test_a_blocking_reduction_costs_its_tree() -> None:
    link = Link(latency=0.5, rate=1e30, overhead=0.0)
    run = emulate(flat(64, 10), equal(64, 8), 8, System("mpi", reduction="blocking", link=link))
    assert run.seconds == pytest.approx(10 * (8.0 + 2 * 3 * 0.5), rel=1e-12)


def test_refinement_moves_little_and_helps() -> None:
    cost, node = np.array([5.0, 1.0, 1.0, 1.0, 4.0, 1.0]), np.array([0, 0, 0, 1, 0, 2])
    better = refine(cost, node, 3)
    assert np.bincount(better, weights=cost).max() == 5.0
    assert (refine(cost, better, 3) == better).all()
    assert (round_robin(5, 2) == [0, 1, 0, 1, 0]).all()


def test_queues_send_to_the_shortest() -> None:
    ready = np.array([True, True, True, True, False, True])
    node = np.array([0, 0, 1, 1, 2, 3])
    moved = queues(ready, node, 4)
    assert (moved == [0, 2, 1, 2, 2, 3]).all()  # both at once, on the same news
    assert (queues(ready[:1], node[:1], 4) == node[:1]).all()


def test_balancing_gains() -> None:
    """Segments that move help once there are more than nodes; rows that move, always."""
    for system, segments in ((SYSTEMS["Charm++ rc"], 111), (MINGA, 37)):
        ends = equal(EVERY.rows, segments)
        plain = emulate(EVERY, ends, 37, replace(system, balance=None))
        balanced = emulate(EVERY, ends, 37, system)
        assert balanced.seconds < 0.95 * plain.seconds
        assert balanced.migrations + balanced.recuts > 0
    quiet = emulate(flat(80, 20), equal(80, 4), 4, replace(PLAIN, balance=Balance(0.0, "refine", recut=True)))
    assert (quiet.migrations, quiet.recuts) == (0, 0)


def test_combined_balancing_beats_the_paper() -> None:
    costs = synthetic_costs(samples=100)
    assert emulate(costs, equal(costs.rows, 37), 37, MINGA).efficiency >= 0.90
    alone = emulate(costs, even(mean_cost(costs), 37), 37, SYSTEMS["Charm++"]).efficiency
    assert 0.6 < alone < 0.75  # the paper: 0.68


def test_the_same_again() -> None:
    first, second = (emulate(EVERY, fullest(mean_cost(EVERY), 55), 37, MINGA) for _ in range(2))
    assert first.seconds == second.seconds
    assert (first.busy == second.busy).all()


def test_what_cannot_be_emulated_is_refused() -> None:
    with pytest.raises(LayoutError, match="cuts at"):
        emulate(EVERY, [0, 10], 2, PLAIN)
    with pytest.raises(LayoutError, match="0 nodes"):
        emulate(EVERY, equal(EVERY.rows, 2), 0, PLAIN)
    with pytest.raises(LayoutError, match="centralised"):
        emulate(EVERY, equal(EVERY.rows, 2), 2, SYSTEMS["MOSIX"], directions=(1,))
