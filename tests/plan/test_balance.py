"""When work moves: on times that are made up, and in runs whose slow ranks sleep."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
import slow_ranks
from minga.engine.comm import Comm
from minga.errors import LayoutError
from minga.plan.balance import Balancer
from minga.plan.budget import Budget
from minga.plan.decisions import RankTimes
from minga.plan.links import Links
from minga.plan.move_cost import MoveCost
from minga.plan.ranks import RankGroup
from minga.plan.recut import costs_of_blocks
from minga.plan.speed import Speed
from minga.plan.topology import Tree
from minga.plan.work.recorded import work_of
from minga.plan.work.weights import Weights, weights_of
from minga.plan.work.work import Work
from minga.running.observers.series import Series
from minga.space.box import Box
from minga.space.cuts import bisection, blocks, cartesian, slabs
from minga.space.layout import Layout
from thinned import thinned

BOX = Box((0, 0), (400, 640))
UNIT = 1e-7
"""Seconds a cell of the ranks that nothing happens to."""


def group(ranks: int, between: tuple[float, float] = (5e-5, 1e-9), **more: Any) -> RankGroup:
    seats = Tree.parse(str(ranks)).seats(ranks)
    zeros = np.zeros(ranks, np.int64)
    made = RankGroup(
        (Speed.constant(1 / UNIT),), zeros, np.full(ranks, 1 << 40), seats, Links.uniform(len(seats.levels), [between])
    )
    return replace(made, **more)


def work(**more: Any) -> Work:
    return replace(Work("w", "k", BOX, (False, False), (1, 64), (2, 1), 16, ()), **more)


class Acting:
    """Ranks that take `pace` times as long as expected for their cells, with some noise."""

    def __init__(self, balancer: Balancer, layout: Layout, cost: Weights | None = None, noise: float = 0.0) -> None:
        self.balancer, self.layout, self.cost, self.noise = balancer, layout, cost, noise
        self.steps = 1000  # between looks: plenty of time to look for cuts
        self.rng = np.random.default_rng(5)
        self.moves: list[Any] = []

    def seconds(self, pace: Any) -> tuple[np.ndarray, dict[int, float]]:
        each = costs_of_blocks(self.layout, self.cost) * UNIT * np.asarray(pace, float)[self.layout.owner]
        each *= 1 + self.noise * self.rng.standard_normal(len(each))
        return np.bincount(self.layout.owner, each, self.layout.ranks), dict(enumerate(each.tolist()))

    def looks(
        self, count: int, pace: Any, remaining: int = 100_000, timed: bool = False, waiting: float | None = None
    ) -> None:
        """`waiting`: what ranks that wait for the slowest seem to take of what they do; then steps' time is known."""
        for _ in range(count):
            total, each = self.seconds(pace)
            step = 0.0 if waiting is None else float(total.max())
            seen = total if waiting is None else np.where(total < 0.999 * step, waiting * total, total)
            proposal = self.balancer.decide(
                self.layout, RankTimes(seen, each if timed else {}, step, self.steps), remaining
            )
            self.moves.append(proposal)
            if proposal is not None:
                self.layout = proposal.layout

    def longest(self, pace: Any) -> float:
        return float(self.seconds(pace)[0].max())


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "layout", [slabs(BOX, 4), slabs(BOX, 4, 1), cartesian(BOX, (2, 2)), bisection(BOX, [1.0] * 4), blocks(BOX, 4, 3)]
)
def test_a_rank_that_lost_half_its_share_is_relieved(layout: Layout) -> None:
    """Within three looks all the way, on every kind of layout, as near to the best as cuts can be."""
    pace = [1, 1, 2, 1]
    acting = Acting(Balancer(work(), group(4)), layout)
    acting.looks(4, [1, 1, 1, 1])
    assert acting.moves == [None] * 4
    acting.looks(3, pace)
    ideal = BOX.size * UNIT / 3.5
    coarse = 64 / 640 if layout.cuts[0] == (0,) else 0.15 if layout.ndim > 1 and len(layout.cuts[1]) > 1 else 0.02
    assert acting.longest(pace) <= ideal * (1 + 3.5 * coarse)
    (proposal,) = filter(None, acting.moves)
    assert proposal.imbalance > 1.25
    assert proposal.gain == pytest.approx(layout.cells()[2] * UNIT * 2 - acting.longest(pace), rel=1e-6)
    acting.looks(20, pace)
    assert sum(move is not None for move in acting.moves) <= 3  # and then it stays


