"""Perfectly matched layers where the density varies: memory variables of fluxes and of their divergence.

A layer replaces the flux B D u along its axis by B (D u + psi), and its divergence by D'(B (D u + psi)) + zeta, with

    psi = b psi + a D u,    zeta = b zeta + a D'(B (D u + psi))

where psi lies halfway between cells, as do its a and b (`minga.models.waves.boundary.Cpml`). A step is computed as if
there were no layer; each layer then adds what its memory variables contribute, up to the cells that psi reaches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minga.engine.program import Program
from minga.lang.cell import local
from minga.lang.expr import flushed
from minga.lang.kernel import Kernel
from minga.models.waves.absorption import Profiles, Stretched, add_profiles, matched_layers
from minga.models.waves.density import Staggered
from minga.models.waves.kernels import Equations, times
from minga.space.field import Field

if TYPE_CHECKING:
    from minga.models.waves.waves import Waves

__all__ = ["record_flux_layers"]


def record_flux_layers(
    step: Program, waves: Waves, frequency: float, stretched: Stretched, profiles: Profiles
) -> tuple[Field, ...]:
    """Record the contributions of matched layers to the next waves; return the memory fields.

    Parameters
    ----------
    step
        Program of the time step.
    waves
        Fields and coefficients of the model, whose density varies.
    frequency
        Frequency of the sources, Hz, used by layers that do not name one.
    stretched
        What the layers see, and what their contributions are added to.
    profiles
        Coefficients of the layers, to which those that it lacks are added.

    Returns
    -------
    tuple of Field
        The memory fields.
    """
    equations = waves.equations
    staggered = equations.staggered
    assert staggered is not None
    (p,), (target,), rho = stretched.seen, stretched.targets, waves.medium[equations.stored.index("rho")]
    memories: list[Field] = []
    for layer in matched_layers(waves, len(staggered.weights[0])):
        axis = layer.axis
        (psi,), (zeta,) = (layer.memories(name, [p]) for name in ("psi", "zeta"))
        own: Profiles = {}
        for half in (True, False):
            own |= layer.profiles(waves.extremes.fastest_p, frequency, half=half)
        half_a, half_b, a, b = add_profiles(own, profiles)
        memories += [psi, zeta]
        step.apply(_psi_kernel(staggered, axis), p, psi, half_a, half_b)
        step.apply(_zeta_kernel(staggered, axis), p, psi, zeta, rho, a, b)
        correct = _correction_kernel(equations, staggered, axis, stretched.factor)
        step.apply(correct, psi, zeta, target, list(waves.medium), region=layer.box)
    return tuple(memories)


def _psi_kernel(staggered: Staggered, axis: int) -> Kernel:
    """Return the step of the memory variable of a flux."""

    def cpml_flux(u: Any, psi: Any, a: Any, b: Any) -> None:
        here = (0,) * len(u.axes)
        psi[here] = flushed(b[0] * psi[here] + a[0] * staggered.slope(u, axis))

    return Kernel(cpml_flux)


def _zeta_kernel(staggered: Staggered, axis: int) -> Kernel:
    """Return the step of the memory variable of the divergence."""

    def cpml_divergence(u: Any, psi: Any, zeta: Any, rho: Any, a: Any, b: Any) -> None:
        here = (0,) * len(u.axes)
        flux = local((staggered.slope(u, axis) + psi[here]) * staggered.light(rho, axis))
        zeta[here] = flushed(b[0] * zeta[here] + a[0] * staggered.divergence(flux, axis))

    return Kernel(cpml_divergence)


def _correction_kernel(equations: Equations, staggered: Staggered, axis: int, factor: float) -> Kernel:
    """Return what the memory variables add to the next wave."""
    here = equations.differences.here
    number = equations.stored.index("rho")

    def cpml_flux_correction(psi: Any, zeta: Any, after: Any, medium: Any) -> None:
        c = equations.coefficients(lambda k: medium[k][here])
        flux = local(psi[here] * staggered.light(medium[number], axis))
        after[here] = after[here] + times(factor, c.rho * c.vp2 * (staggered.divergence(flux, axis) + zeta[here]))

    return Kernel(cpml_flux_correction)
