"""Order statistics of times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minga.network.measuring.statistics import median_interval, modes, summary


@pytest.mark.parametrize(("count", "rank"), [(6, 0), (10, 1), (20, 5), (30, 9), (100, 39), (1001, 468)])
def test_ranks_of_the_median_are_the_tabulated_ones(count: int, rank: int) -> None:
    low, high = median_interval(np.arange(count, dtype=float))
    assert (low, high) == (rank, count - 1 - rank)


def test_few_values_say_nothing_about_the_median() -> None:
    assert median_interval(np.arange(5.0)) == (-math.inf, math.inf)


def test_interval_covers_the_median_as_often_as_it_says() -> None:
    draws = np.sort(np.random.default_rng(3).exponential(size=(2000, 25)), axis=1)
    inside = [low <= math.log(2) <= high for low, high in map(median_interval, draws)]
    assert 0.94 < np.mean(inside) < 0.99


def test_a_second_mode_is_found_and_an_outlier_is_none() -> None:
    generator = np.random.default_rng(1)
    quick = 1e-5 * (1 + 0.02 * generator.standard_normal(80))
    tick = 4e-3 * (1 + 0.02 * generator.standard_normal(20))
    (first, part), (second, rest) = modes(np.sort(np.r_[quick, tick]))
    assert first == pytest.approx(1e-5, rel=0.01)
    assert second == pytest.approx(4e-3, rel=0.02)
    assert (part, rest) == (0.8, 0.2)
    assert len(modes(np.sort(np.r_[quick, tick[:2]]))) == 1


def test_lost_messages_are_counted_and_outliers_classified() -> None:
    found = summary([1e-3] * 18 + [1e-2, 1e-2, float("nan")])
    assert (found.count, found.lost, found.outliers) == (20, 1, 0.1)
    assert (found.least, found.median, found.most) == (1e-3, 1e-3, 1e-2)
    with pytest.raises(ValueError, match="lost"):
        summary([float("nan")])
