"""Fletcher's wave model: fields, the time step, and the conversion of a medium to coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.clock import Clock
from minga.engine.model import Model, Traces
from minga.engine.presentation import FieldStyle, Presentation
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang import functions as mg
from minga.lang.cell import Reduced
from minga.lang.kernel import Kernel
from minga.models.waves.absorption import record_damping, record_matching
from minga.models.waves.boundary import Boundary, Cpml, Random, Sponge, scrambled
from minga.models.waves.injection import record_advance
from minga.models.waves.kernels import NAMES, Equations, Form, Kind
from minga.models.waves.medium import Medium, Sampler, axis_vector
from minga.models.waves.receivers import Receivers, record_samples
from minga.models.waves.source import PointSource, Source, middle_of
from minga.models.waves.stability import LIMITS, Extremes, check_sigma, check_step, survey
from minga.models.waves.stencils import Differences, first_weights
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import STEP, Field
from minga.space.grid import Grid

__all__ = ["Waves", "fletcher", "prepare"]

INFINITE_SIGMA: Final = 10.0
"""Limit of sigma above which there are no SV waves, as in Fletcher's codes."""
FORMS: Final = ("fletcher", "selfadjoint")
UNITS: Final = {"vp2": "m2 s-2"}
OBSERVED: Final = {
    "largest": ("1", "largest amplitude of p"),
    "receivers": ("1", "samples of p at the receivers"),
}
ABOUT: Final = {
    "p": "pressure-like wave field",
    "q": "auxiliary wave field",
    "vp2": "P velocity along the axis of symmetry, squared",
    "epsilon": "Thomsen's epsilon",
    "delta": "Thomsen's delta",
    "nz": "z component of the axis of symmetry",
    "ny": "y component of the axis of symmetry",
    "nx": "x component of the axis of symmetry",
}


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """Fields and coefficients of a time step; see `fletcher` for the arguments from which they follow.

    Parameters
    ----------
    grid
        Grid with layers at its ends; cell (0, 0, 0) of the model lies at coordinate 0.
    inside
        Box of the grid that is the model.
    shape
        Cells of the model, without layers.
    spacing
        Metres between cells, along each axis.
    dt
        Seconds of a step.
    boundary
        The boundary.
    equations
        The wave equations and their differences.
    extremes
        Extreme values of the medium, and the stable time step.
    sampler
        Values of the medium on the grid.
    fields
        p, and q unless the medium is isotropic; two slots each.
    medium
        Fields of the coefficients that vary.
    increments
        Fields between the two halves of a step of fourth order in time; none with the second order.
    style
        Style in which pictures draw the waves.
    """

    grid: Grid
    inside: Box
    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    dt: float
    boundary: Boundary
    equations: Equations
    extremes: Extremes
    sampler: Sampler
    fields: tuple[Field, ...]
    medium: tuple[Field, ...]
    increments: tuple[Field, ...]
    style: FieldStyle

    @property
    def layers(self) -> int:
        """Cells that the grid has in addition at both ends of each axis."""
        return self.boundary.cells

    def values(self, name: str, box: Box) -> NDArray[np.float64]:
        """Return a coefficient on a box of the grid, f8.

        Parameters
        ----------
        name
            The name of the coefficient.
        box
            The box.

        Returns
        -------
        ndarray
            Values, f8 of the box's shape.
        """
        if name == "vp2":
            vp = self.sampler.values("vp", box)
            if isinstance(self.boundary, Random):
                vp = scrambled(vp, self.extremes.largest_vp, box, self.grid.shape, self.boundary)
            return np.square(vp)
        if name in ("epsilon", "delta"):
            return self.sampler.values(name, box)
        axis = axis_vector(self.sampler.values("theta", box), self.sampler.values("phi", box))
        return np.asarray(axis[NAMES.index(name) - 3], np.float64)

    def start(self) -> dict[str, Callable[[Box], NDArray[np.float64]]]:
        """Return the initial values of the medium's fields, by name.

        Returns
        -------
        dict
            A function of a Box for each field.
        """

        def of(name: str) -> Callable[[Box], NDArray[np.float64]]:
            return lambda box: self.values(name, box)

        return {field.name: of(field.name) for field in self.medium}

    def check_second_order(self, what: str, remedy: str) -> None:
        """Refuse steps of fourth order in time for what has second order only.

        Parameters
        ----------
        what
            Subject and verb of the message: "migration is".
        remedy
            Remedy of the error.

        Raises
        ------
        CaseError
            If the waves have steps of fourth order in time.
        """
        if self.increments:
            raise CaseError(f"{what} of second order in time only", key="fletcher.time_order", remedy=remedy)

    def record_kernel(self, step: Program) -> None:
        """Record the computation of the next waves in the previous slots; a step must then rotate `fields`.

        Parameters
        ----------
        step
            The Program to record into.

        """
        record_advance(step, self, ())


