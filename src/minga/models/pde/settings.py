"""The case's table [pde]: its schema. What becomes of it is in `minga.models.pde.case`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["PdeSettings"]

Number = bool | int | float
Kind = Literal["f4", "f8", "c8", "c16"]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PdeSettings(BaseModel):
    """Table [pde] of a case.

    Attributes
    ----------
    equations
        The rate of change of each field by its name, or one text for a field u.
    parameters
        Values of names in the equations: numbers, or texts of the coordinates.
    initial
        Initial values by field: numbers, or texts of the coordinates; random() is uniform in [0, 1).
    boundary
        Conditions by axis, for all fields or by field: {dirichlet = v}, {neumann = g}, {robin = [a, b]},
        {no_flux = true} or "antiperiodic", or a list of two for the low and the high side; v, g, a, b are numbers or
        texts of coordinates and t.
    integrator
        Method that advances the fields in time.
    dt
        Length of a step; by default one that is stable, or for adaptive methods an estimate.
    tolerance
        Largest error of a step of an adaptive method, relative to the largest value that each field has had.
    absolute
        Error that such a step may always have beside it, in the unit of the field: one for all fields, or by field.
    order
        Accuracy of operators for which an equation gives none.
    space
        "differences", or "spectral" for derivatives of the Fourier modes on periodic boxes.
    dealias
        Share of modes along each axis that spectral derivatives keep: 2/3 where fields are squared, 1/2 where cubed.
    noise
        Amplitude of white noise, for all fields or by field: a number or a text.
    spacing
        Width of cells, one for all axes or one for each.
    origin
        Position of the low end of each axis.
    axes
        Names of the axes.
    geometry
        Coordinates: "cartesian", "polar", "cylindrical" or "spherical".
    unit
        Unit of time.
    units
        Units of fields by name.
    dtype
        Type of the fields, "c8" and "c16" for complex ones: one for all, or one for each by its name.
    seed
        Seed of the noise, and of random().
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    equations: Annotated[
        str | dict[str, str], Field(description='give the rate of change: equations = { u = "laplace(u) + u - u**3" }')
    ]
    parameters: dict[str, Number | str] = Field(default_factory=dict)
    initial: dict[str, Number | str] = Field(default_factory=dict)
    boundary: dict[str, Any] = Field(default_factory=dict)
    integrator: Literal[
        "auto", "euler", "heun", "ssprk3", "ssprk43", "williamson3", "rk4", "bs3", "dp5", "euler-maruyama", "milstein",
        "imex-euler", "cnab2", "sbdf2", "ars222", "ars443", "tr-bdf2", "bdf2", "etdrk4",
    ] = "auto"  # fmt: skip
    dt: Positive | None = None
    tolerance: Positive = 1e-6
    absolute: NotNegative | dict[str, NotNegative] = 0.0
    order: Annotated[int, Field(ge=2, le=16, multiple_of=2)] = 2
    space: Literal["differences", "spectral"] = "differences"
    dealias: Annotated[float, Field(gt=0, le=1)] = 1.0
    noise: Number | str | dict[str, Number | str] | None = None
    spacing: Positive | list[Positive] = 1.0
    origin: list[float] | None = None
    axes: list[str] | None = None
    geometry: Literal["cartesian", "polar", "cylindrical", "spherical"] = "cartesian"
    unit: str = "1"
    units: dict[str, str] = Field(default_factory=dict)
    dtype: Kind | dict[str, Kind] = "f8"
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
