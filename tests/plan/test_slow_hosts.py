"""Hosts without which the rest of a run is shorter, a restart included: on predicted steps of slow ranks."""

from __future__ import annotations

import numpy as np
import pytest

from minga.plan.balance import Balancer
from minga.plan.cost import predict
from minga.plan.decisions import RankTimes
from minga.plan.drop import Drop
from minga.plan.links import Links
from minga.plan.planner import make_plan
from minga.plan.ranks import RankGroup
from minga.plan.slow_hosts import Drops
from minga.plan.speed import Speed
from minga.plan.topology import Tree
from minga.plan.work.work import HaloRound, Work
from minga.space.box import Box
from minga.space.layout import Layout

WORK = Work("w", "k", Box((0, 0), (400, 640)), (False, False), (1, 64), (8, 64), 16, (HaloRound((1, 1), (1, 1), 8),))
"""Slabs of eight rows at least: so many the slowest host keeps, however slow it is."""

RESTART = 2.0
"""Seconds of a restart."""


def paced(pace: list[float], machine: str = "4x1") -> RankGroup:
    """Ranks on nodes, each so many times slower than a common speed."""
    seats = Tree.parse(machine).seats(len(pace))
    return RankGroup(
        tuple(Speed.constant(1e7 / factor) for factor in pace),
        np.arange(len(pace)),
        np.full(len(pace), 1 << 40),
        seats,
        Links.uniform(len(seats.levels), [(5e-5, 1e-9)] * (seats.above + 1) + [(1e-6, 1e-10)]),
    )


class Run:
    """A run whose ranks take as long as predicted for their cells, at the speed that they have at each check."""

    def __init__(self, machine: str = "4x1", steps: int = 100) -> None:
        self.machine, self.steps = machine, steps
        self.found: list[Drop] = []
        group = paced([1.0] * 4, machine)
        drops = Drops(WORK, group, 1, True, self.found.append, RESTART, lambda: 0.0)
        self.balancer = Balancer(WORK, group, drops=drops, clock=lambda: 0.0)
        self.layout: Layout = make_plan(WORK, group).layout
        self.seconds = 0.0

    def checks(self, count: int, pace: list[float], remaining: int = 10**6) -> None:
        """Check until a drop is found, at most so many times."""
        now, known = paced(pace, self.machine), None
        for _ in range(count):
            if self.found:
                return
            if self.layout is not known:
                known, step = self.layout, predict(WORK, now, self.layout).seconds
                busy = self.layout.cells() * 1e-7 * np.array(pace)
            self.seconds += step * self.steps
            proposal = self.balancer.look(self.layout, RankTimes(busy, {}, step, self.steps), remaining)
            if proposal is not None:
                self.layout = proposal.layout


@pytest.mark.slow
def test_a_host_that_crawls_is_dropped_once_it_has_cost_as_much_as_a_restart() -> None:
    """Not before: it may recover. Its cells have been moved to the others as far as that goes."""
    run = Run(steps=10)
    run.checks(10, [1.0] * 4)
    run.seconds = 0.0
    run.checks(100, [1, 1, 1, 100])
    (drop,) = run.found
    assert drop.ranks == (3,)
    assert drop.slower == pytest.approx(100, rel=0.01)
    assert drop.step == pytest.approx(predict(WORK, paced([1, 1, 1, 100]), run.layout).seconds, rel=0.01)
    assert drop.without == pytest.approx(WORK.domain.size * 1e-7 / 3, rel=0.02)
    assert drop.step > 1.5 * drop.without
    assert RESTART < run.seconds < 20 * RESTART
    assert "100 times slower than expected" in drop.reason


@pytest.mark.few(2)
@pytest.mark.parametrize("pace", [[1, 1, 1, 5], [5, 5, 5, 5], [100, 1, 1, 1], [1, 1, 1, 1.3]])
def test_hosts_that_still_help_stay_and_so_does_that_of_rank_0(pace: list[float]) -> None:
    run = Run(steps=1000)
    run.checks(10, [1.0] * 4)
    run.checks(40, pace)
    assert run.found == []


def test_a_short_rest_of_the_run_is_not_worth_a_restart() -> None:
    run = Run(steps=1000)
    run.checks(10, [1.0] * 4)
    run.checks(20, [1, 1, 1, 100], remaining=300)  # 5 s with the host, 3 s without it
    assert run.found == []


def test_a_host_that_recovers_in_time_stays() -> None:
    run = Run(steps=10)
    run.checks(10, [1.0] * 4)
    for _ in range(6):
        run.checks(3, [1, 1, 1, 100])
        run.checks(10, [1, 1, 1, 1])
    assert run.found == []


@pytest.mark.slow
def test_all_ranks_of_a_host_are_dropped_together() -> None:
    run = Run("2x2")
    run.checks(10, [1.0] * 4)
    run.checks(100, [1, 1, 300, 300])
    assert [drop.ranks for drop in run.found] == [(2, 3)]


@pytest.mark.slow
def test_a_dropped_host_pays_again_when_it_is_so_much_faster() -> None:
    """The factor is between that with which a plan uses the host again, and that of a host as fast as ever."""
    run = Run()
    run.checks(10, [1.0] * 4)
    run.checks(100, [1, 1, 1, 100])
    (drop,) = run.found
    assert 1 < drop.recovered < 100
    back = make_plan(WORK, paced([1, 1, 1, 100 / drop.recovered]))
    assert (back.layout.cells() > 0).all()
    assert back.prediction.seconds < drop.without
    assert make_plan(WORK, paced([1, 1, 1, 100])).layout.cells()[3] == 0
