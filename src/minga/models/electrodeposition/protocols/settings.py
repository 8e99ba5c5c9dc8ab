"""Schema of the parts of a case's program, which `minga.models.electrodeposition.protocols.reading` converts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from minga.models.electrodeposition.quantities import quantity

__all__ = ["KINDS", "FrequencySettings", "PartSettings", "UntilSettings"]

KINDS: Final = ("hold", "rest", "ramp", "cycle", "pulse", "sine", "impedance", "repeat", "file")
"""Kinds of parts of a program."""

_STRICT = ConfigDict(extra="forbid", frozen=True)
_LEVEL: Final = 'a current or a voltage: "5 mA/cm2" or "0.2 V"; of scaled cases {voltage = 10.0} or {current = 1.5}'

Time = Annotated[float, BeforeValidator(lambda v: quantity(v, "time")), Field(gt=0)]


class UntilSettings(BaseModel):
    """Limits that end a segment: `{voltage = "0.5 V", charge = "10 C/cm2"}`."""

    model_config = _STRICT

    voltage: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "potential"))] | None,
        Field(
            description="with a given current: the voltage, or with a reference the cathode's potential, has reached "
            "this value in the current's direction"
        ),
    ] = None
    current: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "current")), Field(gt=0)] | None,
        Field(description="with a given voltage: the current's size has fallen to this, or in a ramp risen to it"),
    ] = None
    charge: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "charge")), Field(gt=0)] | None,
        Field(description="this charge, of either sign, has passed in the segment"),
    ] = None
    concentration: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "concentration")), Field(gt=0)] | None,
        Field(description="the lowest concentration of the metal's ion has fallen to this"),
    ] = None


class FrequencySettings(BaseModel):
    """Frequencies that are evenly spaced on a logarithmic scale, both ends included."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True)

    first: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "frequency")), Field(gt=0)],
        Field(alias="from", description='first frequency: from = "10 kHz"'),
    ]
    to: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "frequency")), Field(gt=0)],
        Field(description='last frequency: to = "0.1 Hz"'),
    ]
    per_decade: Annotated[int, Field(ge=1, le=100, description="number of frequencies in a decade: per_decade = 5")] = 5


class PartSettings(BaseModel):
    """A part of a program, such as `{hold = "5 mA/cm2", time = "10 s"}` or `{repeat = 3, of = [...]}`."""

    model_config = _STRICT
    kinds: ClassVar[tuple[str, ...]] = KINDS

    hold: Annotated[Any, Field(description=f"{_LEVEL}, for `time`")] = None
    rest: Annotated[Time | None, Field(description='no current: rest = "10 s"')] = None
    ramp: Annotated[
        tuple[Any, ...] | None,
        Field(min_length=2, max_length=2, description='from one level to another: ramp = ["0 V", "0.3 V"]'),
    ] = None
    cycle: Annotated[
        tuple[Any, ...] | None,
        Field(min_length=2, description='ramps between levels, `times` times: cycle = ["0 V", "0.3 V", "0 V"]'),
    ] = None
    pulse: Annotated[Any, Field(description=f"{_LEVEL}, for `on`, then `base` for `off`, `times` times")] = None
    sine: Annotated[Any, Field(description=f"{_LEVEL}, around which `amplitude` swings, for `times` periods")] = None
    impedance: Annotated[
        Any,
        Field(
            description=f"{_LEVEL}, around which `amplitude` swings at each of `frequencies`, for `times` periods each"
        ),
    ] = None
    repeat: Annotated[int | None, Field(ge=1, le=1_000_000, description="number of repetitions of the parts `of`")] = (
        None
    )
    file: Annotated[
        str | None,
        Field(
            description="CSV file with the columns time (s) and current (A/m2) or voltage (V), linear between rows: "
            'file = "profile.csv"'
        ),
    ] = None
    of: Annotated[
        tuple[PartSettings, ...] | None,
        Field(min_length=1, description="of repeat: the repeated parts; of pulse, did you mean off?"),
    ] = None
    time: Annotated[Time | None, Field(description='of hold and ramp: time = "10 s"')] = None
    rate: Annotated[Any, Field(description='of ramp and cycle: rate = "50 mV/s"')] = None
    on: Annotated[Time | None, Field(description='of pulse: on = "1 ms"')] = None
    off: Annotated[Time | None, Field(description='of pulse: off = "9 ms"')] = None
    base: Annotated[Any, Field(description="of pulse: the level between pulses, by default no current")] = None
    amplitude: Annotated[Any, Field(description='of sine: amplitude = "5 mV"')] = None
    frequency: Annotated[
        Annotated[float, BeforeValidator(lambda v: quantity(v, "frequency")), Field(gt=0)] | None,
        Field(description='of sine: frequency = "10 Hz"'),
    ] = None
    frequencies: Annotated[
        Annotated[
            tuple[Annotated[float, BeforeValidator(lambda v: quantity(v, "frequency")), Field(gt=0)], ...],
            Field(min_length=1),
        ]
        | FrequencySettings
        | None,
        Field(description='of impedance: ["100 Hz", "1 Hz"], or {from = "10 kHz", to = "0.1 Hz", per_decade = 5}'),
    ] = None
    points: Annotated[
        int, Field(ge=8, le=100_000, description="of sine and impedance: number of time steps in a period")
    ] = 100
    times: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="number of cycles, pulses, or periods of a sine")
    ] = None
    until: Annotated[UntilSettings, Field(description='limits that end a segment: until = {voltage = "1 V"}')] = (
        UntilSettings()
    )
