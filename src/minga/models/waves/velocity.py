"""Particle velocities at receivers, integrated from gradients of the waves with their time step.

In an isotropic medium, rho v_t = -grad p. In Fletcher's equations p and q are not pressures in general. In a uniform
medium their plane waves have the frequencies and wave vectors of the elastic P and SV waves with c33 = rho vpz2 and
c55 = rho vsz2. The displacements u of these, across the axis n and along it, are

    u across n ~ k across n p,    u along n ~ c k along n q,    c2 = (vpz2 - vsz2) / (vpn2 - vsz2)

with the wave vector k. Thus rho v_t = -(grad p - n (n . grad p)) - c n (n . grad q): if vsz is 0, p is the stress
across the axis, with the sign of a pressure, and c q that along it.

Where the density varies, velocities follow at the places between cells where the operator has its fluxes
(`minga.models.waves.density`), and are interpolated from there along their own axis, on which they are continuous.
Across the other axes slopes are interpolated, which are continuous there, and the density is that at the receiver.

With n and delta uniform and vsz = 0, Fletcher's equations are those of the two stresses, whatever vp and epsilon:
velocities are exact. Elsewhere the anisotropy must be uniform among the cells of a receiver. Where delta, the axis, or
epsilon beside S waves vary, no elastic medium has Fletcher's equations, so that there is no velocity to record.

Each step adds dt v_t of the present waves to v, which is then that half a step later, as in a staggered scheme.
Derivatives at receivers are the transpose of dipoles (`minga.models.waves.source`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.density import image_of
from minga.models.waves.interpolation import Placed, on_grid, place, taps
from minga.models.waves.medium import Floats, axis_component
from minga.models.waves.receivers import Receivers, Taps
from minga.models.waves.recorded import record_taps
from minga.models.waves.sensors import Sensors, Summed
from minga.models.waves.stencils import halfway_weights
from minga.space.field import Register

if TYPE_CHECKING:
    from minga.models.waves.waves import Waves

__all__ = ["check_quantities", "check_sensitivity", "record_velocities", "summed_velocity"]


def check_quantities(record: Sequence[str], axes: str) -> None:
    """Raise CaseError unless receivers can record some quantities.

    Parameters
    ----------
    record
        "p", or velocities: "vz", "vy", "vx".
    axes
        Names of the axes.
    """
    known = ("p", *(f"v{axis}" for axis in axes))
    if (
        isinstance(record, str)
        or not isinstance(record, Sequence)
        or not record
        or any(name not in known for name in record)
    ):
        raise CaseError(
            f"receivers record {record!r}",
            key="fletcher.record",
            remedy=f"give a list of one or more of {', '.join(known)}",
        )
    if all(name == "p" for name in record):
        return


def record_velocities(
    step: Program, waves: Waves, receivers: Receivers, names: Sequence[str]
) -> dict[str, tuple[Register, ...]]:
    """Record the integration of velocities before a step of the waves; return their registers by name.

    Parameters
    ----------
    step
        Program of the time step, before that of the waves.
    waves
        The waves.
    receivers
        The receivers.
    names
        The velocities: "vz", "vy", "vx".
    """
    found: dict[str, tuple[Register, ...]] = {}
    for name in names:
        summed = summed_velocity(waves, receivers, name)
        slopes = [record_taps(step, field, taps, f"slope.{name}.{field.name}") for field, taps in summed.parts]
        found[name] = tuple(Register(f"receivers.{name}.{number}") for number in range(len(slopes[0])))
        for velocity, parts in zip(found[name], zip(*slopes, strict=True), strict=True):
            step.let(velocity, velocity + reduce(operator.add, parts) * summed.factor)
    return found


def summed_velocity(waves: Waves, receivers: Receivers, name: str) -> Summed:
    """Return a velocity at receivers as a sum over steps, with the bits of the registers of `record_velocities`.

    Parameters
    ----------
    waves
        The waves.
    receivers
        The receivers.
    name
        The velocity: "vz", "vy" or "vx".

    Raises
    ------
    CaseError
        If the medium varies among the cells of a receiver in what its velocity depends on.
    """
    axis = waves.domain.axes.index(name[1])
    rho, equations, p = waves.rho, waves.equations, waves.fields[0]
    slopes = {
        along: [place(point, waves.domain, receivers.interpolation, "receiver", along) for point in receivers.positions]
        for along in (range(len(waves.domain.axes)) if equations.kind == "tilted" else (axis,))
    }
    if equations.kind == "isotropic" and rho is not None:
        factor = -waves.dt / (rho * waves.spacing[axis])
        return Summed(name, ((p, Taps.of(slopes[axis])),), factor)
    if rho is None:
        return _in_density(waves, receivers, axis, name)
    depends = ("epsilon", "delta", "theta", "phi")[equations.sigma is None : 2 if equations.kind == "vertical" else 4]
    local = [
        {entry: _uniform(waves, entry, [each[number] for each in slopes.values()], number) for entry in depends}
        for number in range(len(receivers.positions))
    ]
    parts = []
    for k, field in enumerate(waves.fields):
        weights = np.array([_weights(waves, axis, values)[k] for values in local]).T
        if weights.any():
            parts.append((field, _combined(slopes, weights / np.array(waves.spacing)[:, None])))
    return Summed(name, tuple(parts), -waves.dt / rho, depends)


def _in_density(waves: Waves, receivers: Receivers, axis: int, name: str) -> Summed:
    """Return a velocity at receivers where the density varies."""
    h, staggered, placed, scales = waves.spacing[axis], waves.equations.staggered, [], []
    assert staggered is not None
    half = np.array([float(w) for w in halfway_weights(len(staggered.weights[axis]))])
    slope = np.concatenate([-half[::-1], half])
    for point in receivers.positions:
        value = place(point, waves.domain, receivers.interpolation, "receiver")
        _, between, found = taps(float(point[axis]) / h - 0.5, receivers.interpolation)  # place i lies above cell i
        rho = _density_along(waves, point, axis, int(between[0]), int(between[-1]) + 2)
        light = found * 2.0 / (rho[:-1] + rho[1:])
        scales.append(float(rho.mean()))
        cells = np.arange(between[0] - len(half) + 1, between[-1] + len(half) + 1)
        fluxes = np.zeros(len(cells))
        for number, weight in enumerate(slope):
            fluxes[number : number + len(light)] += weight * scales[-1] * light
        first, weights = on_grid(cells, fluxes, waves.domain, axis)
        placed.append(
            Placed(
                (*value.first[:axis], first, *value.first[axis + 1 :]),
                (*value.weights[:axis], weights, *value.weights[axis + 1 :]), value.base,
            )
        )  # fmt: skip
    whole = Taps.of(placed)
    scaled = Taps(whole.cells, whole.weights / (h * np.array(scales)), whole.bases, whole.reach)
    return Summed(name, ((waves.fields[0], scaled),), -waves.dt, ("rho",))


def _density_along(waves: Waves, point: Sequence[float], axis: int, low: int, high: int) -> Floats:
    """Return the density of the medium's cells along an axis through a point, between the cells beside it."""
    ranges, shares = list[tuple[int, int]](), []
    for other, h in enumerate(waves.spacing):
        if other == axis:
            ranges.append((low, high))
            continue
        below, cells, weights = taps(float(point[other]) / h, "linear")
        ranges.append((below, below + len(cells)))
        shares.append(weights)
    values = np.moveaxis(image_of(waves.sampler, waves.domain, "rho", ranges), axis, -1)
    for weights in shares:
        values = reduce(operator.add, [weight * part for weight, part in zip(weights, values, strict=True)])
    return values


