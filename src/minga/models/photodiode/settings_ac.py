"""Schema of the tables of small-signal analyses and of noise: [photodiode.ac], [photodiode.cv], [photodiode.noise]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.photodiode.quantities import quantity

__all__ = ["AcSettings", "CvSettings", "FrequencySettings", "NoiseSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)

Frequency = Annotated[
    float, BeforeValidator(lambda v: quantity(v, "frequency")), Field(gt=0, le=1e16, allow_inf_nan=False)
]
Area = Annotated[float, BeforeValidator(lambda v: quantity(v, "area")), Field(gt=0, allow_inf_nan=False)]
Resistance = Annotated[float, BeforeValidator(lambda v: quantity(v, "resistance")), Field(ge=0, allow_inf_nan=False)]
Inductance = Annotated[float, BeforeValidator(lambda v: quantity(v, "inductance")), Field(ge=0, allow_inf_nan=False)]
Capacitance = Annotated[float, BeforeValidator(lambda v: quantity(v, "capacitance")), Field(ge=0, allow_inf_nan=False)]

_AREA = Field(json_schema_extra={"unit": "cm2"}, description='area of the device, cm2: area = "100 um2"')
_LOAD = Field(json_schema_extra={"unit": "ohm"}, description="load resistance, ohm: load = 50.0")


class FrequencySettings(BaseModel):
    """Frequencies at equal ratios, both ends included: `{from = "1 MHz", to = "100 GHz", per_decade = 10}`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start: Annotated[Frequency, Field(alias="from", json_schema_extra={"unit": "Hz"}, description='Hz: from = "1 MHz"')]
    to: Annotated[Frequency, Field(json_schema_extra={"unit": "Hz"}, description='Hz: to = "100 GHz"')]
    per_decade: Annotated[int, Field(ge=1, le=1000, description="frequencies per decade: per_decade = 10")] = 10


class AcSettings(BaseModel):
    """Table [photodiode.ac]: frequencies of `mode = "ac"`, and the circuit around the device.

    Attributes
    ----------
    frequencies
        Frequencies, Hz, in a list or as a range.
    area, load, series, pad, inductance
        Area of the device, load, series resistance, the capacitance of the pad in parallel with the load, and the
        inductance in series with the load; `area` gives the bandwidth with this circuit.
    """

    model_config = _STRICT

    frequencies: Annotated[
        tuple[Frequency, ...] | FrequencySettings,
        Field(
            json_schema_extra={"unit": "Hz"}, description='frequencies = ["1 MHz", "1 GHz"], or {from, to, per_decade}'
        ),
    ] = FrequencySettings(start=1e6, to=1e11, per_decade=10)
    area: Annotated[Area | None, _AREA] = None
    load: Annotated[Resistance | None, _LOAD] = None
    series: Annotated[
        Resistance | None, Field(json_schema_extra={"unit": "ohm"}, description="series resistance, ohm: series = 5.0")
    ] = None
    pad: Annotated[
        Capacitance | None,
        Field(json_schema_extra={"unit": "F"}, description='capacitance beside the load, F: pad = "20 fF"'),
    ] = None
    inductance: Annotated[
        Inductance | None,
        Field(json_schema_extra={"unit": "H"}, description='inductance in series with the load: inductance = "1 nH"'),
    ] = None


class CvSettings(BaseModel):
    """Table [photodiode.cv]: the frequency of `mode = "cv"`."""

    model_config = _STRICT

    frequency: Annotated[Frequency, Field(json_schema_extra={"unit": "Hz"}, description='frequency = "1 MHz"')] = 1e6


class NoiseSettings(BaseModel):
    """Table [photodiode.noise]: the method and the circuit of `mode = "noise"`.

    Attributes
    ----------
    method
        `"profile"` for one axis, by default, or `"adjoint"`.
    area, load
        Area of the device and load.
    """

    model_config = _STRICT

    method: Annotated[
        Literal["profile", "adjoint"] | None,
        Field(description='method = "profile", the default with one axis, or "adjoint"'),
    ] = None

    area: Annotated[Area | None, _AREA] = None
    load: Annotated[
        Resistance | None, Field(gt=0, json_schema_extra=_LOAD.json_schema_extra, description=_LOAD.description)
    ] = None
