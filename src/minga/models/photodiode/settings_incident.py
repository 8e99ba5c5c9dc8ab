"""Schema of [photodiode.light]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.models.photodiode.settings_light import CoatingSettings, GaussianSettings, SubstrateSettings
from minga.models.photodiode.settings_types import Place, Positive, Power, Wavelength
from minga.models.photodiode.structure.indices import IndexSaid

__all__ = ["LightSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)


class LightSettings(BaseModel):
    """Table [photodiode.light]: incident light; 1 mW/cm2 at 1550 nm is 7.8e15 photons per cm2 and second."""

    model_config = _STRICT

    power: Annotated[
        Power | None,
        Field(le=1e9, json_schema_extra={"unit": "W/cm2"}, description='W/cm2, or with a unit: power = "1 mW/cm2"'),
    ] = None
    flux: Annotated[
        Positive | None,
        Field(
            le=1e28,
            json_schema_extra={"unit": "1/cm2s"},
            description="photons per cm2 and second, instead of the power",
        ),
    ] = None
    wavelength: Annotated[
        Wavelength | None,
        Field(json_schema_extra={"unit": "nm"}, description='nm: wavelength = 1550.0; only mode = "qe" may omit it'),
    ] = None
    side: Annotated[
        Literal["cathode", "anode", "top", "bottom", "left", "right"],
        Field(description='illuminated side: a contact\'s, "top" (row 1) or "bottom"; with two axes "left" or "right"'),
    ] = "cathode"
    x: Annotated[
        tuple[Place, Place] | None, Field(description="lit part of the left or right side, um: x = [1.0, 2.5]")
    ] = None
    y: Annotated[
        tuple[Place, Place] | None, Field(description="lit part of the anode's or cathode's side, um: y = [0.0, 5.0]")
    ] = None
    gaussian: GaussianSettings | None = None
    generation: Annotated[
        str | None,
        Field(description='file of x, y, G in um and 1/cm3 s, instead of all others: generation = "pairs.csv"'),
    ] = None
    optics: Annotated[
        Literal["beer-lambert", "transfer-matrix"],
        Field(description='optics = "beer-lambert", or "transfer-matrix" with reflection and interference'),
    ] = "beer-lambert"
    coatings: tuple[CoatingSettings, ...] = ()
    ambient: Annotated[
        Annotated[float, Field(ge=1e-3, le=1e3, allow_inf_nan=False)] | None,
        Field(description="refractive index of the medium the light comes from: ambient = 1.0"),
    ] = None
    backing: Annotated[
        IndexSaid | None,
        Field(description='refractive index behind the far side, by default the last layer\'s: backing = "Au"'),
    ] = None
    substrate: SubstrateSettings | None = None
