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
from minga.models.waves.absorption import record_matching
from minga.models.waves.absorption_tilted import record_tilted_matching
from minga.models.waves.attenuation import Attenuation, Relaxation, relaxation_of, unrelaxed_ratio
from minga.models.waves.boundary import (
    Boundary,
    Cpml,
    Free,
    Pairs,
    Random,
    Release,
    Rigid,
    Sponge,
    domain_of,
    faces_of,
    kinds,
    scrambled,
)
from minga.models.waves.density import Staggered, density_walls
from minga.models.waves.density_layers import record_flux_layers
from minga.models.waves.domain import AXES, Domain, check_shape, check_spacing
from minga.models.waves.injection import record_advance
from minga.models.waves.kernels import Equations, Form, Kind
from minga.models.waves.medium import Medium, Sampler, axis_vector
from minga.models.waves.receivers import Receivers, record_samples
from minga.models.waves.sensors import Recorded, Sensors
from minga.models.waves.source import PlaneSource, PointSource, Source
from minga.models.waves.sponge import damps_in_kernel, record_damping, sponge_profiles
from minga.models.waves.stability import LIMITS, Extremes, check_sigma, check_step, extremes_of
from minga.models.waves.stencils import Differences, first_weights
from minga.models.waves.velocity import check_quantities, record_velocities
from minga.models.waves.watchdog import record_watch
from minga.space.boundary import Condition, fixed, reflect
from minga.space.box import Box
from minga.space.field import STEP, Field, Register
from minga.space.grid import Grid

__all__ = ["Stepping", "Waves", "fletcher", "prepare", "stepping_of"]

