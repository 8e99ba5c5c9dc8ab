"""Schema of [[photodiode.surfaces]] of a case, and of positions."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.photodiode.quantities import quantity

__all__ = ["SurfaceSettings"]

Place = Annotated[float, BeforeValidator(lambda v: quantity(v, "length"))]
Velocity = Annotated[float, Field(ge=0, allow_inf_nan=False, json_schema_extra={"unit": "cm/s"})]


class SurfaceSettings(BaseModel):
    """A plane at which carriers recombine, `[[photodiode.surfaces]]`: normal to x, or to y with two axes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    x: Annotated[
        Place | tuple[Place, Place] | None,
        Field(description="depth, um: x = 1.5; or the range of a plane normal to y: x = [0.0, 1.5]"),
    ] = None
    y: Annotated[
        Place | tuple[Place, Place] | None,
        Field(description="position across, um: y = 0.0; or the range of a plane normal to x: y = [0.0, 2.0]"),
    ] = None
    velocity_n: Annotated[Velocity, Field(description="of electrons, cm/s: velocity_n = 1e4")]
    velocity_p: Annotated[Velocity, Field(description="of holes, cm/s: velocity_p = 1e4")]
