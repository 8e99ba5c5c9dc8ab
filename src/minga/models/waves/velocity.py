"""Particle velocities at receivers, integrated from the gradient of p with the time step of the waves.

In an isotropic medium of constant density rho, rho v_t = -grad p. Each step adds -dt / rho times the derivative of the
present p to v, which is then that half a step later, as in a staggered scheme. Derivatives at receivers are the
transpose of dipoles (`minga.models.waves.source`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.interpolation import Placed, place
from minga.models.waves.receivers import Receivers, Taps, record_samples
from minga.models.waves.sensors import Summed
from minga.space.field import Register

if TYPE_CHECKING:
    from minga.models.waves.waves import Waves

__all__ = ["check_quantities", "record_velocities", "summed_velocity"]


def check_quantities(record: Sequence[str], axes: str, *, isotropic: bool, has_density: bool) -> None:
    """Raise CaseError unless receivers can record some quantities.

    Parameters
    ----------
    record
        "p", or velocities: "vz", "vy", "vx".
    axes
        Names of the axes.
    isotropic
        True if the medium is isotropic.
    has_density
        True if its density varies.
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
    if not isotropic:
        raise CaseError(
            "particle velocities in an anisotropic medium",
            key="fletcher.record",
            remedy='record "p" there, or choose an isotropic medium or the model "elastic"',
        )
    if has_density:
        raise CaseError(
            "particle velocities where the density varies",
            key="fletcher.record",
            remedy='record "p" there, or choose the model "elastic" with S velocities of 0',
        )


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
        placed, factor = _slopes(waves, receivers, name)
        slopes = record_samples(step, waves.fields[0], placed, f"slope.{name}")
        found[name] = tuple(Register(f"receivers.{name}.{number}") for number in range(len(slopes)))
        for velocity, slope in zip(found[name], slopes, strict=True):
            step.let(velocity, velocity + slope * factor)
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
    """
    placed, factor = _slopes(waves, receivers, name)
    return Summed(name, waves.fields[0], Taps.of(placed), factor)


def _slopes(waves: Waves, receivers: Receivers, name: str) -> tuple[list[Placed], float]:
    """Return the cells and weights of the derivatives of p at receivers, and the change of v by them in a step."""
    rho = waves.rho
    assert rho is not None  # as was checked
    axis = waves.domain.axes.index(name[1])
    placed = [place(point, waves.domain, receivers.interpolation, "receiver", axis) for point in receivers.positions]
    return placed, -waves.dt / (rho * waves.spacing[axis])
