"""Transfers: run them on virtual ranks with NumPy arrays and compare every cell with the global array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minga.errors import LayoutError
from minga.space import cuts
from minga.space.box import Box, Point, directions
from minga.space.grid import Grid
from minga.space.layout import Layout
from minga.space.ownership import Ownership, owned
from minga.space.transfer import (
    Copy,
    RankTransfer,
    for_rank,
    halo_boxes,
    halo_transfer,
    move_transfer,
    plan_copies,
)

NOTHING = -1  # in a cell that nobody wrote


@dataclass(frozen=True)
class Case:
    """A field on a layout."""

    grid: Grid
    layout: Layout
    centre: Point
    axes: tuple[int, ...]
    on: Box | None
    order: tuple[int, ...]  # in which crossings of the shifted torus are undone

    @property
    def kind(self) -> dict[str, object]:
        return {"centre": self.centre, "axes": self.axes, "on": self.on}

    @property
    def points(self) -> Ownership:
        return Ownership.of(self.grid, self.layout, self.centre, self.axes, self.on)


@st.composite
def grids(draw: st.DrawFn) -> tuple[Grid, tuple[int, ...]]:
    ndim = draw(st.integers(1, 3))
    shape = draw(st.tuples(*[st.integers(1, 7 - 2 * (ndim == 3))] * ndim))
    periodic = draw(st.tuples(*[st.booleans()] * ndim))
    order = tuple(draw(st.permutations(range(ndim))))
    shift = np.zeros((ndim, ndim), int)
    if draw(st.booleans()):
        for i in range(ndim):
            for j in range(i + 1, ndim):
                if periodic[order[i]] and periodic[order[j]]:
                    shift[order[i], order[j]] = draw(st.integers(-4, 4))
    return Grid(shape, periodic=periodic, shift=shift.tolist()), order


@st.composite
def layouts(draw: st.DrawFn, domain: Box, ranks: int) -> Layout:
    granule = draw(st.sampled_from([1, 2, 3]))
    weights = draw(st.lists(st.integers(0, 4), min_size=ranks, max_size=ranks).filter(any))
    match draw(st.sampled_from(["slabs", "cartesian", "bisection", "blocks", "shuffled", "single"])):
        case "slabs":
            return cuts.slabs(domain, ranks, draw(st.integers(0, domain.ndim - 1)), weights, granule)
        case "cartesian":
            return cuts.best_cartesian(domain, ranks, granule)
        case "bisection":
            return cuts.bisection(domain, weights, granule)
        case "blocks":
            return cuts.blocks(domain, ranks, draw(st.integers(1, 3)), weights, granule)
        case "shuffled":
            plain = cuts.blocks(domain, ranks, 3, granule=granule)
            owners = draw(st.lists(st.integers(0, ranks - 1), min_size=len(plain), max_size=len(plain)))
            return Layout(domain, ranks, plain.lo, plain.hi, np.array(owners))
    return Layout.single(domain, ranks, draw(st.integers(0, ranks - 1)))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    grid, order = draw(grids())
    layout = draw(layouts(grid.box, draw(st.integers(1, 5))))
    axes = tuple(range(grid.ndim))
    if grid.ndim > 1 and draw(st.integers(0, 3)) == 0:
        axes = tuple(sorted(draw(st.sets(st.sampled_from(axes), min_size=1, max_size=grid.ndim - 1))))
    centre = draw(st.tuples(*[st.integers(0, 1)] * len(axes)))
    on = None
    if draw(st.integers(0, 3)) == 0:
        ends = [sorted(draw(st.tuples(*[st.integers(0, n)] * 2))) for n in grid.project(axes).points(centre).shape]
        on = Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))
    return Case(grid, layout, centre, axes, on, order)


def widths(case: Case) -> st.SearchStrategy[tuple[int, ...]]:
    # In one or two dimensions wider than the whole grid, several times round a periodic axis.
    return st.tuples(*[st.integers(0, 12 // len(case.axes) ** 2 + 1)] * len(case.axes))


def home(case: Case, box: Box) -> tuple[np.ndarray, np.ndarray]:
    """For every index of ``box`` the number of the point that is there, and whether there is one.

    Independent of ``images``: each axis is folded back by arithmetic, one crossing order for all.
    """
    grid = case.grid.project(case.axes)
    index = np.stack(np.meshgrid(*map(np.arange, box.lo, box.hi), indexing="ij")) if box.size else None
    if index is None:
        return np.zeros(box.shape, int), np.zeros(box.shape, bool)
    for axis in case.order:
        if axis not in case.axes or not case.grid.periodic[axis]:
            continue
        here = case.axes.index(axis)
        crossings = index[here] // grid.shape[here]
        index[here] -= crossings * grid.shape[here]
        for along, cells in enumerate(grid.shift[here]):
            index[along] += crossings * cells
    points = grid.points(case.centre)
    on = case.on if case.on is not None else points
    low, high = (np.array(end).reshape(-1, *[1] * len(case.axes)) for end in (on.lo, on.hi))
    exists = ((index >= low) & (index < high)).all(axis=0)
    strides = np.cumprod([1, *points.shape[:0:-1]])[::-1].reshape(low.shape)
    return (index * strides).sum(axis=0), exists


def execute(source: dict[int, np.ndarray], target: dict[int, np.ndarray], origins: tuple[dict[int, Point], ...],
            parts: list[RankTransfer], delivered: dict[int, np.ndarray]) -> None:  # fmt: skip
    """Carry out the transfer of all ranks: pack messages on one side, unpack them on the other by its own plan."""

    def put(copy: Copy, values: np.ndarray) -> None:
        where = copy.target_box.slices(origins[1][copy.target])
        target[copy.target][where] = values
        delivered[copy.target][where] += 1

    def take(copy: Copy) -> np.ndarray:
        return source[copy.source][copy.source_box.slices(origins[0][copy.source])].copy()

    mail = {}
    for part in parts:
        assert len({m.peer for m in part.sends}) == len(part.sends), "one message for each pair of ranks"
        for message in part.sends:
            buffer = np.full(message.cells, NOTHING)
            for copy, offset in zip(message.copies, message.offsets, strict=True):
                buffer[offset : offset + copy.source_box.size] = take(copy).ravel()
            mail[part.rank, message.peer] = buffer
    moved = [(copy, take(copy)) for part in parts for copy in part.local]
    for part in parts:
        for message in part.receives:
            buffer = mail.pop((message.peer, part.rank))
            assert len(buffer) == message.cells
            for copy, offset in zip(message.copies, message.offsets, strict=True):
                put(copy, buffer[offset : offset + copy.source_box.size].reshape(copy.source_box.shape))
    assert not mail, "a message nobody expects"
    for copy, values in moved:
        put(copy, values)


def filled(case: Case, layout: Layout, boxes: dict[int, Box]) -> dict[int, np.ndarray]:
    """An array for each block in which the block's own points hold their numbers, and all others nothing."""
    arrays = {}
    for block, box in boxes.items():
        arrays[block] = np.full(box.shape, NOTHING)
        mine = owned(layout, block, case.grid, **case.kind)
        if not mine.empty:
            arrays[block][mine.slices(box.lo)] = home(case, mine)[0]
    return arrays