INFINITE_SIGMA: Final = 10.0
"""Limit of sigma above which there are no SV waves, as in Fletcher's codes."""
UNTRUSTED: Final = (
    'choose "sponge", which suits all media, or "random"; matched layers are an experiment here: '
    "Cpml(experimental=True), in a case {cpml = 12, experimental = true}"
)
FORMS: Final = ("fletcher", "selfadjoint")
UNITS: Final = {"vp2": "m2 s-2", "rho": "kg m-3"}
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
    "rho": "density",
}


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """Fields and coefficients of a time step; see `fletcher` for the arguments from which they follow.

    Parameters
    ----------
    grid
        Grid with layers at its ends; the first cell of the model lies at coordinate 0.
    domain
        Cells of the model in the grid.
    dt
        Seconds of a step.
    boundary
        The boundary.
    faces
        The boundaries of the low and the high end of each axis.
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
        Fields between the two halves of a step of fourth order in time, or with attenuation; none otherwise.
    style
        Style in which pictures draw the waves.
    relaxation
        The attenuation; None: none.
    memories
        Memory variables of the attenuation.
    strength
        Field of the strength of the attenuation, if it varies.
    """

    grid: Grid
    domain: Domain
    dt: float
    boundary: Boundary
    faces: Pairs
    equations: Equations
    extremes: Extremes
    sampler: Sampler
    fields: tuple[Field, ...]
    medium: tuple[Field, ...]
    increments: tuple[Field, ...]
    style: FieldStyle
    relaxation: Relaxation | None = None
    memories: tuple[Field, ...] = ()
    strength: Field | None = None

    @property
    def shown(self) -> Field:
        """Field that pictures show: p."""
        return self.fields[0]

    @property
    def structure(self) -> tuple[object, ...]:
        """Structure: what recorded steps depend on, values of the medium's fields and of layers aside."""
        relaxation = self.relaxation
        relaxed = () if relaxation is None else (relaxation.attenuation.mechanisms, relaxation.uniform)
        return (
            "acoustic", self.domain, self.dt, self.faces, self.equations, len(self.increments), self.fields[0].dtype,
            self.strength is None, *relaxed,
        )  # fmt: skip

    @property
    def experimental(self) -> bool:
        """True if there are experimental matched layers."""
        return any(face.experimental for face in kinds(self.faces, Cpml))

    def watch(self, step: Program, sources: Sequence[Source]) -> None:
        """Record at the end of a step what ends a run when waves grow in experimental layers.

        Parameters
        ----------
        step
            The step.
        sources
            The sources.

        Raises
        ------
        CaseError
            If the source is a plane, whose ends lie in the layers.
        """
        if not self.experimental:
            return
        if any(isinstance(source, PlaneSource) for source in sources):
            raise CaseError(
                "plane sources with experimental matched layers: their ends lie in the layers, which are then not "
                "told from layers in which waves grow",
                key="fletcher.sources",
                remedy='choose the boundary "sponge"',
            )
        record_watch(step, self, _peak(sources))

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of the model, without layers."""
        return self.domain.shape

    @property
    def spacing(self) -> tuple[float, ...]:
        """Metres between cells, along each axis."""
        return self.domain.spacing

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
            if kinds(self.faces, Random):
                vp = scrambled(vp, self.extremes.largest_vp, box, self.grid.shape, self.faces)
            return np.square(vp) if self.relaxation is None else np.square(vp) * self.relaxation.relaxed(box)
        if name == "tau":
            assert self.relaxation is not None
            return self.relaxation.strength(box)
        if name in ("epsilon", "delta", "rho"):
            return self.sampler.values(name, box)
        axis = axis_vector(self.sampler.values("theta", box), self.sampler.values("phi", box))
        return np.asarray(axis["zyx".index(name[1])], np.float64)

    def start(self) -> dict[str, Callable[[Box], NDArray[np.float64]]]:
        """Return the initial values of the medium's fields, by name.

        Returns
        -------
        dict
            A function of a Box for each field.
        """

        def of(name: str) -> Callable[[Box], NDArray[np.float64]]:
            return lambda box: self.values(name, box)

        strengths = () if self.strength is None else (self.strength,)
        return {field.name: of(field.name) for field in (*self.medium, *strengths)}

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
            If the waves have steps of fourth order in time, or attenuation.
        """
        if self.relaxation is not None:
            raise CaseError(
                f"{what} without attenuation only", key="fletcher.attenuation", remedy="prepare the waves without it"
            )
        if self.increments:
            raise CaseError(f"{what} of second order in time only", key="fletcher.time_order", remedy=remedy)

    def stepping(self, sources: Sequence[Source]) -> Stepping:
        """Return a time step with its boundaries and sources.

        Parameters
        ----------
        sources
            The sources.

        Returns
        -------
        Stepping
            The step.

        Raises
        ------
        CaseError
            If a source is that of other waves, or lies outside the model.
        """
        remedy = "give a list of PointSource() and PlaneSource() of minga.models.waves"
        if not isinstance(sources, list | tuple):
            raise CaseError(f"the sources are a {type(sources).__name__}", key="fletcher.sources", remedy=remedy)
        for number, source in enumerate(sources):
            if not isinstance(source, PointSource | PlaneSource):
                raise CaseError(
                    f"source {number} is a {type(source).__name__}", key=f"fletcher.sources[{number}]", remedy=remedy
                )
        return stepping_of(self, sources)

    def sensors(self, receivers: Receivers, record: Sequence[str] = ("p",)) -> Sensors:
        """Return what receivers record.

        Parameters
        ----------
        receivers
            The receivers.
        record
            Quantities: ("p",).

        Returns
        -------
        Sensors
            Their quantities, and the cells that represent them.

        Raises
        ------
        CaseError
            If a receiver lies outside the model, or another quantity is named.
        """
        if tuple(record) != ("p",):
            raise CaseError(
                f"receivers record {record!r}",
                key="record",
                remedy='give ("p",); velocities and stresses are those of elastic waves',
            )
        p = self.fields[0]
        return Sensors((Recorded("p", (p,)),), {p: receivers.taps(self.domain)})

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
    spacing: Sequence[float] | float = 12.5,
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
    attenuation: Attenuation | None = None,
) -> Waves:
    """Return the waves of a model, for use in other Programs; further arguments and errors are those of `fletcher`.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x, along z, x, or along z.
    spacing
        Metres between cells, along each axis or for all.
    dt
        Seconds of a step.
    medium
        Velocity, anisotropy and axis, or velocity and density.
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
        Result of `extremes_of` for this medium, if it was inspected before.
    section
        Position along y, m, at which pictures of waves on three axes cut the model; None: in the middle.
    attenuation
        Attenuation of the waves; None: none.

    Returns
    -------
    Waves
        The waves.
    """
    lengths = check_shape(shape)
    widths = check_spacing(spacing, len(lengths))
    medium.check(lengths)
    check_sigma(sigma)
    sigma = math.inf if sigma > INFINITE_SIGMA else float(sigma)
    if form not in FORMS:
        raise CaseError(f"there is no form {form!r}", key="fletcher.form", remedy=f"choose one of {', '.join(FORMS)}")
    ends: Boundary = Random() if boundary is None else boundary
    faces = faces_of(ends, len(lengths))
    _check_time_order(time_order, faces)
    kind: Kind = "isotropic" if medium.isotropic else "vertical" if medium.vertical else "tilted"
    reach = len(first_weights(order))  # raises for an invalid order
    least = min(widths)
    steps = [least / h for h in widths]
    staggered = Staggered.of(order, steps) if medium.has_density else None
    _check_faces(faces, kind, form, lengths, reach if staggered is None else staggered.reach)
    domain = domain_of(lengths, widths, faces)
    sampler = Sampler(medium, lengths, domain.low)
    divergence = form == "selfadjoint" and kind == "tilted"
    scrambles = bool(kinds(faces, Random))
    if extremes is None:
        extremes = extremes_of(sampler, widths, order, sigma, divergence=divergence, scrambled=scrambles, domain=domain)
    if _trusted(faces) and extremes.delta_above:
        raise CaseError(
            "matched layers (cpml) where delta exceeds epsilon: waves would slowly grow in them",
            key="fletcher.boundary",
            remedy=UNTRUSTED,
        )
    relaxation = None if attenuation is None else _relaxation(attenuation, domain, faces, time_order)
    check_step(
        dt, LIMITS[time_order] * extremes.dt_limit / (1.0 if relaxation is None else math.sqrt(relaxation.fastest))
    )
    equations = Equations(
        kind, form, domain.axes, Differences.of(order, steps),
        None if math.isinf(sigma) else sigma, (dt / least) * (dt / least),
        _constants(medium, relaxation, varying=scrambles), staggered,
    )  # fmt: skip
    grid = Grid(
        domain.cells,
        axes=domain.axes,
        spacing=widths,
        origin=tuple(-(low + 0.5) * h for low, h in zip(domain.low, widths, strict=True)),
        units="m",
        periodic=domain.periodic,
        down="z",
    )
    wall = fixed(0.0)  # of the medium: values beyond are multiplied by waves that are 0, or are not used
    fields = tuple(
        Field(name, grid, dtype, slots=2, boundary=_walls(domain), description=ABOUT[name]) for name in equations.waves
    )
    coefficients = tuple(
        Field(
            name, grid, dtype, boundary=density_walls(domain) if name == "rho" else wall,
            unit=UNITS.get(name, "1"), description=ABOUT[name],
        )
        for name in equations.stored
    )  # fmt: skip
    increments = tuple(
        Field(f"{name}_increment", grid, dtype, boundary=_walls(domain), description=f"increment of {name} by a step")
        for name in (equations.waves if time_order == 4 or relaxation is not None else ())
    )
    cut = None
    if len(lengths) == 3:
        cut = ("y", 0.5 * (lengths[1] - 1) * widths[1] if section is None else section)
    style = FieldStyle(signed=True, section=cut)
    memories, strength = ((), None) if relaxation is None else relaxation.fields(equations.waves, grid, dtype)
    return Waves(
        grid, domain, dt, ends, faces, equations, extremes, sampler, fields, coefficients, increments, style,
        relaxation, memories, strength,
    )  # fmt: skip


