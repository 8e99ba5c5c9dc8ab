"""Observables over time: values after each observed step, in memory and as ``series.json``.

The file is ``{"step": [0, 10, ...], "population": [5, 11, ...], "histogram": [[...], [...], ...], ...}``: one list for
each observable, one entry for each step. The times of models with a clock are ``"time_observed"``. Numbers that are not
finite are ``null``.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minga.errors import DiskFullError
from minga.output.directory import RunDirectory, write_whole
from minga.space.names import OBSERVED_TIMES, STEP

__all__ = ["STEP", "TIMES", "Series", "SeriesFile"]

TIMES = OBSERVED_TIMES
"""Name of the entry with the times of the model, which models without a clock do not have."""

_SECONDS = 0.5
_SHARE = 0.02
"""Largest share of the run's time for writing: the file grows, and is written whole."""


class Series:
    """Observables of one run so far."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.times: list[float | None] = []
        self.values: dict[str, list[Any]] = {}

    def add(self, step: int, at: float | None, observables: Mapping[str, Any]) -> None:
        """Record the observables after a step; a step that is present already is not added again.

        Parameters
        ----------
        step
            The number of completed steps.
        at
            The time of the model; None without a clock.
        observables
            Values by name.
        """
        if self.steps and self.steps[-1] == step:
            return
        self.steps.append(step)
        self.times.append(at)
        for name, value in observables.items():
            self.values.setdefault(name, []).append(value)

    @classmethod
    def from_dict(cls, content: Mapping[str, Sequence[Any]], wanted: Callable[[int], bool]) -> Series:
        """Return the observables at the wanted steps, given the result of :meth:`as_dict`."""
        series = cls()
        times = content.get(TIMES)
        for number, step in enumerate(content.get(STEP, ())):
            if wanted(step):
                found = {name: values[number] for name, values in content.items() if name not in (STEP, TIMES)}
                series.add(step, None if times is None else times[number], found)
        return series

    def as_dict(self) -> dict[str, list[Any]]:
        """Return the series for JSON. The steps replace an observable called "step"."""
        times = {} if None in self.times else {TIMES: list(self.times)}
        return {**{name: _finite(values) for name, values in self.values.items()}, **times, STEP: list(self.steps)}


class SeriesFile:
    """Writer of a run's ``series.json``: at most twice a second, and less often when it has become long."""

    def __init__(self, directory: RunDirectory) -> None:
        self._path = directory.series
        self._series = Series()
        self._next = -math.inf

    @property
    def series(self) -> Series:
        """All observables so far."""
        return self._series

    def resume(self, step: int, wanted: Callable[[int], bool] = lambda at: True) -> None:
        """Resume with the file's entries for the first steps of the run, up to ``step``, that are wanted."""
        try:
            found = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return
        self._series = Series.from_dict(found, lambda at: at <= step and wanted(at))

    def add(self, step: int, at: float | None, observables: Mapping[str, Any]) -> None:
        """Record the observables after a step, as `Series.add`.

        If the disk is full they stay in memory, and are written when there is room, at the latest when the run ends.

        Raises
        ------
        RunError
            If the disk refuses otherwise.
        """
        self._series.add(step, at, observables)
        if time.monotonic() >= self._next:
            try:
                self.write()
            except DiskFullError:
                self._next = time.monotonic() + _SECONDS

    def write(self, *, lasting: bool = False) -> None:
        """Write all observables so far. ``lasting``: so that they survive a power failure.

        Raises
        ------
        RunError
            If the disk refuses.
        """
        if self._series.values:
            began = time.monotonic()
            write_whole(self._path, json.dumps(self._series.as_dict(), allow_nan=False) + "\n", lasting=lasting)
            ended = time.monotonic()
            self._next = ended + max(_SECONDS, (ended - began) / _SHARE)


def _finite(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