@given(cases(), st.data())
@settings(max_examples=120, deadline=None)
def test_every_halo_cell_arrives_once(case, data):
    low, high = data.draw(widths(case)), data.draw(widths(case))
    ndim = len(case.axes)
    chosen = directions(ndim, False)
    how = data.draw(st.sampled_from(["all", "faces", "only"]))
    options: dict[str, object] = {}
    if how == "faces":
        chosen, options = directions(ndim, True), {"faces_only": True}
    elif how == "only":
        chosen = data.draw(st.lists(st.sampled_from(chosen), unique=True))
        options = {"only": chosen}

    points = case.points
    boxes = {b: points.stored(b, low, high) for b in range(len(case.layout))}
    arrays = filled(case, case.layout, boxes)
    before = {b: a.copy() for b, a in arrays.items()}
    delivered = {b: np.zeros(a.shape, int) for b, a in arrays.items()}
    parts = [
        halo_transfer(case.grid, case.layout, r, low, high, **case.kind, **options) for r in range(case.layout.ranks)
    ]
    origins = {b: box.lo for b, box in boxes.items()}
    execute(arrays, arrays, (origins, origins), parts, delivered)

    for block, box in boxes.items():
        position = points.position(block)
        towards = np.zeros((ndim, *box.shape), int)
        for axis in range(ndim):
            index = np.arange(box.lo[axis], box.hi[axis]).reshape([-1 if a == axis else 1 for a in range(ndim)])
            towards[axis] = (index >= position.hi[axis]).astype(int) - (index < position.lo[axis])
        inside = (position & box).slices(box.lo) if not (position & box).empty else ()
        numbers, exists = home(case, box)
        wanted = exists & np.isin(
            (towards.T @ 3 ** np.arange(ndim)).T, [np.dot(d, 3 ** np.arange(ndim)) for d in chosen]
        )
        assert np.array_equal(delivered[block], wanted)
        assert np.array_equal(arrays[block], np.where(wanted, numbers, before[block]))
        if inside:
            assert not delivered[block][inside].any(), "a block's own points are never overwritten"


