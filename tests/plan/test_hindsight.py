"""Regret of a balancer in hindsight: the best fixed cut, found again by trying all cuts."""

from __future__ import annotations

import numpy as np
import pytest

from minga.plan.hindsight import Hindsight


def test_equal_prices_have_no_regret_with_equal_parts() -> None:
    record = Hindsight()
    for _ in range(5):
        record.record(10, np.array([2.0, 2.0]), *[np.array([100.0, 100.0])] * 2)
    regret = record.regret(moving=3.0)
    assert regret is not None
    assert regret.steps == 50
    assert (regret.spent, regret.kept, regret.best) == pytest.approx((100.0, 100.0, 100.0))
    assert regret.share == pytest.approx(0.03)


@pytest.mark.slow
@pytest.mark.parametrize("intervals", [3, 300])
def test_the_best_fixed_cut_is_that_of_a_search(intervals: int) -> None:
    """Two ranks whose speeds change: all cuts are tried, with more intervals than are kept, too."""
    rng = np.random.default_rng(3)
    parts = 3
    speeds = np.repeat(1 + rng.random((parts, 2)), intervals // parts, axis=0)
    record, cost = Hindsight(), np.array([60.0, 40.0])
    for price in speeds:
        record.record(2, price * cost, cost, cost)
    regret = record.regret()
    assert regret is not None
    shares = np.linspace(0, 1, 20001)
    both = np.stack([shares, 1 - shares], axis=1)
    tried = min(2 * 100 * (speeds * share).max(axis=1).sum() for share in both)
    assert regret.best == pytest.approx(tried, rel=2e-3 if intervals > 128 else 1e-4)
    assert regret.kept == pytest.approx(2 * (speeds * cost).max(axis=1).sum(), rel=0.02)
    assert regret.share >= -1e-3


def test_a_cut_that_follows_may_be_better_than_any_fixed_one() -> None:
    record = Hindsight()
    for prices, cost in (([1.0, 3.0], [75.0, 25.0]), ([3.0, 1.0], [25.0, 75.0])):
        record.record(10, np.array(prices) * cost, np.array(cost), np.array([75.0, 25.0]))
    regret = record.regret(moving=50.0)
    assert regret is not None
    assert regret.spent == pytest.approx(1500.0)
    assert regret.best == pytest.approx(3000.0)
    assert regret.share == pytest.approx(1550 / 3000 - 1)


def test_ranks_without_work_and_times_are_left_out() -> None:
    record = Hindsight()
    assert record.regret() is None
    record.record(0, np.ones(2), np.ones(2), np.ones(2))
    record.record(5, np.zeros(2), np.ones(2), np.ones(2))
    assert record.regret() is None
    record.record(5, np.array([1.0, 0.0, 1.0]), *[np.array([10.0, 0.0, 10.0])] * 2)
    regret = record.regret()
    assert regret is not None
    assert regret.best == pytest.approx(5 * 20 * 0.1 / 3)
    assert regret.as_dict()["regret"] == pytest.approx(0.5)


def test_work_that_grows_is_no_regret() -> None:
    """Twice the work at the same speeds, as of a mask that fills: the first cut stays the best one."""
    record = Hindsight()
    for work in (1.0, 2.0):
        cost = work * np.array([50.0, 50.0])
        record.record(10, 0.01 * cost, cost, cost)
    regret = record.regret()
    assert regret is not None
    assert (regret.spent, regret.kept, regret.best) == pytest.approx((15.0, 15.0, 15.0))