def test_small_imbalance_is_left_alone_and_a_moderate_one_goes_half_way() -> None:
    acting = Acting(Balancer(work(), group(2)), slabs(BOX, 2))
    acting.looks(20, [1.0, 1.04])
    assert acting.moves == [None] * 20
    acting = Acting(Balancer(work(), group(2)), slabs(BOX, 2))
    acting.looks(2, [1.0, 1.2])
    assert acting.moves[0] is None
    assert acting.moves[1] is not None
    rows = acting.layout.hi[0, 0] - 200
    best = 400 / (1 + 1 / 1.2) - 200
    assert rows == pytest.approx(best / 2, abs=1)
    acting.looks(10, [1.0, 1.2])
    assert acting.longest([1.0, 1.2]) < BOX.size * UNIT / (1 + 1 / 1.2) * 1.06


def test_noise_moves_nothing() -> None:
    acting = Acting(Balancer(work(), group(4)), slabs(BOX, 4), noise=0.03)
    acting.looks(60, [1, 1, 1, 1])
    assert acting.moves == [None] * 60
    hiccup = Acting(Balancer(work(), group(4)), slabs(BOX, 4))
    hiccup.looks(5, [1, 1, 1, 1])
    hiccup.looks(1, [1, 30, 1, 1])
    hiccup.looks(5, [1, 1, 1, 1])
    assert hiccup.moves == [None] * 11


@pytest.mark.parametrize(("pace", "checks"), [(2.0, 2), (1.4, 5)])
def test_large_shifts_are_mended_soon_even_where_patience_has_grown(pace: float, checks: int) -> None:
    acting = Acting(Balancer(work(), group(4)), slabs(BOX, 4))
    acting.looks(6, [1, 1, 1, 1])
    for slow in itertools.islice(itertools.cycle(range(4)), 5):
        acting.looks(30, [pace if rank == slow else 1 for rank in range(4)])
    begun = len(acting.moves)
    acting.looks(10, [pace, 1, 1, 1] if slow else [1, pace, 1, 1])
    first = next(number for number, move in enumerate(acting.moves[begun:], 1) if move is not None)
    assert first <= checks


@pytest.mark.slow
def test_times_that_never_settle_do_not_move_work_for_ever() -> None:
    acting = Acting(Balancer(work(), group(4)), slabs(BOX, 4), noise=0.2)
    acting.looks(300, [1, 1, 1, 1])
    moved = [number for number, move in enumerate(acting.moves) if move is not None]
    assert len(moved) <= 2
    acting.noise = 0.0
    acting.looks(70, [1, 1, 1, 1])
    assert acting.longest([1, 1, 1, 1]) < 1.06 * BOX.size * UNIT / 4