@pytest.mark.slow
@given(cases())
@settings(max_examples=50, deadline=None)
def test_projected_points_come_from_the_nearest_holder(case):
    points = case.points
    for part in (halo_transfer(case.grid, case.layout, r, 2, 1, **case.kind) for r in range(case.layout.ranks)):
        for copy in (*part.local, *(c for m in part.receives for c in m.copies)):
            holders = [b for b in range(len(case.layout)) if not (points.owned(b) & copy.source_box).empty]
            if copy.target in holders:
                expected = copy.target
            else:
                mine = [b for b in holders if case.layout.owner[b] == part.rank]
                expected = (mine or holders)[0]
            if all(points.owned(b).contains(copy.source_box) for b in holders):
                assert copy.source == expected
            assert points.owned(copy.source).contains(copy.source_box)


@given(cases(), st.data())
@settings(max_examples=50, deadline=None)
def test_moving_there_and_back_brings_every_point(case, data):
    there = data.draw(layouts(case.grid.box, case.layout.ranks))
    both = (case.layout, there)
    for source, target in (both, both[::-1]):
        full = filled(case, source, {b: owned(source, b, case.grid, **case.kind) for b in range(len(source))})
        boxes = {b: owned(target, b, case.grid, **case.kind) for b in range(len(target))}
        arrays = {b: np.full(box.shape, NOTHING) for b, box in boxes.items()}
        delivered = {b: np.zeros(a.shape, int) for b, a in arrays.items()}
        parts = [move_transfer(source, target, case.grid, r, **case.kind) for r in range(source.ranks)]
        origins = ({b: owned(source, b, case.grid, **case.kind).lo for b in full}, {b: x.lo for b, x in boxes.items()})
        execute(full, arrays, origins, parts, delivered)
        for block, box in boxes.items():
            assert (delivered[block] == 1).all()
            assert np.array_equal(arrays[block], home(case, box)[0])


@given(cases())
def test_owned_points_tile_a_field(case):
    points = case.points
    held = np.zeros(points.positions.shape, int)
    for block in range(len(case.layout)):
        held[points.owned(block).slices((0,) * len(case.axes))] += 1
    everywhere = np.zeros_like(held)
    everywhere[points.points.slices((0,) * len(case.axes))] = 1
    assert np.array_equal(np.minimum(held, 1), everywhere)
    if not points.shared:
        assert np.array_equal(held, everywhere)


def test_faces_belong_to_the_cell_above_them_and_the_last_to_the_last():
    grid = Grid((8, 6), periodic=(False, True))
    layout = cuts.cartesian(grid.box, (2, 2), granule=1)
    assert owned(layout, 0, grid, (1, 1)) == Box((0, 0), (4, 3))
    assert owned(layout, 3, grid, (1, 1)) == Box((4, 3), (9, 6))
    assert owned(layout, 3, grid, (1,), axes=("y",)) == Box((4,), (9,))
    assert owned(layout, 3, grid, (1, 0), on=Box((8, 0), (9, 6))) == Box((8, 3), (9, 6))
    assert owned(layout, 0, grid, (1, 0), on=Box((8, 0), (9, 6))).empty


