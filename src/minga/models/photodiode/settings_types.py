"""Types of entries of a device file: numbers, and quantities with a unit."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from minga.models.photodiode.quantities import quantity

__all__ = ["Current", "Length", "NotNegative", "Number", "Place", "Positive", "Power", "Wavelength"]

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Place = Annotated[float, BeforeValidator(lambda v: quantity(v, "length"))]
Length = Annotated[float, BeforeValidator(lambda v: quantity(v, "length")), Field(gt=0)]
Wavelength = Annotated[float, BeforeValidator(lambda v: quantity(v, "wavelength")), Field(gt=0)]
Current = Annotated[float, BeforeValidator(lambda v: quantity(v, "current"))]
Power = Annotated[float, BeforeValidator(lambda v: quantity(v, "power")), Field(gt=0)]
