"""Schema of the [fletcher] table of a case. `minga.models.waves.load` converts it to a model."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from minga.case.quantities import LENGTH, TIME

__all__ = [
    "BoundarySettings",
    "FletcherSettings",
    "MediumSettings",
    "QuantityFile",
    "ReceiverSettings",
    "SourceSettings",
    "SyntheticSettings",
    "WaveletSettings",
]

_STRICT = ConfigDict(extra="forbid", frozen=True)

Metres = Annotated[float, Field(allow_inf_nan=False)]
Position = Annotated[tuple[Metres, ...], Field(min_length=1, max_length=3)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Distance = Annotated[float, LENGTH, Field(gt=0, allow_inf_nan=False)]
Duration = Annotated[float, TIME, Field(gt=0, allow_inf_nan=False)]
Spacing = Annotated[
    Distance | Annotated[tuple[Distance, ...], Field(min_length=1, max_length=3)] | None,
    Field(description='distance between cells, m: spacing = 12.5 or "8 m", or [dz, dy, dx], or [dz, dx]'),
]
TimeStep = Annotated[
    Duration | Literal["auto"],
    Field(description='time step, s: dt = 0.001 or "1 ms", or "auto": three quarters of the stability limit'),
]
ComputedTime = Annotated[
    Duration | None, Field(description='time to compute, s, instead of run.steps: time = 0.3 or "300 ms"')
]
Angles = Literal["degree", "radian"]

FORM: Final = (
    'write medium = "iso", "vti", "tti", the name of a file, {synthetic = "salt"}, or a table [fletcher.medium] with vp'
)

BOUNDARY_FORM: Final = (
    'write "sponge", "random", "cpml", "free", "release", "rigid" or "periodic", or a layer with its width in cells: '
    '{sponge = 40}; other faces beside it: {sponge = 40, z = ["free", "sponge"]}'
)


class QuantityFile(BaseModel):
    """A quantity in a file, `vp = {file = "vp.npy", unit = "km/s"}`."""

    model_config = _STRICT

    file: Annotated[str, Field(description='name of the file: file = "vp.npy"')]
    variable: Annotated[str | None, Field(description="name of the quantity in a Zarr store or NetCDF file")] = None
    axes: Annotated[
        str | None, Field(description='order of the file\'s axes, slowest first: axes = "zyx"; z points down')
    ] = None
    unit: Annotated[
        str | None,
        Field(description='for vp "m/s" or "km/s", for rho "kg/m3" or "g/cm3", for angles "degree" or "radian"'),
    ] = None


class MediumSettings(BaseModel):
    """Table [fletcher.medium]: a number or a file for each quantity."""

    model_config = _STRICT

    vp: Annotated[
        Positive | str | QuantityFile,
        Field(
            description='P velocity along the axis, m/s: vp = 3000, vp = "vp.npy", vp = {file = "vp.rsf", axes = "yxz"}'
        ),
    ]
    epsilon: Annotated[
        Metres | str | QuantityFile, Field(description="Thomsen's epsilon: a number or a file, as for vp")
    ] = 0.0
    delta: Annotated[
        Metres | str | QuantityFile, Field(description="Thomsen's delta: a number or a file, as for vp")
    ] = 0.0
    theta: Annotated[
        Metres | str | QuantityFile,
        Field(description="dip of the axis from the vertical: a number or a file, as for vp"),
    ] = 0.0
    phi: Annotated[
        Metres | str | QuantityFile, Field(description="azimuth of the axis from x to y: a number or a file, as for vp")
    ] = 0.0
    rho: Annotated[
        Positive | str | QuantityFile,
        Field(description="density, kg/m3: a number, which has no effect, or a file, for isotropic media"),
    ] = 1000.0
    angles: Annotated[
        Angles | None, Field(description='unit of theta and phi: angles = "degree" or angles = "radian"')
    ] = None


class SyntheticSettings(BaseModel):
    """A medium defined by formulas: `medium = {synthetic = "salt", seed = 3}`; see `minga.models.waves.synthetic`."""

    model_config = _STRICT

    synthetic: Annotated[str, Field(description='kind of medium: synthetic = "layered", "salt" or "thrust"')]
    seed: Annotated[int, Field(ge=0, lt=2**63, description="seed of the random medium")] = 1
    anisotropy: Annotated[float, Field(ge=0, le=2, description="factor of epsilon and delta; 0 is isotropic")] = 1.0
    density: Annotated[
        bool, Field(description="a density that follows from the velocity, for isotropic media: density = true")
    ] = False
    depths: Annotated[
        tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...],
        Field(description="depths of the layers' tops at the middle of the model, m, the first one 0"),
    ] = ()
    velocities: Annotated[tuple[Positive, ...], Field(description="velocities at the layers' tops, m/s")] = ()
    dip: Annotated[float, Field(ge=-60, le=60, description="dip of the layers, degrees")] = 0.0
    azimuth: Annotated[float, Field(ge=-360, le=360, description="direction in which the layers rise, degrees")] = 0.0


class WaveletSettings(BaseModel):
    """Signal of a source: `{ricker = 15.0}`, in Hz, `{ormsby = [5, 10, 40, 60]}`, or `{file = "wavelet.txt"}`."""

    model_config = _STRICT

    ricker: Annotated[Positive | None, Field(description="peak frequency of a Ricker wavelet, Hz")] = None
    ormsby: Annotated[
        tuple[Metres, Metres, Metres, Metres] | None,
        Field(description="rising corner frequencies of an Ormsby wavelet, Hz: ormsby = [5, 10, 40, 60]"),
    ] = None
    delay: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
        Field(description="time of the peak of these wavelets, s; by default so late that they start near 0"),
    ] = None
    file: Annotated[
        str | None, Field(description="a file of samples: .npy, or text with a number per line, or time and number")
    ] = None
    dt: Annotated[Positive | None, Field(description="interval between the samples of the file, s")] = None
    scale: Annotated[float, Field(allow_inf_nan=False, description="factor of the amplitude")] = 1.0


class SourceSettings(BaseModel):
    """One of [[fletcher.sources]]: a point at `position`, or the plane normal to an axis at `plane`."""

    model_config = _STRICT

    position: Annotated[
        Position | None,
        Field(description="metres along z (down), y, x or z, x: position = [20, 500, 500]; 0 is the first cell"),
    ] = None
    plane: Annotated[
        dict[Literal["z", "y", "x"], Metres] | None,
        Field(min_length=1, max_length=1, description="a plane instead of a point: plane = {z = 20} in metres"),
    ] = None
    direction: Annotated[
        Annotated[tuple[Metres, ...], Field(min_length=1, max_length=3)] | None,
        Field(description="components of a dipole, a force, along z, y, x or z, x: direction = [1, 0, 0] points down"),
    ] = None
    wavelet: Annotated[WaveletSettings, Field(description="wavelet = {ricker = 15.0}, or {file = ..., dt = ...}")] = (
        WaveletSettings(ricker=15.0)
    )
    injection: Annotated[
        Literal["physical", "legacy"],
        Field(description='meaning of amplitudes: "physical", a force; or "legacy", added to p and q before each step'),
    ] = "physical"


class ReceiverSettings(BaseModel):
    """Table [fletcher.receivers]: positions as points, a line or a grid, and the sampling interval."""

    model_config = _STRICT

    positions: Annotated[
        tuple[Position, ...] | None, Field(min_length=1, description="a list of [z, y, x] or [z, x] in metres")
    ] = None
    first: Annotated[
        Position | None, Field(description="first receiver of a line or grid, [z, y, x] or [z, x] in metres")
    ] = None
    last: Annotated[
        Position | None, Field(description="last receiver of a line or grid, [z, y, x] or [z, x] in metres")
    ] = None
    count: Annotated[
        Annotated[int, Field(ge=1, le=1_000_000)]
        | Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=2, max_length=2)]
        | None,
        Field(description="number of receivers on a line, or on a grid along y and x: count = [10, 20]"),
    ] = None
    every: Annotated[
        Annotated[int, Field(ge=1)] | Duration,
        Field(description='from one sample to the next: steps, every = 2, or a time, every = "2 ms"'),
    ] = 1


FaceName = Literal["sponge", "random", "cpml", "free", "release", "rigid", "periodic"]
Ends = FaceName | Annotated[tuple[FaceName, FaceName], Field(min_length=2, max_length=2)] | None


class BoundarySettings(BaseModel):
    """Table of the boundary: a layer with its width in cells, for all faces that are not named otherwise."""

    model_config = _STRICT

    sponge: Annotated[int | None, Field(ge=1, le=1000, description="cells of a damping layer around the model")] = None
    strength: Annotated[
        Positive | None,
        Field(description="damping of the sponge in each step; by default what suits its width, velocities and dt"),
    ] = None
    random: Annotated[int | None, Field(ge=1, le=1000, description="cells with random velocities")] = None
    cpml: Annotated[
        int | None, Field(ge=1, le=1000, description="cells of a convolutional perfectly matched layer")
    ] = None
    experimental: Annotated[
        bool,
        Field(description="matched layers also for tilted axes and delta above epsilon; a run ends if waves grow"),
    ] = False
    seed: Annotated[int, Field(ge=0, lt=2**63, description="seed of the random velocities")] = 0
    z: Annotated[Ends, Field(description='boundary at both ends of z, or [top, bottom]: z = ["free", "sponge"]')] = None
    y: Annotated[Ends, Field(description='boundary at both ends of y, or [low, high]: y = "periodic"')] = None
    x: Annotated[Ends, Field(description='boundary at both ends of x, or [low, high]: x = "rigid"')] = None


class AttenuationSettings(BaseModel):
    """Table [fletcher.attenuation] or [elastic.attenuation]: nearly constant Q (`minga.models.waves.attenuation`)."""

    model_config = _STRICT

    q: Annotated[Positive, Field(description="quality factor of all waves, or with qs of P waves: q = 50")]
    qs: Annotated[Positive | None, Field(description="quality factor of S waves, of elastic waves only")] = None
    band: Annotated[
        tuple[Positive, Positive], Field(description="frequencies between which q is nearly constant, Hz: [5, 50]")
    ] = (5.0, 50.0)
    reference: Annotated[
        Positive | None, Field(description="frequency at which waves have the medium's velocities, Hz")
    ] = None
    frequencies: Annotated[
        tuple[Positive, ...] | None, Field(min_length=1, description="frequencies of the mechanisms, Hz")
    ] = None


class FletcherSettings(BaseModel):
    """Table [fletcher] of a case: acoustic waves in a tilted transversely isotropic medium.

    Attributes
    ----------
    spacing
        Distance between cells in m, one number or one for each axis; None: as stated by the medium's file.
    dt
        Time step in s, or "auto": three quarters of the stability limit.
    order
        Order of the differences in space.
    time_order
        Order of the steps in time.
    form
        "fletcher" (Fletcher, Du & Fowler 2009) or "selfadjoint" (rotated).
    sigma
        vsz^2 = vp^2 |epsilon - delta| / sigma; "infinite": no shear term.
    boundary
        Boundary of the model, see BoundarySettings and BOUNDARY_FORM.
    medium
        Velocities and anisotropy, see MediumSettings and FORM.
    sources
        Sources of waves.
    receivers
        Positions at which waves are recorded.
    record
        Quantities that receivers record.
    attenuation
        Attenuation of the waves; None: none.
    time
        Time to compute in s, instead of run.steps.
    dtype
        "f4" or "f8".
    """

    model_config = _STRICT

    medium: Annotated[Any, Field(description=FORM)]
    spacing: Spacing = None
    dt: TimeStep = "auto"
    order: Annotated[Literal[4, 8, 12, 16], Field(description="order of the differences in space: 4, 8, 12 or 16")] = 8
    time_order: Annotated[Literal[2, 4], Field(description="order of the steps in time: 2 or 4")] = 2
    form: Annotated[
        Literal["fletcher", "selfadjoint"], Field(description='form of the equations: "fletcher" or "selfadjoint"')
    ] = "fletcher"
    sigma: Annotated[
        Positive | Literal["infinite"],
        Field(description='parameter of the shear term: sigma = 0.75, or "infinite" where epsilon >= delta everywhere'),
    ] = 0.75
    boundary: Annotated[Any, Field(description=BOUNDARY_FORM)] = "sponge"
    sources: Annotated[
        tuple[SourceSettings, ...],
        Field(description="[[fletcher.sources]] position = [20, 500, 500], wavelet = {ricker = 15.0}"),
    ] = ()
    receivers: Annotated[
        ReceiverSettings | None,
        Field(description="[fletcher.receivers] first = [20, 500, 0], last = [20, 500, 1000], count = 81"),
    ] = None
    record: Annotated[
        tuple[str, ...],
        Field(min_length=1, description='what receivers record, with velocities: record = ["p", "vz"]'),
    ] = ("p",)
    attenuation: Annotated[
        AttenuationSettings | None, Field(description="[fletcher.attenuation] q = 50, band = [5, 50]")
    ] = None
    time: ComputedTime = None
    dtype: Annotated[Literal["f4", "f8"], Field(description='number type of the wave field: "f4" or "f8"')] = "f4"