def balanced(seed: int, noise: float, lasting: float, pace: Any, looks: int = 150) -> tuple[int, float, float]:
    """A run of four ranks whose times are noisy, with balancing and without.

    Moves, the seconds that they took, and all seconds over those of a run that moves nothing. A ``lasting`` part of the
    noise of a look remains at the next one. Moves take half as long again as the balancer first thinks.
    """
    rng, steps = np.random.default_rng(seed), 30
    balancer, still = Balancer(work(), group(4, (1e-4, 8e-8))), slabs(BOX, 4)
    layout, disturbed = still, np.zeros(4)
    moves, took, spent, unbalanced = 0, 0.0, 0.0, 0.0
    for look in range(looks):
        disturbed = lasting * disturbed + np.sqrt(1 - lasting**2) * noise * rng.standard_normal(4)
        factor = UNIT * np.exp(disturbed) * np.asarray(pace)
        step = float((layout.cells() * factor).max())
        spent += steps * step
        unbalanced += steps * float((still.cells() * factor).max())
        proposal = balancer.decide(
            layout, RankTimes(layout.cells() * factor, {}, step, steps), (looks - look - 1) * steps
        )
        if proposal is not None:
            layout, moves = proposal.layout, moves + 1
            real = 1.5 * balancer.price.of(step, proposal.sending)
            balancer.price.learn(step, proposal.sending, real)
            balancer._budget.correct(real - proposal.expected)
            took += real
    return moves, took, (spent + took) / unbalanced


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "lasting"), thinned([(0.05, 0.0), (0.2, 0.0), (0.4, 0.0), (0.1, 0.9)], (0.2, 0.0), (0.1, 0.9))
)
def test_noise_costs_less_than_a_hundredth(noise: float, lasting: float) -> None:
    """Whatever the noise, moves that it causes take next to no time, and do not make a run longer."""
    for seed in range(3):
        moves, took, ratio = balanced(seed, noise, lasting, [1.0] * 4)
        assert moves <= 1
        assert ratio < 1.01, (seed, moves, took)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "lasting"),
    thinned(itertools.product([0.02, 0.1, 0.3, 0.6], [0.0, 0.5, 0.9, 0.98]), (0.6, 0.9)),
)
def test_noise_of_any_kind_costs_less_than_a_twentieth(noise: float, lasting: float) -> None:
    """Even where speeds change by a factor of two every ten checks, balancing costs less than a twentieth of a run."""
    ratios = [balanced(seed, noise, lasting, [1.0] * 4)[2] for seed in range(12)]
    assert max(ratios) < 1.05, ratios


@pytest.mark.few(2)
@pytest.mark.parametrize(("pace", "noise", "least"), [(2.0, 0.05, 0.65), (2.0, 0.2, 0.8), (1.2, 0.05, 0.95)])
def test_what_is_no_noise_is_mended_in_spite_of_it(pace: float, noise: float, least: float) -> None:
    for seed in range(3):
        moves, _, ratio = balanced(seed, noise, 0.0, [1.0, 1.0, pace, 1.0])
        assert 1 <= moves <= 3
        assert ratio < least


def test_a_move_has_to_be_paid_by_what_moves_save() -> None:
    budget = Budget()
    for _ in range(20):
        budget.record(0.1, 10)
    assert budget.allows(1e-3, 5.0, 1000, clear=False), "the first one is made on trust"
    budget.begin(4.0)
    budget.correct(1.0)
    assert budget.spent == 5.0
    for _ in range(10):
        budget.record(0.1, 10)  # it saved nothing
    assert budget.saved == 0.0
    assert not budget.allows(0.01, 1.0, 10_000, clear=False)
    assert not budget.allows(0.01, 1.0, 10_000, clear=True), "300 steps so far: it saves 3 s in as many"
    assert budget.allows(0.05, 1.0, 10_000, clear=True)
    budget.begin(0.0)
    for _ in range(10):
        budget.record(0.05, 20)
    assert budget.saved == pytest.approx(10 * 20 * 0.05)
    assert budget.allows(1e-3, 5.0, 1000, clear=False)
    for _ in range(10):
        budget.record(0.5, 20)  # another program came: no fault of the move
    assert budget.saved >= 5.0


def test_moves_that_do_not_help_are_taken_back() -> None:
    """Under a quota who waits is quicker than who works all the time: it seems to have room for more, and has not."""
    acting = Acting(Balancer(work(), group(4)), slabs(BOX, 4))
    paces = [0.99, 1.0, 1.0, 1.0]
    best = acting.longest(paces)
    acting.looks(200, paces, waiting=0.7)
    moved = [number for number, move in enumerate(acting.moves) if move is not None]
    assert 2 <= len(moved) <= 8
    assert moved[1] - moved[0] <= 4, "at once"
    assert acting.longest(paces) < 1.03 * best
    slow = [2.0, 1.0, 1.0, 1.0]
    acting.looks(12, slow, waiting=0.9)
    assert acting.longest(slow) < 1.1 * BOX.size * UNIT / 3.5, "a real loss is still one"


