"""Settings of the table [grid] of a case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["GridSettings", "thinning"]

Length = Annotated[int, Field(strict=True, gt=0)]


def thinning(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Return powers of two for the axes, such that a grid with so many times fewer cells along each has few enough.

    Parameters
    ----------
    shape
        Cells along each axis.
    most
        Maximum number of cells of the coarser grid.

    Returns
    -------
    tuple of int
        A factor for each axis; the longest axes are thinned first.
    """
    factors, coarse = [1] * len(shape), list(shape)
    while math.prod(coarse) > most:
        axis = coarse.index(max(coarse))
        factors[axis] *= 2
        coarse[axis] = -(-shape[axis] // factors[axis])
    return tuple(factors)


class GridSettings(BaseModel):
    """Settings of the table [grid] of a case.

    Parameters
    ----------
    shape
        Number of cells along each axis; None if the case leaves it to the model.
    boundary
        Boundary conditions; None if the case leaves them to the model.
    """

    model_config = ConfigDict(extra="forbid")

    shape: Annotated[
        Annotated[tuple[Length, ...], Field(min_length=1, max_length=4)] | None,
        Field(description="cells along each axis: shape = [200, 300] in [grid], or --set 'grid.shape=[200, 300]'"),
    ] = None
    boundary: Any = None