def _relaxation(attenuation: Attenuation, domain: Domain, faces: Pairs, time_order: int) -> Relaxation:
    """Return the attenuation on the grid; raise CaseError where it is not supported."""
    if time_order != 2 or kinds(faces, Cpml):
        raise CaseError(
            "attenuation with matched layers (cpml), or with steps of fourth order in time",
            key="fletcher.attenuation",
            remedy='choose time_order = 2 and the boundary "sponge"',
        )
    return relaxation_of(attenuation, domain)


def _check_faces(faces: Pairs, kind: Kind, form: Form, lengths: tuple[int, ...], reach: int) -> None:
    """Raise CaseError for boundaries that the equations or the number of cells do not allow."""
    if _trusted(faces) and kind == "tilted":
        raise CaseError(
            "matched layers (cpml) are not known to be stable with a tilted axis", key="fletcher.boundary",
            remedy=UNTRUSTED,
        )  # fmt: skip
    mirrored = bool(kinds(faces, Free)) or bool(kinds(faces, Rigid))
    if kinds(faces, Cpml) and kind == "tilted" and (mirrored or form == "selfadjoint"):
        raise CaseError(
            "experimental matched layers with a tilted axis beside "
            + ("a free surface or a rigid wall" if mirrored else 'the form "selfadjoint"'),
            key="fletcher.boundary" if mirrored else "fletcher.form",
            remedy='choose "sponge" for the layers' + (', or "release"' if mirrored else ', or the form "fletcher"'),
        )
    if mirrored and kind == "tilted" and form == "selfadjoint":
        raise CaseError(
            'free surfaces and rigid walls with a tilted axis need the form "fletcher"',
            key="fletcher.form",
            remedy='choose form = "fletcher", or the boundary "release"',
        )
    for name, pair, cells in zip(AXES[len(lengths)], faces, lengths, strict=True):
        special = [face for face in pair if not isinstance(face, Release | Random | Sponge)]
        if special and cells < reach + 1:
            raise CaseError(
                f"{cells} cells along {name}, where the boundary {special[0]!r} needs {reach + 1} or more",
                key="grid.shape",
                remedy=f"give the model {reach + 1} cells or more along {name}, or choose a lower order",
            )