def prepare(
    shape: Sequence[int],
    spacing: Sequence[float] | float = (12.5, 12.5, 12.5),
    *,
    dt: float,
    medium: Medium,
    sigma: float = 0.75,
    order: int = 8,
    time_order: int = 2,
    form: Form = "fletcher",
    boundary: Boundary | None = None,
    dtype: str = "f4",
    extremes: Extremes | None = None,
    section: float | None = None,
) -> Waves:
    """Return the waves of a model, for use in other Programs; further arguments and errors are those of `fletcher`.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x.
    spacing
        Metres between cells, along each axis or for all.
    dt
        Seconds of a step.
    medium
        Velocity, anisotropy and axis.
    sigma
        Determines the SV velocity, as in `fletcher`.
    order
        The order of differences in space: 4, 8, 12 or 16.
    time_order
        The order of steps in time: 2 or 4.
    form
        ``"fletcher"`` or ``"selfadjoint"``.
    boundary
        The boundary; None: Random().
    dtype
        "f4" or "f8".
    extremes
        Result of `survey` for this medium, if it was inspected before.
    section
        Position along y, m, at which pictures of the waves cut the model; None: in the middle.

    Returns
    -------
    Waves
        The waves.
    """
    lengths = _shape(shape)
    widths = _spacing(spacing)
    medium.check(lengths)
    check_sigma(sigma)
    sigma = math.inf if sigma > INFINITE_SIGMA else float(sigma)
    if form not in FORMS:
        raise CaseError(f"there is no form {form!r}", key="fletcher.form", remedy=f"choose one of {', '.join(FORMS)}")
    ends: Boundary = Random() if boundary is None else boundary
    _check_time_order(time_order, ends)
    kind: Kind = "isotropic" if medium.isotropic else "vertical" if medium.vertical else "tilted"
    if isinstance(ends, Cpml) and kind == "tilted":
        raise CaseError(
            "matched layers (cpml) are not known to be stable with a tilted axis",
            key="fletcher.boundary",
            remedy='choose "sponge", which suits all media, or "random"',
        )
    reach = len(first_weights(order))  # raises for an invalid order
    if isinstance(ends, Cpml) and min(lengths) < reach:
        raise CaseError(
            f"matched layers around only {min(lengths)} cells, which differences of order {order} span",
            key="grid.shape",
            remedy=f"give the model {reach} cells or more along each axis",
        )
    sampler = Sampler(medium, lengths, (ends.cells,) * 3)
    divergence = form == "selfadjoint" and kind == "tilted"
    scrambles = isinstance(ends, Random)
    if extremes is None:
        extremes = survey(sampler, widths, order, sigma, divergence=divergence, scrambled=scrambles)
    if isinstance(ends, Cpml) and extremes.delta_above:
        raise CaseError(
            "matched layers (cpml) where delta exceeds epsilon: waves would slowly grow in them",
            key="fletcher.boundary",
            remedy='choose "sponge", which suits all media, or "random"',
        )
    check_step(dt, LIMITS[time_order] * extremes.dt_limit)
    least = min(widths)
    equations = Equations(
        kind, form, Differences.of(order, [least / h for h in widths]), None if math.isinf(sigma) else sigma,
        (dt / least) * (dt / least), _constants(medium, varying=scrambles),
    )  # fmt: skip
    grid = Grid(
        tuple(n + 2 * ends.cells for n in lengths),
        spacing=widths,
        origin=tuple(-(ends.cells + 0.5) * h for h in widths),
        units="m",
        down="z",
    )
    inside = Box((ends.cells,) * 3, tuple(n + ends.cells for n in lengths))
    wall = fixed(0.0)  # of the medium as well: values beyond are multiplied by waves that are 0
    cut = ("y", 0.5 * (lengths[1] - 1) * widths[1] if section is None else section)
    fields = tuple(
        Field(name, grid, dtype, slots=2, boundary=wall, description=ABOUT[name]) for name in equations.waves
    )
    coefficients = tuple(
        Field(name, grid, dtype, boundary=wall, unit=UNITS.get(name, "1"), description=ABOUT[name])
        for name in equations.stored
    )
    increments = tuple(
        Field(f"{name}_increment", grid, dtype, boundary=wall, description=f"increment of {name} by a step")
        for name in (equations.waves if time_order == 4 else ())
    )
    style = FieldStyle(signed=True, section=cut)
    return Waves(
        grid, inside, lengths, widths, dt, ends, equations, extremes, sampler, fields, coefficients, increments, style
    )


