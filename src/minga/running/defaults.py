"""Settings of a run that a model provides if the user leaves them out, and times in the unit of its clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from minga.engine.clock import Clock, Interval
from minga.engine.comm import Comm
from minga.engine.model import Model
from minga.engine.pin import available_cores
from minga.errors import CaseError
from minga.options import RunOptions, ending
from minga.running.pace import check_end
from minga.space.field import Register

__all__ = ["completed", "default_threads", "run_entries", "steps_of"]

_CELLS_A_THREAD: Final = 65536
_UNKNOWN: Final = 1000
"""Number of steps that plans assume where an adaptive model chooses them."""


def steps_of(model: Model) -> dict[str, int]:
    """Return the entry `steps` of [run] that a model asks for; empty if it asks for none."""
    return {} if model.steps is None else {"steps": model.steps}


def default_threads(model: Model, comm: Comm) -> int:
    """Return the threads of each rank that a run from Python takes, the same on all ranks; collective.

    The free physical cores of a node are shared by its ranks; fields of fewer than `_CELLS_A_THREAD` cells for each
    thread would be slower on more threads.
    """
    beside = 1
    if comm.size > 1:
        beside = comm.bcast(comm.gather(comm.node)).count(comm.node)
    cells = model.grid.size // comm.size
    fewest = np.array([-max(1, min(len(available_cores()) // beside, cells // _CELLS_A_THREAD))], np.int64)
    comm.allreduce(fewest, "max")
    return -int(fewest[0])


def run_entries(model: Model | None, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table [run] with a number of steps: its own, that of `until`, or that of the model, if it is known.

    Raises
    ------
    CaseError
        If the table has both `steps` and `until`, or `until` is a whole number.
    """
    if run.get("until") is not None:
        return ending(run)
    return {**({"steps": 0} if model is None else steps_of(model)), **run}


def completed(options: RunOptions, model: Model) -> RunOptions:
    """Return options with the entries that a model asks for and the user left out, and with times resolved.

    The entries are the steps between observations where the model has traces or tables, and the window of its frames.
    Times are numbers in the unit of the model's clock, or numbers of steps if all its steps have one length.

    Raises
    ------
    CaseError
        For a time that the model's clock cannot reach.
    """
    options = _timed(options, model)
    found: dict[str, Any] = {}
    output = options.output
    if output.observe is None and model.traces is not None:
        found["observe"] = model.traces.every
    elif output.observe is None and model.tables:
        found["observe"] = 1
    if output.region is None and model.window is not None:
        window = zip(model.grid.axes, model.window.lo, model.window.hi)
        found["region"] = {axis: (low, high) for axis, low, high in window}
    return options.model_copy(update={"output": output.model_copy(update=found)}) if found else options


def _timed(options: RunOptions, model: Model) -> RunOptions:
    """Return options with times in the unit of the model's clock, or as numbers of steps."""
    run, output, checkpoint = options.run, options.output, options.checkpoint
    update: dict[str, Any] = {}
    if run.until is not None:
        clock = _clock(model, "run.until", run.until)
        end = clock.value(run.until, "run.until")
        update["run"] = run.model_copy(update={"until": end, "steps": _expected(model, clock, end)})
    several = {name: _interval(model, getattr(output, name), f"output.{name}") for name in ("every", "observe")}
    if several != {name: getattr(output, name) for name in several}:
        update["output"] = output.model_copy(update=several)
    if isinstance(checkpoint.every, float | str) and checkpoint.every != "off":
        every = _interval(model, checkpoint.every, "checkpoint.every")
        update["checkpoint"] = checkpoint.model_copy(update={"every": every})
    return options.model_copy(update=update) if update else options


def _clock(model: Model, key: str, given: float | str) -> Clock:
    """Return the clock of a model; CaseError if it cannot reach the time that was given for the entry `key`."""
    check_end(model, key, given)
    assert model.clock is not None
    return model.clock


def _interval(model: Model, given: Interval | None, key: str) -> int | float | None:
    """Return an interval as a number of steps or a time."""
    if given is None or isinstance(given, int):
        return given
    clock = _clock(model, key, given)
    time = clock.value(given, key)
    return clock.steps_to(time, key) if clock.kind == "constant" else time


def _expected(model: Model, clock: Clock, end: float) -> int:
    """Return the number of steps to a time, which is an estimate if steps differ in length."""
    if clock.kind == "constant":
        return clock.steps_to(end, "run.until")
    if not isinstance(clock.dt, Register):
        return _UNKNOWN
    longest = float(model.registers.get(clock.dt, clock.dt.initial))
    if not 0 < longest < math.inf:
        raise CaseError(
            f"model {model.name!r}: the length of a step, the register {clock.dt.name!r}, starts at {longest!r}",
            key="run.until",
            remedy="give the longest step: registers={dt: 0.01}, or mg.Register('dt', initial=0.01)",
        )
    return max(1, math.ceil(end / longest - 1e-9))