def test_a_loss_while_a_move_is_judged_is_none_of_its() -> None:
    acting = Acting(Balancer(work(), group(4)), slabs(BOX, 4))
    acting.looks(3, [1.6, 1.0, 1.0, 1.0], waiting=1.0)
    (first,) = [move for move in acting.moves if move is not None]
    acting.looks(12, [3.2, 1.0, 1.0, 1.0], waiting=1.0)
    cells = [move.layout.cells()[0] for move in acting.moves if move is not None]
    assert cells[0] == first.layout.cells()[0]
    assert cells == sorted(cells, reverse=True), "never back"
    assert acting.longest([3.2, 1.0, 1.0, 1.0]) < 1.1 * BOX.size * UNIT / (3 + 1 / 3.2)


def test_the_price_of_moves_is_learned() -> None:
    price = MoveCost()
    price.learn(0.06, 0.14, 1.8)
    assert price.of(0.06, 0.14) == pytest.approx(1.8, rel=0.2)
    assert price.of(0.06, 2.2) < 6.0, "one small move does not say that links are as slow"
    for step, sending in ((0.1, 0.1), (0.1, 3.0), (0.2, 0.5), (0.1, 0.01)) * 3:
        price.learn(step, sending, 10.0 * step + 1.5 * sending)
    price.rebind = 0.0
    assert price.of(0.1, 1.0) == pytest.approx(2.5, rel=0.15)
    price.learn(0.1, 1.0, 0.0)  # a clock that stood still says nothing


@pytest.mark.slow
def test_looking_for_cuts_takes_little_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    balancer = Balancer(work(), group(2, (1e-3, 1e-3)))
    searches, search = [0], balancer._search

    def slowly(*words: Any) -> Any:
        searches[0] += 1
        time.sleep(0.02)
        return search(*words)

    monkeypatch.setattr(balancer, "_search", slowly)
    acting = Acting(balancer, slabs(BOX, 2))
    acting.steps = 1
    acting.looks(200, [1.0, 3.0], remaining=30, waiting=1.0)
    spent = 200 * acting.longest([1.0, 3.0])
    assert acting.moves == [None] * 200
    assert 1 <= searches[0] <= 1 + spent * 0.02 / 0.02


def test_moving_has_to_pay() -> None:
    """Half of a rank's cells go through a link of 1 MB/s: nothing is to be had from it in a hundred steps."""
    slow = group(2, (1e-3, 1e-6))
    acting = Acting(Balancer(work(), slow), slabs(BOX, 2))
    acting.looks(6, [1, 3], remaining=30)
    assert acting.moves == [None] * 6
    acting.looks(1, [1, 3], remaining=100_000)
    assert acting.moves[-1] is not None
    assert acting.moves[-1].expected > 0.5
    last = Acting(Balancer(work(), group(2)), slabs(BOX, 2))
    last.looks(6, [1, 3], remaining=0)
    assert last.moves == [None] * 6


def test_declared_costs_and_unequal_ranks() -> None:
    """Behind a mask nothing is done; a group known to be unequal is not balanced again."""
    cost = np.ones((400, 640))
    cost[100:300] = 0
    u = mg.Field("u", mg.Grid((400, 640)))
    weights = weights_of(mg.Model("masked", u.grid, (u,), mg.Program(), cost=cost))
    acting = Acting(Balancer(work(weights=weights), group(2)), slabs(BOX, 2, 0, [3, 1]), weights)
    acting.looks(3, [1, 1])
    assert costs_of_blocks(acting.layout, weights) == pytest.approx([64_000, 64_000], rel=0.02)
    uneven = group(2, speeds=(Speed.constant(1e7), Speed.constant(2.5e6)), speed_of=np.array([0, 1]))
    known = Acting(Balancer(work(), uneven), slabs(BOX, 2, 0, [4, 1]))
    known.looks(5, [1, 4])
    assert known.moves == [None] * 5


