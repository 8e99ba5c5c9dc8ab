"""Execution of one experiment of a study: what is not installed is left out by name, and disturbances are reported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from minga.errors import CaseError, LaunchError, RunError
from minga.studies.tinetti.labs import Bench, busy_cores, left_out

__all__ = ["run_experiment", "summary"]

Result = dict[str, Any]
Shared = TypeVar("Shared", bound=Bench)

_BUSY: Final = 0.5
"""Fraction of the cores in use by other programs above which times are meaningless."""


def run_experiment(title: str, experiment: Callable[[Shared], Result], bench: Shared, *, timed: bool = True) -> Result:
    """Run one experiment and return its result with its title and duration.

    Parameters
    ----------
    title
        Title of the result.
    experiment
        Function that measures; a LaunchError from it leaves the experiment out, other errors are failures.
    bench
        State shared by experiments.
    timed
        Whether the statements depend on times, which are not judged if other programs keep this machine busy.
    """
    began = time.perf_counter()
    before = busy_cores() if timed else None
    try:
        found = experiment(bench)
    except LaunchError as error:  # a tool that is not installed
        found = {"left out": left_out(error), "shape": {}}
    except (CaseError, RunError) as error:  # the other experiments are measured nevertheless
        found = {"failed": error.message, "shape": {"it comes to its end": False}}
    result = {"title": title, **found, "seconds": round(time.perf_counter() - began, 1)}
    cores = os.cpu_count() or 1
    if before is not None and before > _BUSY * cores:
        result["disturbed"] = f"other programs kept {before:.1f} of {cores} cores busy"
    return result


def summary(name: str, result: Mapping[str, Any]) -> str:
    """Return one line about a result: how many of its statements hold, and what was left out."""
    held = sum(map(bool, result["shape"].values()))
    without = result.get("left out", "")
    missing = ", ".join(without) if isinstance(without, Mapping) else without
    return f"{name} {result['title']}: {held} of {len(result['shape'])} statements hold" + (
        f"; left out: {missing}" if missing else ""
    )
