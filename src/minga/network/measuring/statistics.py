"""Statistics of measured times: order statistics, confidence interval of the median, and modes.

They follow T. Hoefler, R. Belli, *Scientific Benchmarking of Parallel Computing Systems*, SC'15: report intervals of
the median, never hide outliers, and never report means alone.
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
"""Difference of the logarithms of consecutive values above which they may belong to different modes."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of the times of one size, in seconds except ``count``, ``lost`` and ``outliers``."""

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
    """Standard deviation estimated from the median absolute deviation."""
    outliers: float
    """Fraction of the times that are more than five median absolute deviations above the median, 0 to 1."""
    modes: tuple[tuple[float, float], ...]
    """(median in seconds, fraction of all times) of each cluster; one entry if there are no clusters."""

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics as JSON-serialisable data."""
        return asdict(self)


def summary(seconds: Sequence[float] | Floats) -> Summary:
    """Return the statistics of the times of one size; NaN stands for a lost message.

    Raises
    ------
    ValueError
        If all messages were lost.
    """
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
    """Return the confidence interval of the median of ordered values, without any assumption on their distribution.

    The interval is given by order statistics whose ranks follow from the binomial distribution with p = 1/2. With fewer
    than 6 values nothing can be said, and the interval is (-inf, inf).
    """
    count = len(ordered)
    if count < 6:
        return -math.inf, math.inf
    rank = _rank(count, confidence)
    return float(ordered[rank]), float(ordered[count - 1 - rank])


def modes(ordered: Floats, share: float = 0.1) -> tuple[tuple[float, float], ...]:
    """Return the clusters of ordered positive values as (median, fraction of all values).

    Clusters are separated by gaps of more than 28 %, and each has at least the fraction ``share`` of the values. A busy
    host shows a second cluster one scheduler tick later.
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
    """Return the largest r such that values r and count-1-r (from 0) enclose the median with that confidence."""
    tail = (1 - confidence) / 2
    if count > 1000:  # the normal approximation is sufficient
        return max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)) - 1)
    below, term, rank = 0.0, 0.5**count, -1
    for k in range(count):
        below += term
        if below > tail:
            break
        rank = k
        term *= (count - k) / (k + 1)
    return max(rank, 0)
