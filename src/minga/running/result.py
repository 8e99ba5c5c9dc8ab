"""Result of a run as data: ``result.json``, and the output of ``--json``."""

from __future__ import annotations

import json
import math
from typing import Any

from minga.engine.model import Model
from minga.errors import RunError
from minga.output.directory import RunDirectory
from minga.output.environment import environment
from minga.plan.step_costs import step_costs
from minga.running.session import Outcome

__all__ = ["result_of"]


def result_of(model: Model, outcome: Outcome, ranks: int, threads: int, directory: RunDirectory) -> dict[str, Any]:
    """Return the result of a run as data; raise RunError for an observable that JSON cannot represent."""
    return (
        {
            "model": model.name,
            "shape": list(model.grid.shape if outcome.window is None else outcome.window.shape),
            "steps": outcome.steps,
            "ended": outcome.ended.as_dict(),
            "ranks": ranks,
            "threads": threads,
            "seconds": outcome.seconds,
            "cells_per_second": outcome.cells_per_second,
            "digest": outcome.digest,
            "observables": {name: _plain(value, name) for name, value in outcome.observables.items()},
            "units": {name: unit for name, (unit, _) in model.quantities.items() if name in outcome.observables},
            "run": str(directory.path),
            "layout": outcome.layout,
            "costs": step_costs(model),
            "environment": environment(),
        }
        | ({} if model.clock is None else {"time": outcome.time, "time_unit": model.clock.unit})
        | _known_before(directory)
        | _found(outcome)
        | _window(outcome)
    )


def _known_before(directory: RunDirectory) -> dict[str, Any]:
    """Return the notes that were shown before the first step, if there are any."""
    try:
        return {"preflight": json.loads(directory.preflight.read_text())}
    except (OSError, ValueError):
        return {}


def _found(outcome: Outcome) -> dict[str, Any]:
    """Return the findings of the run as text and as data, if there are any."""
    if not outcome.findings:
        return {}
    return {"findings": [{"text": finding.text, **finding.facts} for finding in outcome.findings]}


def _window(outcome: Outcome) -> dict[str, Any]:
    """Return the cells of an unbounded plane on which the run ended, if it was on one."""
    return {} if outcome.window is None else {"window": {"lo": list(outcome.window.lo), "hi": list(outcome.window.hi)}}


def _plain(value: Any, name: str) -> Any:
    """Convert a value for JSON, in which numbers that are not finite become strings."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry, name) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    raise RunError(f"the observable {name!r} is {value!r}, which is neither a number nor a list of numbers")
