"""Costs of rows from a smooth curve through a few measurements, cut into equal areas.

This is the application-level load balancing of I. A. Bounanos, M. Fleury, S. Nicolas and A. Vickers (*Load-balanced
drift-diffusion*, section 4): times are sampled from time to time, a polynomial of degree 5 is fitted to them, the area
under it is computed by Simpson's rule, and rows are distributed in equal areas. In addition to Simpson's rule, there is
the exact integral of the polynomial, and in addition to the paper's factor, which compares two areas, there is the
actual mean cost of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray

from minga.errors import LayoutError
from minga.plan.recut import divide
from minga.plan.work.weights import Weights
from minga.space.box import Box
from minga.space.boxes import Ints

__all__ = ["Profile", "equal_areas", "fit_profile", "weights_of_profile", "weights_of_rows"]

Floats = NDArray[np.float64]

DEGREE: Final = 5
"""Degree of the polynomial in the paper."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Cost against position (of a row, or of an iteration in time) as a polynomial between ``low`` and ``high``."""

    curve: Polynomial
    low: float
    high: float
    error: float
    """Root mean square of the residuals."""

    def at(self, positions: ArrayLike) -> Floats:
        """Return the costs at positions, which are never negative."""
        cost: Floats = np.maximum(np.asarray(self.curve(np.asarray(positions, float))), 0.0)
        return cost

    def area(self, low: float, high: float) -> float:
        """Return the exact integral of the polynomial."""
        whole = self.curve.integ()
        return float(whole(high) - whole(low))

    def simpson(self, low: float, high: float, intervals: int = 64) -> float:
        """Return the integral by Simpson's rule with an even number of intervals, which is exact up to degree 3."""
        if intervals < 2 or intervals % 2:
            raise LayoutError(f"Simpson's rule takes an even number of intervals, found {intervals}")
        values = np.asarray(self.curve(np.linspace(low, high, intervals + 1)))
        inner = 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum()
        return float((values[0] + inner + values[-1]) * (high - low) / (3 * intervals))

    def area_ratio(self, middle: float) -> float:
        """Return the paper's factor: the area above ``middle``, where costs grow, divided by the area below."""
        return self.simpson(middle, self.high) / self.simpson(self.low, middle)

    def mean_over(self, first: float) -> float:
        """Return the mean cost over all positions relative to ``first``: that of a row whose cost grows in this way."""
        return self.area(self.low, self.high) / (self.high - self.low) / first


def fit_profile(positions: ArrayLike, costs: ArrayLike, degree: int = DEGREE) -> Profile:
    """Fit a polynomial of a given degree to samples by least squares.

    Raises
    ------
    LayoutError
        If samples are not finite, have different shapes, or are at fewer than ``degree + 1`` different positions.
    """
    where, cost = np.asarray(positions, float), np.asarray(costs, float)
    if where.shape != cost.shape or where.ndim != 1 or not (np.isfinite(where).all() and np.isfinite(cost).all()):
        raise LayoutError(
            f"a profile needs one finite cost for each position, found shapes {where.shape} and {cost.shape}"
        )
    if len(np.unique(where)) <= degree:
        raise LayoutError(
            f"a polynomial of degree {degree} needs {degree + 1} samples, found {len(np.unique(where))}",
            remedy="measure at more positions, or fit a lower degree",
        )
    curve = Polynomial.fit(where, cost, degree)
    error = float(np.sqrt(np.mean((np.asarray(curve(where)) - cost) ** 2)))
    return Profile(curve, float(where.min()), float(where.max()), error)


def equal_areas(costs: ArrayLike, parts: int, shares: ArrayLike | None = None) -> Ints:
    """Return the ends of parts of rows with equal sums of ``costs``, or in proportion to ``shares``.

    The cut is optimal: no other one has a smaller largest sum.

    Returns
    -------
    ndarray
        The ends, shape (parts + 1,).

    Raises
    ------
    LayoutError
        If there are fewer rows than parts.
    """
    rows = np.asarray(costs, float)
    below = np.concatenate([[0.0], np.cumsum(rows)])
    wanted = np.ones(parts) if shares is None else np.asarray(shares, float)
    ends = divide(np.arange(len(rows) + 1), below, wanted, [1] * parts)
    if ends is None:
        raise LayoutError(f"{len(rows)} rows cannot be cut into {parts} parts", remedy="use fewer parts")
    return ends


def weights_of_rows(domain: Box, axis: int, costs: ArrayLike) -> Weights:
    """Return the costs of cells from ``costs``, which are those of one cell of each row across ``axis``."""
    rows = np.asarray(costs, float)
    if rows.shape != (domain.shape[axis],) or not np.isfinite(rows).all() or (rows < 0).any() or not rows.any():
        raise LayoutError(
            f"axis {axis} has {domain.shape[axis]} rows, which need one finite cost each that is not negative; "
            f"found {rows.shape}"
        )
    tile = tuple(1 if a == axis else length for a, length in enumerate(domain.shape))
    shape = [domain.shape[axis] if a == axis else 1 for a in range(domain.ndim)]
    return Weights(domain, tile, (rows * (domain.size // domain.shape[axis])).reshape(shape))


def weights_of_profile(domain: Box, axis: int, profile: Profile) -> Weights:
    """Return the costs of cells from a profile over the rows across ``axis``, evaluated at their centres."""
    rows = domain.lo[axis] + np.arange(domain.shape[axis]) + 0.5
    return weights_of_rows(domain, axis, profile.at(np.clip(rows, profile.low, profile.high)))
