"""Coordinates as first position and step, for formats that know nothing else."""

from __future__ import annotations

import numpy as np

from minga.errors import CaseError
from minga.record.variables import Coordinate

__all__ = ["even_spacing"]

_EVEN = 1e-9
"""Part of the spacing by which evenly spaced points may be off, for rounding."""


def even_spacing(axis: Coordinate, name: str, form: str) -> float:
    """The distance of the points of field ``name`` along an axis, 1 of a single point; CaseError where it varies.

    ``form`` is what has evenly spaced points only, as a plural: "VTK images".
    """
    steps = np.diff(axis.values)
    if not steps.size:
        return 1.0
    mean = float(steps.mean())
    if np.abs(steps - mean).max() > max(_EVEN * abs(mean), 4 * np.spacing(np.abs(axis.values).max())):
        raise CaseError(
            f"{form} have evenly spaced cells; those of {name} along {axis.name} are not",
            key="--format",
            remedy="write it as npy or nc, or open the run's fields.zarr",
        )
    return mean
