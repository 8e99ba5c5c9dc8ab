"""Operations on active tiles only: the bits of all cells, and quiet tiles left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.engine import active
from minga.engine.comm import Comm
from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.space.cuts import bisection
from minga.space.layout import Layout

from .running import some_layouts

Tile = bool | int | tuple[int, ...]


@pytest.fixture(params=["patient", "impatient"])
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tiles are looked at where that is worth while, or always."""
    if request.param == "impatient":
        make_impatient(monkeypatch)
    return str(request.param)


def make_impatient(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(active, "WORTHWHILE", 0)


@mg.kernel
def life(c, new):
    n = sum(mg.cast(c[i, j], "i4") for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = mg.cast((n == 3) | ((n == 2) & (c[0, 0] == 1)), "u1")


@mg.kernel
def aside(c, new):
    """An asymmetric neighbourhood: moves what lies above and to the left, unless it meets something."""
    new[0, 0] = mg.where(c[-1, -3] == c[2, 0], c[0, 0], c[-1, -3] & c[0, 1])


@mg.kernel
def line(c, new):
    new[0] = (c[-2] | c[1]) & ~c[0] & 1


@mg.kernel
def cube(c, new):
    n = sum(mg.cast(c[i, j, k], "i4") for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if i or j or k)
    new[0, 0, 0] = mg.cast((n == 5) | ((n == 4) & (c[0, 0, 0] == 1)), "u1")


@mg.kernel
def settle(u, mask, new):
    """Floats that come to rest: the largest neighbour, where the mask lets it in."""
    around = mg.max(mg.max(u[-1, 0], u[1, 0]), mg.max(u[0, -1], u[0, 1]))
    new[0, 0] = mg.where(mask[0, 0] > 0.3, mg.max(u[0, 0], around), u[0, 0])


@mg.kernel
def pair(a, b, row, new_a, new_b, *, level):
    """Two fields, a row that all ranks hold, where a cell lies, and a parameter."""
    odd = mg.cast(mg.index("y") % 2, "u1")
    new_a[0, 0] = (b[1, 0] ^ (b[-1, 1] & odd)) & row[0]
    new_b[0, 0] = mg.where(mg.cast(a[0, 0], "i4") + mg.cast(a[0, -1], "i4") > level, a[0, 1], b[0, 0])


def stepping(
    kernel: Any, stored: Sequence[mg.Field], others: Sequence[mg.Field], tile: Tile, **scalars: Any
) -> Program:
    step = Program(f"step {tile}")
    region = mg.Region(active=tile) if tile else None
    step.apply(kernel, *stored, *others, *[item.next for item in stored], region=region, **scalars)
    step.rotate(*stored)
    return step


def left(
    layout: Layout,
    grid: mg.Grid,
    step: Program,
    initial: dict[mg.Field, Any],
    chunks: Sequence[int],
    look: Program | None = None,
    **settings: Any,
) -> tuple[list[np.ndarray], int, int]:
    """All slots after a run in chunks of steps, and the cells left out and looked at on all ranks."""

    def body(comm: Comm) -> tuple[list[Any], tuple[int, int]]:
        with mg.Engine(layout, grid=grid, comm=comm, **settings) as engine:
            for item, value in initial.items():
                engine.set(item, value)
            for count in chunks:
                engine.run(step, count)
                if look is not None:
                    engine.run(look)
            return [engine.gather(item.slot(k)) for item in initial for k in range(item.slots)], engine.skipped

    results = mg.run_virtual(layout.ranks, body)
    counts = np.sum([counted for _, counted in results], axis=0)
    return results[0][0], int(counts[0]), int(counts[1])


def compare(
    kernel: Any,
    stored: Sequence[mg.Field],
    initial: dict[mg.Field, Any],
    layouts: Sequence[Layout],
    tiles: Sequence[Tile],
    chunks: Sequence[int],
    **settings: Any,
) -> int:
    """Assert that active tiles leave what all cells leave; the cells left out on the first layout."""
    others = [item for item in initial if item not in stored]
    grid, scalars = stored[0].grid, settings.pop("scalars", {})
    alone = Layout.single(grid.box, 1)
    expected, _, looked = left(alone, grid, stepping(kernel, stored, others, False, **scalars), initial, chunks)
    assert looked == 0
    skipped = []
    for number, layout in enumerate(layouts):
        step = stepping(kernel, stored, others, tiles[number % len(tiles)], **scalars)
        found, some, _ = left(layout, grid, step, initial, chunks, **settings)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{layout!r}, tiles {tiles[number % len(tiles)]}")
        skipped.append(some)
    return skipped[0]


def cells(shape: tuple[int, ...], share: float, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random(shape) < share).astype("u1")


def patch_of(shape: tuple[int, int], pattern: Sequence[str], at: tuple[int, int]) -> np.ndarray:
    whole = np.zeros(shape, "u1")
    for i, row in enumerate(pattern):
        for j, mark in enumerate(row):
            whole[(at[0] + i) % shape[0], (at[1] + j) % shape[1]] = mark == "O"
    return whole


def field(shape: tuple[int, ...], dtype: str = "u1", **settings: Any) -> mg.Field:
    periodic = settings.pop("periodic", True)
    return mg.Field("c", mg.Grid(shape, periodic=periodic, **settings.pop("grid", {})), dtype, slots=2, **settings)


GLIDER = (".O.", "..O", "OOO")
BLINKER = ("OOO",)
PULSAR = (
    "..OOO...OOO..", ".............", "O....O.O....O", "O....O.O....O", "O....O.O....O",
    "..OOO...OOO..", ".............", "..OOO...OOO..", "O....O.O....O", "O....O.O....O",
    "O....O.O....O", ".............", "..OOO...OOO..",
)  # fmt: skip


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


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("ends", ["zero", "one", "edge", "cell", "gradient", "custom", "mixed"])
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


@pytest.mark.usefixtures("patience")
def test_one_and_three_axes() -> None:
    c = field((700,))
    start = np.where(np.arange(700) < 30, cells((700,), 0.3), 0).astype("u1")
    compare(line, [c], {c: start}, some_layouts(c.grid), [16, 7], [150])
    d = field((14, 20, 30))
    block = np.zeros((14, 20, 30), "u1")
    block[2:8, 3:9, 20:29] = cells((6, 6, 9), 0.3)
    assert compare(cube, [d], {d: block}, some_layouts(d.grid), [(4, 5, 6), (3, 3, 8)], [40]) > 0


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
    "settings", [{"native": False}, {"threads": 3}, {"overlap": False}, {"threads": 2, "native": False}]
)
def test_every_way_to_run(settings: dict[str, Any]) -> None:
    c = field((61, 93))
    start = np.where(np.arange(93) < 40, cells((61, 93), 0.1), 0).astype("u1")
    compare(life, [c], {c: start}, some_layouts(c.grid)[:5], [(8, 8)], [90], **settings)


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


@settings(max_examples=25)
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


# Changes from outside -------------------------------------------------------------------------------------------------
def quiet_engine(c: mg.Field, step: Program, start: np.ndarray) -> mg.Engine:
    engine = mg.Engine(Layout.single(c.grid.box, 1), grid=c.grid, threads=1)
    engine.set(c, start)
    engine.run(step, 250)
    skipped, looked = engine.skipped
    engine.run(step, 2)
    assert np.subtract(engine.skipped, (skipped, looked)).tolist() == [2 * c.grid.size] * 2
    return engine


def plain(c: mg.Field, start: np.ndarray, steps: int) -> np.ndarray:
    with mg.Engine(Layout.single(c.grid.box, 1), grid=c.grid, threads=1) as engine:
        engine.set(c, start)
        engine.run(stepping(life, [c], [], False), steps)
        found = engine.gather(c)
        assert found is not None
        return found


@mg.kernel
def flip(c):
    c[0, 0] = mg.where((mg.index("y") == 20) & (mg.index("x") > 30) & (mg.index("x") < 35), 1, c[0, 0])


@pytest.mark.parametrize("how", ["set", "touch", "program", "other rule"])
def test_what_others_change_wakes_tiles(how: str) -> None:
    c = field((48, 64))
    start = patch_of((48, 64), BLINKER, (7, 6))
    step = stepping(life, [c], [], (8, 8))
    changed = start.copy()
    changed[20, 31:35] = 1
    with quiet_engine(c, step, start) as engine:
        match how:
            case "set":
                engine.set(c, changed)
            case "touch":
                for box, view in engine.blocks(c):
                    view[...] = changed[box.slices((0, 0))]
                engine.touch(c)
            case "program":
                program = Program("flip")
                program.apply(flip, c)
                engine.run(program)
            case "other rule":
                program = Program("flip twice")
                program.apply(flip, c, region=mg.Box((20, 0), (21, 64)))
                engine.run(program, 2)
        engine.run(step, 9)
        np.testing.assert_array_equal(engine.gather(c), plain(c, changed, 9))


def test_a_parameter_that_is_written_wakes_tiles() -> None:
    grid = mg.Grid((40, 40), periodic=True)
    a, b = (mg.Field(name, grid, "u1", slots=2) for name in "ab")
    row = mg.Field("row", grid, "u1", axes="x")
    level = mg.Register("level", "i8")
    steps = [stepping(pair, [a, b], [row], tile, level=level) for tile in ((8, 8), False)]
    found = []
    for step in steps:
        with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
            engine.set(a, cells((40, 40), 0.5))
            engine.set(b, cells((40, 40), 0.5, 1))
            engine.set(row, 1)
            engine.write(level, 5)
            engine.run(step, 200)
            engine.write(level, 0)
            engine.run(step, 7)
            found.append([engine.gather(a), engine.gather(b)])
    np.testing.assert_array_equal(found[0], found[1])


@mg.kernel
def around(c):
    return mg.sum(mg.cast(c[-2, 2], "i8") + mg.cast(c[1, 0], "i8"))


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("chunks", [[1] * 40, [1, 1, 5, 1, 30, 1, 1, 2], [17, 1, 1, 20]])
def test_observers_that_exchange_halos_between_steps(chunks: list[int]) -> None:
    c = field((40, 60))
    start = patch_of((40, 60), GLIDER, (17, 28)) | patch_of((40, 60), BLINKER, (3, 3))
    look = Program("look")
    look.apply(around, c)
    expected = plain(c, start, sum(chunks))
    for layout in (some_layouts(c.grid)[k] for k in (0, 3, 5)):
        found = left(layout, c.grid, stepping(life, [c], [], (4, 4)), {c: start}, chunks, look)[0]
        np.testing.assert_array_equal(found[0], expected)


@mg.kernel
def farther(c):
    return mg.sum(mg.where((c[-3, 0] == 1) | (c[2, 3] == 1), mg.cast(mg.index("y") * 61 + mg.index("x"), "i8"), 0))


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("interval", [1, 3, 5])
def test_farther_halos_that_are_exchanged_now_and_then(interval: int) -> None:
    c, start = field((40, 60)), patch_of((40, 60), GLIDER, (17, 28)) | patch_of((40, 60), BLINKER, (3, 3))
    count, sums = mg.Register("count", "i8"), mg.Register("sums", "i8")

    def watched(tile: Tile) -> Program:
        program = stepping(life, [c], [], tile)
        program.let(count, count + 1)
        with program.when(count % interval == 0):
            program.let(sums, sums * 31 + program.apply(farther, c))
        return program

    def seen(layout: Layout, program: Program) -> int:
        def body(comm: Comm) -> int:
            with mg.Engine(layout, grid=c.grid, comm=comm) as engine:
                engine.set(c, start)
                engine.run(program, 150)
                return int(engine.read(sums))

        return mg.run_virtual(layout.ranks, body)[0]

    expected = seen(Layout.single(c.grid.box, 1), watched(False))
    for layout in (some_layouts(c.grid)[k] for k in (0, 3, 5)):
        assert seen(layout, watched((4, 4))) == expected


@pytest.mark.usefixtures("patience")
def test_a_call_that_fails_in_the_middle_of_a_step() -> None:
    def continued(tile: Tile) -> np.ndarray:
        c, calls = field((64, 64)), [0]

        def fail(engine: mg.Engine) -> None:
            calls[0] += 1
            if calls[0] == 37:
                raise ValueError("enough")

        step = Program("step")
        step.apply(life, c, c.next, region=mg.Region(active=tile) if tile else None)
        step.call(fail)
        step.rotate(c)
        with mg.Engine(Layout.single(c.grid.box, 1), grid=c.grid) as engine:
            engine.set(c, cells((64, 64), 0.1) * (np.arange(64) < 20))
            with pytest.raises(ValueError, match="enough"):
                engine.run(step, 60)
            engine.run(step, 40)
            found = engine.gather(c)
            assert found is not None
            return found

    np.testing.assert_array_equal(continued((4, 4)), continued(False))


# What is refused ------------------------------------------------------------------------------------------------------
@mg.kernel
def counting(c, new):
    new[0, 0] = c[0, 1]
    return mg.count(c[0, 0] == 1)


@mg.kernel
def second_order(c, new):
    new[0, 0] = c[0, 1] ^ new[0, 0]


@mg.kernel
def chance(c, new):
    new[0, 0] = mg.where(mg.random() < 0.5, c[0, 1], c[0, 0])


@mg.kernel
def changing(c, new, *, level):
    new[0, 0] = mg.where(mg.cast(c[0, 1], "i8") > level, c[0, 1], c[0, 0])


def refused(record: Callable[[Program, mg.Field], None], **settings: Any) -> str:
    c = field((20, 20), **settings)
    step = Program("step")

    def use() -> None:
        record(step, c)
        mg.Engine(Layout.single(c.grid.box, 1), grid=c.grid).run(step)

    with pytest.raises(ProgramError) as error:
        use()
    assert "cannot be done on active tiles only" in str(error.value)
    return str(error.value)


ACTIVE = mg.Region(active=8)


def test_kernels_that_need_all_cells_are_refused() -> None:
    assert "reductions" in refused(lambda step, c: step.apply(counting, c, c.next, region=ACTIVE))
    assert "overwrites" in refused(lambda step, c: step.apply(second_order, c, c.next, region=ACTIVE))
    assert "slots=2" in refused(lambda step, c: step.apply(flip, c, region=ACTIVE))
    wall = mg.Register("wall")
    for condition, word in ((mg.fixed(wall), "register"), (mg.fixed(lambda y, x: mg.random()), "register")):
        ends = {"periodic": False, "boundary": condition}
        assert word in refused(lambda step, c: step.apply(life, c, c.next, region=ACTIVE), **ends)


def test_programs_that_change_what_it_reads_are_refused() -> None:
    def by_chance(step: Program, c: mg.Field) -> None:
        step.apply(chance, c, c.next, region=ACTIVE)
        step.rotate(c)
        step.let(mg.STEP, mg.STEP + 1)

    def a_register(step: Program, c: mg.Field) -> None:
        level = mg.Register("level", "i8")
        step.apply(changing, c, c.next, level=level, region=ACTIVE)
        step.rotate(c)
        step.let(level, level + 1)

    def another(step: Program, c: mg.Field) -> None:
        step.apply(life, c, c.next, region=ACTIVE)
        step.rotate(c)
        step.apply(flip, c)

    def no_rotation(step: Program, c: mg.Field) -> None:
        step.apply(life, c, c.next, region=ACTIVE)

    def early_rotation(step: Program, c: mg.Field) -> None:
        step.rotate(c)
        step.apply(life, c, c.next, region=ACTIVE)

    assert "is set by the Program" in refused(by_chance)
    assert "is set by the Program" in refused(a_register)
    assert "'flip' stores one of its fields" in refused(another)
    assert "exactly once" in refused(no_rotation)
    assert "together after it" in refused(early_rotation)


def test_regions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(LayoutError, match="1 cell or more"):
        mg.Region(active=0)
    with pytest.raises(LayoutError, match="all cells"):
        mg.Region(mg.Box((0, 0), (4, 4)), active=True)
    c = field((20, 20))
    with pytest.raises(LayoutError, match="one for each axis"):
        Program("step").apply(life, c, c.next, region=mg.Region(active=(8, 8, 8)))
