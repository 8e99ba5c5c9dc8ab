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
from minga.models.waves.source import add_at
from minga.models.waves.wavelets import Ricker, Signal, Wavelet
from minga.space.field import STEP, Field, Register

__all__ = ["ElasticSource", "Explosion", "Force", "Moment", "record_sources"]


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
        if not isinstance(source, Explosion | Moment | Force):
            raise CaseError(
                f"source {number} is a {type(source).__name__}",
                key="elastic.sources",
                remedy="give Explosion(), Moment() or Force() of minga.models.waves.elastic",
            )
        if isinstance(source, Force) is not forces:
            continue
        place = domain.middle if source.position is None else source.position
        point = check_point(place, domain, source.interpolation, "source")
        for component, factor in _parts(source, elasticity, len(domain.axes), f"elastic.sources[{number}]"):
            if component.normal and isinstance(faces[0][0], Free) and point[0] < 0.5 * domain.spacing[0]:
                raise CaseError(
                    f"a source of stress lies at a depth of {point[0]:g} m, on the free surface",
                    key=f"elastic.sources[{number}].position",
                    remedy="give a point a cell or more below the surface",
                )
            by = fields.get(coefficient(component)) if forces else None
            scale = factor / volume
            if forces:
                scale *= dt * elasticity.constants.get(coefficient(component), 1.0)
            amount = _amount(source.wavelet, dt, forces=forces) * scale
            register = step.let(Register(f"{step.name}.source.{number}.{component.name}"), amount)
            placed = place_component(point, component, domain, faces, source.interpolation, "source")
            add_at(step, placed, [fields[component.name]], register, by)


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


def _parts(source: ElasticSource, elasticity: Elasticity, ndim: int, key: str) -> Iterator[tuple[Component, float]]:
    """Yield the components to which a source contributes, with their factors."""
    if isinstance(source, Force):
        direction = _checked(source.direction, (ndim,), "direction", f"{key}.force", "(1.0, 0.0)")
        for axis in np.flatnonzero(direction):
            yield elasticity.velocity(int(axis)), float(direction[axis])
        return
    tensor = np.eye(ndim)
    if isinstance(source, Moment):
        tensor = _checked(source.tensor, (ndim, ndim), "tensor", f"{key}.moment", "((1.0, 0.0), (0.0, -1.0))")
        if not np.array_equal(tensor, tensor.T):
            raise CaseError(
                f"the moment tensor {tensor.tolist()} is not symmetric",
                key=f"{key}.moment",
                remedy="give the same number for both halves: ((0, 1), (1, 0))",
            )
    for a in range(ndim):
        for b in range(a, ndim):
            if tensor[a, b]:
                yield elasticity.stress(a, b), float(tensor[a, b])


def _checked(
    given: Any, shape: tuple[int, ...], name: str, key: str, example: str
) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != shape or not np.isfinite(found).all() or not found.any():
        raise CaseError(
            f"the {name} of a source is {given!r}, for a model on {shape[0]} axes",
            key=key,
            remedy=f"give finite numbers along the axes, not all of them 0: {example} on z, x",
        )
    return found