def _trusted(faces: Pairs) -> bool:
    """Return whether there are matched layers that are not experimental."""
    return any(not face.experimental for face in kinds(faces, Cpml))


def _walls(domain: Domain) -> Mapping[str | int, tuple[Condition, Condition]]:
    """Return the conditions beyond the ends of all axes that are not periodic."""
    conditions = {0: fixed(0.0), -1: _ODD, 1: reflect("edge")}
    return {
        name: (conditions[low], conditions[high])
        for name, (low, high), periodic in zip(domain.axes, domain.mirrors, domain.periodic, strict=True)
        if not periodic
    }


_ODD = Condition("free surface", lambda edge: -edge[edge.layer], homogeneous=True)


@dataclass(frozen=True, slots=True, eq=False)
class Stepping:
    """A time step of waves, with its boundaries and sources.

    Parameters
    ----------
    step
        The step.
    fields
        All fields that it uses.
    initial
        Initial values of the fields that do not start at 0: functions of a Box, or arrays on one axis.
    """

    step: Program
    fields: tuple[Field, ...]
    initial: Mapping[str, Callable[[Box], NDArray[np.float64]] | NDArray[np.float64]]


def stepping_of(waves: Waves, sources: Sequence[Source]) -> Stepping:
    """Return a time step of waves with its boundaries and sources.

    Parameters
    ----------
    waves
        The waves, from `prepare`.
    sources
        The sources.

    Returns
    -------
    Stepping
        The step.
    """
    step = Program("step")
    memories: tuple[Field, ...] = ()
    profiles: Mapping[Field, NDArray[np.float64]] = {}
    if fused := damps_in_kernel(waves, sources):
        profiles = sponge_profiles(waves.grid, waves.fields[0].dtype, waves.faces)[0]
    record_advance(step, waves, sources, [*profiles])
    if kinds(waves.faces, Cpml):
        record = record_matching if waves.equations.staggered is None else record_flux_layers
        matching = record_tilted_matching if waves.equations.kind == "tilted" else record
        memories, profiles = matching(step, waves, _peak(sources))
    step.rotate(*waves.fields)
    if kinds(waves.faces, Sponge) and not fused:
        profiles = {**profiles, **record_damping(step, waves.fields, waves.faces)}
    step.let(STEP, STEP + 1)
    relaxed = (*waves.memories, *(() if waves.strength is None else (waves.strength,)))
    fields = (*waves.fields, *waves.increments, *waves.medium, *relaxed, *memories, *profiles)
    return Stepping(step, fields, {**waves.start(), **{item.name: values for item, values in profiles.items()}})


