"""Cells that no operation advances keep their value when their field rotates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.space.cuts import slabs
from minga.space.region import Region

GRID = mg.Grid((7, 9), periodic=True)
START = np.random.default_rng(5).random(GRID.shape)
INNER = mg.Box((1, 2), (6, 9))
LEFT, RIGHT = mg.Box((0, 0), (7, 4)), mg.Box((0, 4), (7, 9))


@mg.kernel
def average(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@mg.kernel
def wave(u, before, new):
    new[0, 0] = 2.0 * u[0, 0] - before[0, 0] + 0.1 * (u[-1, 0] + u[1, 0] - 2.0 * u[0, 0])


@mg.kernel
def put(u):
    u[0, 0] = 5.0


@mg.kernel
def add(u):
    u[0, 0] = u[0, 0] + 1.0


def averaged(u: np.ndarray) -> np.ndarray:
    return 0.25 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1))


def cells(*regions: Any) -> np.ndarray:
    """True in the cells of some boxes, of a colour, or at some points."""
    found = np.zeros(GRID.shape, bool)
    index = np.add.outer(np.arange(7), np.arange(9))
    for region in regions:
        if isinstance(region, mg.Box):
            found[region.slices((0, 0))] = True
        elif region.colour is not None:
            found |= index % 2 == region.colour
        elif region.stride is not None:
            found[:: region.stride[0], :: region.stride[0]] = True
        else:
            for point in region.points or ():
                found[point] = True
    return found


def run(step: Program, u: mg.Field, times: int, *, ranks: int = 1, depth: int = 1) -> np.ndarray:
    def body(comm: mg.Comm) -> Any:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm, halo_depth=depth) as engine:
            engine.set(u, START)
            if u.slots == 3:
                engine.set(u.previous, START)
            for _ in range(times // 2):
                engine.run(step)
            engine.run(step, times - times // 2)
            return engine.gather(u)

    found: np.ndarray = mg.run_virtual(ranks, body)[0]
    return found


@pytest.mark.parametrize("slots", [2, 3])
@pytest.mark.parametrize(
    "regions",
    [(INNER,), (LEFT,), (mg.Box((0, 0), (2, 5)), INNER), (Region(colour=1),), (Region(stride=2),),
     (Region(points=[(0, 0), (3, 4)]),), (LEFT, Region(points=[(3, 6)]))],
    ids=["inner", "left", "two boxes", "colour", "stride", "points", "box and point"],
)  # fmt: skip
def test_cells_that_are_not_stored_keep_their_value(regions: Any, slots: int) -> None:
    u = mg.Field("u", GRID, slots=slots)
    step = Program("step")
    for region in regions:
        step.apply(average, u, u.next, region=region)
    step.rotate(u)
    expected, done = START, cells(*regions)
    for _ in range(5):
        expected = np.where(done, averaged(expected), expected)
    np.testing.assert_allclose(run(step, u, 5), expected, rtol=1e-14)
    if regions == (INNER,):
        first = run(step, u, 5)
        for ranks, depth in ((2, 1), (3, 3)):
            np.testing.assert_array_equal(run(step, u, 5, ranks=ranks, depth=depth), first)


@pytest.mark.parametrize(
    "regions",
    [(None,), (LEFT, RIGHT), (Region(colour=0), Region(colour=1)), (mg.Box((0, 0), (7, 6)), RIGHT)],
    ids=["all", "halves", "colours", "overlapping"],
)
def test_nothing_is_copied_where_all_cells_are_stored(regions: Any) -> None:
    u = mg.Field("u", GRID, slots=2)
    step = Program("step")
    for region in regions:
        step.apply(average, u, u.next, region=region)
    before = len(step.operations)
    step.rotate(u)
    assert len(step.operations) == before + 1


def test_a_box_of_waves_in_two_and_three_slots() -> None:
    """A row that the kernel leaves out stays what it is, though only `now` was given a value there."""
    found = []
    for slots in (2, 3):
        u = mg.Field("u", GRID, slots=slots)
        step = Program("step")
        step.apply(wave, u, u.previous, u.next, region=INNER)
        step.rotate(u)
        with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
            engine.set(u, START)
            engine.set(u.previous, np.where(cells(INNER), START, 0.0))
            engine.run(step, 4)
            found.append(engine.gather(u))
    before, now = START, START
    for _ in range(4):
        lap = np.roll(now, 1, 0) + np.roll(now, -1, 0) - 2 * now
        before, now = now, np.where(cells(INNER), 2 * now - before + 0.1 * lap, now)
    np.testing.assert_allclose(found[0], now, rtol=1e-12)
    np.testing.assert_array_equal(found[0], found[1])


def test_branches_and_loops() -> None:
    flag = mg.Register("flag", "i8")

    def recorded(fill: Callable[[Program, mg.Field], None]) -> tuple[Program, mg.Field]:
        u = mg.Field("u", GRID, slots=2)
        step = Program("step")
        fill(step, u)
        step.let(flag, flag + 1)
        return step, u

    def store_in_branch(step: Program, u: mg.Field) -> None:
        with step.when(flag % 2 == 0):
            step.apply(average, u, u.next, region=LEFT)
        step.apply(average, u, u.next, region=mg.Box((0, 6), (7, 9)))
        step.rotate(u)

    def rotate_in_branch(step: Program, u: mg.Field) -> None:
        step.apply(average, u, u.next, region=LEFT)
        with step.when(flag % 2 == 0):
            step.rotate(u)

    def loop(step: Program, u: mg.Field) -> None:
        with step.repeat(2):
            step.apply(average, u, u.next, region=LEFT)
            step.rotate(u)

    right, left = cells(mg.Box((0, 6), (7, 9))), cells(LEFT)
    plans: list[tuple[Any, list[np.ndarray]]] = [
        (store_in_branch, [left | right, right, left | right]),
        (rotate_in_branch, [left, left & False, left]),
        (loop, [left] * 6),
    ]
    for fill, masks in plans:
        step, u = recorded(fill)
        expected = START
        for mask in masks:
            expected = np.where(mask, averaged(expected), expected)
        np.testing.assert_allclose(run(step, u, 3), expected, rtol=1e-14, err_msg=fill.__name__)


def test_what_only_adjusts_the_next_level_leaves_other_cells_alone() -> None:
    """The level may have been stored by another Program, or be a mere change of places."""
    for kernel, amount in ((put, None), (add, 1.0)):
        u = mg.Field("u", GRID, slots=2)
        store, commit = Program("store"), Program("commit")
        store.apply(average, u, u.next)
        commit.apply(kernel, u.next, region=Region(points=[(2, 3)]))
        commit.rotate(u)
        with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
            engine.set(u, START)
            engine.run(store)
            engine.run(commit)
            expected = averaged(START)
            expected[2, 3] = 5.0 if amount is None else expected[2, 3] + amount
            np.testing.assert_allclose(engine.gather(u), expected, rtol=1e-14)


def test_old_values_that_a_copy_would_overwrite_are_refused() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = Program("step")
    step.apply(wave, u, u.previous, u.next, region=Region(colour=0))
    with pytest.raises(ProgramError, match=r"apply\(wave\) stores some cells of u\[1\] from the values that they held"):
        step.rotate(u)


def test_a_source_in_the_next_level_adds_to_what_is_kept() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = Program("step")
    step.apply(average, u, u.next, region=LEFT)
    step.apply(add, u.next)
    step.rotate(u)
    expected = START
    for _ in range(3):
        expected = np.where(cells(LEFT), averaged(expected), expected) + 1.0
    np.testing.assert_allclose(run(step, u, 3), expected, rtol=1e-14)


def test_changes_that_a_copy_would_lose_are_refused() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = Program("step")
    step.apply(put, u, region=LEFT)
    step.apply(average, u, u.next, region=RIGHT)
    step.rotate(u)
    step.apply(average, u, u.next, region=RIGHT)
    step.apply(put, u, region=RIGHT)
    step.rotate(u)
    step.apply(average, u, u.next, region=RIGHT)
    step.apply(put, u, region=LEFT)
    with pytest.raises(ProgramError, match=r"'put' changes u\[0\] in cells that u\[1\] has already taken over"):
        step.rotate(u)


def test_rotating_before_a_part_is_stored_is_refused() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = Program("step")
    step.rotate(u)
    step.apply(average, u.previous, u, region=INNER)
    with pytest.raises(ProgramError, match="'average' stores a part of u\\[0\\] after 'u' was rotated"):
        mg.Model("m", GRID, (u,), step)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        with pytest.raises(ProgramError, match="after 'u' was rotated"):
            engine.run(step, 2)
        whole = Program("whole")
        whole.rotate(u)
        whole.apply(average, u.previous, u)
        assert engine.run(whole, 2).ok


def test_a_field_is_rotated_once_at_a_time() -> None:
    u = mg.Field("u", GRID, slots=2)
    with pytest.raises(ProgramError, match="'u' is named twice"):
        Program("step").rotate(u, u)


def test_a_branch_that_is_not_taken_leaves_the_present_level() -> None:
    u = mg.Field("u", GRID, slots=2)
    flag = mg.Register("flag", "i8")
    step = Program("step")
    with step.when(flag % 2 == 1):
        step.apply(average, u, u.next)
    step.rotate(u)
    step.let(flag, flag + 1)
    np.testing.assert_allclose(run(step, u, 3), averaged(START), rtol=1e-14)


def test_a_rotation_that_is_included_keeps_what_was_not_stored() -> None:
    u = mg.Field("u", GRID, slots=2)
    step, turn = Program("step"), Program("turn")
    turn.rotate(u)
    step.apply(average, u, u.next, region=INNER)
    step.include(turn)
    expected, inner = START, cells(INNER)
    for _ in range(3):
        expected = np.where(inner, averaged(expected), expected)
    np.testing.assert_allclose(run(step, u, 3), expected, rtol=1e-14)
    whole = Program("whole")
    whole.apply(average, u, u.next)
    whole.include(turn)
    whole.include(whole)
    assert len(whole.operations) == 4


def test_cells_that_steps_never_store_need_equal_levels() -> None:
    u, other = mg.Field("u", GRID, slots=2), mg.Field("other", GRID)
    step = Program("step")
    step.apply(average, other, u.next, region=INNER)
    step.rotate(u)
    with pytest.raises(ProgramError, match="change between different initial levels"):
        mg.Model("m", GRID, (u, other), step, initial={u: START})
    mg.Model("m", GRID, (u, other), step, initial={u: START, u.next: START.copy()})
    step.apply(average, other, u.next, region=LEFT)
    step.apply(average, other, u.next, region=RIGHT)
    mg.Model("m", GRID, (u, other), step, initial={u: START})


def test_what_was_stored_before_a_loop_is_not_lost_in_silence() -> None:
    """The loop advances a part, and the other cells of the next level become the present ones again."""
    u = mg.Field("u", GRID, slots=2)
    step = Program("step")
    step.apply(average, u, u.next)
    with step.repeat(3):
        step.apply(average, u, u.next, region=LEFT)
        with pytest.raises(ProgramError, match=r"'average' stores u\[1\] before the loop") as caught:
            step.rotate(u)
    assert "rotate u before the loop" in str(caught.value)


def test_what_was_stored_before_a_loop_where_the_loop_stores_again_may_be_overwritten() -> None:
    def left_before(step: Program, u: mg.Field) -> None:
        step.apply(average, u, u.next, region=LEFT)

    def rotated_before(step: Program, u: mg.Field) -> None:
        step.apply(average, u, u.next)
        step.rotate(u)

    for before, first in ((left_before, START), (rotated_before, averaged(START))):
        u = mg.Field("u", GRID, slots=2)
        step = Program("step")
        before(step, u)
        with step.repeat(3):
            step.apply(average, u, u.next, region=LEFT)
            step.rotate(u)
        expected = first
        for _ in range(3):
            expected = np.where(cells(LEFT), averaged(expected), expected)
        np.testing.assert_allclose(run(step, u, 1), expected, rtol=1e-14)


def test_what_was_stored_before_nested_loops_is_not_lost_either() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = Program("step")
    step.call(lambda engine: None, writes=[u.next])
    with step.repeat(3), step.repeat(2):
        step.apply(average, u, u.next, region=LEFT)
        with pytest.raises(ProgramError, match=r"'<lambda>' stores u\[1\] before the loop"):
            step.rotate(u)


def test_a_field_of_one_level_is_not_rotated() -> None:
    u = mg.Field("u", GRID)
    with pytest.raises(ProgramError, match=r"field 'u' has a single slot(?s:.*)slots=2"):
        Program("step").rotate(u)
    with pytest.raises(ProgramError, match=r"rotate takes fields, found v\[1\]"):
        Program("step").rotate(mg.Field("v", GRID, slots=2).next)  # type: ignore[arg-type]
