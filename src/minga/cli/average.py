"""The command ``minga average``: average observables of a run over time, with standard errors."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.engine.clock import Clock
from minga.errors import CaseError, suggest
from minga.output.averages import DRIFT, FEWEST, time_average
from minga.output.directory import RunDirectory
from minga.output.series import STEP, TIMES, SeriesFile
from minga.output.store import FrameReader

__all__ = ["average"]

EVEN: Final = 1e-6
"""Relative difference of intervals that still count as equal."""


COUNTED: Final = re.compile("time|dt|segment|(steps|rejected)_.*|(.*_)?(passes|iterations|sweeps)")
"""Names of observables that tell how far the run is, and are averaged only if they are named."""


def average(run: Path, names: Sequence[str], after: str) -> str:
    """Return the averages of observables from the time `after` on, one line for each; without a clock, from that step.

    All observables that are numbers, except times and counts, are averaged if none is named.
    """
    directory = RunDirectory.open(run)
    series, units, unit = _series(directory), _units(directory), _unit_of_time(directory)
    begin = _begin(after, unit if TIMES in series else None)
    known = [name for name, values in series.items() if name not in (TIMES, STEP) and _numeric(values)]
    for name in names:
        if name not in known:
            raise CaseError(
                f"the run has no observable {name!r} that is a number; it has {', '.join(known)}",
                key="--of",
                suggestion=suggest(name, known),
            )
    clock = TIMES if TIMES in series else STEP
    at = np.asarray(series[clock], np.float64)
    kept = at >= begin
    at = at[kept]
    if len(at) < FEWEST:
        raise CaseError(
            f"{len(at)} samples lie from {begin:g} on; an average needs {FEWEST} or more",
            key="--after",
            remedy=_more_samples(series[clock]),
        )
    intervals = np.diff(at)
    if len(at) > FEWEST and intervals[-1] < (1.0 - EVEN) * intervals[:-1].min():
        # A run that ends early is observed where it ends, too.
        at, intervals = at[:-1], intervals[:-1]
        kept[-1] = False
    if len(intervals) and np.ptp(intervals) > EVEN * intervals.max():
        raise CaseError(
            f"the observables from {begin:g} on are {intervals.min():g} to {intervals.max():g} apart",
            key="--after",
            remedy="only samples at equal intervals have a standard error: begin later, or set output.observe = 1",
        )
    axis = "t =" if clock == TIMES else "step"
    of_time = f" {unit}" if clock == TIMES and unit not in (None, "1") else ""
    lines = []
    for name in names or [each for each in known if not COUNTED.fullmatch(each)]:
        of = "" if units.get(name, "1") == "1" else f" {units[name]}"
        found = time_average(np.asarray(series[name], np.float64)[kept])
        lines.append(
            f"{name}: mean {_measured(found.mean, found.mean_error)}{of}, fluctuation (rms) "
            f"{_measured(found.rms, found.rms_error)}{of}, {found.samples} samples from {axis} {at[0]:g} to "
            f"{at[-1]:g}{of_time}"
        )
        if found.drifts:
            first, second = found.halves
            lines.append(
                f"  its halves, {first:.4g} and {second:.4g}{of}, differ by more than {DRIFT:g} standard errors: the "
                "state may still be changing; average from later on, or run longer"
            )
    return "\n".join(lines)


def _measured(value: float, error: float) -> str:
    """Return a value with its error, both to the second digit of the error."""
    if not error or not math.isfinite(error) or error < 1e-6 * abs(value):
        return f"{value:.6g} +- {error:.2g}"
    decimals = max(1 - math.floor(math.log10(error)), 0)
    if max(abs(value), error) >= 1e6 or decimals > 6:
        return f"{value:.{max(math.floor(math.log10(max(abs(value), error))) + decimals, 1)}e} +- {error:.1e}"
    return f"{value:.{decimals}f} +- {error:.{decimals}f}"


def _begin(after: str, unit: str | None) -> float:
    """Return the time or step from which to average, given without or with a unit."""
    try:
        return float(after)
    except ValueError:
        if unit is None:
            raise CaseError(
                f"{after!r}: the model has no clock", key="--after", remedy="give the number of a step"
            ) from None
    return Clock(dt=1.0, unit=unit).value(after, "--after")


def _more_samples(at: Sequence[float]) -> str:
    """Return how to get more samples than those at these times or steps."""
    if not at:
        return "the run has no observables"
    if len(at) < FEWEST:
        return f"the run has {len(at)}: observe more often, with output.observe = 1 in the case"
    return f"the observables are those from {at[0]:g} to {at[-1]:g}: begin earlier, or set output.observe = 1"


def _units(directory: RunDirectory) -> dict[str, str]:
    """Return the units of observables by name, as far as a finished run states them."""
    with contextlib.suppress(OSError, ValueError):
        units = json.loads(directory.result.read_text()).get("units", {})
        return {str(name): str(unit) for name, unit in units.items()}
    return {}


def _unit_of_time(directory: RunDirectory) -> str | None:
    """Return the unit of the model's time; None without frames or a clock."""
    return FrameReader.open(directory.fields).unit if directory.fields.exists() else None


def _series(directory: RunDirectory) -> dict[str, list[Any]]:
    file = SeriesFile(directory)
    file.resume(2**62)
    return file.series.as_dict()


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
