"""Weights of rows for cutting a mesh once before the run: by the paper's recipe, and by mean cost."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.studies.bounanos.costs import SUBCYCLES, RowCosts

__all__ = ["area_ratio", "mean_cost", "paper_area", "simpson"]

Floats = NDArray[np.float64]

DEGREE: Final = 5
"""Degree of the polynomial that the paper fits."""

_INTERVALS: Final = 100
"""Intervals of Simpson's rule on each half."""


def simpson(values: Floats, width: float) -> float:
    """Return the integral of equally spaced values, shape (2 n + 1,), over `width` by Simpson's rule."""
    step = width / (len(values) - 1)
    return float(step / 3 * (values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum()))


def area_ratio(progress: Floats, seconds: Floats) -> float:
    """Return the area under the growing half of a fitted polynomial over that under its level half (section 4).

    This differs from the mean cost of the row: it takes the level half for a whole run, and one sub-cycle for all.

    Parameters
    ----------
    progress, seconds
        Progress in [0, 1], and times of one sub-cycle in one row, shape (samples,).

    Raises
    ------
    CaseError
        If there are too few samples, or the fitted level half has no positive area.
    """
    if len(progress) <= DEGREE:
        raise CaseError(
            f"{len(progress)} samples for a polynomial of degree {DEGREE}", remedy=f"use more than {DEGREE} samples"
        )
    fitted = Polynomial.fit(progress, seconds, DEGREE)
    level, growing = (simpson(fitted(np.linspace(a, a + 0.5, 2 * _INTERVALS + 1)), 0.5) for a in (0.0, 0.5))
    if level <= 0:
        raise CaseError(
            "the polynomial fitted to a sub-cycle's times has no area in the first half: the times grow too steeply",
            remedy='weigh rows by their mean cost: weights = "mean-cost"',
        )
    return growing / level


def paper_area(costs: RowCosts, heavy: tuple[int, int]) -> Floats:
    """Return weights by the paper's recipe: the area ratio of phi's times in the rows `heavy`, 1 in all others."""
    progress = (np.arange(costs.samples) + 0.5) / costs.samples
    seconds = costs.seconds[:, SUBCYCLES.index("phi"), heavy[0] : heavy[1]].mean(axis=1)
    weights = np.ones(costs.rows)
    weights[heavy[0] : heavy[1]] = max(1.0, area_ratio(progress, seconds))
    return weights


def mean_cost(costs: RowCosts) -> Floats:
    """Return weights by the cost over the whole run, in units of the cheapest row with a cost."""
    mean = costs.mean
    some = mean[mean > 0]
    return mean / some.min() if len(some) else np.ones_like(mean)
