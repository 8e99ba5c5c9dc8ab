"""Settings of the adaptation of a mesh."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["AdaptSettings"]


class AdaptSettings(BaseModel):
    """Entry `adapt = {error = 1e-3, most = 5000}` of [photodiode.mesh]: nodes are added where the error arises."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    error: Annotated[
        float, Field(gt=0, lt=1, description="relative error of the currents at the last voltage: error = 1e-3")
    ] = 1e-3
    most: Annotated[int, Field(ge=3, le=1_000_000, description="largest number of nodes: most = 5000")] = 5000
