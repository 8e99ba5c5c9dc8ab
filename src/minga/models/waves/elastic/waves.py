"""Elastic waves: fields, coefficients and the time step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.boundary import (
    Boundary,
    Cpml,
    Free,
    Pairs,
    Random,
    Rigid,
    Sponge,
    domain_of,
    faces_of,
    kinds,
)
from minga.models.waves.domain import Domain, axes_of, check_shape, check_spacing, is_number
from minga.models.waves.elastic.kernels import Elasticity, Fields
from minga.models.waves.elastic.layout import Component, components, conditions
from minga.models.waves.elastic.matching import record_layers
from minga.models.waves.elastic.medium import Coefficients, ElasticMedium, Speeds, coefficient, speeds_of
from minga.models.waves.elastic.receivers import sensors_of
from minga.models.waves.elastic.sources import ElasticSource, check_sources, record_sources
from minga.models.waves.elastic.stability import step_limit
from minga.models.waves.elastic.stencils import staggered_weights
from minga.models.waves.keys import keys_of
from minga.models.waves.receivers import Receivers
from minga.models.waves.sensors import Sensors
from minga.models.waves.sponge import record_damping
from minga.models.waves.stability import check_step
from minga.models.waves.stepping import Stepping, lowest_peak
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import STEP, Field
from minga.space.grid import Grid

__all__ = ["ElasticWaves", "elastic_stepping", "prepare_elastic"]

Start = Callable[[Box], NDArray[np.float64]] | NDArray[np.float64]

UNITS: Final = {"v": "m s-1", "s": "Pa", "m": "Pa", "l": "Pa", "b": "m3 kg-1"}
"""Units by the first letter of the name."""


@dataclass(frozen=True, slots=True, eq=False)
class ElasticWaves:
    """Fields and coefficients of a time step; see `elastic` for the arguments from which they follow.

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
    elasticity
        The equations and their differences.
    coefficients
        Values of the coefficients on the grid.
    speeds
        Extreme velocities of the medium.
    limit
        The longest stable time step, s.
    fields
        Velocities and stresses.
    medium
        Fields of the coefficients that vary.
    """

    grid: Grid
    domain: Domain
    dt: float
    boundary: Boundary
    faces: Pairs
    elasticity: Elasticity
    coefficients: Coefficients
    speeds: Speeds
    limit: float
    fields: tuple[Field, ...]
    medium: tuple[Field, ...]

    @property
    def structure(self) -> tuple[object, ...]:
        """Structure: what recorded steps depend on, values of the medium's fields and of layers aside."""
        equations = self.elasticity
        known = tuple(sorted(equations.constants.items())), tuple(equations.components), equations.weights
        return "elastic", self.domain, self.dt, self.faces, known, self.fields[0].dtype

    @property
    def named(self) -> dict[str, Field]:
        """Fields of the waves and of the coefficients by name."""
        return {item.name: item for item in (*self.fields, *self.medium)}

    def start(self) -> dict[str, Callable[[Box], NDArray[np.float64]]]:
        """Return the initial values of the coefficients' fields, by name.

        Returns
        -------
        dict
            A function of a Box for each field.
        """
        return {field.name: partial(self.coefficients.values, field.name) for field in self.medium}

    @property
    def shown(self) -> Field:
        """Field that pictures show: the velocity downwards."""
        return self.named["vz"]

    def watch(self, step: Program, sources: Sequence[ElasticSource]) -> None:
        """Record nothing: no layers are experimental.

        Parameters
        ----------
        step
            The step.
        sources
            The sources.
        """

    def stepping(self, sources: Sequence[ElasticSource]) -> Stepping:
        """Return a time step with its boundaries and sources, as `elastic_stepping` does.

        Parameters
        ----------
        sources
            The sources.

        Returns
        -------
        Stepping
            The step.
        """
        return elastic_stepping(self, sources)

    def sensors(self, receivers: Receivers, record: Sequence[str] = ("p",)) -> Sensors:
        """Return what receivers record.

        Parameters
        ----------
        receivers
            The receivers.
        record
            Quantities: "p", minus the mean of the normal stresses, or names of components.

        Returns
        -------
        Sensors
            Their quantities, and the cells that represent them.

        Raises
        ------
        CaseError
            If a quantity is not known, or a receiver lies outside the model.
        """
        with keys_of("elastic"):
            return sensors_of(receivers, record, self.elasticity.components, self.named, self.domain, self.faces)


