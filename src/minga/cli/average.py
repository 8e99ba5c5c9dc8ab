"""The command ``minga average``: average observables of a run over time, with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from minga.errors import CaseError, suggest
from minga.output.averages import FEWEST, time_average
from minga.output.directory import RunDirectory
from minga.output.series import STEP, TIMES, SeriesFile

__all__ = ["average"]

EVEN: Final = 1e-6
"""Relative difference of intervals that still count as equal."""


def average(run: Path, names: Sequence[str], after: float) -> str:
    """Return the averages of observables from the time `after` on, one line for each; without a clock, from that step.

    All observables that are numbers are averaged if none is named.
    """
    series = _series(run)
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
    kept = at >= after
    at = at[kept]
    if len(at) < FEWEST:
        raise CaseError(
            f"{len(at)} samples lie from {after:g} on; an average needs {FEWEST} or more",
            key="--after",
            remedy=f"the observables are those from {series[clock][0]:g} to {series[clock][-1]:g}: begin earlier"
            if series[clock]
            else "the run has no observables",
        )
    intervals = np.diff(at)
    if len(at) > FEWEST and intervals[-1] < (1.0 - EVEN) * intervals[:-1].min():
        # A run that ends early is observed where it ends, too.
        at, intervals = at[:-1], intervals[:-1]
        kept[-1] = False
    if len(intervals) and np.ptp(intervals) > EVEN * intervals.max():
        raise CaseError(
            f"the observables from {after:g} on are {intervals.min():g} to {intervals.max():g} apart",
            key="--after",
            remedy="only samples at equal intervals have a standard error: begin later, or set output.observe = 1",
        )
    unit = "t =" if clock == TIMES else "step"
    lines = []
    for name in names or known:
        found = time_average(np.asarray(series[name], np.float64)[kept])
        lines.append(
            f"{name}: mean {found.mean:.6g} +- {found.mean_error:.2g}, fluctuation (rms) {found.rms:.4g} +- "
            f"{found.rms_error:.2g}, {found.samples} samples from {unit} {at[0]:g} to {at[-1]:g}"
        )
    return "\n".join(lines)


def _series(run: Path) -> dict[str, list[Any]]:
    directory = RunDirectory.open(run)
    file = SeriesFile(directory)
    file.resume(2**62)
    return file.series.as_dict()


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
