"""Observables that loops of steps record: the same as those observed between steps, with few returns to Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.errors import RunError
from minga.running.observers.series import Series
from minga.running.recording import Recording

GRID = mg.Grid((6, 128))
SERIES = list[tuple[int, float | None, dict[str, Any]]]


@mg.kernel
def _raised(u: Any, new: Any, *, end: float) -> None:
    new[0, 0] = u[0, 0] + mg.where(u[0, 0] < end, 1.0, mg.sqrt(end - 0.5 - u[0, 0]))


@mg.kernel
def _seen(u: Any, *, end: float) -> dict[str, Any]:
    return {"many": mg.count(u[0, 0] > 2.0), "total": mg.sum(mg.sqrt(end - u[0, 0]))}


def counting(clock: mg.Clock | None = None, *, grows_until: float = 1e9, seen_until: float = 1e9) -> mg.Model:
    """All cells count steps; beyond some numbers they, or an observable, are not finite."""
    u = mg.Field("u", GRID, slots=2)
    step, observe = mg.Program("step"), mg.Program("observe")
    step.apply(_raised, u, u.next, end=grows_until)
    step.rotate(u)
    found: Any = observe.apply(_seen, u, end=seen_until)
    twice = mg.Register("twice", "i8")
    observe.let(twice, found.many * 2)
    observables = {"total": found.total, "both": (found.many, twice), "same": (found.total, found.total)}
    return mg.Model("counting", GRID, (u,), step, {u: 0.0}, observe=observe, observables=observables, clock=clock)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No loop records."""
    with monkeypatch.context() as patch:
        patch.setattr(Recording, "of", lambda *_: None)
        yield patch


def series_of(
    model: mg.Model, steps: int, intervals: tuple[Any, ...], ranks: int = 1, *others: mg.Observer
) -> tuple[SERIES, int, str]:
    """Series of a run, the number of runs of Programs on a rank, and the error that ended it."""

    def run(comm: Comm) -> tuple[SERIES, int, str]:
        found: SERIES = []
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            runs, original, failure = [0], engine.run, ""

            def counted(program: mg.Program, times: int = 1) -> Any:
                runs[0] += 1
                return original(program, times)

            engine.run = counted  # type: ignore[method-assign]
            series = Series(lambda step, time, seen: found.append((step, time, dict(seen))), intervals)
            try:
                mg.drive(model, engine, steps, [series, *others])
            except RunError as error:
                failure = str(error)
            return found, runs[0], failure

    return mg.run_virtual(ranks, run)[0]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("clock", [None, mg.Clock(dt=0.25)])
@pytest.mark.parametrize("intervals", [(1,), (3,), (2, 7), (2, 6)])
def test_a_loop_records_what_is_observed_between_steps(
    intervals: tuple[int, ...], clock: mg.Clock | None, ranks: int, between: pytest.MonkeyPatch
) -> None:
    expected, slow, _ = series_of(counting(clock), 100, intervals, ranks)
    between.undo()
    found, runs, _ = series_of(counting(clock), 100, intervals, ranks)
    assert found == expected
    assert [step for step, *_ in found] == [
        0,
        *(k for k in range(1, 101) if k == 100 or not all(map(k.__mod__, intervals))),
    ]
    assert found[30][2]["both"] == [768, 1536]
    assert 4 * runs < 3 * slow


def test_other_observers_see_the_steps_at_which_they_are_due(between: pytest.MonkeyPatch) -> None:
    def run() -> tuple[list[tuple[int, Any]], SERIES]:
        seen: list[tuple[int, Any]] = []
        other = mg.observer(lambda run: seen.append((run.step, run.observe()["total"])), steps=13)
        return seen, series_of(counting(), 60, (2,), 1, other)[0]

    expected = run()
    between.undo()
    found = run()
    assert found == expected
    assert [step for step, _ in found[0]] == [13, 26, 39, 52]


def test_observables_that_are_not_finite_end_no_run(between: pytest.MonkeyPatch) -> None:
    model = counting(seen_until=29.5)
    expected, slow, failure = series_of(model, 60, (2,))
    between.undo()
    found, runs, other = series_of(model, 60, (2,))
    assert failure == other == ""
    assert [step for step, *_ in found] == [step for step, *_ in expected] == list(range(0, 61, 2))
    assert repr(found) == repr(expected)  # NaN among them
    assert np.isnan(found[-1][2]["total"])
    assert runs < slow


def test_a_step_that_fails_is_named_and_rows_before_it_are_kept(between: pytest.MonkeyPatch) -> None:
    u = mg.Field("u", GRID, slots=2)
    model = counting(grows_until=29.5)
    step = mg.Program("step")
    step.include(model.step)
    largest: Any = step.apply(mg.kernel(_largest), model.fields[0])
    observables = {**model.observables, "largest": largest}
    model = replace(model, step=step, observables=observables)
    assert u.grid == model.grid
    expected, _, failure = series_of(model, 60, (1,))
    between.undo()
    found, _, other = series_of(model, 60, (1,))
    assert "after 31 of 60 steps" in failure
    assert other == failure
    assert found == expected
    assert len(found) == 31


def _largest(u: Any) -> Any:
    return mg.max(u[0, 0])


@pytest.mark.parametrize("clock", [mg.Clock(time=mg.TIME), mg.Clock(dt=mg.Register("dt", initial=0.5))])
def test_clocks_that_are_read_are_read_between_steps(clock: mg.Clock) -> None:
    model = counting(clock)
    step = mg.Program("step")
    step.include(model.step)
    step.let(mg.TIME, mg.TIME + (0.5 if clock.dt is None else clock.dt))
    found, *_ = series_of(replace(model, step=step), 20, (2,))
    assert [time for _, time, _ in found] == [0.5 * step for step, *_ in found]


def test_conditions_end_runs_where_they_did() -> None:
    found = mg.run(counting(), steps=50, observe=1, stop=mg.Stop(when="total < 0 or step >= 17"))
    assert found.attrs["steps"] == 17
    assert found.total.sizes == {"observed": 18}
