"""Images of reflectors: their sums over shots, their illumination, and a filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minga.models.waves.medium import Floats

__all__ = ["Image"]


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """Image of one shot, or the sum of several: ``a + b`` stacks them.

    Parameters
    ----------
    values
        Sum over time of the source's waves times those of the data, f8 of the model's shape.
    illumination
        Sum over time of the squares of the source's waves.
    spacing
        Metres between cells along each axis.
    """

    values: Floats
    illumination: Floats
    spacing: tuple[float, ...]

    def __add__(self, other: Image) -> Image:
        return Image(self.values + other.values, self.illumination + other.illumination, self.spacing)

    def normalised(self, least: float = 1e-3) -> Image:
        """Return the image over its illumination, where that is not small: amplitudes at depth are those near sources.

        Parameters
        ----------
        least
            Part of the largest illumination that is added to it.

        Returns
        -------
        Image
            The image.
        """
        floor = least * float(self.illumination.max())
        return Image(
            self.values / (self.illumination + floor) if floor else self.values, self.illumination, self.spacing
        )

    def filtered(self) -> Image:
        """Return minus the Laplacian of the image, which removes the long waves along the paths of turning waves.

        Returns
        -------
        Image
            The image; cells at its ends count as continued by their own value.
        """
        total = np.zeros_like(self.values)
        for axis, h in enumerate(self.spacing):
            padded = np.pad(
                self.values, [(1, 1) if a == axis else (0, 0) for a in range(self.values.ndim)], mode="edge"
            )
            moved = np.moveaxis(padded, axis, 0)
            bend = (2 * moved[1:-1] - moved[2:] - moved[:-2]) / (h * h)
            total = total + np.moveaxis(bend, 0, axis)
        return Image(total, self.illumination, self.spacing)
