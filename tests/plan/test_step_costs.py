"""Runs that are over before ranks would have started."""

from __future__ import annotations

from typing import Any

import minga as mg
from minga.engine.model import Model
from minga.plan.step_costs import is_short


@mg.kernel
def smooth(u: Any, new: Any) -> Any:
    mean = 0.5 * (u[0, 1] + u[0, -1])
    new[0, 0] = mean
    return {"change": mg.max(abs(mean - u[0, 0]))}


def relaxed(rounds: int | None, *, called: bool = False) -> Model:
    """Return a model that smooths a field `rounds` times in a step, or until it changes little."""
    grid = mg.Grid((64, 64), periodic=True)
    u, change = mg.Field("u", grid, "f8", slots=2), mg.Register("change", "f8")
    step = mg.Program("relax")
    with step.repeat(rounds) if rounds else step.repeat(until=change < 1e-8, limit=1000):
        step.apply(smooth, u.now, u.next, into={"change": change})
        step.rotate(u)
    if called:
        step.call(lambda engine: None, reads=[u])
    return mg.Model("relax", grid, (u,), step)


def test_a_run_is_short_if_its_kernels_take_less_time_than_a_start() -> None:
    assert is_short(relaxed(1), 100)
    assert is_short(relaxed(10), 100)
    assert not is_short(relaxed(1), 10_000_000)
    assert not is_short(relaxed(100_000), 100)
    assert not is_short(relaxed(1), 0)


def test_logic_counts() -> None:
    """A rule of cells in bits has no arithmetic."""
    model = mg.automaton("R5,C0,M1,S34..58,B34..45,NM", (256, 256), init={"fill": 0})
    assert is_short(model, 1000)
    assert not is_short(model, 100_000)


def test_a_run_of_unknown_cost_is_not_short() -> None:
    assert not is_short(relaxed(None), 1)
    assert not is_short(relaxed(1, called=True), 1)
