"""Ends of runs before their last step: conditions, fixed points, periods, wall time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.engine.condition import condition
from minga.engine.model import Over, Recurrence
from minga.engine.stop import Ended, Stop
from minga.running.loop import Result, drive
from minga.running.observers.series import Series
from thinned import thinned

GRID = mg.Grid((6, 70), periodic=True)


@mg.kernel
def count_up(u: object, new: object, *, modulus: int, most: int) -> None:
    new[0, 0] = mg.min((u[0, 0] + 1) % modulus, most)


@mg.kernel
def look(u: object) -> object:
    return {"total": mg.sum(u[0, 0]), "largest": mg.max(u[0, 0])}


def clock(modulus: int = 1000, most: int = 1000, *, start: int = 0) -> mg.Model:
    """All cells count up, to `most` or round `modulus`."""
    u = mg.Field("u", GRID, "i4", slots=2)
    step, observe = mg.Program("step"), mg.Program("observe")
    step.apply(count_up, u, u.next, modulus=modulus, most=most)
    step.rotate(u)
    found: Any = observe.apply(look, u)
    observables = {"total": found.total, "both": (found.total, found.largest)}
    recurrence = Recurrence((u.now,), (u.previous,))
    return mg.Model(
        "clock", GRID, (u,), step, {u: start}, observe=observe, observables=observables, recurrence=recurrence
    )


def nothing(every: int | None) -> list[mg.Observer]:
    """Make a run stop every so many steps."""
    return [] if every is None else [mg.observer(lambda simulation: None, every)]


def run(model: mg.Model, steps: int, stop: Stop | None, ranks: int = 1, **options: Any) -> Result:
    def on_rank(comm: Comm) -> Result:
        with mg.Engine(model.layouts("cartesian", comm.size), comm=comm, halo_depth=options.pop("depth", 1)) as engine:
            return drive(model, engine, steps, nothing(options.get("every")), until=stop)

    results = mg.run_virtual(ranks, on_rank)
    assert len({(r.steps, r.ended) for r in results}) == 1
    assert results[0].steps == results[0].ended.step
    return results[0]


@pytest.mark.few(2)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("chunks", [{}, {"every": 4}])
def test_conditions(ranks: int, chunks: dict[str, int]) -> None:
    cells = GRID.size
    for text, step in {
        f"total >= {7 * cells}": 7,
        f"total > {3 * cells} and not both[1] == 4": 5,
        f"both[0] == {9 * cells} or step >= 6": 6,
        f"0 < total - {2 * cells} <= {4 * cells} and (total / {cells} == 2.5 * 2)": 5,
        "-total < -10 * 100 * both[1]": 30,
    }.items():
        found = run(clock(), 30, Stop(when=text), ranks, **chunks)
        assert found.ended == Ended("condition" if step < 30 else "steps", step)
        assert found.observables["total"] == step * cells


def test_conditions_are_checked_as_often_as_asked() -> None:
    assert run(clock(), 30, Stop(when=f"total >= {7 * GRID.size}", every=5)).ended == Ended("condition", 10)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 4])
def test_a_fixed_point(ranks: int) -> None:
    assert run(clock(most=9), 100, Stop(fixed_point=True), ranks).ended == Ended("fixed point", 10, 1, 9)
    assert run(clock(most=9), 100, Stop(fixed_point=True, every=4), ranks).ended == Ended("fixed point", 12, 1, 11)
    assert run(clock(most=9), 100, Stop(period=5), ranks).ended == Ended("fixed point", 11, 1, 10)
    assert run(clock(), 20, Stop(fixed_point=True), ranks).ended == Ended("steps", 20)


@pytest.mark.parametrize("length", thinned([2, 7, 30], 2, 7))
def test_periods(length: int) -> None:
    for ranks, chunks in [(1, {}), (2, {"every": 5})]:
        assert run(clock(length), 500, Stop(period=30), ranks, **chunks).ended == Ended("period", length, length, 0)
    assert run(clock(length, start=100), 500, Stop(period=30)).ended == Ended("period", 30 + length, length, 30)
    assert run(clock(length), 200, Stop(period=length - 1)).ended == Ended("steps", 200)
    assert run(clock(length, start=100), 999, Stop(period=30, every=50)).ended == Ended(
        "period", 50 + length, length, 50
    )


def test_wall_time() -> None:
    ended = run(clock(), 10**9, Stop(wall_time="0.3 s"), 2).ended
    assert ended.reason == "wall time"
    assert 0 < ended.step < 10**9
    assert run(clock(), 5, Stop(wall_time=3600)).ended == Ended("steps", 5)
    assert [Stop(wall_time=text).seconds for text in (3, "90 s", "10 min", "2h", "1 d")] == [3, 90, 600, 7200, 86400]


def test_the_words_of_an_end() -> None:
    words = [str(run(clock(4), 50, stop).ended) for stop in (Stop(period=9), Stop(when="step > 2"), Stop(wall_time=60))]
    assert words == ["period 4 since step 0", "condition at step 3", "all 50 steps done"]
    assert Ended("fixed point", 8, 1, 7).as_dict() == {
        "reason": "fixed point", "step": 8, "period": 1, "since": 7, "text": "fixed point since step 7",
    }  # fmt: skip


def test_a_model_says_what_it_watched_for() -> None:
    """At any end but that by the model itself."""
    model = clock(50)
    count, done = mg.Register("count", "i8"), mg.Register("over", "i8")
    model.step.let(count, count + 1)
    model.step.let(done, count // 7)
    watching = replace(model, over=Over(done, lambda _: "seven", lambda _: "never seven"))
    for steps, stop, text in (
        (5, None, "all 5 steps done; never seven"),
        (9, Stop(when="step > 2"), "condition at step 3; never seven"),
        (9, None, "seven, in step 7"),
    ):
        ended = run(watching, steps, stop).ended
        assert str(ended) == ended.as_dict()["text"] == text


@mg.kernel
def half(u, new):
    new[0] = u[0] * 0.5
    return mg.max(u[0])


def test_a_step_that_does_not_converge_is_an_error_all_the_same() -> None:
    u = mg.Field("u", mg.Grid((8,), periodic=(True,)), slots=2)
    step, largest = mg.Program("step"), mg.Register("largest")
    step.let(largest, 1.0)
    with step.repeat(until=largest < 1e-9, limit=3):
        step.let(largest, step.apply(half, u, u.next))
        step.rotate(u)
    model = mg.Model(name="halves", grid=u.grid, fields=(u,), step=step, initial={"u": 1.0})
    for stop in (None, mg.Stop(when="step > 100"), mg.Stop(wall_time=100)):
        with pytest.raises(mg.RunError, match="after 1 of 5 steps: limit"):
            mg.run(model, 5, stop=stop)


def test_an_engine_can_be_driven_again() -> None:
    model = clock(5)
    with mg.Engine(model.layouts("cartesian", 1)) as engine:
        for _ in range(2):
            assert drive(model, engine, 50, until=Stop(period=9)).ended == Ended("period", 5, 5, 0)


def test_observation_between_frames() -> None:
    seen: list[int] = []
    model = clock()
    with mg.Engine(model.layouts("cartesian", 1)) as engine:
        drive(model, engine, 10, [Series(lambda step, time, values: seen.append(step), (5, 3))])
    assert seen == [0, 3, 5, 6, 9, 10]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("totel > 1", "'total'"), ("total", "neither true nor false"), ("total >", "not a condition"),
        ("both > 1", "is a list of 2 numbers"), ("both[2] > 1", r"no both\[2\]"), ("total[0] > 1", r"no total\[0\]"),
        ("__import__('os') == 0", "cannot be part"), ("total.real > 1", "cannot be part"),
        ("total in 5", "unknown way"), ("total < 1; total", "not a condition"), ("", "not a condition"),
        ("total ** 9 > 1", "cannot be part"), ("'a' < total", "cannot be part"), ("(" * 300 + "1", "not a condition"),
        ("x" * 2000, "2000 characters"), ("total < " + "9" * 400, "too large a number"),
        ("(lambda: total)() > 1", "part of"), ("total := 3", "not a condition"),
    ],
)  # fmt: skip
def test_conditions_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(mg.CaseError, match=message) as found:
        condition(text, clock().observables)
    assert found.value.key == "stop.when"


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"period": 0}, "stop.period"), ({"every": 0}, "stop.every"), ({"wall_time": "soon"}, "stop.wall_time"),
        ({"wall_time": -1}, "stop.wall_time"), ({"wall_time": "5 weeks"}, "stop.wall_time"),
        ({"when": "1 +"}, "stop.when"),
    ],
)  # fmt: skip
def test_stops_that_cannot_be_meant(options: dict[str, Any], key: str) -> None:
    with pytest.raises(mg.CaseError) as found:
        Stop(**options)
    assert found.value.key == key


@pytest.mark.slow
def test_models_that_draw_random_numbers_have_no_period() -> None:
    flip = mg.rule(lambda cell, near: mg.random() < 0.5)
    model = mg.automaton(flip, (8, 8), init={"fill": 0})
    with pytest.raises(mg.CaseError, match="draws random numbers"):
        run(model, 10, Stop(period=4))
    assert np.isclose(run(model, 10, Stop(when="population > 0")).ended.step, 1)
