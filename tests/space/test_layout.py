"""Layouts: every constructor tiles the domain, cuts where it may, and shares in proportion."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from minga.errors import LayoutError
from minga.space.box import Box
from minga.space.boxes import BoxIndex, first_miscount, intersect_pairs
from minga.space.cuts import (
    best_cartesian,
    bisection,
    blocks,
    cartesian,
    cut_positions,
    parse_layout,
    slabs,
)
from minga.space.layout import Layout

domains = st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 9)), min_size=1, max_size=3).map(
    lambda ends: Box(tuple(low for low, _ in ends), tuple(low + n for low, n in ends))
)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    domain = draw(domains)
    ranks = draw(st.integers(1, 7))
    granule = draw(st.sampled_from([1, 2, 3, 64]))
    weights = draw(st.lists(st.floats(0, 8), min_size=ranks, max_size=ranks).filter(any))
    kind = draw(st.sampled_from(["slabs", "cartesian", "best", "bisection", "blocks", "single"]))
    match kind:
        case "slabs":
            return slabs(domain, ranks, draw(st.integers(0, domain.ndim - 1)), weights, granule)
        case "cartesian":
            return cartesian(domain, draw(st.tuples(*[st.integers(1, 3)] * domain.ndim)), granule=granule)
        case "best":
            return best_cartesian(domain, ranks, granule)
        case "bisection":
            return bisection(domain, weights, granule)
        case "blocks":
            return blocks(domain, ranks, draw(st.integers(1, 4)), weights, granule)
    return Layout.single(domain, ranks, draw(st.integers(0, ranks - 1)))


def owner_of_cells(layout: Layout) -> np.ndarray:
    """Owner of each cell; -1 and -2 mark cells in no block and in several."""
    owners = np.full(layout.domain.shape, -1)
    for block in range(len(layout)):
        part = owners[layout.box(block).slices(layout.domain.lo)]
        part[:] = np.where(part == -1, layout.owner[block], -2)
    return owners


@given(layouts())
def test_every_cell_is_in_one_block(layout):
    layout.check()
    owners = owner_of_cells(layout)
    assert owners.min() >= 0
    assert layout.cells().tolist() == np.bincount(owners.ravel(), minlength=layout.ranks).tolist()
    for rank in range(layout.ranks):
        mine = layout.blocks_of(rank)
        assert mine == sorted(mine)
        assert layout.cells_of(rank) == sum(layout.box(b).size for b in mine)
    assert sorted(b for r in range(layout.ranks) for b in layout.blocks_of(r)) == list(range(len(layout)))


@given(layouts(), st.tuples(*[st.integers(1, 3)] * 3))
def test_coarse_cells_stay_with_their_first_fine_cell(layout, factors):
    factor = factors[: layout.ndim]
    assume(not layout.domain.coarsen(factor).empty)
    coarse = layout.coarsen(factor)
    coarse.check()
    first = [np.arange(low, high) * f - o for low, high, f, o in
             zip(coarse.domain.lo, coarse.domain.hi, factor, layout.domain.lo, strict=True)]  # fmt: skip
    assert np.array_equal(owner_of_cells(coarse), owner_of_cells(layout)[np.ix_(*first)])


@given(layouts(), st.integers(1, 7))
def test_gathering_uses_no_more_ranks_and_joins_blocks(layout, count):
    gathered = layout.gather(count)
    gathered.check()
    assert gathered.ranks == layout.ranks
    assert len(set(gathered.owner.tolist())) <= count
    assert len(gathered) <= len(layout)
    assert layout.gather([layout.ranks - 1]) == Layout.single(layout.domain, layout.ranks, layout.ranks - 1)


@given(layouts(), st.tuples(*[st.integers(-7, 15)] * 6))
def test_overlapping_finds_what_a_full_search_finds(layout, ends):
    box = Box(ends[: layout.ndim], ends[3 : 3 + layout.ndim])
    assert layout.overlapping(box).tolist() == [b for b in range(len(layout)) if not (layout.box(b) & box).empty]


@given(st.integers(1, 400), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_index_finds_boxes_that_overlap_each_other(count, ndim, seed):
    random = np.random.default_rng(seed)
    lo = random.integers(-100, 100, (count, ndim))
    hi = lo + random.integers(1, 40, (count, ndim))
    query = random.integers(-100, 100, ndim)
    box = Box(tuple(query.tolist()), tuple((query + random.integers(1, 60, ndim)).tolist()))
    expected = intersect_pairs(lo, hi, np.array([box.lo]), np.array([box.hi]))[0]
    index = BoxIndex.build(lo, hi)
    assert index.overlapping(box).tolist() == expected.tolist()
    # All at once, and again: every box asks for those around it, an empty one for none.
    queries_lo, queries_hi = np.concatenate((lo - 2, [query])), np.concatenate((hi + 3, [query]))
    i, j, _, _ = intersect_pairs(queries_lo, queries_hi, lo, hi)
    found = index.pairs(queries_lo, queries_hi)
    assert (found[0].tolist(), found[1].tolist()) == (i.tolist(), j.tolist())


def test_a_search_in_many_blocks_looks_at_few():
    shape = (512, 512, 512)
    seen = {}
    for parts in (8, 64):
        layout = cartesian(Box.of(shape), (parts,) * 3, granule=1)
        middle = layout.box(parts // 2 * (parts * parts + parts + 1))
        found, seen[parts] = layout.index.visit(middle.grow(1, 1))
        assert len(found) == 27
    assert seen[64] < 4 * seen[8]
    assert seen[64] < 64**3 / 100


@given(st.integers(-9, 9), st.integers(1, 50), st.lists(st.floats(0, 8), min_size=1, max_size=9).filter(any),
       st.integers(1, 9))  # fmt: skip
def test_cuts_are_the_nearest_multiples_of_the_granule(low, length, weights, granule):
    ends = cut_positions(low, low + length, weights, granule)
    assert ends[0] == low
    assert ends[-1] == low + length
    assert (np.diff(ends) >= 0).all()
    exact = low + length * np.cumsum(weights)[:-1] / np.sum(weights)
    assert (np.abs(ends[1:-1] - exact) <= granule / 2 + 1e-9).all()
    inner = ends[(ends > low) & (ends < low + length)]
    assert not (inner % granule).any()


@given(st.integers(1, 200), st.integers(1, 20))
def test_equal_parts_differ_by_one_cell(length, parts):
    sizes = np.diff(cut_positions(0, length, [1.0] * parts))
    assert sizes.max() - sizes.min() <= 1


def test_the_innermost_axis_is_cut_at_granules_only():
    domain = Box.of((100, 300))
    assert cartesian(domain, (2, 3)).cuts == ((0, 50), (0, 128, 192))
    assert cartesian(domain, (2, 3)).aligned()
    assert not cartesian(domain, (2, 3), granule=1).aligned()
    assert cartesian(domain, (2, 3), granule=1).aligned(100)
    # More ranks than granules: some own nothing, and no block is empty.
    line = slabs(Box.of((200,)), 7)
    assert (len(line), line.ranks, int(line.cells().min())) == (4, 7, 0)
    assert bisection(domain, [1.0] * 50).aligned()


def test_slabs_follow_their_weights():
    assert slabs(Box.of((100, 64)), 3, weights=[1, 2, 1]).cells().tolist() == [25 * 64, 50 * 64, 25 * 64]
    assert slabs(Box.of((4, 4)), 2, axis=-1, granule=1).box(1) == Box((0, 2), (4, 4))
    assert slabs(Box.of((100, 64)), 3, weights=[1, 0, 1]).blocks_of(1) == []


def test_cartesian_ranks_are_row_major():
    layout = cartesian(Box.of((4, 6)), (2, 3), granule=1)
    assert owner_of_cells(layout).tolist() == [[0, 0, 1, 1, 2, 2]] * 2 + [[3, 3, 4, 4, 5, 5]] * 2
    assert layout.owner.tolist() == list(range(6))
    weighted = cartesian(Box.of((4, 6)), (1, 2), [None, (1, 2)], granule=1)
    assert weighted.cuts == ((0,), (0, 2))


@pytest.mark.parametrize(
    ("shape", "ranks", "granule", "parts"),
    [
        ((512, 512, 512), 64, 64, (4, 4, 4)),
        ((64, 64, 64), 64, 64, (8, 8, 1)),  # one granule inside
        ((128, 128), 4, 64, (4, 1)),  # 2 x 2 has no smaller halo, so rows stay whole
        ((64, 64), 2, 1, (2, 1)),  # either way is as good, so rows stay whole
        ((1000, 10), 5, 1, (5, 1)),
        ((10, 1000), 5, 1, (1, 5)),
        ((101, 128), 2, 64, (1, 2)),  # 101 columns across beat 128 along, and 51 to 50 rows are uneven
    ],
)
def test_the_best_cartesian_cut_has_the_least_to_handle(shape, ranks, granule, parts):
    assert tuple(map(len, best_cartesian(Box.of(shape), ranks, granule).cuts)) == parts


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_bisection_shares_in_proportion(weights):
    domain = Box.of((256, 256))
    cells = bisection(domain, weights, granule=1).cells()
    exact = domain.size * np.array(weights) / sum(weights)
    assert (np.abs(cells - exact) < 0.25 * exact + 64).all()


def test_bisection_leaves_nobody_idle_where_another_axis_can_be_cut():
    # Two fifths of one granule is none of it, so the two rows are shared instead.
    assert bisection(Box.of((2, 64)), [2, 3]).cells().tolist() == [64, 64]


def test_blocks_of_a_rank_lie_together():
    layout = blocks(Box.of((64, 64)), 4, 4, granule=1)
    assert len(layout) == 16
    assert layout.cells().tolist() == [1024] * 4
    for rank in range(4):
        hull = layout.box(layout.blocks_of(rank)[0])
        for block in layout.blocks_of(rank):
            hull = hull.hull(layout.box(block))
        assert hull.size == 1024


def test_gathering_whole_rows_makes_whole_blocks():
    layout = cartesian(Box.of((64, 64, 64)), (4, 4, 4), granule=1)
    eight = layout.gather(8)
    assert len(eight) == 8
    assert eight.blocks_of(8) == [1]
    assert eight.box(0) == Box((0, 0, 0), (16, 32, 64))
    assert layout.gather(1) == Layout.single(layout.domain, 64)
    assert layout.gather((3, 5)).owner.tolist() == [3, 5]
    apart = Layout.from_boxes(Box.of((3,)), [Box((i,), (i + 1,)) for i in range(3)], [0, 1, 0], 2)
    assert apart.gather(2).box(1) == Box((2,), (3,)), "blocks that do not touch are not joined"
    with pytest.raises(LayoutError, match="at least one rank"):
        layout.gather([])


@given(layouts(), st.data())
def test_a_wrong_layout_names_the_first_wrong_cell(layout, data):
    boxes = [layout.box(b) for b in range(len(layout))]
    victim = data.draw(st.integers(0, len(boxes) - 1))
    axis = data.draw(st.integers(0, layout.ndim - 1))
    change = data.draw(st.sampled_from([-1, 1]))
    grown = [0] * layout.ndim
    grown[axis] = change
    boxes[victim] = boxes[victim].grow(0, grown)
    counts: dict[tuple[int, ...], int] = {
        tuple(c + o for c, o in zip(cell, layout.domain.lo, strict=True)): 0
        for cell in np.ndindex(*layout.domain.shape)
    }
    for box in boxes:
        for cell in np.ndindex(*box.shape):
            key = tuple(c + o for c, o in zip(cell, box.lo, strict=True))
            counts[key] = counts.get(key, 0) + 1
    wrong = min(c for c, n in counts.items() if n != 1 or not layout.domain.contains(Box(c, tuple(i + 1 for i in c))))
    lo, hi = np.array([b.lo for b in boxes]), np.array([b.hi for b in boxes])
    assert first_miscount(lo, hi, layout.domain) == (wrong, counts[wrong])


def test_overlaps_are_found_even_when_the_volumes_add_up():
    domain = Box.of((4, 4))
    halves = [Box((0, 0), (2, 4)), Box((0, 0), (2, 4))]
    with pytest.raises(LayoutError, match=r"cell \(0, 0\) is in 2 blocks"):
        Layout.from_boxes(domain, halves, [0, 1], 2)
    with pytest.raises(LayoutError, match=r"cell \(2, 0\) is in no block"):
        Layout.from_boxes(domain, halves[:1], [0], 2)
    with pytest.raises(LayoutError, match="block 1 of the layout is empty"):
        Layout.from_boxes(domain, [domain, Box((2, 0), (2, 4))], [0, 1], 2)
    with pytest.raises(LayoutError, match="ranks 0 to 2"):
        Layout.from_boxes(domain, [Box((0, 0), (2, 4)), Box((2, 0), (4, 4))], [0, 2], 2)
    assert Layout.from_boxes(domain, [domain], [1], 2) == Layout.single(domain, 2, 1)


def test_layouts_are_values():
    layout = cartesian(Box.of((101, 77)), (3, 2), granule=1)
    same = pickle.loads(pickle.dumps(layout))
    assert same == layout
    assert hash(same) == hash(layout)
    assert same.fingerprint() == layout.fingerprint()
    assert len(layout.fingerprint()) == 64
    other = cartesian(Box.of((101, 77)), (3, 2), [(1, 1, 2), None], granule=1)
    assert other != layout
    assert Layout.single(layout.domain, 2).fingerprint() != Layout.single(layout.domain, 3).fingerprint()
    with pytest.raises(ValueError, match="read-only"):
        layout.lo[0, 0] = 1
    assert repr(layout) == "Layout(101 x 77 on 6 ranks: 6 blocks (3 x 2), 1254 to 1326 cells a rank)"


def test_layouts_from_words():
    domain = Box.of((12, 12, 12))
    for text, expected in {
        "slabs": slabs(domain, 6, granule=1),
        " Slabs:1": slabs(domain, 6, 1, granule=1),
        "cartesian": best_cartesian(domain, 6, granule=1),
        "cartesian:1x3x2": cartesian(domain, (1, 3, 2), granule=1),
        "bisection": bisection(domain, [1] * 6, granule=1),
        "blocks:4": blocks(domain, 6, 4, granule=1),
        "single": Layout.single(domain, 6),
    }.items():
        assert parse_layout(text, domain, 6, granule=1) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slab", "did you mean 'slabs'"),
        ("hilbert", "Write one of: slabs"),
        ("slabs:y", "Write one of"),
        ("slabs:5", "across axis 5"),
        ("blocks", "Write one of"),
        ("blocks:0", "at least one block"),
        ("cartesian:2x2", "product is 6"),
        ("cartesian:2x2x2", "8 parts on 3 axes"),
        ("", "Write one of"),
    ],
)
def test_words_that_are_no_layout_get_the_list(text, message):
    with pytest.raises(LayoutError, match=message):
        parse_layout(text, Box.of((12, 12, 12)), 6)


@pytest.mark.parametrize("weights", [[0, 0], [-1, 2], [float("nan"), 1], []])
def test_weights_must_make_sense(weights):
    with pytest.raises(LayoutError, match="weights must be finite"):
        bisection(Box.of((4, 4)), weights)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda d: cartesian(d, (64, 64, 64)), marks=pytest.mark.slow),
        lambda d: bisection(d, [1] * 64**3),
    ],
)
def test_a_quarter_of_a_million_blocks(make):
    layout = make(Box.of((4096, 4096, 4096)))
    layout.check()
    assert len(layout) == 64**3
    assert set(layout.cells().tolist()) == {64**3}
    assert len(layout.coarsen()) == 64**3
    assert len(layout.gather(64)) == 64
