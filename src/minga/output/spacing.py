"""Coordinates as first position and step, for formats that know nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minga.errors import CaseError
from minga.output.variables import Coordinate

__all__ = ["Placed", "even_spacing", "placed"]

_EVEN = 1e-9
"""Part of the spacing by which evenly spaced points may be off, for rounding."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an image lies, axis by axis: `points`, values belong to its points, otherwise to the cells between them.

    steps    distances of neighbours
    origin   the first point: of values, or the first corner of the first cell
    between  how many cells there are
    """

    points: bool
    steps: list[float]
    origin: list[float]
    between: list[int]

    @property
    def centre(self) -> str:
        """What XDMF says that values belong to."""
        return "Node" if self.points else "Cell"

    @property
    def kind(self) -> str:
        """What VTK calls the values."""
        return "PointData" if self.points else "CellData"


def placed(axes: Sequence[Coordinate], name: str, form: str) -> Placed:
    """The image of a field; CaseError where its points are not evenly spaced (see `even_spacing`)."""
    points = any(axis.at_points for axis in axes)
    steps = [even_spacing(axis, name, form) for axis in axes]
    origin = [
        float(axis.values[0]) if points else float(axis.values[0] - 0.5 * step)
        for axis, step in zip(axes, steps, strict=True)
    ]
    return Placed(points, steps, origin, [len(axis.values) - points for axis in axes])


def even_spacing(axis: Coordinate, name: str, form: str) -> float:
    """The distance of the points of field ``name`` along an axis, 1 of a single point; CaseError where it varies.

    ``form`` is what has evenly spaced points only, as a plural: "VTK images".
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