def fletcher(
    shape: Sequence[int],
    spacing: Sequence[float] | float = (12.5, 12.5, 12.5),
    *,
    dt: float,
    medium: Medium,
    sigma: float = 0.75,
    order: int = 8,
    time_order: int = 2,
    form: Form = "fletcher",
    boundary: Boundary | None = None,
    sources: Sequence[Source] | None = None,
    receivers: Receivers | None = None,
    dtype: str = "f4",
    extremes: Extremes | None = None,
) -> Model:
    """Return a model of waves in a tilted transversely isotropic medium.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x.
    spacing
        Distances between cells along each axis, or for all of them, m.
    dt
        Time step, s.
    medium
        Velocity, anisotropy and axis (`minga.models.waves.medium`); isotropic media have a single wave field, and
        neither these nor media with a vertical axis need mixed derivatives.
    sigma
        Sets the SV velocity: vsz2 = vp2 |epsilon - delta| / sigma; above 10 there are no SV waves.
    order
        Order of the differences in space: 4, 8, 12 or 16.
    time_order
        Order of the steps in time: 2 (leapfrog) or 4, which takes twice the work a step, allows steps 1.7 times as
        long, and whose errors in time are many times smaller (`minga.models.waves.injection`); not with Cpml().
    form
        "fletcher", or "selfadjoint" for rapidly varying axes (`minga.models.waves.kernels`).
    boundary
        Random(), Sponge(), Cpml() or Release() (`minga.models.waves.boundary`); None: Random(). Their layers surround
        the model, so that the grid and its frames are larger than `shape`: `model.parameters["inside"]` is the box of
        the model in them, and coordinates start at its first cell.
    sources
        Sources; by default one in the middle.
    receivers
        Positions at which p is recorded: the observable "receivers" (`minga.models.waves.receivers`).
    dtype
        "f4" or "f8".
    extremes
        Result of `survey` for this medium, if it was inspected before.

    Returns
    -------
    Model
        A model with the observables `largest`, the largest |p|, and `receivers`.

    Raises
    ------
    CaseError
        If an argument is invalid; the error names the corresponding key of a case.

    Examples
    --------
    >>> medium = Medium(vp=3000, epsilon=0.24, delta=0.1, theta=0.8, phi=1)
    >>> model = mg.fletcher((100, 100, 100), dt=1e-3, medium=medium)
    """
    chosen: Sequence[Source] = (PointSource(),) if sources is None else sources
    waves = prepare(
        shape, spacing, dt=dt, medium=medium, sigma=sigma, order=order, time_order=time_order, form=form,
        boundary=boundary, dtype=dtype, extremes=extremes, section=_section(chosen),
    )  # fmt: skip
    step = Program("step")
    memories: tuple[Field, ...] = ()
    profiles: Mapping[Field, NDArray[np.float64]] = {}
    record_advance(step, waves, chosen)
    if isinstance(waves.boundary, Cpml):
        memories, profiles = record_matching(step, waves, waves.boundary, _peak(chosen))
    step.rotate(*waves.fields)
    if isinstance(waves.boundary, Sponge):
        profiles = record_damping(step, waves.fields, waves.boundary)
    step.let(STEP, STEP + 1)
    observe = Program("observe")
    observables: dict[str, Any] = {"largest": observe.apply(_LARGEST, waves.fields[0])}
    if receivers is not None and len(receivers.positions):
        placed = receivers.placed(waves.shape, waves.spacing, waves.layers)
        observables["receivers"] = record_samples(observe, waves.fields[0], placed)
    return Model(
        name="fletcher",
        grid=waves.grid,
        fields=(*waves.fields, *waves.increments, *waves.medium, *memories, *profiles),
        step=step,
        initial={**waves.start(), **{field.name: values for field, values in profiles.items()}},
        output=("p",),
        observe=observe,
        observables=observables,
        units={name: OBSERVED[name] for name in observables},
        presentation=Presentation(dict.fromkeys((f.name for f in waves.fields), waves.style)),
        traces=None if receivers is None else _traces(receivers, waves, chosen),
        clock=Clock(dt=dt),
        parameters={
            "dt": dt, "sigma": sigma, "order": order, "time_order": int(time_order), "form": form,
            "boundary": repr(waves.boundary), "inside": [list(waves.inside.lo), list(waves.inside.hi)],
            "dt_limit": LIMITS[time_order] * waves.extremes.dt_limit,
        },
    )  # fmt: skip


