"""Ends of curved axes that are no walls: the axis r = 0 and the poles, beyond which lies the other side."""

from __future__ import annotations

import numpy as np

from minga.space.grid import Grid

__all__ = ["poles"]

_NEAR = 1e-9


def poles(grid: Grid, axis: int) -> tuple[bool, bool]:
    """Return for the low and the high end of an axis whether it is r = 0, or a pole.

    Parameters
    ----------
    grid
        The grid.
    axis
        Number of the axis.

    Returns
    -------
    tuple of two bool
        True at an end where cells meet their opposites and not a wall.
    """
    if grid.geometry == "cartesian" or grid.axes[axis] not in ("r", "theta"):
        return False, False
    low, high = grid.faces(axis)[[0, -1]]
    if grid.axes[axis] == "r":
        return bool(low == 0.0), False
    return bool(abs(low) < _NEAR), bool(abs(high - np.pi) < _NEAR)