def fletcher(
    shape: Sequence[int],
    spacing: Sequence[float] | float = 12.5,
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
    attenuation: Attenuation | None = None,
    record: Sequence[str] = ("p",),
) -> Model:
    """Return a model of waves in a tilted transversely isotropic medium, on one to three axes.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x, along z, x, or along z.
    spacing
        Distances between cells along each axis, or for all of them, m.
    dt
        Time step, s.
    medium
        Velocity, anisotropy and axis, or velocity and density (`minga.models.waves.medium`); isotropic media have a
        single wave field, and neither these nor media with a vertical axis need mixed derivatives.
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
        Random(), Sponge(), Cpml(), Release(), Free(), Rigid() or Periodic(), or one for each face: Faces(...)
        (`minga.models.waves.boundary`); None: Random(). Layers surround the model, so that the grid and its frames are
        larger than `shape`: `model.parameters["inside"]` is the box of the model in them, and coordinates start at its
        first cell.
    sources
        Sources; by default one in the middle.
    receivers
        Positions at which p is recorded: the observable "receivers" (`minga.models.waves.receivers`).
    dtype
        "f4" or "f8".
    extremes
        Result of `extremes_of` for this medium, if it was inspected before.
    attenuation
        Attenuation with nearly constant Q (`minga.models.waves.attenuation`); None: none. Not with Cpml(), legacy
        sources, or steps of fourth order in time.
    record
        What receivers record: "p", and in isotropic media the particle velocities "vz", "vy", "vx", m/s, which are
        those half a step before the time (`minga.models.waves.velocity`) and follow from p, in Pa, with the medium's
        rho, which must be a number. The observable has the samples of all receivers for the first one, then for the
        next.

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
        boundary=boundary, dtype=dtype, extremes=extremes, section=_section(chosen), attenuation=attenuation,
    )  # fmt: skip
    stepping = stepping_of(waves, chosen)
    waves.watch(stepping.step, chosen)
    observe = Program("observe")
    observables: dict[str, Any] = {"largest": observe.apply(_LARGEST, waves.fields[0])}
    check_quantities(record, waves)
    step, integrated = stepping.step, dict[Register, float]()
    if receivers is not None and len(receivers.positions):
        placed = receivers.placed(waves.domain) if "p" in record else []
        registers = {"p": record_samples(observe, waves.fields[0], placed)} if placed else {}
        velocities = [name for name in dict.fromkeys(record) if name != "p"]
        if velocities:
            step = Program("step")
            registers |= record_velocities(step, waves, receivers, velocities)
            step.include(stepping.step)
            integrated = {register: 0.0 for name in velocities for register in registers[name]}
        observables["receivers"] = tuple(register for name in record for register in registers[name])
    return Model(
        name="fletcher",
        grid=waves.grid,
        fields=stepping.fields,
        step=step,
        initial=stepping.initial,
        output=("p",),
        observe=observe,
        registers=integrated,
        observables=observables,
        units={name: OBSERVED[name] for name in observables},
        presentation=Presentation(dict.fromkeys((f.name for f in waves.fields), waves.style)),
        traces=None if receivers is None else _traces(receivers, waves, chosen, record),
        clock=Clock(dt=dt),
        parameters={
            "dt": dt, "sigma": sigma, "order": order, "time_order": int(time_order), "form": form,
            "boundary": repr(waves.boundary), "inside": [list(waves.domain.inside.lo), list(waves.domain.inside.hi)],
            "dt_limit": LIMITS[time_order] * waves.extremes.dt_limit / unrelaxed_ratio(waves.relaxation),
            **({} if attenuation is None else {"attenuation": attenuation.said}),
            **({"experimental": True} if waves.experimental else {}),
        },
    )  # fmt: skip


def _check_time_order(order: object, faces: Pairs) -> None:
    if order not in LIMITS or not isinstance(order, int | np.integer):
        raise CaseError(
            f"there is no order {order!r} of steps in time", key="fletcher.time_order", remedy="choose 2 or 4"
        )
    if order == 4 and kinds(faces, Cpml):
        raise CaseError(
            "matched layers (cpml) support second-order time steps only",
            key="fletcher.time_order",
            remedy='choose 2, or the boundary "sponge" or "random"',
        )


def _traces(receivers: Receivers, waves: Waves, sources: Sequence[Source], record: Sequence[str]) -> Traces | None:
    """Return the description of the receivers' samples for files and data sets."""
    if not len(receivers.positions):
        return None
    axes = waves.domain.axes
    points = [source.position or waves.domain.middle for source in sources if isinstance(source, PointSource)]
    if list(record) == ["p"]:
        return Traces(
            "receivers", _in_space(receivers.positions, axes), receivers.every, waves.dt, _in_space(points, axes)
        )
    late = f"velocities are those half a step, {500 * waves.dt:g} ms, before the time"
    return Traces(
        "receivers", _in_space([*receivers.positions] * len(record), axes), receivers.every, waves.dt,
        _in_space(points, axes), tuple(name for name in record for _ in receivers.positions), (late,),
    )  # fmt: skip