@pytest.mark.slow
def test_dear_cells_are_found_by_the_times_of_blocks() -> None:
    """Rows 1 to 100 cost eight times as much, and nobody said so."""
    cost = np.ones((400, 640))
    cost[:100] = 8
    true = Weights(BOX, (1, 1), cost)
    ideal = cost.sum() * UNIT / 4
    acting = Acting(Balancer(work(), group(4), cause="cells"), blocks(BOX, 4, 4), true)
    acting.looks(40, [1] * 4, timed=True)
    assert acting.longest([1] * 4) < 1.25 * ideal
    assert Acting(Balancer(work(), group(4)), blocks(BOX, 4, 4), true).longest([1] * 4) > 1.6 * ideal


def test_nobody_gets_more_than_memory_holds() -> None:
    small = group(2, memory=np.array([1 << 40, int(0.55 * BOX.size * 16 / 0.9)]))
    acting = Acting(Balancer(work(), small), slabs(BOX, 2))
    acting.looks(8, [5, 1])
    assert 0.53 < acting.layout.cells()[1] / BOX.size <= 0.55  # alone it would be 5/6


def test_sweeps_keep_a_layout_that_they_can_pass_through() -> None:
    acting = Acting(Balancer(work(swept=(0,)), group(4)), cartesian(BOX, (2, 2)))
    acting.looks(6, [1, 1, 1, 3])
    assert acting.moves == [None] * 6
    rows = Acting(Balancer(work(swept=(0,)), group(4)), slabs(BOX, 4))
    rows.looks(6, [1, 1, 1, 3])
    assert any(rows.moves)


@pytest.mark.parametrize("ranks", [1, 3])
def test_idle_ranks_stay_idle(ranks: int) -> None:
    acting = Acting(Balancer(work(), group(ranks + 1)), slabs(BOX, ranks + 1, 0, [*[1] * ranks, 0]))
    acting.looks(5, [2] + [1] * ranks)
    assert acting.layout.cells()[-1] == 0
    assert (ranks == 1) == (not any(acting.moves))


def test_what_a_balancer_refuses() -> None:
    for wrong in (0, -1, 1.5, True, "often"):
        with pytest.raises(LayoutError, match='give 1 or more, or "auto"'):
            Balancer(work(), group(2), wrong)  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match="tolerance"):
        Balancer(work(), group(2), tolerance=0.9)
    u = mg.Field("u", mg.Grid((8, 64)))
    with (
        mg.Engine({u.grid: Layout.single(u.grid.box, 1)}) as engine,
        pytest.raises(LayoutError, match="for this model"),
    ):
        Balancer(work(), group(1)).start(mg.Model("other", u.grid, (u,), mg.Program()), engine)


def test_cuts_lie_on_whole_coarse_cells() -> None:
    fine, coarse = mg.Grid((40, 128)), mg.Grid((10, 64), label="coarse")
    model = mg.Model("two", fine, (mg.Field("u", fine), mg.Field("c", coarse)), mg.Program())
    assert work_of(model).granule == (4, 2)


# Runs ----------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_run_is_balanced_as_it_goes() -> None:
    """Looks about five times a second; frames, observables and a condition to stop at see the same as ever."""
    layout = blocks(slow_ranks.GRID.box, 2, 2)
    until = mg.Stop(when="energy < 0")

    def run(comm: Comm, look: str | None) -> tuple[Any, list[Any]]:
        seen: list[Any] = []
        series = Series(lambda step, time, values: seen.append((step, dict(values))), (18, 11))
        return slow_ranks.run(comm, 36, 4.0, look, layout, observers=[series], until=until), seen

    still, before = mg.run_virtual(2, lambda comm: run(comm, None))[0]
    balanced, after = mg.run_virtual(2, lambda comm: run(comm, "auto"))[0]
    assert balanced["digest"] == still["digest"]
    assert before == after
    assert [step for step, _ in before] == [0, 11, 18, 22, 33, 36]
    assert balanced["decisions"]
    assert balanced["cells"][0] > 1.4 * still["cells"][0]