def prepare_elastic(
    shape: Sequence[int],
    spacing: Sequence[float] | float = 12.5,
    *,
    dt: float,
    medium: ElasticMedium,
    order: int = 8,
    boundary: Boundary | None = None,
    dtype: str = "f4",
    speeds: Speeds | None = None,
    limit: float | None = None,
) -> ElasticWaves:
    """Return the waves of a model, for use in other Programs; further arguments and errors are those of `elastic`.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x or along z, x.
    spacing
        Metres between cells, along each axis or for all.
    dt
        Seconds of a step.
    medium
        Velocities and density.
    order
        The order of differences in space: 2, 4, 8 or 12.
    boundary
        The boundary; None: Sponge().
    dtype
        "f4" or "f8".
    speeds
        Result of `speeds_of` for this medium, if it was inspected before.
    limit
        Result of `step_limit`, likewise.

    Returns
    -------
    ElasticWaves
        The waves.
    """
    with keys_of("elastic"):
        lengths = check_shape(shape)
        if len(lengths) < 2:
            raise CaseError(
                f"elastic waves are on two or three axes; the model has {len(lengths)}",
                key="grid.shape",
                remedy="give the cells along z, x or along z, y, x; on one axis P and S waves are those of mg.fletcher",
            )
        widths = check_spacing(spacing, len(lengths))
        _check_types(medium, dtype, speeds, limit)
        medium.check(lengths)
        weights = staggered_weights(order)
        ends: Boundary = Sponge() if boundary is None else boundary
        faces = faces_of(ends, len(lengths))
        _check_faces(faces, lengths, len(weights))
        domain = domain_of(lengths, widths, faces)
        found = components(domain.axes)
        coefficients = Coefficients(medium, domain, found)
        speeds = speeds_of(medium, lengths) if speeds is None else speeds
        limit = step_limit(coefficients, order) if limit is None else limit
        check_step(dt, limit)
    constants = coefficients.constants
    scaled = tuple(tuple(float(w) * (dt / h) for w in weights) for h in widths)
    grid = domain.grid()
    fields = tuple(
        Field(
            name, grid, dtype, boundary=conditions(c, faces, domain.periodic), unit=UNITS[name[0]],
            description=_about(c, domain.axes),
        )
        for name, c in found.items()
    )  # fmt: skip
    stored = tuple(
        Field(name, grid, dtype, boundary=fixed(0.0), unit=UNITS[name[0]], description=name.replace("_", " along "))
        for name in coefficients.names
        if name not in constants
    )
    elasticity = Elasticity(domain.axes, found, scaled, constants)
    return ElasticWaves(
        grid, domain, dt, ends, faces, elasticity, coefficients, speeds, limit, fields, stored
    )  # fmt: skip


def _check_types(medium: object, dtype: object, speeds: object, limit: object) -> None:
    """Raise CaseError for arguments of another type."""
    known = (
        ("medium", medium, isinstance(medium, ElasticMedium), "ElasticMedium(vp=3000.0, vs=1700.0, rho=2200.0)"),
        ("dtype", dtype, isinstance(dtype, str) and dtype in ("f4", "f8"), '"f4" or "f8"'),
        ("speeds", speeds, speeds is None or isinstance(speeds, Speeds), "the result of speeds_of(), or None"),
        ("limit", limit, limit is None or (is_number(limit) and limit > 0), "seconds, or None"),
    )
    for name, value, right, remedy in known:
        if not right:
            raise CaseError(f"{name} is {value!r}", key=f"elastic.{name}", remedy=f"give {remedy}")


def _about(component: Component, axes: str) -> str:
    """Return a description of a component."""
    letters = ", ".join(axes[axis] for axis in component.axes)
    what = "velocity" if component.velocity else "normal stress" if component.normal else "shear stress"
    shifted = ", ".join(axes[axis] for axis, half in enumerate(component.half) if half)
    return f"{what} along {letters}" + (f", half a cell above the cells along {shifted}" if shifted else "")


