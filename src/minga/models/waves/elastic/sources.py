"""Sources of elastic waves: forces and moments at points.

A force F(t) delta(x - x0) stands on the right side of rho v,t. A moment adds -M_ab(t) delta(x - x0) to the stress s_ab:
over a step the stress changes by minus the increment of M, so that the moment in the medium is the given one at each
step. The wavelet is the force or the moment itself, not their rate; it counts as 0 before the first step. After the
last sample of a `Wavelet` a force is 0, and a moment keeps its value, as that of a fault that has slipped. Neither
depends on dt or on the cells. In 2-D, amplitudes are those of lines: per metre along the missing axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang.expr import as_node, cast, where
from minga.models.waves.boundary import Free, Pairs
from minga.models.waves.domain import Domain
from minga.models.waves.elastic.kernels import Elasticity
from minga.models.waves.elastic.layout import Component
from minga.models.waves.elastic.medium import coefficient
from minga.models.waves.elastic.places import place_component
from minga.models.waves.interpolation import Interpolation, check_point
from minga.models.waves.medium import Floats
from minga.models.waves.source import add_at
from minga.models.waves.wavelets import Ricker, Signal, Wavelet
from minga.space.field import STEP, Field, Register

__all__ = ["ElasticSource", "Explosion", "Force", "Moment", "check_sources", "position_of", "record_sources"]


@dataclass(frozen=True, slots=True)
class Explosion:
    """An explosion: the same moment along all axes, which pushes outwards while it is positive.

    Parameters
    ----------
    position
        Position along each axis, m from the first cell of the model; None: the middle.
    wavelet
        Moment M(t), N m, or N in 2-D.
    interpolation
        Interpolation for points between cells: "sinc" or "linear".
    """

    position: tuple[float, ...] | None = None
    wavelet: Signal = field(default_factory=Ricker)
    interpolation: Interpolation = "sinc"


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment tensor.

    Parameters
    ----------
    position
        Position along each axis, m from the first cell of the model; None: the middle.
    tensor
        Symmetric matrix along z, y, x or z, x: ((0, 1), (1, 0)) is a couple of forces in the plane.
    wavelet
        Factor M(t) of the matrix, N m, or N in 2-D.
    interpolation
        Interpolation for points between cells: "sinc" or "linear".
    """

    position: tuple[float, ...] | None = None
    tensor: Sequence[Sequence[float]] = ()
    wavelet: Signal = field(default_factory=Ricker)
    interpolation: Interpolation = "sinc"


@dataclass(frozen=True, slots=True)
class Force:
    """A force at a point.

    Parameters
    ----------
    position
        Position along each axis, m from the first cell of the model; None: the middle.
    direction
        Components along z, y, x or z, x: (1, 0) points down.
    wavelet
        Factor F(t) of the components, N, or N/m in 2-D.
    interpolation
        Interpolation for points between cells: "sinc" or "linear".
    """

    position: tuple[float, ...] | None = None
    direction: Sequence[float] = ()
    wavelet: Signal = field(default_factory=Ricker)
    interpolation: Interpolation = "sinc"


ElasticSource = Explosion | Moment | Force


def check_sources(sources: object) -> None:
    """Raise CaseError for what are not sources of elastic waves.

    Parameters
    ----------
    sources
        What is given as sources.
    """
    remedy = "give a list of Explosion(), Moment() and Force() of minga.models.waves.elastic"
    if not isinstance(sources, list | tuple):
        raise CaseError(f"the sources are a {type(sources).__name__}", key="elastic.sources", remedy=remedy)
    for number, source in enumerate(sources):
        key = f"elastic.sources[{number}]"
        if not isinstance(source, Explosion | Moment | Force):
            raise CaseError(f"source {number} is a {type(source).__name__}", key=key, remedy=remedy)
        if not callable(getattr(source.wavelet, "value", None)):
            raise CaseError(
                f"the wavelet of source {number} is a {type(source.wavelet).__name__}",
                key=f"{key}.wavelet",
                remedy="give Ricker(15.0) or Wavelet(...) of minga.models.waves",
            )


