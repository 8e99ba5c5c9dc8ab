"""Costs of the sub-cycles of an iteration in every row, and their change while the solution converges.

Bounanos, Fleury, Nicolas and Vickers measured (Fig. 14) that in the absorption layer one of four sub-cycles stays level
for half of the run and then grows exponentially; everywhere else all four stay level. They give no factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import CaseError

__all__ = ["ABSORPTION", "ROWS", "SUBCYCLES", "RowCosts", "growth_law", "synthetic_costs"]

Floats = NDArray[np.float64]

SUBCYCLES: Final = ("reset", "phi", "u", "v", "field")
"""Parts of an iteration, in order (Fig. 13)."""

ROWS: Final = 1820
ABSORPTION: Final = (1200, 1320)
"""Rows of the paper's absorption layer (Table 1, counted from 0), of the ROWS of its mesh."""

SERIAL_SECONDS: Final = 54 * 60.0
"""Time of the paper's run on one node, s."""

ITERATIONS: Final = 40_000
"""Iterations of a whole run: "a few hundred, typically less than 1 %" in section 3.2 implies more than 10 000."""


def growth_law(progress: ArrayLike, growth: float) -> Floats:
    """Return the cost of a growing sub-cycle relative to its start: 1 for half of the run, then up to exp(growth)."""
    later = (np.asarray(progress, float) - 0.5) / 0.5
    return np.exp(growth * np.maximum(later, 0.0))


@dataclass(frozen=True, eq=False)
class RowCosts:
    """Seconds of every row in every sub-cycle, at equally spaced times of a run.

    Attributes
    ----------
    seconds
        f8 of shape (samples, sub-cycles, rows).
    iterations
        Iterations of the whole run; each sample represents ``iterations / samples`` of them.
    """

    seconds: Floats
    iterations: int

    def __post_init__(self) -> None:
        shape = self.seconds.shape
        if self.seconds.ndim != 3 or not self.seconds.size or not np.isfinite(self.seconds).all():
            raise CaseError(
                f"costs of rows have shape {shape}; expected finite seconds by sample, sub-cycle and row",
                remedy="give an array of three axes, none of length 0",
            )
        if (self.seconds < 0).any() or self.iterations < shape[0]:
            raise CaseError(
                f"{self.iterations} iterations with {shape[0]} samples of costs from {self.seconds.min():g} s",
                remedy="costs are not negative, and there are no more samples than iterations",
            )

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.seconds)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.seconds.shape[2])

    @property
    def stands_for(self) -> float:
        """Number of iterations that a sample represents."""
        return self.iterations / self.samples

    @property
    def serial(self) -> float:
        """Seconds of the run on one node."""
        return float(self.seconds.sum()) * self.stands_for

    @property
    def mean(self) -> Floats:
        """Seconds of each row per iteration, averaged over the run; shape (rows,)."""
        mean: Floats = self.seconds.sum(axis=1).mean(axis=0)
        return mean

    def of_segments(self, sample: int, ends: ArrayLike) -> Floats:
        """Return the seconds of every sub-cycle in every segment at a sample, shape (sub-cycles, segments)."""
        return np.diff(self._before[sample][:, np.asarray(ends, np.int64)], axis=1)

    @cached_property
    def _before(self) -> Floats:
        """Seconds of all rows before each row, shape (samples, sub-cycles, rows + 1)."""
        samples, parts, rows = self.seconds.shape
        before = np.zeros((samples, parts, rows + 1))
        np.cumsum(self.seconds, axis=2, out=before[:, :, 1:])
        return before


def synthetic_costs(
    rows: int = ROWS,
    heavy: tuple[int, int] = ABSORPTION,
    *,
    growth: float = 4.0,
    samples: int = 200,
    iterations: int = ITERATIONS,
    serial: float = SERIAL_SECONDS,
) -> RowCosts:
    """Return the paper's observation as a law: four equal sub-cycles, of which phi grows in the rows `heavy`.

    The sub-cycle reset costs nothing. The costs are scaled so that the whole run takes `serial` seconds on one node.
    """
    progress = (np.arange(samples) + 0.5) / samples
    seconds = np.ones((samples, len(SUBCYCLES), rows))
    seconds[:, SUBCYCLES.index("reset")] = 0.0
    seconds[:, SUBCYCLES.index("phi"), heavy[0] : heavy[1]] = growth_law(progress, growth)[:, None]
    plain = RowCosts(seconds, iterations)
    return RowCosts(seconds * (serial / plain.serial), iterations)