def test_stars_send_no_corners():
    grid = Grid((30, 30))
    layout = cuts.cartesian(grid.box, (3, 3), granule=1)
    middle = halo_transfer(grid, layout, 4, 2, 2, faces_only=True)
    assert [m.peer for m in middle.sends] == [m.peer for m in middle.receives] == [1, 3, 5, 7]
    assert middle.cells_sent == middle.cells_received == 4 * 2 * 10
    around = halo_transfer(grid, layout, 4, 2, 2)
    assert [m.peer for m in around.sends] == [0, 1, 2, 3, 5, 6, 7, 8]
    assert around.cells_sent == 4 * 2 * 10 + 4 * 4
    upwind = halo_transfer(grid, layout, 4, (0, 1), (0, 0))
    assert [m.peer for m in upwind.receives] == [3]
    assert [m.peer for m in upwind.sends] == [5]
    knight = halo_transfer(grid, layout, 4, 1, 1, only=[(-1, 1)])
    assert [(m.peer, m.cells) for m in knight.receives] == [(2, 1)]


def test_one_message_for_a_pair_that_meets_on_many_sides():
    grid = Grid((12, 12), periodic=True)
    layout = cuts.blocks(grid.box, 2, 8, granule=1)
    parts = [halo_transfer(grid, layout, r, 1, 1) for r in range(2)]
    for part in parts:
        assert [len(part.sends), len(part.receives)] == [1, 1]
        assert part.sends[0].peer == 1 - part.rank
        assert len(part.local) > 8
    assert parts[0].sends[0].copies == parts[1].receives[0].copies
    assert parts[0].sends[0].offsets == parts[1].receives[0].offsets


@pytest.mark.parametrize("extent", [1, 2, 3])
def test_a_block_may_be_its_own_neighbour_many_times(extent):
    grid = Grid((extent,), periodic=True)
    part = halo_transfer(grid, Layout.single(grid.box, 1), 0, 7, 7)
    assert not part.sends
    assert sum(c.source_box.size for c in part.local) == 14
    for copy in part.local:
        assert not any(s % extent for s in copy.shift)


def test_nothing_is_fetched_from_outside_the_domain():
    grid = Grid((10,))
    part = halo_transfer(grid, Layout.single(grid.box, 3, owner=1), 1, 4, 4)
    assert part == RankTransfer(1, (), (), ())
    assert halo_transfer(grid, Layout.single(grid.box, 3, owner=1), 0, 4, 4) == RankTransfer(0, (), (), ())


def test_neighbours_of_a_partial_field_keep_what_they_reach():
    # A plate of one row: the block below owns none of it, but reads it one row up.
    grid = Grid((8, 6))
    layout = cuts.slabs(grid.box, 2)
    points = Ownership.of(grid, layout, on=Box((3, 0), (4, 6)))
    assert points.owned(1).empty
    assert points.stored(1, 1, 1) == Box((3, -1), (5, 7))
    assert points.stored(0, 1, 1) == Box((2, -1), (5, 7))
    part = halo_transfer(grid, layout, 1, 1, 1, on=Box((3, 0), (4, 6)), faces_only=True)
    assert [(m.peer, m.cells) for m in part.receives] == [(0, 6)]
    assert not part.sends


def test_a_partial_field_is_read_across_the_seam_of_a_torus():
    grid, on = Grid((8,), periodic=True), Box((3,), (8,))
    layout = cuts.slabs(grid.box, 4, granule=1)
    first, last = (halo_transfer(grid, layout, r, 1, 0, on=on) for r in (0, 3))
    assert [(m.peer, m.copies) for m in first.receives] == [(3, (Copy(3, 0, Box((7,), (8,)), (-8,)),))]
    assert [(m.peer, m.copies) for m in last.sends] == [(0, first.receives[0].copies)]