def check_sensitivity(sensors: Sensors, wrt: Sequence[str]) -> None:
    """Raise CaseError for quantities of the medium on which recorded velocities depend at the receivers themselves.

    Parameters
    ----------
    sensors
        What receivers record.
    wrt
        Quantities by which a misfit is differentiated, or that change.
    """
    for quantity in sensors.quantities:
        known = [name for name in wrt if isinstance(quantity, Summed) and name in quantity.depends]
        if known:
            raise CaseError(
                f"derivatives by {known[0]} of the velocity {quantity.name}, which depends on it at the receivers",
                key="wrt",
                remedy='record "p", or choose other quantities, such as vp',
            )


def _uniform(waves: Waves, entry: str, slopes: Sequence[Placed], number: int) -> float:
    """Return an entry of the medium at a receiver; raise CaseError if it varies among the cells of the receiver."""
    values = [waves.sampler.values(entry, each.box) for each in slopes]
    low, high = min(float(each.min()) for each in values), max(float(each.max()) for each in values)
    if low != high:
        raise CaseError(
            f"particle velocities at receiver {number}, where {entry} varies from {low:g} to {high:g} within "
            f"{max(_farthest(each) for each in slopes)} cells",
            key="fletcher.record",
            remedy=f'record "p" there, or move the receiver to where {entry} is uniform',
        )
    return low


def _farthest(placed: Placed) -> int:
    """Return the largest distance of a cell of a point from the one below it along an axis."""
    ends = zip(placed.base, placed.box.lo, placed.box.hi, strict=True)
    return max(max(base - low, high - 1 - base) for base, low, high in ends)


def _weights(waves: Waves, axis: int, at: Mapping[str, float]) -> list[list[float]]:
    """Return the weights of the derivatives of each wave, along each axis, in -rho v_t along an axis."""
    axes, sigma = waves.domain.axes, waves.equations.sigma
    shear = 0.0 if sigma is None else abs(at["epsilon"] - at["delta"]) / sigma
    squares = 1.0 - shear, 1.0 + 2.0 * at["delta"] - shear
    if min(squares) <= 0.0:
        raise CaseError(
            f"particle velocities where epsilon is {at['epsilon']:g}, delta {at['delta']:g} and sigma {sigma}: S waves "
            "would be as fast as P waves",
            key="fletcher.record",
            remedy='record "p", or choose a larger sigma',
        )
    ratio = math.sqrt(squares[0] / squares[1])
    n = [float(axis_component(name, at.get("theta", 0.0), at.get("phi", 0.0))) for name in axes]
    along = [n[axis] * each for each in n]
    return [
        [(1.0 if k == axis else 0.0) - each for k, each in enumerate(along)],
        [ratio * each for each in along],
    ]


def _combined(slopes: Mapping[int, Sequence[Placed]], weights: Floats) -> Taps:
    """Return the taps of sums of derivatives along the axes, with weights of shape (axes, points)."""
    parts = [(Taps.of(placed), weights[axis]) for axis, placed in slopes.items() if weights[axis].any()]
    bases = parts[0][0].bases
    cells = np.concatenate([taps.cells for taps, _ in parts], axis=1)
    reach = int(np.abs(cells - bases[:, None]).max(initial=0))
    return Taps(cells, np.concatenate([taps.weights * factor for taps, factor in parts]), bases, reach)
