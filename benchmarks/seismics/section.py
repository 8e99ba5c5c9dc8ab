"""The section that both programs invert: folded and faulted layers below water, from their smoothed slowness."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from minga.models.waves.synthetic import synthetic
from minga.space.box import Box

__all__ = ["Section"]


@dataclass(frozen=True)
class Section:
    """A section, its shots, and the search for its velocities.

    Attributes
    ----------
    cells
        Cells along z and x.
    layer, sponge, damped
        Cells at each face: of minga's matched layers, of its sponges of strength 0.16, which leave as large an error
        of the data as the 40 damping layers of Devito's examples, and of these.
    spacing, dt
        Metres between cells; seconds of a step.
    steps
        Steps of a shot.
    shots, receivers, depth
        Numbers of sources and of receivers, evenly along a row, and its depth in m.
    frequency
        Peak frequency of the Ricker wavelet, Hz.
    order
        Order of differences in space.
    water
        Rows whose velocity is known, 1500 m/s.
    smooth
        Standard deviation of the Gaussian that smooths the slowness of the start, in cells.
    lowest, highest
        Bounds of the velocity, m/s.
    iterations
        Iterations of L-BFGS.
    """

    cells: tuple[int, int] = (120, 300)
    layer: int = 10
    sponge: int = 28
    damped: int = 40
    spacing: float = 20.0
    dt: float = 2e-3
    steps: int = 1200
    shots: int = 10
    receivers: int = 100
    depth: float = 20.0
    frequency: float = 5.0
    order: int = 8
    water: int = 8
    smooth: float = 8.0
    lowest: float = 1450.0
    highest: float = 4600.0
    iterations: int = 12

    @classmethod
    def quick(cls) -> Section:
        """Return a small one."""
        return cls(cells=(40, 60), steps=200, shots=2, receivers=10, iterations=2)

    @classmethod
    def inner(cls) -> Section:
        """Return a section with a shot in its middle, whose waves do not come back from the layers."""
        return cls(cells=(200, 200), steps=300, shots=1, receivers=40, depth=2000.0, frequency=8.0, iterations=0)

    def true(self) -> np.ndarray:
        """Return the velocities, f4."""
        medium = synthetic("thrust", self.cells, (self.spacing,) * 2, seed=3, anisotropy=0.0)
        values = np.array(medium.values(Box((0, 0), self.cells))["vp"], np.float64)
        values[: self.water] = 1500.0
        return np.clip(values, self.lowest, self.highest).astype(np.float32)

    def start(self) -> np.ndarray:
        """Return the velocities at the start, f4."""
        values = 1.0 / gaussian_filter(1.0 / self.true().astype(np.float64), self.smooth, mode="nearest")
        values[: self.water] = 1500.0
        return values.astype(np.float32)

    def mask(self) -> np.ndarray:
        """Return 1 where velocities are sought, 0 in water."""
        found = np.ones(self.cells)
        found[: self.water] = 0.0
        return found

    def places(self, count: int) -> list[tuple[float, float]]:
        """Return positions along the row, (z, x) in m."""
        width = (self.cells[1] - 1) * self.spacing
        return [(self.depth, width * (k + 0.5) / count) for k in range(count)]

    def numbers(self) -> dict[str, Any]:
        """Return the numbers for another program."""
        return asdict(self)
