"""Cuts of a row of mesh points, and the weights that decide them."""

from __future__ import annotations

import itertools
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.errors import CaseError, LayoutError
from minga.studies.bounanos.costs import ABSORPTION, ROWS, SUBCYCLES, RowCosts, synthetic_costs
from minga.studies.bounanos.cuts import equal, even, fullest, ideal_speedup, loads
from minga.studies.bounanos.weights import area_ratio, mean_cost, paper_area, simpson

HEAVY = np.ones(ROWS)
HEAVY[slice(*ABSORPTION)] = 10.0

IDEAL = {
    2: ("1.46", "2.00"), 4: ("1.89", "3.97"), 8: ("2.22", "7.95"), 15: ("2.68", "14.8"), 16: ("3.95", "15.9"),
    24: ("3.82", "23.8"), 37: ("5.92", "36.3"), 40: ("6.30", "19.5"), 48: ("7.63", "23.8"), 55: ("7.99", "26.4"),
    74: ("10.6", "36.3"), 111: ("14.4", "32.6"),
}  # fmt: skip
"""Ideal speed-ups on 37 nodes for absorption rows that weigh 10, equal and balanced cuts."""


@pytest.mark.parametrize("segments", IDEAL)
def test_the_ideal_table(segments: int) -> None:
    """To the digit; the table was rounded to two decimals first."""
    for cut, expected in zip((equal(ROWS, segments), fullest(HEAVY, segments)), IDEAL[segments], strict=True):
        rounded = Decimal(f"{ideal_speedup(HEAVY, cut, 37):.2f}").quantize(Decimal(expected), ROUND_HALF_UP)
        assert str(rounded) == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.data())
def test_cuts_are_optimal(weights: list[int], data: st.DataObject) -> None:
    """Against all cuts there are."""
    segments = data.draw(st.integers(1, len(weights)))
    inside = itertools.combinations(range(1, len(weights)), segments - 1)
    best = min(max(sum(weights[a:b]) for a, b in itertools.pairwise((0, *places, len(weights)))) for places in inside)
    for cut in (fullest(weights, segments), even([w + 1e-9 for w in weights], segments)):
        assert cut[0] == 0
        assert cut[-1] == len(weights)
        assert (np.diff(cut) >= 0).all()
        assert loads(weights, cut).max() == best


@pytest.mark.parametrize("cut", [lambda n: equal(10, n), lambda n: fullest(np.ones(10), n)])
@pytest.mark.parametrize("segments", [0, 11])
def test_impossible_cuts_are_refused(cut: object, segments: int) -> None:
    with pytest.raises(LayoutError, match=f"10 rows cannot be cut into {segments} segments"):
        cut(segments)  # type: ignore[operator]


def test_simpson_is_exact_for_cubics() -> None:
    x = np.linspace(0.0, 2.0, 5)
    assert simpson(x**3 - x, 2.0) == pytest.approx(2.0, rel=1e-14)


@pytest.mark.parametrize(("growth", "area", "mean"), [(2.0, 3.2, 1.27), (4.0, 13.7, 2.55), (6.0, 86.9, 9.3)])
def test_area_weights_are_not_mean_costs(growth: float, area: float, mean: float) -> None:
    """The fit's area depends a little on how densely it is sampled; the means are exact."""
    costs = synthetic_costs(growth=growth, samples=400)
    assert paper_area(costs, ABSORPTION).max() == pytest.approx(area, rel=0.07)
    assert round(mean_cost(costs).max(), 2 if growth < 6 else 1) == mean
    assert mean_cost(costs).min() == 1.0


def test_synthetic_costs_are_the_law() -> None:
    costs = synthetic_costs(growth=4.0, samples=200)
    assert costs.serial == pytest.approx(54 * 60.0, rel=1e-12)
    phi = costs.seconds[:, SUBCYCLES.index("phi"), 1250] / costs.seconds[0, SUBCYCLES.index("phi"), 0]
    assert (phi[:100] == phi[0]).all()
    assert np.log(phi[-1]) == pytest.approx(4.0 * (1 - 0.5 / 100), rel=1e-12)
    assert phi.mean() == pytest.approx((1 + (np.exp(4.0) - 1) / 4.0) / 2, rel=1e-3)
    assert (costs.seconds[:, SUBCYCLES.index("reset")] == 0.0).all()
    ends = equal(ROWS, 7)
    assert costs.of_segments(150, ends).sum() == pytest.approx(costs.seconds[150].sum(), rel=1e-12)


def test_senseless_costs_are_refused() -> None:
    with pytest.raises(CaseError, match="shape"):
        RowCosts(np.ones((3, 4)), 10)
    with pytest.raises(CaseError, match="not negative"):
        RowCosts(-np.ones((3, 4, 5)), 10)
    with pytest.raises(CaseError, match="degree 5"):
        area_ratio(np.linspace(0, 1, 5), np.ones(5))
    with pytest.raises(CaseError, match="no area"):
        area_ratio(np.linspace(0, 1, 50), -np.ones(50))
