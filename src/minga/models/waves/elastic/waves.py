"""Elastic waves: fields, coefficients and the time step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.attenuation import Attenuation
from minga.models.waves.boundary import (
    Boundary,
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
from minga.models.waves.elastic.attenuation import memory_fields
from minga.models.waves.elastic.kernels import Elasticity
from minga.models.waves.elastic.layout import Component, components, conditions
from minga.models.waves.elastic.medium import (
    Coefficients,
    ElasticMedium,
    Speeds,
    coefficients_of,
    speeds_of,
)
from minga.models.waves.elastic.receivers import sensors_of
from minga.models.waves.elastic.relaxation import ElasticRelaxation, check_attenuation
from minga.models.waves.elastic.sources import ElasticSource
from minga.models.waves.elastic.stability import step_limit
from minga.models.waves.elastic.stencils import staggered_weights
from minga.models.waves.elastic.stepping import elastic_stepping
from minga.models.waves.keys import keys_of
from minga.models.waves.receivers import Receivers
from minga.models.waves.sensors import Sensors
from minga.models.waves.stepping import Stepping
from minga.models.waves.time_step import stable_step
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["ElasticWaves", "prepare_elastic"]

UNITS: Final = {"v": "m s-1", "s": "Pa", "m": "Pa", "l": "Pa", "b": "m3 kg-1", "t": "1"}
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
    memories
        With attenuation the increment and the memory variables of each stress, by its name.
    relaxation
        Relaxation of the moduli in a step; None: none.
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
    memories: Mapping[str, tuple[Field, ...]]
    relaxation: ElasticRelaxation | None = None

    @property
    def structure(self) -> tuple[object, ...]:
        """Structure: what recorded steps depend on, values of the medium's fields and of layers aside."""
        equations = self.elasticity
        known = tuple(sorted(equations.constants.items())), tuple(equations.components), equations.weights
        relaxed = () if self.relaxation is None else self.relaxation.attenuation.mechanisms
        return "elastic", self.domain, self.dt, self.faces, known, self.fields[0].dtype, relaxed

    @property
    def named(self) -> dict[str, Field]:
        """Fields of the waves and of the coefficients by name."""
        return {item.name: item for item in (*self.fields, *self.medium)}

    @property
    def advanced(self) -> dict[str, Field]:
        """Like `named`, with the increments of the stresses, if there is attenuation, in their place."""
        return {**self.named, **{name: items[0] for name, items in self.memories.items()}}

    def start(self) -> dict[str, Callable[[Box], NDArray[np.float64]]]:
        """Return the initial values of the coefficients' fields, by name.

        Returns
        -------
        dict
            A function of a Box for each field.
        """
        return {field.name: partial(self.coefficients.values, field.name) for field in self.medium}

    @property
    def slowest(self) -> float:
        """Lowest velocity of P and S waves, m/s."""
        return min(self.speeds.slowest_p, self.speeds.slowest_s or math.inf)

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
    dt: float | None = None,
    medium: ElasticMedium,
    order: int = 8,
    boundary: Boundary | None = None,
    dtype: str = "f4",
    speeds: Speeds | None = None,
    limit: float | None = None,
    attenuation: Attenuation | None = None,
) -> ElasticWaves:
    """Return the waves of a model, for use in other Programs; further arguments and errors are those of `elastic`.

    Parameters
    ----------
    shape
        Cells of the model along z, y, x or along z, x.
    spacing
        Metres between cells, along each axis or for all.
    dt
        Seconds of a step; None: three quarters of the stability limit.
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
    attenuation
        Attenuation of P and S waves; None: none.

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
        if attenuation is not None:
            check_attenuation(attenuation, lengths)
        weights = staggered_weights(order)
        ends: Boundary = Sponge() if boundary is None else boundary
        faces = faces_of(ends, len(lengths))
        _check_faces(faces, lengths, len(weights))
        domain = domain_of(lengths, widths, faces)
        found = components(domain.axes)
        speeds = speeds_of(medium, lengths, attenuation=attenuation) if speeds is None else speeds
        if limit is None:
            limit = step_limit(coefficients_of(medium, domain, attenuation), order)
        dt = stable_step(dt, limit)
    coefficients = coefficients_of(medium, domain, attenuation, dt)
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
    stresses = [] if attenuation is None else [c for c in found.values() if not c.velocity]
    memories = memory_fields(stresses, 0 if attenuation is None else len(attenuation.mechanisms), grid, dtype)
    return ElasticWaves(
        grid, domain, dt, ends, faces, elasticity, coefficients, speeds, limit, fields, stored, memories,
        coefficients.relaxation,
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
