"""The time of a step as a function of the number of cells: measured, and never assumed to be proportional.

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
"""Factor beyond the largest measured size up to which a speed is trusted without a note."""


@dataclass(frozen=True, eq=False)
class Speed:
    """Seconds of a step by number of cells: measured points, joined by straight lines.

    ``cells`` ascends strictly, and ``seconds`` never decreases; both have shape (points,). Below the first point, the
    time is proportional to the number of cells; beyond the last point, a cell costs as much as there.

    Parameters
    ----------
    cells
        Numbers of cells, strictly ascending, f8 of shape (points,).
    seconds
        Seconds of a step with so many cells, never falling, f8 of shape (points,).
    """

    cells: Floats
    seconds: Floats

    @classmethod
    def constant(cls, cells_per_second: float) -> Speed:
        """Return a speed that is the same for every size.

        Parameters
        ----------
        cells_per_second
            The speed.

        Returns
        -------
        Speed
            The speed.
        """
        return cls(np.array([1.0]), np.array([1 / cells_per_second]))

    @classmethod
    def measured(cls, cells: Sequence[float], seconds: Sequence[float]) -> Speed:
        """Make a speed from measurements in any order.

        Noise that makes more cells take less time is removed by a running maximum.

        Parameters
        ----------
        cells
            Numbers of cells.
        seconds
            Measured seconds.

        Returns
        -------
        Speed
            The speed.

        Raises
        ------
        LayoutError
            If numbers are not positive and finite, or there are no points.
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
        """Return the seconds of a step of ``cells`` cells, with the shape of ``cells``.

        Parameters
        ----------
        cells
            Numbers of cells.

        Returns
        -------
        ndarray
            Seconds.
        """
        size = np.asarray(cells, float)
        known, seconds = self._from_nothing
        inside = np.interp(size, known, seconds)
        # Beyond the last point the ratio is above 1; below it, the straight lines are used.
        time: Floats = inside * np.maximum(size / known[-1], 1.0)
        return time

    @cached_property
    def _from_nothing(self) -> tuple[Floats, Floats]:
        return np.concatenate(([0.0], self.cells)), np.concatenate(([0.0], self.seconds))

    def within(self, seconds: ArrayLike) -> Floats:
        """Return the largest number of cells whose step takes at most ``seconds``: the inverse of :meth:`time`.

        Parameters
        ----------
        seconds
            Seconds of a step.

        Returns
        -------
        ndarray
            Numbers of cells.
        """
        time = np.asarray(seconds, float)
        # On a constant stretch, the right end is returned.
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
        """Return the cells per second at a size.

        Parameters
        ----------
        cells
            Numbers of cells.

        Returns
        -------
        ndarray
            Cells per second.
        """
        size = np.asarray(cells, float)
        return size / self.time(size)
