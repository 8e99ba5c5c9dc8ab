"""Schema of films and wafers that light passes: [[photodiode.light.coatings]], [photodiode.light.substrate]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.photodiode.quantities import quantity
from minga.models.photodiode.structure.indices import IndexSaid

__all__ = ["INDEX_FORM", "CoatingSettings", "GaussianSettings", "SubstrateSettings"]

INDEX_FORM = 'n, [n, k], a shipped table or a file of nm, n, k: index = 2.0, or "Si3N4"'


def _thin(thickness: float) -> float:
    if thickness > 1.0:
        raise ValueError("a thickness of up to 1 cm")
    return thickness


def _coherent(thickness: float) -> float:
    if thickness > 20e-4:
        raise ValueError("a film of up to 20 um, in which light interferes")
    return thickness


Thickness = Annotated[
    float,
    BeforeValidator(lambda v: quantity(v, "length")),
    Field(gt=0, json_schema_extra={"unit": "um"}, description='um, or with a unit: thickness = "117.5 nm"'),
]


class CoatingSettings(BaseModel):
    """One film in front of the device, `[[photodiode.light.coatings]]`; they are listed from the outside inwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thickness: Annotated[Thickness, AfterValidator(_coherent)]
    index: Annotated[IndexSaid, Field(description=INDEX_FORM)]


class GaussianSettings(BaseModel):
    """Table [photodiode.light.gaussian]: a beam with the intensity exp(-2 (s - middle)^2/radius^2) along its side."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    middle: Annotated[
        float,
        BeforeValidator(lambda v: quantity(v, "length")),
        Field(json_schema_extra={"unit": "um"}, description='um: middle = 1.5, or "1.5 um"'),
    ] = 0.0
    radius: Annotated[
        float,
        BeforeValidator(lambda v: quantity(v, "length")),
        Field(
            gt=0,
            json_schema_extra={"unit": "um"},
            description="um: where the intensity is 1/e^2 of that in the middle: radius = 1.0",
        ),
    ]


class SubstrateSettings(BaseModel):
    """Table [photodiode.light.substrate]: a wafer too thick for interference, which hardly absorbs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thickness: Annotated[Thickness, AfterValidator(_thin)]
    index: Annotated[IndexSaid, Field(description=INDEX_FORM)]
    at: Annotated[
        Literal["far", "near"], Field(description='far: behind the device, seen from the light; at = "near": before it')
    ] = "far"
