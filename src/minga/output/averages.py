"""Averages over time of a fluctuating quantity, with their statistical uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import CaseError

__all__ = ["DRIFT", "FEWEST", "TimeAverage", "time_average"]

FEWEST: Final = 8
"""Smallest number of blocks from which an uncertainty is estimated."""
DRIFT: Final = 4.0
"""Standard errors of the mean by which the halves of a steady state rarely differ: two of their difference."""


@dataclass(frozen=True, slots=True)
class TimeAverage:
    """The average of a quantity over time.

    Attributes
    ----------
    mean, rms
        The mean, and the root mean square of the fluctuation around it.
    mean_error, rms_error
        Their standard errors.
    samples
        Number of samples.
    halves
        Means of the first and of the second half of the samples.
    """

    mean: float
    rms: float
    mean_error: float
    rms_error: float
    samples: int
    halves: tuple[float, float]

    @property
    def drifts(self) -> bool:
        """True if the halves differ more than those of a steady state usually do."""
        first, second = self.halves
        return abs(second - first) > DRIFT * self.mean_error


def time_average(values: ArrayLike) -> TimeAverage:
    """Average samples of a fluctuating quantity at equal intervals of time.

    Successive samples are correlated. The standard error is therefore estimated from means of blocks (Flyvbjerg and
    Petersen, J. Chem. Phys. 91, 1989): pairs are averaged again and again, and the estimate grows until blocks are
    longer than the correlations. The largest estimate from at least eight blocks is returned.

    Parameters
    ----------
    values
        Samples of the statistically steady state, without the transient before it; at least eight.

    Returns
    -------
    TimeAverage
        Mean, root mean square of the fluctuation, and their standard errors.

    Raises
    ------
    CaseError
        If there are fewer than eight samples, or values that are not finite.
    """
    try:
        x = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        x = np.zeros((0, 0))
    if x.ndim != 1 or len(x) < FEWEST or not np.isfinite(x).all():
        raise CaseError(
            f"expected at least {FEWEST} finite numbers in one row, found an array of shape {x.shape}",
            key="values",
            remedy="average a longer interval, or observe more often",
        )
    mean = math.fsum(x) / len(x)
    squares = (x - mean) * (x - mean)
    rms = math.sqrt(math.fsum(squares) / len(x))
    error = _standard_error(squares)
    middle = len(x) // 2
    halves = math.fsum(x[:middle]) / middle, math.fsum(x[middle:]) / (len(x) - middle)
    return TimeAverage(mean, rms, _standard_error(x), error / (2.0 * rms) if rms else 0.0, len(x), halves)


def _standard_error(x: NDArray[np.float64]) -> float:
    """Return the standard error of the mean, the largest from blocks of 1, 2, 4, ... samples."""
    largest = 0.0
    while len(x) >= FEWEST:
        mean = math.fsum(x) / len(x)
        variance = math.fsum((x - mean) * (x - mean)) / (len(x) - 1)
        largest = max(largest, math.sqrt(variance / len(x)))
        half = len(x) // 2
        x = 0.5 * (x[: 2 * half : 2] + x[1 : 2 * half : 2])
    return largest
