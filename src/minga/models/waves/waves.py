"""Waves of a model: fields, coefficients, and the values with which they start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from minga.engine.presentation import FieldStyle
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.attenuation import Relaxation
from minga.models.waves.boundary import Boundary, Cpml, Pairs, Random, kinds, scrambled
from minga.models.waves.domain import Domain
from minga.models.waves.injection import record_advance
from minga.models.waves.kernels import Equations
from minga.models.waves.medium import Sampler, axis_component
from minga.models.waves.receivers import Receivers
from minga.models.waves.sensors import Recorded, Sensors
from minga.models.waves.source import PlaneSource, PointSource, Source
from minga.models.waves.stability import Extremes
from minga.models.waves.stepping import Stepping, lowest_peak, stepping_of
from minga.models.waves.velocity import check_quantities, summed_velocity
from minga.models.waves.watchdog import record_watch
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Waves"]


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
    corrections
        Fields of the correction of a step of fourth order in time with attenuation; none otherwise.
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
    corrections: tuple[Field, ...] = ()

    @property
    def strengths(self) -> tuple[Field, ...]:
        """Field of the strength of the attenuation, if it varies: one or none."""
        return () if self.strength is None else (self.strength,)

    @property
    def slowest(self) -> float:
        """Lowest velocity of P waves, m/s."""
        return self.extremes.slowest_p

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
            "acoustic", self.domain, self.dt, self.faces, self.equations, len(self.increments), len(self.corrections),
            self.fields[0].dtype, self.strength is None, self.rho, *relaxed,
        )  # fmt: skip

    @property
    def rho(self) -> float | None:
        """Density, kg/m3; None if it varies."""
        if self.equations.staggered is not None:
            return None
        ndim = self.grid.ndim
        return float(self.sampler.values("rho", Box((0,) * ndim, (1,) * ndim)).ravel()[0])

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
        record_watch(step, self, lowest_peak(sources))

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
        angles = self.sampler.values("theta", box), self.sampler.values("phi", box)
        return np.asarray(axis_component(name[1], *angles), np.float64)

    def start(self) -> dict[str, Callable[[Box], NDArray[np.float64]]]:
        """Return the initial values of the medium's fields, by name.

        Returns
        -------
        dict
            A function of a Box for each field.
        """
        return {field.name: partial(self.values, field.name) for field in (*self.medium, *self.strengths)}

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

    def check_quantities(self, record: Sequence[str]) -> None:
        """Raise CaseError unless receivers can record some quantities.

        Parameters
        ----------
        record
            "p", or velocities: "vz", "vy", "vx".
        """
        check_quantities(record, self.domain.axes)

    def sensors(self, receivers: Receivers, record: Sequence[str] = ("p",)) -> Sensors:
        """Return what receivers record.

        Parameters
        ----------
        receivers
            The receivers.
        record
            Quantities: "p", and the particle velocities "vz", "vy", "vx".

        Returns
        -------
        Sensors
            Their quantities, and the cells that represent them.

        Raises
        ------
        CaseError
            If a receiver lies outside the model, or another quantity is named.
        """
        self.check_quantities(record)
        p = self.fields[0]
        quantities = tuple(
            Recorded("p", (p,)) if name == "p" else summed_velocity(self, receivers, name) for name in record
        )
        return Sensors(quantities, {p: receivers.taps(self.domain)} if "p" in record else {})

    def record_kernel(self, step: Program) -> None:
        """Record the computation of the next waves in the previous slots; a step must then rotate `fields`.

        Parameters
        ----------
        step
            The Program to record into.

        """
        record_advance(step, self, ())
