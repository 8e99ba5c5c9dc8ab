"""Schema of the table [photodiode.qe]: wavelengths of quantum efficiencies."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.photodiode.quantities import quantity

__all__ = ["WAVELENGTHS_FORM", "QeSettings", "WavelengthsSettings"]

WAVELENGTHS_FORM: Final = "write wavelengths = [500.0, 700.0], or {from = 400.0, to = 1100.0, step = 10.0}"

Wavelength = Annotated[
    float,
    BeforeValidator(lambda v: quantity(v, "wavelength")),
    Field(gt=0, allow_inf_nan=False, json_schema_extra={"unit": "nm"}),
]


class WavelengthsSettings(BaseModel):
    """A range of wavelengths that includes both ends: `{from = 400.0, to = 1100.0, step = 10.0}`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start: Annotated[Wavelength, Field(alias="from", description="nm: from = 400.0")]
    to: Annotated[Wavelength, Field(description="nm: to = 1100.0")]
    step: Annotated[Wavelength, Field(description="nm: step = 10.0")]


class QeSettings(BaseModel):
    """Table [photodiode.qe] of mode = "qe"."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wavelengths: Annotated[
        tuple[Wavelength, ...] | WavelengthsSettings,
        Field(json_schema_extra={"unit": "nm"}, description=f"nm: {WAVELENGTHS_FORM}"),
    ]
