"""Coordinates as first position and step, for formats that support nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minga.errors import CaseError
from minga.output.variables import Coordinate

__all__ = ["Placed", "even_spacing", "placed"]

_EVEN = 1e-9
"""Share of the spacing by which evenly spaced points may be off, because of rounding."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Placement of an image along each axis.

    Attributes
    ----------
    points
        True if values belong to the image's points, False if they belong to the cells between them.
    steps
        Distances of neighbours.
    origin
        The first point of values, or the first corner of the first cell.
    between
        Number of cells.
    """

    points: bool
    steps: list[float]
    origin: list[float]
    between: list[int]

    @property
    def centre(self) -> str:
        """XDMF's name for what values belong to."""
        return "Node" if self.points else "Cell"


def placed(axes: Sequence[Coordinate], name: str, form: str) -> Placed:
    """Return the placement of a field's image; raise CaseError if its points are not evenly spaced (`even_spacing`)."""
    points = any(axis.at_points for axis in axes)
    steps = [even_spacing(axis, name, form) for axis in axes]
    origin = [
        float(axis.values[0]) if points else float(axis.values[0] - 0.5 * step)
        for axis, step in zip(axes, steps, strict=True)
    ]
    return Placed(points, steps, origin, [len(axis.values) - points for axis in axes])


def even_spacing(axis: Coordinate, name: str, form: str) -> float:
    """Return the distance of the points of field ``name`` along an axis, 1 for a single point.

    ``form`` names the format that requires evenly spaced points, as a plural: "VTK images".

    Raises
    ------
    CaseError
        If the distance varies.
    """
    steps = np.diff(axis.values)
    if not steps.size:
        return float(np.diff(axis.edges)[0]) if not axis.at_points else 1.0
    mean = float(steps.mean())
    if np.abs(steps - mean).max() > max(_EVEN * abs(mean), 4 * np.spacing(np.abs(axis.values).max())):
        raise CaseError(
            f"{form} have evenly spaced cells; those of {name} along {axis.name} are not",
            key="--format",
            remedy="write it as npy or nc, or open the run's fields.zarr",
        )
    return mean
