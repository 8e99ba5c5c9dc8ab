"""Settings of a run that a model provides if the user leaves them out."""

from __future__ import annotations

from typing import Any

from minga.engine.model import Model
from minga.options import RunOptions

__all__ = ["completed", "steps_of"]


def steps_of(model: Model) -> dict[str, int]:
    """Return the entry `steps` of [run] that a model asks for; empty if it asks for none."""
    return {} if model.steps is None else {"steps": model.steps}


def completed(options: RunOptions, model: Model) -> RunOptions:
    """Return options with the entries of [output] that a model asks for and the user left out.

    They are the steps between observations where it has traces or tables, and the window of its frames.
    """
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
