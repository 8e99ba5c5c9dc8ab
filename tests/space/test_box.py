"""Boxes against sets of indices."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minga.errors import LayoutError
from minga.space.box import Box, Point, directions


def cells(box: Box) -> set[Point]:
    return set(itertools.product(*(range(low, high) for low, high in zip(box.lo, box.hi, strict=True))))


def boxes(ndim: int) -> st.SearchStrategy[Box]:
    ends = st.tuples(*[st.integers(-4, 5)] * ndim)
    return st.builds(Box, ends, ends)


two_boxes = st.integers(1, 3).flatmap(lambda ndim: st.tuples(boxes(ndim), boxes(ndim)))


def test_a_box_says_what_it_is():
    box = Box((0, 2), (5, 7))
    assert str(box) == repr(box) == "[0:5, 2:7]"
    assert (box.ndim, box.shape, box.size, box.empty) == (2, (5, 5), 25, False)
    assert Box.of((3, 4)) == Box((0, 0), (3, 4))
    assert hash(box) == hash(Box((0, 2), (5, 7)))
    with pytest.raises(LayoutError, match="as many low as high"):
        Box((0,), (1, 2))


@given(two_boxes)
def test_set_operations(pair):
    a, b = pair
    assert a.size == len(cells(a))
    assert a.empty == (not cells(a))
    assert cells(a & b) == cells(a) & cells(b)
    assert cells((a & b).shift([3] * a.ndim).shift([-3] * a.ndim)) == cells(a) & cells(b)
    assert a.contains(b) == (cells(b) <= cells(a))
    hull = a.hull(b)
    assert hull.contains(a)
    assert hull.contains(b)
    if not a.empty and not b.empty:
        corners = np.array([*cells(a), *cells(b)])
        assert hull == Box(tuple(corners.min(0).tolist()), tuple((corners.max(0) + 1).tolist()))


@given(two_boxes)
def test_subtract_gives_few_disjoint_pieces(pair):
    a, b = pair
    pieces = a.subtract(b)
    assert len(pieces) <= 2 * a.ndim
    assert not any(p.empty for p in pieces)
    assert sum(p.size for p in pieces) == len(cells(a) - cells(b))
    assert set().union(*map(cells, pieces)) == cells(a) - cells(b)


@given(boxes(2), st.tuples(*[st.integers(1, 4)] * 2))
def test_coarse_cells_live_where_their_first_fine_cell_is(box, factor):
    coarse = box.coarsen(factor)
    assert cells(coarse) == {
        (i, j)
        for i in range(-6, 7)
        for j in range(-6, 7)
        if box.contains(Box((i * factor[0], j * factor[1]), (i * factor[0] + 1, j * factor[1] + 1)))
    }
    assert box.coarsen(1) == box
    assert box.refine(factor).coarsen(factor) == box
    assert box.refine(2) == Box((2 * box.lo[0], 2 * box.lo[1]), (2 * box.hi[0], 2 * box.hi[1]))


def test_grow_takes_one_width_or_one_an_axis():
    box = Box((2, 3), (4, 6))
    assert box.grow(1, 2) == Box((1, 2), (6, 8))
    assert box.grow((1, 0), (0, 2)) == Box((1, 3), (4, 8))
    assert box.grow(-1, -1) == Box((3, 4), (3, 5))
    assert box.grow(-1, -1).empty


def test_slices_pick_the_box_out_of_an_array():
    array = np.arange(100).reshape(10, 10)
    box = Box((3, 5), (5, 8))
    assert np.array_equal(array[box.slices((0, 0))], array[3:5, 5:8])
    assert np.array_equal(array[box.slices((1, 2))], array[2:4, 3:6])
    with pytest.raises(LayoutError, match="begins below"):
        box.slices((4, 0))


def test_directions_are_all_neighbours_in_order():
    assert directions(1, False) == [(-1,), (1,)]
    assert directions(2, True) == [(-1, 0), (0, -1), (0, 1), (1, 0)]
    for ndim in (1, 2, 3, 4):
        assert len(directions(ndim, False)) == 3**ndim - 1
        assert len(directions(ndim, True)) == 2 * ndim
        assert directions(ndim, False) == sorted(set(directions(ndim, False)))
