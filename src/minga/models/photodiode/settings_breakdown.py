"""Schema of the table [photodiode.breakdown]."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["BreakdownSettings"]


class BreakdownSettings(BaseModel):
    """Table [photodiode.breakdown]: how far `mode = "breakdown"` searches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    to: Annotated[
        float | None,
        Field(
            allow_inf_nan=False,
            json_schema_extra={"unit": "V"},
            description="V: the voltage at which the search ends: to = -200.0",
        ),
    ] = None