def _check_time_order(order: object, boundary: Boundary) -> None:
    if order not in LIMITS or not isinstance(order, int | np.integer):
        raise CaseError(
            f"there is no order {order!r} of steps in time", key="fletcher.time_order", remedy="choose 2 or 4"
        )
    if order == 4 and isinstance(boundary, Cpml):
        raise CaseError(
            "matched layers (cpml) support second-order time steps only",
            key="fletcher.time_order",
            remedy='choose 2, or the boundary "sponge" or "random"',
        )


def _traces(receivers: Receivers, waves: Waves, sources: Sequence[Source]) -> Traces | None:
    """Return the description of the receivers' samples for files and data sets."""
    if not len(receivers.positions):
        return None
    middle = middle_of(waves.shape, waves.spacing)
    points = tuple(source.position or middle for source in sources if isinstance(source, PointSource))
    return Traces("receivers", tuple(receivers.positions), receivers.every, waves.dt, points)


def _largest(p: Any) -> Reduced:
    return mg.max(mg.abs(p[0, 0, 0]))


_LARGEST = Kernel(_largest)


def _section(sources: Sequence[Source]) -> float | None:
    """Return the position of the first point source along y; None if there is none, or if it is in the middle."""
    points = (source.position for source in sources if isinstance(source, PointSource))
    first = next(points, None)
    return None if first is None else first[1]


def _peak(sources: Sequence[Source]) -> float:
    """Return the lowest peak frequency of the sources; if none is known, that of the default Ricker wavelet."""
    known = [source.wavelet.peak for source in sources if source.wavelet.peak is not None]
    return min(known, default=PointSource().wavelet.peak)  # type: ignore[return-value]


def _constants(medium: Medium, *, varying: bool) -> tuple[tuple[str, float], ...]:
    """Return the coefficients that are uniform; `varying`: the velocity is not, whatever its entry."""
    sampler = Sampler(medium, (1, 1, 1), (0, 0, 0))
    vp, theta, phi = (sampler.number(name) for name in ("vp", "theta", "phi"))
    found: dict[str, float] = {}
    if vp is not None and not varying:
        found["vp2"] = vp * vp
    for name in ("epsilon", "delta"):
        if (number := sampler.number(name)) is not None:
            found[name] = number
    if theta is not None:
        found["nz"] = float(axis_vector(theta, 0.0)[0])
        if phi is not None or theta == 0.0:
            found["ny"], found["nx"] = map(float, axis_vector(theta, phi or 0.0)[1:])
    return tuple(found.items())


def _shape(shape: Sequence[int]) -> tuple[int, ...]:
    lengths = tuple(shape) if isinstance(shape, tuple | list) else ()
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in lengths)
    if len(lengths) != 3 or not whole:
        raise CaseError(
            f"shape={shape!r}: expected three whole numbers of cells",
            key="grid.shape",
            remedy="give the cells along z, y, x: (100, 100, 100)",
        )
    return tuple(map(int, lengths))


def _spacing(spacing: Sequence[float] | float) -> tuple[float, ...]:
    widths = (spacing,) * 3 if isinstance(spacing, int | float) else tuple(spacing)
    if len(widths) != 3 or not all(math.isfinite(h) and h > 0 for h in widths):
        raise CaseError(
            f"spacing={spacing!r}: expected a positive number of metres, or three",
            key="fletcher.spacing",
            remedy="give the distances of cells along z, y, x: (12.5, 12.5, 12.5)",
        )
    return tuple(map(float, widths))
