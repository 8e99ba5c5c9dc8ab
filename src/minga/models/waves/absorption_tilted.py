"""Experimental matched layers for tilted axes of symmetry: memory variables of straight and of mixed derivatives.

As in `minga.models.waves.absorption`, each first derivative along the axis of a layer, D1 u, becomes D1 u + psi with
psi = b psi + a D1 u, the outer ones included. A mixed derivative D_outer D_inner u therefore becomes

    D_outer (D_inner u + psi_inner) + chi,    chi = b chi + a D_outer (D_inner u + psi_inner)

with psi_inner in the layers of the inner axis and chi in those of the outer one. These layers are not known to be
stable: with a tilted axis some waves have phase and group velocities of opposite sign along the normal (E. Becache, S.
Fauqueux, P. Joly, "Stability of perfectly matched layers, group velocities and anisotropic waves", J. Comput. Phys.
188, 2003), so that a model with them is watched (`minga.models.waves.watchdog`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minga.engine.program import Program
from minga.lang.cell import local
from minga.lang.expr import flushed
from minga.lang.kernel import Kernel
from minga.models.waves.absorption import (
    MatchedLayer,
    Profiles,
    Stretched,
    layer_profiles,
    matched_layers,
    memory_kernels,
)
from minga.models.waves.kernels import Equations, product, times, total_of
from minga.space.field import Field

if TYPE_CHECKING:
    from minga.models.waves.waves import Waves

__all__ = ["record_tilted_matching"]


@dataclass(frozen=True, slots=True, eq=False)
class _Memories:
    """A matched layer with its memory variables for each wave, and its coefficients."""

    layer: MatchedLayer
    psi: list[Field]
    zeta: list[Field]
    chi: dict[int, list[Field]]
    """Memory variables of mixed derivatives whose outer axis is that of the layer, by the inner one."""
    profiles: tuple[Field, Field]

    @property
    def axis(self) -> int:
        """Axis of the layer."""
        return self.layer.axis

    @property
    def all(self) -> list[Field]:
        """All memory variables but psi."""
        return [*self.zeta, *(field for chi in self.chi.values() for field in chi)]


def record_tilted_matching(
    step: Program, waves: Waves, frequency: float, stretched: Stretched, profiles: Profiles
) -> tuple[Field, ...]:
    """Record the contributions of the memory variables to the next waves; return the memory fields.

    Parameters
    ----------
    step
        Program of the time step.
    waves
        Fields and coefficients of the model.
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
    seen = list(stretched.seen)
    layers = [
        _memories(layer, waves, seen, layer_profiles(waves, layer.axis, frequency, profiles))
        for layer in matched_layers(waves, equations.differences.reach)
    ]
    for layer in layers:
        psi, _ = memory_kernels(equations, layer.axis)
        step.apply(psi, seen, layer.psi, *layer.profiles)
    for layer in layers:
        _, zeta = memory_kernels(equations, layer.axis)
        step.apply(zeta, seen, layer.psi, layer.zeta, *layer.profiles)
        for inner, chi in layer.chi.items():
            step.apply(_chi(equations, inner, layer.axis), seen, chi, *layer.profiles)
            for other in layers:
                if other.axis == inner:
                    both = layer.layer.box.intersect(other.layer.box)
                    step.apply(_chi_of_psi(equations, layer.axis), other.psi, chi, layer.profiles[0], region=both)
    medium = [list(waves.medium)] if waves.medium else []
    for layer in layers:
        kernel = _correct(equations, layer.axis, tuple(layer.chi), stretched.factor)
        step.apply(kernel, layer.psi, layer.all, list(stretched.targets), *medium, region=layer.layer.box)
    return tuple(field for layer in layers for field in (*layer.psi, *layer.all))


def _memories(layer: MatchedLayer, waves: Waves, seen: Sequence[Field], profiles: tuple[Field, Field]) -> _Memories:
    """Return the memory variables of a layer."""
    inners = [inner for inner, outer in waves.equations.mixed if outer == layer.axis]
    chi = {inner: layer.memories(f"chi_{waves.domain.axes[inner]}", seen) for inner in inners}
    return _Memories(layer, layer.memories("psi", seen), layer.memories("zeta", seen), chi, profiles)


def _chi(equations: Equations, inner: int, outer: int) -> Kernel:
    d, here = equations.differences, equations.differences.here

    def cpml_chi(waves: Any, chis: Any, a: Any, b: Any) -> None:
        for u, chi in zip(waves, chis, strict=True):
            chi[here] = flushed(b[0] * chi[here] + a[0] * d.d1(local(d.d1(u, inner)), outer))

    return Kernel(cpml_chi)


def _chi_of_psi(equations: Equations, outer: int) -> Kernel:
    d, here = equations.differences, equations.differences.here

    def cpml_corner(psis: Any, chis: Any, a: Any) -> None:
        for psi, chi in zip(psis, chis, strict=True):
            chi[here] = flushed(chi[here] + a[0] * d.d1(psi, outer))

    return Kernel(cpml_corner)


def _correct(equations: Equations, axis: int, inners: Sequence[int], factor: float) -> Kernel:
    """Return the contribution of a layer's memory variables to the next waves."""
    d, here = equations.differences, equations.differences.here
    count = len(equations.waves)
    outers = [outer for inner, outer in equations.mixed if inner == axis]

    def correct(psis: Any, rest: Any, after: Any, medium: Sequence[Any]) -> None:
        c = equations.coefficients(lambda k: medium[k][here])
        both = []
        for k, psi in enumerate(psis):
            straight = d.d1(psi, axis) + rest[k][here]
            terms = [times(c.n[axis] * c.n[axis], straight)]
            terms += [times(product(2.0, c.n[axis], c.n[outer]), d.d1(psi, outer)) for outer in outers]
            terms += [
                times(product(2.0, c.n[axis], c.n[inner]), rest[(number + 1) * count + k][here])
                for number, inner in enumerate(inners)
            ]
            h1 = total_of(terms)
            both.append((h1, straight - h1))
        for u, right in zip(after, equations.right_sides(c, *both), strict=True):
            u[here] = u[here] + times(factor, right)

    def cpml_correct(psis: Any, rest: Any, after: Any, medium: Any) -> None:
        correct(psis, rest, after, medium)

    def cpml_correct_constant(psis: Any, rest: Any, after: Any) -> None:
        correct(psis, rest, after, ())

    return Kernel(cpml_correct if equations.stored else cpml_correct_constant)
