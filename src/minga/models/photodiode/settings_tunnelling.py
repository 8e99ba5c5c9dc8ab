"""Schema of the table [photodiode.tunnelling] of a case."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["TunnellingSettings"]


class TunnellingSettings(BaseModel):
    """Table [photodiode.tunnelling]: carriers that tunnel from band to band, or to traps in the gap."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    band_to_band: Annotated[
        bool | dict[str, str],
        Field(description='band_to_band = true, false, or a set for each material: {Si = "hurkx"}'),
    ] = False
    trap_assisted: Annotated[bool, Field(description="lifetimes reduced by the field: trap_assisted = true")] = False
