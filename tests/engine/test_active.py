"""Operations on active tiles only: the bits of all cells, and quiet tiles left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.space.cuts import bisection
from minga.space.layout import Layout
from thinned import thinned

from .active_runs import (
    BLINKER,
    GLIDER,
    PULSAR,
    Tile,
    aside,
    cells,
    compare,
    cube,
    field,
    left,
    life,
    line,
    make_impatient,
    pair,
    patch_of,
    settle,
    stepping,
)
from .running import some_layouts


# The same bits --------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_soups_on_any_layout(share: float) -> None:
    c = field((61, 93))
    start = np.where(np.arange(93) < 40, cells((61, 93), share), 0).astype("u1")
    compare(life, [c], {c: start}, some_layouts(c.grid)[::2], [(8, 8), (5, 7), 3], [1, 2, 47])


@pytest.mark.usefixtures("patience")
def test_a_glider_comes_back_through_tiles_blocks_and_ends() -> None:
    c = field((64, 64))
    start = patch_of((64, 64), GLIDER, (61, 62))
    layouts = [bisection(c.grid.box, [1.0] * ranks, 1) for ranks in (1, 2, 4, 6)]
    for layout in layouts:
        found, skipped, looked = left(layout, c.grid, stepping(life, [c], [], (4, 4)), {c: start}, [256])
        np.testing.assert_array_equal(found[0], start)
        assert skipped > 0.7 * looked


@pytest.mark.few(2)
@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    "ends", thinned(["zero", "one", "edge", "cell", "gradient", "custom", "mixed"], "one", "cell", "custom", "mixed")
)
def test_ends(ends: str) -> None:
    condition: Any = {
        "zero": mg.fixed(0),
        "one": mg.fixed(1),
        "edge": mg.reflect("edge"),
        "cell": mg.reflect("cell"),
        "gradient": mg.zero_gradient(),
        "custom": mg.custom(lambda edge: edge[edge.layer + 3] & edge[0]),
        "mixed": {"y": (mg.fixed(1), mg.reflect("cell"))},
    }[ends]
    c = field((40, 57), periodic=(False, ends == "mixed"), boundary=condition)
    start = np.where(np.arange(57) < 20, cells((40, 57), 0.2, 3), 0).astype("u1")
    layouts = some_layouts(c.grid)
    compare(aside, [c], {c: start}, [layouts[0], layouts[3], layouts[5]], [(6, 8), (2, 2), (16, 16)], [50])


@mg.kernel
def shift(c, new):
    new[0] = c[-1]


def test_ends_that_look_deep_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    make_impatient(monkeypatch)
    c = field((64,), periodic=False, boundary=mg.custom(lambda edge: edge[edge.layer + 5]))
    start = np.zeros(64, "u1")
    start[1] = 1  # reaches cell 6 when the tile of cell 0 has been quiet for a while
    compare(shift, [c], {c: start}, [Layout.single(c.grid.box, 1)], [2], [30])


@pytest.mark.slow
@pytest.mark.usefixtures("patience")
def test_one_and_three_axes() -> None:
    c = field((700,))
    start = np.where(np.arange(700) < 30, cells((700,), 0.3), 0).astype("u1")
    compare(line, [c], {c: start}, some_layouts(c.grid), [16, 7], [150])
    d = field((14, 20, 30))
    block = np.zeros((14, 20, 30), "u1")
    block[2:8, 3:9, 20:29] = cells((6, 6, 9), 0.3)
    assert compare(cube, [d], {d: block}, some_layouts(d.grid), [(4, 5, 6), (3, 3, 8)], [40]) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("patience")
def test_floats_that_come_to_rest_and_a_field_that_stays() -> None:
    u = field((50, 66), "f8", periodic=(True, False), boundary=mg.zero_gradient())
    mask = mg.Field("mask", u.grid)
    rng = np.random.default_rng(2)
    initial = {u: rng.random((50, 66)), mask: rng.random((50, 66))}
    assert compare(settle, [u], initial, some_layouts(u.grid), [(8, 8), (5, 16)], [150]) > 0


@pytest.mark.usefixtures("patience")
def test_two_fields_a_row_and_a_parameter() -> None:
    grid = mg.Grid((44, 70), periodic=(False, True))
    a, b = (mg.Field(name, grid, "u1", slots=2, boundary=mg.fixed(0)) for name in "ab")
    row = mg.Field("row", grid, "u1", axes="x")
    start = np.where(np.arange(70) < 25, cells((44, 70), 0.4), 0).astype("u1")
    initial = {a: start, b: start[::-1].copy(), row: (np.arange(70) % 5 > 0).astype("u1")}
    scalars = {"level": 1}
    compare(pair, [a, b], initial, some_layouts(grid)[:4], [(6, 8), (4, 4)], [80], scalars=scalars)


@pytest.mark.parametrize(
    "settings",
    thinned(
        [{"native": False}, {"threads": 3}, {"overlap": False}, {"threads": 2, "native": False}],
        *[{"overlap": False}, {"threads": 2, "native": False}],
    ),
)
def test_every_way_to_run(settings: dict[str, Any]) -> None:
    c = field((61, 93))
    start = np.where(np.arange(93) < 40, cells((61, 93), 0.1), 0).astype("u1")
    compare(life, [c], {c: start}, some_layouts(c.grid)[:5], [(8, 8)], [90], **settings)


@pytest.mark.slow
def test_a_shifted_torus(monkeypatch: pytest.MonkeyPatch) -> None:
    make_impatient(monkeypatch)
    c = field((30, 48), grid={"shift": {"y": {"x": 7}}})
    compare(life, [c], {c: patch_of((30, 48), GLIDER, (1, 2))}, some_layouts(c.grid), [(4, 8), (5, 5)], [200])


def test_a_deep_halo_computes_all_tiles() -> None:
    c = field((61, 93))
    start = patch_of((61, 93), GLIDER, (10, 10))
    for layout in some_layouts(c.grid)[:4]:
        step = stepping(life, [c], [], (8, 8))
        found, skipped, looked = left(layout, c.grid, step, {c: start}, [50], halo_depth=3)
        assert (skipped, looked) == (0, 0)
        expected = left(layout, c.grid, stepping(life, [c], [], False), {c: start}, [50])[0]
        np.testing.assert_array_equal(found[0], expected[0])


KERNELS: list[tuple[Callable[..., Any], int]] = [(life, 2), (aside, 2), (line, 1), (cube, 3)]


@pytest.mark.slow
@settings(max_examples=12)
@given(st.data())
def test_random_runs(data: st.DataObject) -> None:
    kernel, ndim = data.draw(st.sampled_from(KERNELS))
    shape = tuple(data.draw(st.integers(1, 40 if ndim < 3 else 12)) for _ in range(ndim))
    periodic = tuple(data.draw(st.booleans()) or n < 3 for n in shape)
    ends = data.draw(st.sampled_from([mg.fixed(0), mg.fixed(1), mg.reflect("edge"), mg.zero_gradient()]))
    c = field(shape, periodic=periodic, boundary=None if all(periodic) else ends)
    start = cells(shape, data.draw(st.sampled_from([0.05, 0.3])), data.draw(st.integers(0, 5)))
    for axis, n in enumerate(shape):
        start[(slice(None),) * axis + (slice(data.draw(st.integers(0, n)), None),)] = 0
    tile = tuple(data.draw(st.integers(1, 9)) for _ in shape)
    layout = data.draw(st.sampled_from(some_layouts(c.grid)))
    chunks = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            make_impatient(patch)
        compare(kernel, [c], {c: start}, [layout], [tile], chunks, native=data.draw(st.booleans()))


# What is left out -----------------------------------------------------------------------------------------------------
def computed(start: np.ndarray, settled: int, steps: int, tile: Tile = (8, 8), ranks: int = 1) -> int:
    """Cells computed in some steps of Life after others."""
    c = field(start.shape)
    step = stepping(life, [c], [], tile)
    layout = bisection(c.grid.box, [1.0] * ranks, 1)
    counts = [left(layout, c.grid, step, {c: start}, [settled, *more])[1:] for more in ([], [steps])]
    (skipped, looked), (skipped_later, looked_later) = counts
    return (looked_later - looked) - (skipped_later - skipped)


@pytest.mark.few(2)
@pytest.mark.parametrize("ranks", [1, 2, 6])
def test_oscillators_of_period_two_are_quiet(ranks: int) -> None:
    start = patch_of((64, 64), BLINKER, (7, 6)) | patch_of((64, 64), ("OO", "OO"), (31, 63))
    assert computed(start, 200, 100, ranks=ranks) == 0


def test_others_keep_their_neighbourhood_awake() -> None:
    start = patch_of((96, 96), PULSAR, (34, 33))
    some = computed(start, 200, 30)
    assert 30 * 13 * 13 < some < 30 * 96 * 96 / 4


def test_tiles_may_be_wider_than_the_grid() -> None:
    start = patch_of((20, 20), BLINKER, (7, 6))
    assert computed(start, 200, 10, tile=64) == 0
    assert computed(start, 200, 10, tile=True) == 0


def test_busy_ranks_do_not_look_at_tiles() -> None:
    c = field((64, 64))
    step = stepping(life, [c], [], (8, 8))
    busy = left(Layout.single(c.grid.box, 1), c.grid, step, {c: cells((64, 64), 0.3)}, [100])
    assert busy[1] < 0.1 * busy[2]