def record_sources(
    step: Program,
    sources: Sequence[ElasticSource],
    elasticity: Elasticity,
    fields: Mapping[str, Field],
    domain: Domain,
    faces: Pairs,
    dt: float,
    *,
    forces: bool,
) -> None:
    """Record the contributions of sources to a step: those of forces to velocities, or of moments to stresses.

    Parameters
    ----------
    step
        Program of the time step.
    sources
        All sources.
    elasticity
        The equations.
    fields
        Fields by name, coefficients included.
    domain
        Domain of the waves.
    faces
        Boundaries of all faces.
    dt
        Time step, s.
    forces
        Whether to record forces; otherwise moments.

    Raises
    ------
    CaseError
        If a source lies outside the model or its direction does not fit the axes.
    """
    volume = math.prod(domain.spacing)
    for number, source in enumerate(sources):
        if isinstance(source, Force) is not forces:
            continue
        point = position_of(source, domain, faces, number)
        for component, factor in _parts(source, elasticity, len(domain.axes), number):
            by = fields.get(coefficient(component)) if forces else None
            scale = factor / volume
            if forces:
                scale *= dt * elasticity.constants.get(coefficient(component), 1.0)
            amount = _amount(source.wavelet, dt, forces=forces) * scale
            register = step.let(Register(f"{step.name}.source.{number}.{component.name}"), amount)
            placed = place_component(point, component, domain, faces, source.interpolation, "source")
            add_at(step, placed, [fields[component.name]], register, by)


def position_of(source: ElasticSource, domain: Domain, faces: Pairs, number: int = 0) -> tuple[float, ...]:
    """Return the position of a source, m from the first cell of the model; by default the middle.

    Parameters
    ----------
    source
        The source.
    domain
        Domain of the waves.
    faces
        Boundaries of all faces.
    number
        Number of the source, for errors.

    Raises
    ------
    CaseError
        If it lies outside the model, or normal stress on the free surface, where it is 0.
    """
    place = domain.middle if source.position is None else source.position
    point = check_point(place, domain, source.interpolation, "source", number)
    on_surface = isinstance(faces[0][0], Free) and point[0] < 0.5 * domain.spacing[0]
    if on_surface and not isinstance(source, Force) and np.diagonal(_tensor(source, len(point), number)).any():
        raise CaseError(
            f"source {number}, a source of stress, lies at a depth of {point[0]:g} m, on the free surface",
            key=f"elastic.sources[{number}].position",
            remedy="give a point a cell or more below the surface",
        )
    return point


def _amount(wavelet: Signal, dt: float, *, forces: bool) -> Any:
    """Return the force at the present step, or minus the increment of the moment during it."""
    if forces:
        return wavelet.value(dt)
    step = cast(as_node(STEP), "i8")
    before, after = wavelet.value(dt), wavelet.value(dt, 1)
    if isinstance(wavelet, Wavelet):
        count, last = len(wavelet.values), float(wavelet.values[-1])
        before, after = where(step < count, before, last), where(step + 1 < count, after, last)
    return where(step > 0, before, 0.0) - after


def _parts(source: ElasticSource, elasticity: Elasticity, ndim: int, number: int) -> Iterator[tuple[Component, float]]:
    """Yield the components to which a source contributes, with their factors."""
    if isinstance(source, Force):
        key = f"elastic.sources[{number}].force"
        direction = _checked(source.direction, (ndim,), "direction", number, key, "(1.0, 0.0)")
        for axis in np.flatnonzero(direction):
            yield elasticity.velocity(int(axis)), float(direction[axis])
        return
    tensor = _tensor(source, ndim, number)
    for a in range(ndim):
        for b in range(a, ndim):
            if tensor[a, b]:
                yield elasticity.stress(a, b), float(tensor[a, b])


def _tensor(source: Explosion | Moment, ndim: int, number: int) -> Floats:
    """Return the moment tensor of a source."""
    if isinstance(source, Explosion):
        return np.eye(ndim)
    key = f"elastic.sources[{number}].moment"
    tensor = _checked(source.tensor, (ndim, ndim), "tensor", number, key, "((1.0, 0.0), (0.0, -1.0))")
    if not np.array_equal(tensor, tensor.T):
        raise CaseError(
            f"the moment tensor {tensor.tolist()} of source {number} is not symmetric",
            key=key,
            remedy="give the same number for both halves: ((0, 1), (1, 0))",
        )
    return tensor


def _checked(given: Any, shape: tuple[int, ...], name: str, number: int, key: str, example: str) -> Floats:
    """Return a direction or a tensor; raise CaseError unless it has a shape and finite values other than 0."""
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.zeros(0)
    if found.shape != shape or not np.isfinite(found).all() or not found.any():
        raise CaseError(
            f"the {name} of source {number} is {given!r}, for a model on {shape[0]} axes",
            key=key,
            remedy=f"give finite numbers along the axes, not all of them 0: {example} on z, x",
        )
    return found
