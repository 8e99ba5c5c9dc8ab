"""Cost profiles against the paper's procedure and against sums that can be done by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from minga.errors import LayoutError
from minga.plan.work.profile import equal_areas, fit_profile, weights_of_profile, weights_of_rows
from minga.space.box import Box

ITERATIONS = 20_000
EVERY = 200
"""Iterations from one sample to the next, as in the paper."""


def growing(g: float) -> tuple[np.ndarray, np.ndarray]:
    """Times of a sub-cycle that is constant in the first half of a run, and grows to exp(g) in the second."""
    k = np.arange(0, ITERATIONS + 1, EVERY)
    return k, np.exp(g * np.maximum(k / (ITERATIONS / 2) - 1, 0))


@pytest.mark.parametrize(
    ("g", "ratio", "mean", "row", "error"),
    [(2.0, 3.2, 2.1, 1.27, 0.04), (4.0, 13.7, 7.2, 2.55, 0.24), (6.0, 86.9, 34.0, 9.3, 4.3)],
)
def test_a_fifth_degree_polynomial_as_in_the_paper(
    g: float, ratio: float, mean: float, row: float, error: float
) -> None:
    """Area ratio, mean cost, and the weight of a row when one of four equal sub-cycles grows."""
    k, times = growing(g)
    profile = fit_profile(k, times)
    assert profile.area_ratio(ITERATIONS / 2) == pytest.approx(
        ratio, rel=0.12 if g > 5 else 0.03
    )  # steep curves are fitted poorly
    found = profile.mean_over(times[0])
    assert found == pytest.approx(mean, rel=0.03)
    assert (3 + found) / 4 == pytest.approx(row, rel=0.03)
    assert profile.error == pytest.approx(error, rel=0.15)


def test_simpson_is_exact_up_to_degree_three_and_nears_the_integral() -> None:
    x = np.linspace(-1, 3, 30)
    cubic = fit_profile(x, 2 * x**3 - x + 1, 3)
    assert cubic.simpson(-1, 3, 2) == pytest.approx(cubic.area(-1, 3)) == pytest.approx(40 - 4 + 4)
    fifth = fit_profile(x, x**5)
    errors = [abs(fifth.simpson(-1, 3, n) - fifth.area(-1, 3)) for n in (4, 8, 16)]
    assert fifth.area(-1, 3) == pytest.approx((3**6 - 1) / 6)
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([16, 16], rel=0.01)  # order 4
    with pytest.raises(LayoutError, match="even number of intervals, found 3"):
        cubic.simpson(0, 1, 3)


def absorption(weight: float) -> np.ndarray:
    """The 1820 rows of the paper's Table 1: those of the absorption layer are as dear as `weight` others."""
    costs = np.ones(1820)
    costs[1200:1320] = weight
    return costs


EQUAL = {2: 1.46, 4: 1.89, 8: 2.22, 15: 2.68, 16: 3.95, 24: 3.82, 37: 5.92}
BALANCED = {2: 2.00, 4: 3.97, 8: 7.95, 15: 14.8, 16: 15.9, 24: 23.8, 37: 36.3}


@pytest.mark.parametrize("parts", EQUAL)
def test_equal_areas_make_the_photodiode_scale(parts: int) -> None:
    """Speed-ups of computing alone on one node for each part: equal rows do not scale, equal areas do."""
    costs = absorption(10.0)
    below = np.concatenate([[0], np.cumsum(costs)])

    def speed_up(ends: np.ndarray) -> float:
        return float(costs.sum() / np.diff(below[ends]).max())

    rows = np.floor(np.arange(parts + 1) * 1820 / parts + 0.5).astype(int)
    assert speed_up(rows) == pytest.approx(EQUAL[parts], rel=0.015)
    assert speed_up(equal_areas(costs, parts)) >= BALANCED[parts] * 0.995


def test_weights_of_rows() -> None:
    domain = Box((0, 0), (6, 10))
    costs = [0.0, 1.0, 2.0, 4.0, 2.0, 1.0]
    weights = weights_of_rows(domain, 0, costs)
    assert weights.along(0).tolist() == [10 * cost for cost in costs]
    assert weights.of(np.array([[1, 2]]), np.array([[4, 7]]))[0] == pytest.approx(5 * 7.0)
    line = fit_profile(np.arange(6) + 0.5, 3 * (np.arange(6) + 0.5) - 4, 1)
    assert weights_of_profile(domain, 0, line).along(0) == pytest.approx([0.0, 5, 35, 65, 95, 125], abs=1e-9)
    assert equal_areas(costs, 2, [1, 4]).tolist() == [0, 2, 6]  # 1 and 9: 9/4 is less than 3 for the first


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: fit_profile([1, 2, 3], [1, 2, 3]), "needs 6 samples, found 3"),
        (lambda: fit_profile([1, 2], [1, np.nan], 1), "one finite cost"),
        (lambda: fit_profile([1, 2], [1], 1), "one finite cost"),
        (lambda: equal_areas([1, 1], 3), "2 rows cannot be cut into 3 parts"),
        (lambda: weights_of_rows(Box((0,), (3,)), 0, [1, -1, 1]), "not negative"),
        (lambda: weights_of_rows(Box((0,), (3,)), 0, [1, 1]), "has 3 rows"),
    ],
)
def test_what_makes_no_profile(wrong: object, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        wrong()  # type: ignore[operator]
