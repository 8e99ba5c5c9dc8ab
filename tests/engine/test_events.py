"""Events: every command that takes time, once, with the ledger's seconds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.engine.events import EventLog, Timeline
from minga.engine.loop_code import is_supported
from minga.engine.workers import Workers
from minga.space.cuts import slabs

needs_native = pytest.mark.skipif(not is_supported(), reason="the native loop exists on Linux only")
NATIVE = [pytest.param(True, marks=needs_native), False]
GRID = mg.Grid((64, 64), periodic=True)


@mg.kernel
def spread(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    return mg.max(u[0, 0])


def look(engine: mg.Engine) -> None:
    """Something that a step does in Python."""


def program() -> tuple[mg.Field, mg.Program]:
    u = mg.Field("u", GRID, "f8", slots=2)
    step = mg.Program("step")
    step.apply(spread, u, u.next)
    step.rotate(u)
    step.call(look, reads=(u,))
    return u, step


def run(native: bool, trace: int, steps: int = 20) -> tuple[Timeline | None, dict[str, float], np.ndarray]:
    u, step = program()
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID, native=native, trace=trace) as engine:
        engine.set(u, lambda box: np.arange(box.size, dtype="f8").reshape(box.shape))
        engine.run(step, steps)
        return engine.events, dict(engine.ledger.seconds), engine.gather(u)


def check_order(timeline: Timeline) -> None:
    """One command after the other, and none before the one it follows is over."""
    for (_, start, duration, polled), (_, following, _, _) in pairwise(timeline.rows.tolist()):
        assert start > 0
        assert 0 <= polled <= duration
        assert following >= start + duration - 1  # nanoseconds are rounded


@pytest.mark.parametrize("native", NATIVE)
def test_the_events_add_up_to_the_ledger(native: bool) -> None:
    timeline, seconds, _ = run(native, 1 << 12)
    assert timeline is not None
    assert timeline.lost == 0
    check_order(timeline)
    for category, total in timeline.seconds().items():
        assert total == pytest.approx(seconds[category], rel=0.02, abs=2e-5)
    names = [timeline.entries[number].name for number in timeline.rows[:, 0].tolist()]
    assert names.count("look") == 20
    assert names.count("spread") == 20
    assert {entry.cells for entry in timeline.entries if entry.name == "spread"} == {64 * 64}
    assert sum(seconds.values()) > 0


@pytest.mark.parametrize("native", NATIVE)
def test_a_full_ring_keeps_the_last_events(native: bool) -> None:
    everything, _, state = run(native, 1 << 12)
    timeline, _, same = run(native, 10)
    assert everything is not None
    assert timeline is not None
    assert len(timeline.rows) == 16  # the power of two above 10
    assert timeline.lost == len(everything.rows) - 16
    check_order(timeline)
    last = [everything.entries[number].name for number in everything.rows[-16:, 0].tolist()]
    assert [timeline.entries[number].name for number in timeline.rows[:, 0].tolist()] == last
    assert state.tobytes() == same.tobytes()


def test_nothing_is_kept_unless_asked_for() -> None:
    timeline, _, state = run(True, 0)
    assert timeline is None
    assert state.tobytes() == run(True, 100)[2].tobytes()


def test_sends_tell_what_they_send() -> None:
    def rank(comm: Comm) -> tuple[Timeline | None, Any]:
        u, step = program()
        with mg.Engine(slabs(GRID.box, 3), grid=GRID, comm=comm, trace=1000) as engine:
            engine.set(u, 1.0)
            engine.run(step, 5)
            return engine.events, engine.ledger

    for timeline, ledger in mg.run_virtual(3, rank):
        assert timeline is not None
        check_order(timeline)
        entries = [timeline.entries[number] for number in timeline.rows[:, 0].tolist()]
        sends = [entry for entry in entries if entry.category == "send"]
        assert {(entry.messages, entry.bytes) for entry in sends} == {(2, 2 * 64 * 8)}
        assert sum(entry.messages for entry in sends) == ledger.messages
        assert sum(entry.bytes for entry in sends) == ledger.bytes
        assert sum(entry.name == "reduce max" for entry in entries) == 5


def test_room_for_one_event() -> None:
    with Workers() as workers:
        log = EventLog(1, workers, native=False)
        for number in range(3):
            log.add(0, number, number + 1)
        assert log.timeline().lost == 2
        assert len(log.timeline().rows) == 1


@needs_native
def test_other_threads_work_within_the_commands_of_the_first() -> None:
    grid = mg.Grid((512, 512), periodic=True)
    u = mg.Field("u", grid, "f8", slots=2)
    step = mg.Program("step")
    step.apply(spread, u, u.next)
    step.rotate(u)
    with mg.Engine(mg.Layout.single(grid.box, 1), grid=grid, threads=2, trace=1 << 12) as engine:
        engine.run(step, 200)
        timeline = engine.events
    assert timeline is not None
    assert len(timeline.workers) == 1
    assert len(timeline.workers[0]) > 0
    spans = {start: (number, start + duration) for number, start, duration, _ in timeline.rows.tolist()}
    starts = np.array(sorted(spans))
    slack = 20_000  # nanoseconds: cores read their clocks out of step, and a thread may lose its core as it does
    for number, start, duration, polled in timeline.workers[0].tolist():
        middle = start + duration // 2
        begun = int(starts[np.searchsorted(starts, middle, "right") - 1])
        around, end = spans[begun]
        assert (around, polled) == (number, 0)
        assert begun - slack <= start
        assert start + duration <= end + slack


@pytest.mark.parametrize("native", NATIVE)
def test_several_programs_share_the_ring(native: bool) -> None:
    u, step = program()
    other = mg.Program("other")
    other.apply(spread, u, u.next)
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID, native=native, trace=1000) as engine:
        engine.run(step, 2)
        engine.run(other)
        engine.run(step, 2)
        timeline = engine.events
    assert timeline is not None
    names = [timeline.entries[number].name for number in timeline.rows[:, 0].tolist()]
    assert [name for name in names if name in ("spread", "look")] == ["spread", "look"] * 2 + ["spread"] + [
        "spread",
        "look",
    ] * 2
