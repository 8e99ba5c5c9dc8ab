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
from minga.models.waves.absorption import Profiles, Stretched, add_profiles, half_profiles, layer_ends
from minga.models.waves.boundary import Cpml
from minga.models.waves.density import Staggered
from minga.models.waves.kernels import Equations, times
from minga.space.boundary import fixed
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
    equations, grid = waves.equations, waves.grid
    staggered = equations.staggered
    assert staggered is not None
    (p,), (target,), rho = stretched.seen, stretched.targets, waves.medium[equations.stored.index("rho")]
    memories: list[Field] = []
    for axis, pair in enumerate(waves.faces):
        kernels = _psi_kernel(staggered, axis), _zeta_kernel(staggered, axis)
        correct = _correction_kernel(equations, staggered, axis, stretched.factor)
        for end, face in enumerate(pair):
            if not isinstance(face, Cpml):
                continue
            where = grid.axes[axis] + ("_low", "_high")[end]
            box = layer_ends(grid, axis, (face.cells + len(staggered.weights[axis]),) * 2)[end]
            psi, zeta = (
                Field(f"{name}_{p.name}_{where}", grid, p.dtype, on=box, boundary=fixed(0.0))
                for name in ("psi", "zeta")
            )
            fastest = waves.extremes.fastest_p
            own: Profiles = {}
            for half in (True, False):
                own |= half_profiles(waves, axis, end, face, fastest, frequency, half=half)
            half_a, half_b, a, b = add_profiles(own, profiles)
            memories += [psi, zeta]
            step.apply(kernels[0], p, psi, half_a, half_b)
            step.apply(kernels[1], p, psi, zeta, rho, a, b)
            step.apply(correct, psi, zeta, target, list(waves.medium), region=box)
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
