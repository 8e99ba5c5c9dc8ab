"""Schema of the [elastic] table of a case."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.models.waves.settings import (
    BOUNDARY_FORM,
    AttenuationSettings,
    ComputedTime,
    Metres,
    Position,
    Positive,
    QuantityFile,
    ReceiverSettings,
    Spacing,
    TimeStep,
    WaveletSettings,
)

__all__ = ["ElasticMediumSettings", "ElasticSettings", "ElasticSourceSettings", "Numbers"]

_STRICT = ConfigDict(extra="forbid", frozen=True)

Numbers = Annotated[tuple[Metres, ...], Field(min_length=2, max_length=3)]
"""A number for each axis."""


class ElasticMediumSettings(BaseModel):
    """Table [elastic.medium]: a number or a file for each quantity."""

    model_config = _STRICT

    vp: Annotated[
        Positive | str | QuantityFile,
        Field(description='P velocity, m/s: vp = 3000, vp = "vp.npy", vp = {file = "vp.rsf", axes = "yxz"}'),
    ]
    vs: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | str | QuantityFile,
        Field(description="S velocity, m/s, 0 in fluids: a number or a file, as for vp"),
    ]
    rho: Annotated[Positive | str | QuantityFile, Field(description="density, kg/m3: a number or a file, as for vp")]


class ElasticSourceSettings(BaseModel):
    """One of [[elastic.sources]]: an explosion, unless `force` or `moment` is given."""

    model_config = _STRICT

    position: Annotated[Position, Field(description="metres along z (down), y, x or z, x: position = [20, 500, 500]")]
    force: Annotated[Numbers | None, Field(description="components of a force along z, y, x or z, x, N")] = None
    moment: Annotated[
        Annotated[tuple[Numbers, ...], Field(min_length=2, max_length=3)] | None,
        Field(description="symmetric moment tensor along z, y, x or z, x, N m: moment = [[0, 1e9], [1e9, 0]]"),
    ] = None
    wavelet: Annotated[
        WaveletSettings, Field(description="force or moment in time: {ricker = 15.0, scale = 1e9}, or {file = ...}")
    ] = WaveletSettings(ricker=15.0)


class ElasticSettings(BaseModel):
    """Table [elastic] of a case: elastic waves in an isotropic medium.

    Attributes
    ----------
    medium
        Velocities and density.
    spacing
        Distance between cells in m, one number or one for each axis; None: as stated by the medium's files.
    dt
        Time step in s, or "auto": three quarters of the stability limit.
    order
        Order of the staggered differences in space.
    boundary
        Boundary of the model, as in [fletcher].
    sources
        Sources of waves.
    receivers
        Positions at which waves are recorded.
    record
        Quantities that receivers record.
    attenuation
        Attenuation of P and S waves; None: none.
    time
        Time to compute in s, instead of run.steps.
    dtype
        "f4" or "f8".
    """

    model_config = _STRICT

    medium: Annotated[ElasticMediumSettings, Field(description="a table [elastic.medium] with vp, vs and rho")]
    spacing: Spacing = None
    dt: TimeStep = "auto"
    order: Annotated[Literal[2, 4, 8, 12], Field(description="order of the differences in space: 2, 4, 8 or 12")] = 8
    boundary: Annotated[Any, Field(description=BOUNDARY_FORM)] = "sponge"
    sources: Annotated[
        tuple[ElasticSourceSettings, ...],
        Field(description="[[elastic.sources]] position = [20, 500, 500], wavelet = {ricker = 15.0, scale = 1e9}"),
    ] = ()
    receivers: Annotated[
        ReceiverSettings | None,
        Field(description="[elastic.receivers] first = [20, 500, 0], last = [20, 500, 1000], count = 81"),
    ] = None
    record: Annotated[
        tuple[str, ...], Field(min_length=1, description='what receivers record: record = ["p", "vz", "vx"]')
    ] = ("p",)
    attenuation: Annotated[
        AttenuationSettings | None, Field(description="[elastic.attenuation] q = 80, qs = 40, band = [5, 50]")
    ] = None
    time: ComputedTime = None
    dtype: Annotated[Literal["f4", "f8"], Field(description='number type of the waves: "f4" or "f8"')] = "f4"
