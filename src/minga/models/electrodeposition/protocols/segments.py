"""The parts of a program of currents and voltages, in SI units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = [
    "LIMITS",
    "STRONGEST",
    "Closing",
    "Limit",
    "Part",
    "Repeat",
    "Segment",
    "duration_of",
    "flattened",
    "largest_current",
    "largest_voltage",
    "segments_of",
]

Limit = Literal["voltage", "current", "charge", "concentration"]
"""A quantity whose limit ends a segment."""
STRONGEST: Final = 1e9
"""Largest level of a program, A/m2 or V; far larger ones leave the range of the numbers that follow from them."""
LIMITS: Final[tuple[Limit, ...]] = ("voltage", "current", "charge", "concentration")
"""All such quantities."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A time during which a current or a voltage follows one formula, `level + slope t + amplitude sin(2 pi f t)`.

    Parameters
    ----------
    control
        The quantity that is given: the current density over the cathode's plane in A/m2, or the voltage of the anode
        relative to the cathode in V.
    level
        Its value at the beginning.
    slope
        Its rate of change, per s.
    amplitude, frequency
        Amplitude and frequency (Hz) of the sine.
    duration
        Longest duration, s; infinite if only limits end the segment.
    until
        Limits that end the segment earlier: voltage in V, current density in A/m2, charge density since the beginning
        of the segment in C/m2, lowest concentration of the metal's ion in mol/m3.
    points
        Number of time steps in a period of the sine.
    measured
        Whether the last period of the sine gives an impedance.
    """

    control: Literal["voltage", "current"]
    level: float
    slope: float = 0.0
    amplitude: float = 0.0
    frequency: float = 0.0
    duration: float = math.inf
    until: Mapping[Limit, float] = field(default_factory=dict)
    points: int = 0
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """Parts that are repeated in order.

    Parameters
    ----------
    times
        Number of repetitions.
    of
        The parts.
    """

    times: int
    of: tuple[Part, ...]


Part = Segment | Repeat


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a Repeat in terms of the numbers of segments.

    Parameters
    ----------
    first, last
        Its first and last segment.
    times
        Number of repetitions.
    """

    first: int
    last: int
    times: int


def segments_of(parts: Sequence[Part]) -> Iterator[Segment]:
    """Yield the segments in their order, repeated ones once."""
    for part in parts:
        if isinstance(part, Repeat):
            yield from segments_of(part.of)
        else:
            yield part


def flattened(parts: Sequence[Part], first: int = 0) -> list[Closing]:
    """Return the ends of repetitions in terms of the numbers of segments, inner ones before outer ones."""
    found: list[Closing] = []
    at = first
    for part in parts:
        if isinstance(part, Repeat):
            count = sum(1 for _ in segments_of(part.of))
            found += flattened(part.of, at)
            found.append(Closing(at, at + count - 1, part.times))
            at += count
        else:
            at += 1
    return found


def duration_of(parts: Sequence[Part]) -> float:
    """Return the longest duration of a program in s, infinite if limits alone end one of its segments."""
    return math.fsum(part.times * duration_of(part.of) if isinstance(part, Repeat) else part.duration for part in parts)


def largest_voltage(parts: Sequence[Part]) -> float:
    """Return the largest size of a given voltage, 0 if none is given."""
    return max(map(_extent, (s for s in segments_of(parts) if s.control == "voltage")), default=0.0)


def largest_current(parts: Sequence[Part]) -> float | None:
    """Return the largest size of a given current density, None if none is given."""
    return max(map(_extent, (s for s in segments_of(parts) if s.control == "current")), default=None)


def _extent(segment: Segment) -> float:
    """Return the largest size of the level of a segment."""
    final = segment.level + segment.slope * segment.duration if segment.slope else segment.level
    return max(abs(segment.level), abs(final)) + abs(segment.amplitude)
