"""How long a rank takes for a step of so many cells: measured, never assumed to be proportional.

Caches, memory and paging make speed a function of size (Lastovetsky and Reddy, *Data Partitioning with a Functional
Performance Model of Heterogeneous Processors*, IJHPCA 21, 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import LayoutError

__all__ = ["TRUSTED", "Speed"]

Floats = NDArray[np.float64]

TRUSTED: Final = 1.25
"""Times the largest size measured up to which a speed is trusted without a word."""


@dataclass(frozen=True, eq=False)
class Speed:
    """Seconds for a step of a number of cells: measured points, joined by straight lines.

    ``cells`` ascends strictly, ``seconds`` never falls; both have shape (points,). Below the first point time is
    proportional to cells, beyond the last one cells cost what they cost there.
    """

    cells: Floats
    seconds: Floats

    @classmethod
    def constant(cls, cells_per_second: float) -> Speed:
        """The same speed for every size."""
        return cls(np.array([1.0]), np.array([1 / cells_per_second]))

    @classmethod
    def measured(cls, cells: Sequence[float], seconds: Sequence[float]) -> Speed:
        """From measurements in any order; where more cells took less time, noise is removed by the running maximum.

        LayoutError for numbers that are not positive and finite, or no points at all.
        """
        size, time = np.asarray(cells, float), np.asarray(seconds, float)
        if size.shape != time.shape or size.ndim != 1 or len(size) == 0:
            raise LayoutError(f"a speed needs as many cells as seconds, found {size.shape} and {time.shape}")
        if not (np.isfinite(size).all() and np.isfinite(time).all() and (size > 0).all() and (time > 0).all()):
            raise LayoutError(f"cells {list(cells)} and seconds {list(seconds)} of a speed must be positive numbers")
        size, first = np.unique(size, return_inverse=True)
        least = np.full(len(size), np.inf)
        np.minimum.at(least, first, time)
        return cls(size, np.maximum.accumulate(least))

    def time(self, cells: ArrayLike) -> Floats:
        """Seconds for a step of ``cells`` cells; the shape of ``cells``."""
        size = np.asarray(cells, float)
        known, seconds = self._from_nothing
        inside = np.interp(size, known, seconds)
        # Beyond the last point the ratio is above 1, below it the straight lines hold.
        time: Floats = inside * np.maximum(size / known[-1], 1.0)
        return time

    @cached_property
    def _from_nothing(self) -> tuple[Floats, Floats]:
        return np.concatenate(([0.0], self.cells)), np.concatenate(([0.0], self.seconds))

    def within(self, seconds: ArrayLike) -> Floats:
        """The most cells whose step takes at most ``seconds``: the inverse of :meth:`time`."""
        time = np.asarray(seconds, float)
        # On a level stretch the right end is meant.
        at = np.searchsorted(self.seconds, time, side="right")
        known, times = self._from_nothing
        low_time, low = times[at], known[at]
        last = len(self.seconds)
        high_time, high = np.r_[self.seconds, np.inf][at], np.r_[self.cells, np.inf][at]
        with np.errstate(invalid="ignore", divide="ignore"):
            between = low + (high - low) * (time - low_time) / (high_time - low_time)
        beyond = self.cells[-1] * time / self.seconds[-1]
        cells: Floats = np.where(at == last, beyond, between)
        return cells

    def rate(self, cells: ArrayLike) -> Floats:
        """Cells per second at a size."""
        size = np.asarray(cells, float)
        return size / self.time(size)
