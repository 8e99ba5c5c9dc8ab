"""Volumes of cells, in the coordinates of the grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from minga.lang.expr import Node, as_node
from minga.lang.operators import spacing
from minga.lang.trace import current_trace

__all__ = ["cell_sizes", "whole_angles"]

_WHOLE: Final = {"polar": {"phi": 2 * math.pi}, "cylindrical": {"phi": 2 * math.pi}}
_SPHERE: Final = {"theta": 2.0, "phi": 2 * math.pi}


def cell_sizes() -> list[Node]:
    """Return the factors whose product is the volume of the cell; angles that the grid lacks count as a whole.

    Returns
    -------
    list of Node
        One factor for each axis, and one for the angles.
    """
    trace = current_trace("the volume of cells")
    sizes = []
    for axis, name in enumerate(trace.axis_names):
        bent = trace.metric.geometry != "cartesian" and name in ("r", "theta")
        sizes.append(trace.table(f"@measure{axis}", axis) if bent else spacing(axis))
    whole = whole_angles(trace.metric.geometry, trace.axis_names)
    return sizes if whole == 1 else [*sizes, as_node(whole)]


def whole_angles(geometry: str, axes: Sequence[str]) -> float:
    """Return the factor of volumes for the angles that a grid lacks.

    Parameters
    ----------
    geometry
        Coordinates of the grid.
    axes
        Names of its axes.

    Returns
    -------
    float
        2 pi for phi, and 2, the integral of the sine, for theta.
    """
    angles = _SPHERE if geometry == "spherical" else _WHOLE.get(geometry, {})
    return math.prod(size for name, size in angles.items() if name not in axes)
