"""Schema of the table [photodiode.dead_space]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.models.photodiode.solver.thresholds import MOST_ENERGY

__all__ = ["DeadSpaceSettings"]

_Energy = Annotated[float, Field(ge=0, le=MOST_ENERGY, allow_inf_nan=False)]


class DeadSpaceSettings(BaseModel):
    """Table [photodiode.dead_space]: carriers ionise only after they have gained a threshold energy from the field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    electrons: Annotated[
        _Energy, Field(json_schema_extra={"unit": "eV"}, description="threshold energy, eV: electrons = 2.0")
    ]
    holes: Annotated[_Energy, Field(json_schema_extra={"unit": "eV"}, description="threshold energy, eV: holes = 2.0")]
    coefficients: Annotated[
        Literal["local", "enabled"],
        Field(
            description='coefficients of the local model, whose mean free path includes the dead space: "local", or '
            'those of carriers beyond it: "enabled"'
        ),
    ] = "local"
