"""Wave forms: a voltage or light as a function of time, with the times at which a step has to end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np

from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, where
from minga.lang.math import cos, sin
from minga.space.field import TIME, Register

__all__ = ["Source", "Waveform"]

_MOST: Final = 100_000  # largest number of points


@dataclass(frozen=True, slots=True)
class Waveform:
    """A function of time: lines between points, constant before the first and after the last, and perhaps a sine.

    Parameters
    ----------
    times
        Times of the points, s, not negative and ascending; two points at the same time make a jump.
    values
        Values at these times.
    amplitude, frequency
        Amplitude and frequency, Hz, of a sine that begins at the last point.

    Raises
    ------
    CaseError
        If the points are not those of a function of time.
    """

    times: tuple[float, ...]
    values: tuple[float, ...]
    amplitude: float = 0.0
    frequency: float = 0.0

    def __post_init__(self) -> None:
        if not self.times or len(self.times) != len(self.values):
            raise CaseError(
                f"a wave form of {len(self.times)} times and {len(self.values)} values",
                remedy="give one value for each time",
            )
        if len(self.times) > _MOST:
            raise CaseError(f"a wave form of {len(self.times):,} points", remedy=f"give up to {_MOST:,} points")
        if not all(map(math.isfinite, (*self.times, *self.values, self.amplitude, self.frequency))):
            raise CaseError("a wave form with a number that is not finite", remedy="give finite times and values")
        if self.times[0] < 0.0:
            raise CaseError(f"a wave form that begins at {self.times[0]:g} s", remedy="times begin at 0, the start")
        for k, (before, after) in enumerate(zip(self.times, self.times[1:], strict=False)):
            if after < before:
                raise CaseError(
                    f"times of a wave form that are not in order: {after:g} s after {before:g} s (point {k + 2})",
                    remedy="sort the points by time",
                )
            if k + 2 < len(self.times) and self.times[k + 2] == before:
                raise CaseError(f"three points of a wave form at {before:g} s", remedy="two points make a jump")

    @property
    def beginning(self) -> float:
        """Value up to the first point."""
        return self.values[0]

    @property
    def jumps(self) -> tuple[float, ...]:
        """Times of the jumps."""
        points = tuple(zip(self.times, self.values, strict=True))
        return tuple(a for (a, x), (b, y) in pairwise(points) if a == b and x != y)

    @property
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest value."""
        last = (self.values[-1] - abs(self.amplitude), self.values[-1] + abs(self.amplitude))
        return min(*self.values, last[0]), max(*self.values, last[1])


@dataclass(frozen=True, eq=False)
class Source:
    """Recorder of a wave form's values; the segment between two points stays the same during a step.

    Attributes
    ----------
    segment
        Number of the present segment: 0 before the first point.
    """

    waveform: Waveform
    name: str
    segment: Register = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segment", Register(f"segment of {self.name}", "i8"))

    def advance(self, program: Program) -> None:
        """Record the choice of the segment that begins at or contains the present time."""
        with program.repeat(until=self.end > TIME, expected=1):
            program.let(self.segment, self.segment + 1)

    @property
    def end(self) -> Node:
        """End of the present segment, s."""
        return self._entry((*self.waveform.times, math.inf))

    def at(self, time: Any) -> Node:
        """Return the value at a time of the present segment, its end included."""
        w = self.waveform
        starts, values = (0.0, *w.times), (w.values[0], *w.values)
        line = self._entry(values) + self._slope() * (time - self._entry(starts))
        found = where(as_node(time) >= self.end, self._entry((*w.values, w.values[-1])), line)
        return found + w.amplitude * self._sine(time, sin) if w.amplitude else found

    def slope(self, time: Any) -> Node:
        """Return the derivative at a time of the present segment, its end included, 1/s."""
        w = self.waveform
        if not w.amplitude:
            return self._slope()
        return self._slope() + (w.amplitude * 2.0 * math.pi * w.frequency) * self._sine(time, cos)

    def _slope(self) -> Node:
        w = self.waveform
        gaps = zip(w.times, w.times[1:], w.values, w.values[1:], strict=False)
        inner = ((d - c) / (b - a) if b > a else 0.0 for a, b, c, d in gaps)
        return self._entry((0.0, *inner, 0.0))

    def _sine(self, time: Any, function: Any) -> Node:
        w = self.waveform
        since = where(self.segment >= len(w.times), time - w.times[-1], 0.0)
        on = where(self.segment >= len(w.times), 1.0, 0.0)
        return as_node(on * function(2.0 * math.pi * w.frequency * since))

    def _entry(self, values: tuple[float, ...]) -> Node:
        return mg.lookup(np.array(values, np.float64), self.segment)
