"""Statistical certainty that ranks differ: their paces since the last change, and the noise in them."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Certainty"]

Floats = NDArray[np.float64]

_WINDOW: Final = 16
_RESIDUALS: Final = 48
_LATEST: Final = 3
_ENOUGH: Final = 12
"""Number of checks after which noise is known well."""
_CHANGE: Final = float(np.log(1.25))
"""Logarithm of the change of pace that begins a new window, if it is more than noise."""
_QUANTILES: Final = ((0.5, 1.4826), (0.95, 0.5102))
"""Quantiles of absolute deviations (middle and tails), and their factors to the standard deviation of normal noise."""
_MEDIAN: Final = 1.2533
"""Ratio of the standard error of a median to that of a mean."""


class Certainty:
    """Statistics of the logarithms of paces, in which noise is multiplicative.

    The noise of a rank is the deviation of its paces from their level when they were observed, at least that of all
    ranks together. A change of level is excluded from it, and so is a rare hiccup, but not one in ten checks. Noise
    that lasts for several checks counts in full: it is averaged only over independent checks, according to their
    correlation.
    """

    def __init__(self) -> None:
        self._paces: deque[Floats] = deque(maxlen=_WINDOW)
        self._residuals: deque[Floats] = deque(maxlen=_RESIDUALS)

    def learn(self, pace: Floats) -> None:
        """Add the paces of a check, shape (ranks,)."""
        new = np.log(np.maximum(pace, np.finfo(float).tiny))
        if self._paces:
            self._residuals.append(new - self._level())
        self._paces.append(new)
        if len(self._paces) > _LATEST:
            latest = np.median(np.array(self._paces)[-_LATEST:], axis=0)
            before = np.median(np.array(self._paces)[:-_LATEST], axis=0)
            noise = self._noise(before=_LATEST) * _MEDIAN / np.sqrt(_LATEST)
            if (np.abs(latest - before) > np.maximum(_CHANGE, self._bound(len(pace)) * noise)).any():
                for _ in range(len(self._paces) - _LATEST):
                    self._paces.popleft()
                for _ in range(min(len(self._residuals), _LATEST)):
                    self._residuals.pop()
                self._residuals.extend(each - self._level() for each in self._paces)

    @property
    def level(self) -> Floats:
        """Estimated paces of the ranks, shape (ranks,)."""
        return np.exp(self._level())

    @property
    def knows_noise(self) -> bool:
        """True once there were enough checks for the noise to be known well."""
        return len(self._residuals) >= _ENOUGH

    def beyond_noise(self, rank: int, factor: float) -> bool:
        """Return True if noise alone would hardly make a rank, chosen as the slowest, seem slower by ``factor``."""
        error = self._noise() * _MEDIAN / np.sqrt(self._independent())
        return float(np.log(factor)) > self._bound(len(error)) * float(error[rank])

    def _level(self) -> Floats:
        level: Floats = np.median(np.array(self._paces), axis=0)
        return level

    def _noise(self, before: int = 0) -> Floats:
        """Return the standard deviations of the ranks' logarithms from all checks but the last ``before`` ones."""
        residuals = list(self._residuals)[: len(self._residuals) - before]
        if not residuals:
            return np.zeros(len(self._paces[-1]))
        away = np.abs(np.array(residuals))
        together = float(_spread(away.ravel()[:, None])[0])
        each = _spread(away) if len(away) > 2 else np.zeros(away.shape[1])
        return np.maximum(each, together)

    def _independent(self) -> float:
        """Return the number of independent checks in the window."""
        count = len(self._paces)
        if len(self._residuals) < 2 * _LATEST:
            return float(count)
        noise = np.array(self._residuals)
        noise = np.clip(noise, -3 * self._noise(), 3 * self._noise())
        squares = float((noise[1:] ** 2).sum())
        along = float((noise[1:] * noise[:-1]).sum()) / squares if squares > 0 else 0.0
        along = min(max(along, 0.0), 0.95)
        return max(1.0, count * (1 - along) / (1 + along))

    @staticmethod
    def _bound(ranks: int) -> float:
        """Return the number of standard errors that the largest of so many ranks hardly ever exceeds by chance."""
        return 2.0 + float(np.sqrt(2 * np.log(max(ranks, 2))))


def _spread(away: Floats) -> Floats:
    """Return the standard deviations of columns of absolute deviations: for normal noise, or more for long tails."""
    found = [factor * np.quantile(away, part, axis=0, method="lower") for part, factor in _QUANTILES]
    spread: Floats = np.max(found, axis=0)
    return spread
