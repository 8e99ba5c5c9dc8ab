"""Layouts that every rank holds whole, and boxes of points that are brought to other fields."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.errors import LayoutError
from minga.space import cuts
from minga.space.box import Box
from minga.space.grid import Grid
from minga.space.layout import Layout
from minga.space.ownership import Ownership
from minga.space.transfer import RankTransfer, halo_transfer, move_transfer, points_transfer

NOTHING = -1


def test_every_rank_owns_everything() -> None:
    domain = Box((0, 0), (3, 5))
    layout = Layout.everywhere(domain, 4)
    layout.check()
    assert layout.replicated
    assert len(layout) == 4
    assert [layout.blocks_of(rank) for rank in range(4)] == [[0], [1], [2], [3]]
    assert {layout.box(block) for block in range(4)} == {domain}
    assert layout.cells().tolist() == [15] * 4
    assert layout.overlapping(Box((1, 1), (2, 2))).tolist() == [0, 1, 2, 3]
    assert layout.aligned(64)
    assert layout.coarsen(2) == Layout.everywhere(Box((0, 0), (2, 3)), 4)
    assert layout != cuts.slabs(domain, 4, 1, granule=1)
    assert not cuts.slabs(domain, 4, 1, granule=1).replicated


def test_other_layouts_hold_every_cell_once() -> None:
    domain = Box((0,), (6,))
    twice = ([[0], [0]], [[6], [6]], [0, 1])
    with pytest.raises(LayoutError, match="exactly one block"):
        Layout(domain, 2, *map(np.array, twice))
    with pytest.raises(LayoutError, match="everywhere"):
        Layout(domain, 2, np.array([[0], [3]]), np.array([[3], [6]]), np.array([0, 1]), replicated=True)
    with pytest.raises(LayoutError, match="every rank"):
        Layout.everywhere(domain, 2).gather(1)


@st.composite
def layouts(draw: st.DrawFn, domain: Box, ranks: int) -> Layout:
    match draw(st.sampled_from(["slabs", "bisection", "blocks", "single", "everywhere"])):
        case "slabs":
            return cuts.slabs(domain, ranks, draw(st.integers(0, domain.ndim - 1)), granule=1)
        case "bisection":
            return cuts.bisection(domain, draw(st.lists(st.integers(0, 4), min_size=ranks, max_size=ranks).filter(any)))
        case "blocks":
            return cuts.blocks(domain, ranks, draw(st.integers(1, 3)), granule=1)
        case "single":
            return Layout.single(domain, ranks, draw(st.integers(0, ranks - 1)))
        case _:
            return Layout.everywhere(domain, ranks)


@st.composite
def moves(draw: st.DrawFn) -> tuple[Ownership, Ownership, Box, int]:
    """A field, another one, and a box of the first that fits into the second."""
    ndim, ranks = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    shape = draw(st.tuples(*[st.integers(1, 7)] * ndim))
    centre = draw(st.tuples(*[st.integers(0, 1)] * ndim))
    grid = Grid(shape, periodic=draw(st.tuples(*[st.booleans()] * ndim)))
    old = Ownership.of(grid, draw(layouts(grid.box, ranks)), centre)
    lo = draw(st.tuples(*[st.integers(0, n - 1) for n in old.points.shape]))
    hi = tuple(draw(st.integers(a, n)) for a, n in zip(lo, old.points.shape, strict=True))
    box = Box(lo, hi)
    room = tuple(n + draw(st.integers(0, 2)) for n in box.shape)
    other = Grid(tuple(max(1, n) for n in room))
    return old, Ownership.of(other, draw(layouts(other.box, ranks))), box, ranks


def run(old: Ownership, new: Ownership, transfers: list[RankTransfer], source: np.ndarray) -> list[np.ndarray]:
    """Every block of the target after all ranks did their part; each message is used once, and no point twice."""
    blocks = [np.full(new.owned(b).shape, NOTHING) for b in range(len(new.layout))]
    mail = {}
    for transfer in transfers:
        for message in transfer.sends:
            for copy in message.copies:
                assert old.layout.owner[copy.source] == transfer.rank
                assert old.owned(copy.source).contains(copy.source_box)
            mail[transfer.rank, message.peer] = message
    for transfer in transfers:
        for message in transfer.receives:
            assert mail.pop((message.peer, transfer.rank)) == message.__class__(
                transfer.rank, message.copies, message.offsets, message.cells
            )
        for copy in (*transfer.local, *(c for m in transfer.receives for c in m.copies)):
            assert new.layout.owner[copy.target] == transfer.rank
            target = blocks[copy.target][copy.target_box.slices(new.owned(copy.target).lo)]
            assert (target == NOTHING).all()
            target[...] = source[copy.source_box.slices(old.points.lo)]
    assert not mail
    return blocks


@pytest.mark.slow
@given(moves())
@settings(max_examples=150, deadline=None)
def test_a_box_arrives_once_on_every_rank_that_holds_it(move: tuple[Ownership, Ownership, Box, int]) -> None:
    old, new, box, ranks = move
    source = np.arange(old.points.size).reshape(old.points.shape)
    transfers = [points_transfer(old, new, rank, box) for rank in range(ranks)]
    expected = np.full(new.points.shape, NOTHING)
    expected[tuple(slice(0, n) for n in box.shape)] = source[box.slices(old.points.lo)]
    for number, block in enumerate(run(old, new, transfers, source)):
        np.testing.assert_array_equal(block, expected[new.owned(number).slices(new.points.lo)])
    if new.layout.replicated:
        for transfer in transfers:
            # What leaves a rank is the same for all others.
            payloads = {tuple((c.source, c.source_box) for c in m.copies) for m in transfer.sends}
            assert len(payloads) <= 1
            assert len(transfer.sends) in (0, ranks - 1)


def test_what_is_everywhere_needs_no_messages() -> None:
    grid = Grid((6, 4), periodic=True)
    everywhere, rows = Layout.everywhere(grid.box, 3), cuts.slabs(grid.box, 3)
    for rank in range(3):
        moved = move_transfer(everywhere, rows, grid, rank)
        assert (moved.sends, moved.receives) == ((), ())
        assert sum(copy.source_box.size for copy in moved.local) == 8
        halo = halo_transfer(grid, everywhere, rank, 1, 1)
        assert (halo.sends, halo.receives) == ((), ())
        assert {(copy.source, copy.target) for copy in halo.local} == {(rank, rank)}
        assert sum(copy.source_box.size for copy in halo.local) == 8 * 6 - 6 * 4
