"""What a function that a Program calls may look at and change, and how long views may be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minga as mg
from fake_device import FakeDevice
from minga.engine.program import Program
from minga.errors import LayoutError, ProgramError
from minga.space.cuts import slabs

GRID = mg.Grid((8, 6), periodic=True)
START = np.random.default_rng(3).random(GRID.shape)


@mg.kernel
def average(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def averaged(u: np.ndarray) -> np.ndarray:
    return 0.25 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1))


def stepping(u: mg.Field, function: Callable[[mg.Engine], None], **named: Any) -> Program:
    """The average of neighbours after a call."""
    step = Program("step")
    step.call(function, **named)
    step.apply(average, u, u.next)
    step.rotate(u)
    return step


def by_set(u: mg.Field) -> Callable[[mg.Engine], None]:
    def change(engine: mg.Engine) -> None:
        whole = engine.comm.bcast(engine.gather(u))
        engine.set(u, whole**2 + 1)

    return change


def by_views(u: mg.Field) -> Callable[[mg.Engine], None]:
    def change(engine: mg.Engine) -> None:
        for _, view in engine.blocks(u):
            view[...] = view**2 + 1

    return change


def by_touch(u: mg.Field) -> Callable[[mg.Engine], None]:
    def change(engine: mg.Engine) -> None:
        engine.touch(u)

    return change


@pytest.mark.parametrize("how", [by_set, by_views])
@pytest.mark.parametrize("device", ["cpu", "fake"])
@pytest.mark.parametrize(("ranks", "depth", "native"), [(1, 1, True), (2, 1, False), (3, 3, True)])
def test_neighbours_see_what_a_call_changed(how: Any, device: str, ranks: int, depth: int, native: bool) -> None:
    u = mg.Field("u", GRID, slots=2)
    step = stepping(u, how(u), reads=[u], writes=[u])

    def body(comm: mg.Comm) -> Any:
        on: Any = FakeDevice() if device == "fake" else "cpu"
        with mg.Engine(
            slabs(GRID.box, comm.size), grid=GRID, comm=comm, halo_depth=depth, native=native, device=on
        ) as engine:
            engine.set(u, START)
            engine.run(step)
            engine.run(step, 2)
            return engine.gather(u)

    expected = START
    for _ in range(3):
        expected = averaged(expected**2 + 1)
    np.testing.assert_allclose(mg.run_virtual(ranks, body)[0], expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("do", "says"),
    [
        (lambda e, u: e.set(u, 1.0), r"'change', .* changes u\[0\], and its writes are u\[1\]"),
        (lambda e, u: e.touch(u), r"changes u\[0\]"),
        (lambda e, u: e.blocks(u, write=True), r"changes u\[0\]"),
        (lambda e, u: e.blocks(u), r"looks at u\[0\], and it names no reads"),
        (lambda e, u: e.gather(u), r"looks at u\[0\]"),
        (lambda e, u: e.copy_out(u, GRID.box, np.zeros(GRID.shape)), r"looks at u\[0\]"),
        (lambda e, u: e.reset_registers(), "resets all registers"),
        (lambda e, u: e.close(), "releases the Program"),
        (lambda e, u: e.time_blocks(GRID), "releases the Program"),
    ],
)
def test_a_call_touches_only_what_it_names(do: Any, says: str) -> None:
    u = mg.Field("u", GRID, slots=2)

    def change(engine: mg.Engine) -> None:
        do(engine, u)

    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.set(u, START)
        with pytest.raises(ProgramError, match=says):
            engine.run(stepping(u, change, writes=[u.next]))
        engine.set(u, START)  # between runs all is allowed again
        assert engine.gather(u) is not None


@pytest.mark.parametrize(("reads", "writes", "says"), [((), (), "not among writes"), ((0,), (0,), "is read")])
def test_what_a_call_fills_is_written_and_not_read(reads: tuple[int, ...], writes: tuple[int, ...], says: str) -> None:
    """Checkpoints leave out the former values of such slots, so that a resumed run would not have them."""
    u = mg.Field("u", GRID)
    program = mg.Program("step")
    with pytest.raises(ProgramError, match=says):
        program.call(lambda engine: None, reads=[u] * len(reads), writes=[u] * len(writes), fills=[u])


def test_views_of_what_a_call_only_reads_cannot_be_written() -> None:
    u = mg.Field("u", GRID, slots=2)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.set(u, START)
        says = r"'change'.* view that is read-only, as those of u\[0\] are: its reads are u\[0\], its writes none"
        with pytest.raises(ProgramError, match=says) as caught:
            engine.run(stepping(u, by_views(u), reads=[u]))
        assert "writes=[...]" in str(caught.value)
        engine.set(u, START)


def test_a_view_can_be_written_until_the_next_run() -> None:
    u = mg.Field("u", GRID, slots=2)
    kept: list[np.ndarray] = []

    def keep(engine: mg.Engine) -> None:
        kept.append(engine.blocks(u)[0][1])
        kept[0][0, 0] = 0.0

    def late(engine: mg.Engine) -> None:
        kept[0][0, 0] = 1.0

    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        with pytest.raises(ValueError, match="read-only"):
            engine.blocks(u)[0][1][0, 0] = 1.0
        ((_, kept_outside),) = engine.blocks(u, write=True)
        kept_outside[...] = START
        engine.run(stepping(u, keep, writes=[u]))
        for view in (kept_outside, *kept):
            with pytest.raises(ValueError, match="read-only"):
                view[...] = 0.0
        engine.blocks(u, write=True)
        again = Program("again")
        again.call(late, writes=[u])
        with pytest.raises(ValueError, match="read-only"):
            engine.run(again)


def test_neighbours_see_what_was_written_between_runs() -> None:
    u = mg.Field("u", GRID, slots=2)
    step = stepping(u, lambda engine: None)

    def body(comm: mg.Comm) -> Any:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            engine.set(u, START)
            engine.run(step)
            for _, view in engine.blocks(u, write=True):
                view[...] += 1.0
            engine.run(step)
            return engine.gather(u)

    np.testing.assert_allclose(mg.run_virtual(2, body)[0], averaged(averaged(START) + 1), rtol=1e-14)


def test_what_only_rank_0_has_is_no_value_for_a_field() -> None:
    u = mg.Field("u", GRID, slots=2)

    def change(engine: mg.Engine) -> None:
        engine.set(u, engine.gather(u))

    def body(comm: mg.Comm) -> None:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            engine.run(stepping(u, change, writes=[u]))

    with pytest.raises(LayoutError, match=r"'u' is set to None.*\n.*gather gives the whole field on rank 0"):
        mg.run_virtual(2, body)


def test_a_run_that_a_call_tries_leaves_the_loop_around_it_alone() -> None:
    u = mg.Field("u", GRID, slots=2)
    other = stepping(u, lambda engine: None)
    calls: list[int] = []

    def tries(engine: mg.Engine) -> None:
        calls.append(1)
        with pytest.raises(ProgramError, match="runs Program"):
            engine.run(other, 7)

    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.run(stepping(u, tries), 3)
    assert len(calls) == 3
