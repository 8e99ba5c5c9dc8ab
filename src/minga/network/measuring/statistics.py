"""What a set of measured times says: order statistics, the interval of the median, and whether there are modes.

T. Hoefler, R. Belli, *Scientific Benchmarking of Parallel Computing Systems*, SC'15: report intervals of the median,
never hide outliers, no bare means.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Summary", "median_interval", "modes", "summary"]

Floats = NDArray[np.float64]

_GAP = 0.25
"""Neighbours in order that differ by more than this factor (as a logarithm) may lie in different modes."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Times of one size. All in seconds but ``count``, ``lost``, ``outliers`` and ``modes``."""

    count: int
    lost: int
    least: float
    p5: float
    median: float
    p95: float
    p99: float
    most: float
    mean: float
    low: float
    """Lower end of the 95 % interval of the median."""
    high: float
    deviation: float
    """Standard deviation as the median absolute deviation gives it."""
    outliers: float
    """Part of the times more than five median absolute deviations above the median, 0 to 1."""
    modes: tuple[tuple[float, float], ...]
    """(median, part of all) of each cluster of times; one entry where there are no clusters."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def summary(seconds: Sequence[float] | Floats) -> Summary:
    """Of the times of one size; NaN stands for a lost message. ValueError where none came back."""
    every = np.asarray(seconds, float)
    times = np.sort(every[np.isfinite(every)])
    if len(times) == 0:
        raise ValueError("no times to summarise: all messages were lost")
    median = float(np.median(times))
    low, high = median_interval(times)
    deviation = float(np.median(np.abs(times - median)))
    p5, p95, p99 = (float(q) for q in np.quantile(times, (0.05, 0.95, 0.99)))
    return Summary(
        count=len(times),
        lost=len(every) - len(times),
        least=float(times[0]),
        p5=p5,
        median=median,
        p95=p95,
        p99=p99,
        most=float(times[-1]),
        mean=float(times.mean()),
        low=low,
        high=high,
        deviation=1.4826 * deviation,
        outliers=float(np.mean(times > median + 5 * max(deviation, 0.01 * median))),
        modes=modes(times),
    )


def median_interval(ordered: Floats, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of the median of ordered values by order statistics, without any assumption about how they fall.

    The ranks are those of the binomial distribution with p = 1/2; with fewer than 6 values nothing can be said and the
    interval is (-inf, inf).
    """
    count = len(ordered)
    if count < 6:
        return -math.inf, math.inf
    rank = _rank(count, confidence)
    return float(ordered[rank]), float(ordered[count - 1 - rank])


def modes(ordered: Floats, share: float = 0.1) -> tuple[tuple[float, float], ...]:
    """Clusters of ordered positive values, parted by gaps of more than 28 %, each with at least ``share`` of them.

    A busy host shows a second cluster a scheduler's tick later.
    """
    count = len(ordered)
    needed = max(3, math.ceil(share * count))
    logs = np.log(np.maximum(ordered, 1e-12))
    cuts = [0]
    for at in np.flatnonzero(np.diff(logs) > _GAP) + 1:
        if at - cuts[-1] >= needed and count - at >= needed:
            cuts.append(int(at))
    cuts.append(count)
    return tuple((float(np.median(ordered[a:b])), (b - a) / count) for a, b in itertools.pairwise(cuts))


def _rank(count: int, confidence: float) -> int:
    """The largest r for which values r and count-1-r (from 0) enclose the median with that confidence."""
    tail = (1 - confidence) / 2
    if count > 1000:  # the normal distribution will do
        return max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)) - 1)
    below, term, rank = 0.0, 0.5**count, -1
    for k in range(count):
        below += term
        if below > tail:
            break
        rank = k
        term *= (count - k) / (k + 1)
    return max(rank, 0)
