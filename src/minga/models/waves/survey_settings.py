"""Schema of the [survey] table of a case. `minga.models.waves.survey_case` converts it to a survey."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.models.waves.elastic.settings import Numbers
from minga.models.waves.settings import Metres, Position, Positive, WaveletSettings

__all__ = [
    "FieldDataSettings",
    "ShotsSettings",
    "SpreadSettings",
    "SpsSettings",
    "StreamerSettings",
    "SurveySettings",
    "TablesSettings",
]

_STRICT = ConfigDict(extra="forbid", frozen=True)


class ShotsSettings(BaseModel):
    """Table [survey.shots]: shots on a line at equal distances."""

    model_config = _STRICT

    first: Annotated[Position, Field(description="first source, [z, y, x] or [z, x] in metres")]
    step: Annotated[Position, Field(description="distance from one source to the next along each axis, m")]
    count: Annotated[int, Field(ge=1, le=1_000_000, description="number of shots")]


class SpreadSettings(BaseModel):
    """Table [survey.receivers]: the same receivers for all shots, as points, a line or a grid."""

    model_config = _STRICT

    positions: Annotated[
        tuple[Position, ...] | None, Field(min_length=1, description="a list of [z, y, x] or [z, x] in metres")
    ] = None
    first: Annotated[Position | None, Field(description="first receiver of a line or grid, in metres")] = None
    last: Annotated[Position | None, Field(description="last receiver of a line or grid, in metres")] = None
    count: Annotated[
        Annotated[int, Field(ge=1, le=1_000_000)]
        | Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=2, max_length=2)]
        | None,
        Field(description="number of receivers on a line, or on a grid along y and x: count = [10, 20]"),
    ] = None


class StreamerSettings(BaseModel):
    """Table [survey.streamer]: receivers towed along x with each source."""

    model_config = _STRICT

    depth: Annotated[Metres, Field(description="depth of the receivers, m")]
    nearest: Annotated[Metres, Field(description="offset of the first receiver along x, m; negative at smaller x")]
    spacing: Annotated[Metres, Field(description="distance from one receiver to the next along x, m, with its sign")]
    count: Annotated[int, Field(ge=1, le=1_000_000, description="number of receivers")]


class TablesSettings(BaseModel):
    """Table [survey.tables]: CSV files with the columns shot,z,y,x or shot,z,x."""

    model_config = _STRICT

    shots: Annotated[str, Field(description='file of the sources: shots = "shots.csv"')]
    receivers: Annotated[str, Field(description="file of the receivers; those of the shot * belong to all shots")]


class SpsSettings(BaseModel):
    """Table [survey.sps]: files of the Shell Processing Support format."""

    model_config = _STRICT

    shots: Annotated[str, Field(description='file of source points (S records): shots = "line.s"')]
    receivers: Annotated[str, Field(description='file of receiver points (R records): receivers = "line.r"')]
    relation: Annotated[str, Field(description='file of relations (X records): relation = "line.x"')]
    revision: Annotated[
        Literal["0", "2.1"] | None,
        Field(description='revision of the format: "0" or "2.1"; by default as its header H00'),
    ] = None


class FieldDataSettings(BaseModel):
    """Table [survey.segy]: the geometry of an existing SEG-Y file."""

    model_config = _STRICT

    file: Annotated[str, Field(description='the file whose headers have the geometry: file = "field.sgy"')]


class SurveySettings(BaseModel):
    """Table [survey] of a case: shots, receivers and records; the medium is that of [fletcher] or [elastic]."""

    model_config = _STRICT

    length: Annotated[Positive, Field(description="length of the records, s: length = 2.0")]
    interval: Annotated[Positive, Field(description="seconds between samples, whole microseconds: interval = 0.002")]
    begin: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="time at which records begin, s; a number of intervals")
    ] = 0.0
    zero: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | Literal["peak"],
        Field(description='time that the records call 0, s, or "peak": that of a Ricker wavelet\'s largest value'),
    ] = 0.0
    aperture: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
        Field(
            description="metres around sources and receivers on which a shot is computed; by default the whole model"
        ),
    ] = None
    wavelet: Annotated[WaveletSettings, Field(description="wavelet = {ricker = 15.0}, or {file = ..., dt = ...}")] = (
        WaveletSettings(ricker=15.0)
    )
    injection: Annotated[
        Literal["physical", "legacy"],
        Field(description='meaning of amplitudes: "physical" or "legacy" (not of elastic waves)'),
    ] = "physical"
    force: Annotated[
        Numbers | None, Field(description="of elastic waves, components of a force along z, y, x or z, x, N")
    ] = None
    moment: Annotated[
        Annotated[tuple[Numbers, ...], Field(min_length=2, max_length=3)] | None,
        Field(description="of elastic waves, symmetric moment tensor along z, y, x or z, x, N m"),
    ] = None
    origin: Annotated[tuple[Metres, Metres], Field(description="easting and northing of the model's first cell, m")] = (
        0.0,
        0.0,
    )
    bearing: Annotated[
        float, Field(ge=-360, le=360, description="direction of x, degrees clockwise from north; y lies to its left")
    ] = 90.0
    datum: Annotated[Metres, Field(description="elevation of the model's first cell, m")] = 0.0
    shots: Annotated[ShotsSettings | None, Field(description="[survey.shots] first, step and count")] = None
    receivers: Annotated[
        SpreadSettings | None, Field(description="[survey.receivers] first, last and count, or positions")
    ] = None
    streamer: Annotated[
        StreamerSettings | None, Field(description="[survey.streamer] depth, nearest, spacing and count")
    ] = None
    tables: Annotated[TablesSettings | None, Field(description="[survey.tables] shots and receivers")] = None
    sps: Annotated[SpsSettings | None, Field(description="[survey.sps] shots, receivers and relation")] = None
    segy: Annotated[FieldDataSettings | None, Field(description='[survey.segy] file = "field.sgy"')] = None
