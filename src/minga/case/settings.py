"""Settings of the table [grid] of a case."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["GridSettings"]

Length = Annotated[int, Field(strict=True, gt=0)]


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
