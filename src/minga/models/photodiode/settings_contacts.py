"""Schema of [photodiode.contacts]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.models.photodiode.settings_types import Place

__all__ = ["ContactSettings", "ContactsSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)


class ContactSettings(BaseModel):
    """A contact, such as `{kind = "schottky", barrier = 0.55, at = "top", y = [0.0, 1.0]}`."""

    model_config = _STRICT

    kind: Annotated[Literal["ohmic", "schottky"], Field(description='kind = "ohmic" or "schottky"')] = "ohmic"
    barrier: Annotated[
        float | None,
        Field(
            gt=0, lt=5, json_schema_extra={"unit": "eV"}, description="barrier of a Schottky contact for electrons, eV"
        ),
    ] = None
    recombination: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            json_schema_extra={"unit": "cm/s"},
            description="velocity of recombination of minority carriers at an ohmic contact, cm/s; by default infinite",
        ),
    ] = None
    image_force: Annotated[
        bool, Field(description="the field lowers the barrier of a Schottky contact: image_force = true")
    ] = False
    tunnelling: Annotated[
        bool, Field(description="carriers tunnel through the barrier of a Schottky contact: tunnelling = true")
    ] = False
    at: Annotated[Literal["top", "bottom"] | None, Field(description="top: the first row; bottom: the last row")] = None
    y: Annotated[tuple[Place, Place] | None, Field(description="range across the device, um; by default all")] = None


class ContactsSettings(BaseModel):
    """Table [photodiode.contacts]: `anode = "ohmic"` and `cathode = "ohmic"`, or a table for each."""

    model_config = _STRICT

    anode: Annotated[
        Literal["ohmic"] | ContactSettings,
        Field(description='the first row: anode = "ohmic", or {kind = "schottky", barrier = 0.65}'),
    ]
    cathode: Annotated[
        Literal["ohmic"] | ContactSettings,
        Field(description='the last row: cathode = "ohmic", or {kind = "schottky", barrier = 0.65}'),
    ]
