"""Cuts that move: best ones against all others, trees of cuts of all kinds of layouts, what moving them sends."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.plan.recut import costs_of_blocks, divide, moved_cells, reassign, recut
from minga.plan.work.weights import Weights
from minga.plan.work.work import Work
from minga.space.box import Box
from minga.space.cuts import bisection, blocks, cartesian, slabs
from minga.space.layout import Layout


def work(domain: Box, granule: tuple[int, ...], least: tuple[int, ...] | None = None) -> Work:
    ndim = domain.ndim
    return Work("w", "k", domain, (False,) * ndim, granule, least or (1,) * ndim, 8, ())


@given(st.data())
@settings(max_examples=60)
def test_rows_are_divided_best(data: st.DataObject) -> None:
    """No other cut at the same places has a smaller largest part."""
    costs = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=12))
    shares = np.array(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)), float)
    step = data.draw(st.integers(1, 3))
    ends = np.unique([*range(0, len(costs), step), len(costs)])
    below = np.concatenate([[0.0], np.cumsum(costs)])[ends]
    found = divide(ends, below, shares, [0] * len(shares))
    assert found is not None
    assert set(found) <= set(ends)
    best = min(
        (np.diff(below[[0, *cut, len(ends) - 1]]) / shares).max()
        for cut in itertools.combinations_with_replacement(range(len(ends)), len(shares) - 1)
    )
    assert (np.diff(below[np.searchsorted(ends, found)]) / shares).max() == pytest.approx(best)


@given(st.data())
@settings(max_examples=60)
def test_parts_are_never_too_narrow_and_still_best(data: st.DataObject) -> None:
    costs = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=12))
    least = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    shares = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(least), max_size=len(least))), float)
    below = np.concatenate([[0.0], np.cumsum(costs)])
    found = divide(np.arange(len(costs) + 1), below, shares, least)
    cuts = itertools.combinations_with_replacement(range(len(costs) + 1), len(least) - 1)
    allowed = [ends for cut in cuts if (np.diff(ends := np.array([0, *cut, len(costs)])) >= least).all()]
    assert (found is None) == (not allowed)
    if found is not None:
        assert (np.diff(found) >= least).all()
        best = min((np.diff(below[ends]) / shares).max() for ends in allowed)
        assert (np.diff(below[found]) / shares).max() == pytest.approx(best)


def test_nobody_has_a_share_or_only_some() -> None:
    below = np.arange(5.0)
    assert divide(np.arange(5), below, np.zeros(2), [1, 1]) is None
    found = divide(np.arange(5), below, np.array([0.0, 1.0]), [1, 1])
    assert found is not None
    assert found.tolist() == [0, 1, 4]


BOX = Box((0, 0), (60, 640))
LAYOUTS: dict[str, Layout] = {
    "slabs": slabs(BOX, 4),
    "inner slabs": slabs(BOX, 3, 1),
    "cartesian": cartesian(BOX, (2, 3)),
    "bisection": bisection(BOX, [1.0, 2.0, 0.0, 1.0, 3.0]),
    "blocks": blocks(BOX, 3, 2),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_cuts_follow_shares(name: str) -> None:
    layout = LAYOUTS[name]
    rng = np.random.default_rng(3)
    shares = rng.uniform(1, 2, len(layout))
    moved = recut(layout, work(BOX, (1, 64), (2, 64)), shares)
    assert moved is not None
    moved.check()
    assert moved.aligned()
    assert (moved.owner == layout.owner).all()
    assert ((moved.hi - moved.lo) >= (2, 64)).all()
    # Runs of 64 cells of 640 are coarse; the other axis is not.
    cost = costs_of_blocks(moved, None) / BOX.size
    assert (cost / (shares / shares.sum())).max() < (1.25 if name != "slabs" else 1.05)
    again = recut(moved, work(BOX, (1, 64), (2, 64)), cost)
    assert again == moved  # a layout in proportion stays as it is


def test_masked_cells_cost_nothing() -> None:
    cost = np.ones((60, 10))
    cost[:30] = 0
    weights = Weights(BOX, (1, 64), cost * 64)
    layout = slabs(BOX, 2)
    moved = recut(layout, work(BOX, (1, 64)), np.ones(2), weights)
    assert moved is not None
    assert moved.lo[:, 0].tolist() == [0, 45]
    assert costs_of_blocks(moved, weights).tolist() == [15 * 640, 15 * 640]
    flat = cartesian(BOX, (1, 2))
    assert recut(flat, work(BOX, (1, 64)), np.array([3.0, 1.0]), weights).hi[0, 1] in (448, 512)  # type: ignore[union-attr]


def test_layouts_that_no_plane_divides() -> None:
    """Five boxes around each other: their cuts cannot move, and each rank has one."""
    boxes = [Box((0, 0), (1, 2)), Box((0, 2), (2, 3)), Box((2, 1), (3, 3)), Box((1, 0), (3, 1)), Box((1, 1), (2, 2))]
    pinwheel = Layout.from_boxes(Box((0, 0), (3, 3)), boxes, range(5), 5)
    assert recut(pinwheel, work(pinwheel.domain, (1, 1)), np.ones(5)) is None
    assert reassign(pinwheel, np.ones(5), np.ones(5)) is None
    two = Layout.from_boxes(Box((0, 0), (3, 3)), boxes, [1, 1, 0, 0, 0], 2)
    moved = reassign(two, np.array([1.0, 3.0]), costs_of_blocks(two, None))
    assert moved is not None
    assert moved.owner.tolist() == [1, 1, 1, 1, 0]  # 8/3 and 1; with three blocks rank 0 would have 3
    too_fine = recut(slabs(BOX, 40), work(BOX, (1, 64), (2, 64)), np.ones(40))
    assert too_fine is None  # 40 slabs of at least two rows are more than 60


def test_who_sends_what() -> None:
    old, new = slabs(BOX, 3), slabs(BOX, 3, 0, [1, 2, 1])
    table: list[Any] = [column.tolist() for column in moved_cells(old, new)]
    assert table == [[0, 2], [1, 1], [5 * 640, 5 * 640]]
    assert [len(column) for column in moved_cells(old, old)] == [0, 0, 0]
