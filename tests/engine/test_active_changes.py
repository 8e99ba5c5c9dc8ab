"""Active tiles: what wakes them from outside, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.space.layout import Layout

from .active_runs import BLINKER, GLIDER, Tile, cells, field, left, life, pair, patch_of, stepping
from .running import some_layouts


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


@pytest.mark.parametrize("how", ["set", "view", "program", "other rule"])
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
            case "view":
                for box, view in engine.blocks(c, write=True):
                    view[...] = changed[box.slices((0, 0))]
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


@pytest.mark.parametrize("together", [False, True])
def test_a_parameter_that_is_written_wakes_tiles(together: bool) -> None:
    grid = mg.Grid((40, 40), periodic=True)
    a, b = (mg.Field(name, grid, "u1", slots=2) for name in "ab")
    row = mg.Field("row", grid, "u1", axes="x")
    level = mg.Register("level", "i8")
    written = mg.Register("other"), level
    steps = [stepping(pair, [a, b], [row], tile, level=level) for tile in ((8, 8), False)]
    found = []
    for step in steps:
        with mg.Engine(Layout.single(grid.box, 1), grid=grid) as engine:
            engine.set(a, cells((40, 40), 0.5))
            engine.set(b, cells((40, 40), 0.5, 1))
            engine.set(row, 1)
            engine.write(level, 5)
            engine.run(step, 200)
            if together:
                engine.write_all(written, (0.5, 0))
            else:
                engine.write(level, 0)
            engine.run(step, 7)
            found.append([engine.gather(a), engine.gather(b)])
    np.testing.assert_array_equal(found[0], found[1])


@mg.kernel
def around(c):
    return mg.sum(mg.cast(c[-2, 2], "i8") + mg.cast(c[1, 0], "i8"))


@pytest.mark.few(2)
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


@pytest.mark.few(2)
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
