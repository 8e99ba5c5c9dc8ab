"""What a row weighs when a mesh is cut once, before the run: by the paper's recipe, and by its mean cost."""

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
"""Of the polynomial that the paper fits."""

_INTERVALS: Final = 100
"""Of Simpson's rule on each half."""


def simpson(values: Floats, width: float) -> float:
    """The integral of equally spaced values over `width`, by Simpson's rule; shape (2 n + 1,)."""
    step = width / (len(values) - 1)
    return float(step / 3 * (values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum()))


def area_ratio(progress: Floats, seconds: Floats) -> float:
    """Section 4 of the paper: area under the growing half of a fitted polynomial over that under its level half.

    `progress` in [0, 1] and `seconds` of one sub-cycle in one row, shape (samples,). It is not the row's mean cost: it
    takes the level half for a whole run, and one sub-cycle for all. CaseError for too few samples, or where the fitted
    level half has no positive area.
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
    """Weights of rows by the paper's recipe: the area ratio of phi's times in the rows `heavy`, 1 in all others."""
    progress = (np.arange(costs.samples) + 0.5) / costs.samples
    seconds = costs.seconds[:, SUBCYCLES.index("phi"), heavy[0] : heavy[1]].mean(axis=1)
    weights = np.ones(costs.rows)
    weights[heavy[0] : heavy[1]] = max(1.0, area_ratio(progress, seconds))
    return weights


def mean_cost(costs: RowCosts) -> Floats:
    """Weights of rows by what they cost over the whole run, in units of the cheapest row that costs anything."""
    mean = costs.mean
    some = mean[mean > 0]
    return mean / some.min() if len(some) else np.ones_like(mean)
