"""Schema of the table [photodiode.transient]: wave forms, circuit, duration and accuracy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.photodiode.quantities import quantity

__all__ = ["TimeStepSettings", "TransientSettings", "WaveSettings"]

_STRICT = ConfigDict(extra="forbid", frozen=True)

Number = Annotated[float, Field(allow_inf_nan=False)]
Time = Annotated[float, BeforeValidator(lambda v: quantity(v, "time"))]
Duration = Annotated[Time, Field(gt=0)]
Frequency = Annotated[float, BeforeValidator(lambda v: quantity(v, "frequency")), Field(gt=0)]
Area = Annotated[float, BeforeValidator(lambda v: quantity(v, "area")), Field(gt=0)]
Resistance = Annotated[float, BeforeValidator(lambda v: quantity(v, "resistance")), Field(ge=0)]
Capacitance = Annotated[float, BeforeValidator(lambda v: quantity(v, "capacitance")), Field(ge=0)]
Inductance = Annotated[float, BeforeValidator(lambda v: quantity(v, "inductance")), Field(ge=0)]


class WaveSettings(BaseModel):
    """A wave form: `{kind = "step", to = -5.0, at = "10 ps", rise = "1 ps"}`; each kind has entries of its own.

    A voltage is `bias` up to the beginning. Light is relative to that of [photodiode.light], and `from` before the
    beginning.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Annotated[
        Literal["step", "pulse", "sine", "points"], Field(description='kind = "step", "pulse", "sine" or "points"')
    ]
    start: Annotated[Number | None, Field(ge=0, alias="from", description="light before the beginning: from = 0.0")] = (
        None
    )
    to: Annotated[Number | None, Field(description="value of a step or pulse: V, or relative light, by default 1")] = (
        None
    )
    at: Annotated[
        Time | None,
        Field(ge=0, json_schema_extra={"unit": "s"}, description='beginning of a step, pulse or sine: at = "10 ps"'),
    ] = None
    rise: Annotated[
        Time | None,
        Field(
            ge=0,
            json_schema_extra={"unit": "s"},
            description='duration of the change at the beginning: rise = "1 ps"; by default 0',
        ),
    ] = None
    width: Annotated[
        Duration | None,
        Field(json_schema_extra={"unit": "s"}, description='duration of a pulse between its flanks: width = "100 ps"'),
    ] = None
    fall: Annotated[
        Time | None,
        Field(
            ge=0,
            json_schema_extra={"unit": "s"},
            description="duration of the change at the end of a pulse; by default `rise`",
        ),
    ] = None
    period: Annotated[
        Duration | None, Field(json_schema_extra={"unit": "s"}, description='time from pulse to pulse: period = "1 ns"')
    ] = None
    amplitude: Annotated[Number | None, Field(description="amplitude of a sine: amplitude = 0.01")] = None
    frequency: Annotated[
        Frequency | None,
        Field(json_schema_extra={"unit": "Hz"}, description='frequency of a sine: frequency = "1 GHz"'),
    ] = None
    points: Annotated[
        tuple[tuple[Time, Number], ...] | None,
        Field(min_length=1, description='times and values: points = [["0 s", 0.0], ["1 ns", -5.0]]'),
    ] = None
    file: Annotated[
        str | None,
        Field(description='a file beside the case with lines of time in s and value: file = "wave.csv"'),
    ] = None


class TimeStepSettings(BaseModel):
    """Table [photodiode.transient.steps]: lengths of steps; omitted entries follow from the duration."""

    model_config = _STRICT

    first: Annotated[
        Duration | None, Field(json_schema_extra={"unit": "s"}, description='also after corners: first = "1 fs"')
    ] = None
    largest: Annotated[Duration | None, Field(json_schema_extra={"unit": "s"}, description='largest = "10 ps"')] = None
    smallest: Annotated[
        Duration | None,
        Field(json_schema_extra={"unit": "s"}, description="shorter steps end the run: smallest = 1e-20"),
    ] = None


class TransientSettings(BaseModel):
    """Table [photodiode.transient]: sources over time, the circuit around the device, and steps in time.

    Attributes
    ----------
    until
        Duration.
    voltage, light
        Wave forms; without one, the voltage stays `bias`, and the light 0.
    area
        Area of the device, for the elements of the circuit.
    load, series, inductance
        Resistances and inductance between the source and the device, in series.
    pad
        Capacitance beside the device.
    tolerance
        Largest error of a step: of the potential, kT/q, and relative of densities.
    """

    model_config = _STRICT

    until: Annotated[Duration, Field(json_schema_extra={"unit": "s"}, description='duration: until = "1 ns"')]
    voltage: Annotated[
        WaveSettings | None, Field(description='voltage = {kind = "step", to = -5.0, rise = "1 ps"}')
    ] = None
    light: Annotated[WaveSettings | None, Field(description='light = {kind = "step"}')] = None
    area: Annotated[
        Area | None, Field(json_schema_extra={"unit": "cm2"}, description='area of the device: area = "100 um2"')
    ] = None
    load: Annotated[
        Resistance | None,
        Field(json_schema_extra={"unit": "ohm"}, description='resistance between source and device: load = "50 ohm"'),
    ] = None
    series: Annotated[
        Resistance | None,
        Field(json_schema_extra={"unit": "ohm"}, description='series resistance, ohm: series = "5 ohm"'),
    ] = None
    inductance: Annotated[
        Inductance | None,
        Field(json_schema_extra={"unit": "H"}, description='inductance in series with the load: inductance = "1 nH"'),
    ] = None
    pad: Annotated[
        Capacitance | None,
        Field(json_schema_extra={"unit": "F"}, description='capacitance beside the device: pad = "20 fF"'),
    ] = None
    tolerance: Annotated[
        float | None,
        Field(gt=0, lt=1, json_schema_extra={"unit": "kT/q"}, description="largest error of a step: tolerance = 5e-4"),
    ] = None
    steps: Annotated[TimeStepSettings, Field(description='steps = {first = "1 fs", largest = "10 ps"}')] = (
        TimeStepSettings()
    )