def _check_faces(faces: Pairs, lengths: tuple[int, ...], reach: int) -> None:
    """Refuse faces that elastic waves do not have, and special ones on too few cells."""
    if kinds(faces, Random):
        raise CaseError(
            "elastic waves have no random layers", key="elastic.boundary", remedy='choose "sponge" or "cpml"'
        )
    for number, pair in enumerate(faces):
        for end, face in enumerate(pair):
            axis = axes_of(len(faces))[number]
            if isinstance(face, Free) and (number, end) != (0, 0):
                raise CaseError(
                    f"a free surface at the {('low', 'high')[end]} end of {axis}; elastic waves have one at the top",
                    key=f"elastic.boundary.{axis}",
                    remedy="give z=(Free(), Sponge()), and another boundary to the other faces",
                )
            if isinstance(face, Free | Rigid) and lengths[number] < 2 * reach + 1:
                raise CaseError(
                    f"{lengths[number]} cells along {axis}, where the boundary {face!r} needs {2 * reach + 1} or more",
                    key="grid.shape",
                    remedy=f"give the model {2 * reach + 1} cells or more along {axis}, or choose a lower order",
                )


def elastic_stepping(waves: ElasticWaves, sources: Sequence[ElasticSource]) -> Stepping:
    """Return a time step of waves with its boundaries and sources.

    After n steps stresses are those at n dt, and velocities those at (n - 1/2) dt.

    Parameters
    ----------
    waves
        The waves, from `prepare_elastic`.
    sources
        The sources.

    Returns
    -------
    Stepping
        The step.
    """
    check_sources(sources)
    step = Program("step")
    memories: list[Field] = []
    profiles: dict[Field, NDArray[np.float64]] = {}
    frequency = lowest_peak(sources)
    named, domain, faces = waves.named, waves.domain, waves.faces
    with keys_of("elastic"):
        for velocities in (True, False):
            _record_advance(step, waves, velocities=velocities)
            record_sources(
                step, sources, waves.elasticity, named, domain, faces, waves.dt, forces=velocities
            )  # fmt: skip
            if kinds(faces, Cpml):
                record_layers(step, waves, frequency, memories, profiles, velocities=velocities)
    if kinds(faces, Sponge):
        profiles |= record_damping(step, waves.fields, faces)
    step.let(STEP, STEP + 1)
    initial: dict[str, Start] = {**waves.start(), **{item.name: values for item, values in profiles.items()}}
    return Stepping(step, (*waves.fields, *waves.medium, *memories, *profiles), initial)


def _record_advance(step: Program, waves: ElasticWaves, *, velocities: bool) -> None:
    """Record the step of the velocities, or of the stresses."""
    equations = waves.elasticity
    if velocities:
        _record_kernel(step, waves, "elastic_velocity", equations.named("velocity"))
        return
    normal, shear = equations.named("normal"), equations.named("shear")
    if not isinstance(waves.faces[0][0], Free):
        _record_kernel(step, waves, "elastic_stress", [*shear, *normal])
        return
    whole = waves.grid.box
    lo, hi = (1, *whole.lo[1:]), (1, *whole.hi[1:])
    _record_kernel(step, waves, "elastic_shear", shear)
    _record_kernel(step, waves, "elastic_surface", normal, Box(whole.lo, hi), surface=True)
    _record_kernel(step, waves, "elastic_normal", normal, Box(lo, whole.hi))


def _record_kernel(
    step: Program,
    waves: ElasticWaves,
    name: str,
    targets: Sequence[Component],
    region: Box | None = None,
    *,
    surface: bool = False,
) -> None:
    """Record the step of some components: velocities, or stresses, of which the normal ones are all or none.

    Together they read what they have in common once.
    """
    equations = waves.elasticity
    others = {each for target in targets for each in equations.used(target)}
    if surface:
        others.discard(equations.velocity(0).name)
    own = {each for target in targets for each in (("lambda", "mu") if target.normal else (coefficient(target),))}
    names = list(dict.fromkeys([*(target.name for target in targets), *sorted(others), *_stored(waves, *sorted(own))]))

    def act(fields: Fields) -> None:
        for target in targets:
            if not target.normal:
                equations.advance(target)(fields)
        if any(target.normal for target in targets):
            equations.advance_normal(surface=surface)(fields)

    step.apply(equations.kernel(name, names, act), [waves.named[each] for each in names], region=region)


def _stored(waves: ElasticWaves, *names: str) -> list[str]:
    """Return those names of coefficients that are fields."""
    return [name for name in names if name not in waves.elasticity.constants]