def _in_space(points: Sequence[tuple[float, ...]], axes: str) -> tuple[tuple[float, ...], ...]:
    """Return points along z, y, x; an axis that the model lacks has the position 0."""
    return tuple(tuple(point[axes.index(name)] if name in axes else 0.0 for name in "zyx") for point in points)


def _largest(p: Any) -> Reduced:
    return mg.max(mg.abs(p[(0,) * len(p.axes)]))


_LARGEST = Kernel(_largest)


def _section(sources: Sequence[Source]) -> float | None:
    """Return the position of the first point source along y; None if there is none, or if it is in the middle."""
    points = (source.position for source in sources if isinstance(source, PointSource))
    first = next(points, None)
    return None if first is None or len(first) < 3 else first[1]


def _peak(sources: Sequence[Source]) -> float:
    """Return the lowest peak frequency of the sources; if none is known, that of the default Ricker wavelet."""
    known = [source.wavelet.peak for source in sources if source.wavelet.peak is not None]
    return min(known, default=PointSource().wavelet.peak)  # type: ignore[return-value]


def _constants(medium: Medium, relaxation: Relaxation | None, *, varying: bool) -> tuple[tuple[str, float], ...]:
    """Return the coefficients that are uniform; `varying`: the velocity is not, whatever its entry."""
    sampler = Sampler(medium, (1,), (0,))
    vp, theta, phi = (sampler.number(name) for name in ("vp", "theta", "phi"))
    found: dict[str, float] = {}
    if vp is not None and not varying:
        if relaxation is None:
            found["vp2"] = vp * vp
        elif relaxation.uniform is not None:
            found["vp2"] = vp * vp * float(relaxation.attenuation.relaxed(np.array(relaxation.uniform)))
    for name in ("epsilon", "delta"):
        if (number := sampler.number(name)) is not None:
            found[name] = number
    if theta is not None:
        found["nz"] = float(axis_vector(theta, 0.0)[0])
        if phi is not None or theta == 0.0:
            found["ny"], found["nx"] = map(float, axis_vector(theta, phi or 0.0)[1:])
    return tuple(found.items())
