"""The part of a side of a device on which light falls, and how its intensity varies there; lengths in cm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.models.photodiode.structure.mesh import Mesh

__all__ = ["Beam"]

Floats = NDArray[np.float64]

_ROOT_TWO: Final = math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class Beam:
    """Intensity of the light along a side: uniform, or exp(-2 (s - middle)^2/radius^2), within a window.

    Parameters
    ----------
    window
        Ends of the part that is lit, cm; None: the whole side.
    middle
        Middle of a Gaussian beam, cm.
    radius
        Radius of a Gaussian beam, cm, at which its intensity is 1/e^2 of that in the middle; None: uniform.
    """

    window: tuple[float, float] | None = None
    middle: float = 0.0
    radius: float | None = None

    @property
    def whole(self) -> bool:
        """True if the light is the same on the whole side."""
        return self.window is None and self.radius is None

    def over(self, mesh: Mesh) -> Floats:
        """Return the mean intensity over each node's cell, relative to that in the middle of the beam.

        Parameters
        ----------
        mesh
            Mesh along the side. In a round device, the middle of a Gaussian beam is on the axis.

        Returns
        -------
        numpy.ndarray
            The mean intensities, 0 to 1, f8 of shape (N,).
        """
        if self.radius is None:
            return np.ones(mesh.nodes.size) if self.window is None else mesh.shares(self.window)
        ends = self.window or mesh.ends
        low, high = (self._passed(faces.clip(*ends), mesh.radial) for faces in (mesh.faces[:-1], mesh.faces[1:]))
        return ((high - low) / mesh.sections).clip(0.0, 1.0)

    def _passed(self, places: Floats, radial: bool) -> Floats:
        """Return the integral of a Gaussian beam from its middle to each place; of a round one, over the disc."""
        assert self.radius is not None
        passed: Floats
        if radial:
            squares = np.square(places / self.radius)
            passed = -0.5 * math.pi * self.radius * self.radius * portable.expm1(-2.0 * squares)
        else:
            passed = (
                self.radius * math.sqrt(math.pi / 8.0) * portable.erf(_ROOT_TWO * (places - self.middle) / self.radius)
            )
        return passed