def test_the_plane_beyond_the_last_cell_moves_too():
    grid, on = Grid((8, 6)), Box((8, 0), (9, 6))
    columns, rows = cuts.slabs(grid.box, 2, axis=1, granule=1), cuts.slabs(grid.box, 2)
    parts = [move_transfer(columns, rows, grid, r, centre=(1, 0), on=on) for r in range(2)]
    assert parts[0].sends[0].copies == (Copy(0, 1, Box((8, 0), (9, 3)), (0, 0)),)
    assert parts[1].receives[0].copies == parts[0].sends[0].copies
    assert parts[1].local == (Copy(1, 1, Box((8, 3), (9, 6)), (0, 0)),)


def test_a_halo_is_disjoint_boxes_around_a_box():
    box = Box((0, 0), (4, 5))
    assert halo_boxes(box, 1, 2, faces_only=True) == [
        Box((-1, 0), (0, 5)),
        Box((0, -1), (4, 0)),
        Box((0, 5), (4, 7)),
        Box((4, 0), (6, 5)),
    ]
    whole = halo_boxes(box, (1, 0), (2, 3))
    assert sum(b.size for b in whole) == box.grow((1, 0), (2, 3)).size - box.size
    assert not any(not (a & b).empty for i, a in enumerate(whole) for b in whole[:i])
    assert halo_boxes(Box((0, 0), (0, 5)), 1, 1) == []
    with pytest.raises(LayoutError, match="must not be negative"):
        halo_boxes(box, -1, 1)


def test_a_plan_made_of_parts():
    """The pieces from which a transfer is built can be used on their own: fetch three boxes to two blocks."""
    grid = Grid((8,), periodic=True)
    layout = cuts.slabs(grid.box, 4, granule=1)
    points = Ownership.of(grid, layout)
    copies = plan_copies(points, [(0, Box((3,), (5,))), (0, Box((9,), (10,))), (1, Box((0,), (0,)))], points.images)
    assert copies == [
        Copy(1, 0, Box((3,), (4,)), (0,)),
        Copy(2, 0, Box((4,), (5,)), (0,)),
        Copy(0, 0, Box((1,), (2,)), (8,)),
    ]
    part = for_rank(copies, layout.owner, [3, 3], 3)
    assert [(m.peer, m.offsets, m.cells) for m in part.receives] == [(0, (0,), 1), (1, (0,), 1), (2, (0,), 1)]


def test_fields_and_layouts_that_do_not_fit_are_refused():
    grid = Grid((8, 6))
    layout = cuts.slabs(grid.box, 2)
    with pytest.raises(LayoutError, match="the cells of the grid are"):
        Ownership.of(Grid((8, 7)), layout)
    with pytest.raises(LayoutError, match="in that order"):
        Ownership.of(grid, layout, axes=("x", "y"))
    with pytest.raises(LayoutError, match="reaches beyond"):
        Ownership.of(grid, layout, on=Box((0, 0), (9, 6)))
    with pytest.raises(LayoutError, match="found 2 and 3"):
        move_transfer(layout, cuts.slabs(grid.box, 3), grid, 0)


@pytest.mark.slow
def test_planning_one_rank_looks_at_its_neighbours_only(monkeypatch):
    """The number of blocks looked at must not grow with the number of blocks there are."""
    looked_at: list[int] = []
    plain = Ownership.around

    def counted(self: Ownership, blocks: list[int]) -> tuple[np.ndarray, np.ndarray]:
        looked_at.append(len(blocks))
        return plain(self, blocks)

    monkeypatch.setattr(Ownership, "around", counted)
    totals = []
    for parts in (8, 64):
        grid = Grid((parts * 4,) * 3, periodic=True)
        layout = cuts.cartesian(grid.box, (parts,) * 3, granule=1)
        looked_at.clear()
        part = halo_transfer(grid, layout, layout.ranks // 3, 1, 1)
        assert (len(part.sends), len(part.receives)) == (26, 26)
        moved = move_transfer(layout, cuts.bisection(grid.box, [1.0] * layout.ranks, granule=1), grid, 5)
        assert moved.cells_sent <= 64
        totals.append(sum(looked_at))
    assert totals[1] <= totals[0] < 200
