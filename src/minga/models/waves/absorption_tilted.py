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
from minga.models.waves.absorption import Profiles, Stretched, layer_ends, layer_profiles
from minga.models.waves.boundary import Cpml, kinds
from minga.models.waves.kernels import Equations, product, times, total_of
from minga.space.boundary import fixed
from minga.space.box import Box
from minga.space.field import Field

if TYPE_CHECKING:
    from minga.models.waves.waves import Waves

__all__ = ["record_tilted_matching"]


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """A matched layer: its memory variables for each wave, and its coefficients."""

    axis: int
    box: Box
    psi: tuple[Field, ...]
    zeta: tuple[Field, ...]
    chi: dict[int, tuple[Field, ...]]
    """Memory variables of mixed derivatives whose outer axis is that of the layer, by the inner one."""
    profiles: tuple[Field, Field]


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
    layers = _layers(waves, frequency, stretched.seen, profiles)
    seen = list(stretched.seen)
    for layer in layers:
        step.apply(_psi(equations, layer.axis), seen, list(layer.psi), *layer.profiles)
    for layer in layers:
        step.apply(_zeta(equations, layer.axis), seen, list(layer.psi), list(layer.zeta), *layer.profiles)
        for inner, chi in layer.chi.items():
            step.apply(_chi(equations, inner, layer.axis), seen, list(chi), *layer.profiles)
            for other in layers:
                if other.axis == inner:
                    both = layer.box.intersect(other.box)
                    kernel = _chi_of_psi(equations, layer.axis)
                    step.apply(kernel, list(other.psi), list(chi), layer.profiles[0], region=both)
    medium = [list(waves.medium)] if waves.medium else []
    for layer in layers:
        rest = [*layer.zeta, *(field for chi in layer.chi.values() for field in chi)]
        kernel = _correct(equations, layer.axis, tuple(layer.chi), stretched.factor)
        step.apply(kernel, list(layer.psi), rest, list(stretched.targets), *medium, region=layer.box)
    memories = [field for layer in layers for field in (*layer.psi, *layer.zeta)]
    memories += [field for layer in layers for chi in layer.chi.values() for field in chi]
    return tuple(memories)


def _layers(waves: Waves, frequency: float, seen: Sequence[Field], profiles: Profiles) -> list[_Layer]:
    grid, axes, dtype = waves.grid, waves.domain.axes, waves.fields[0].dtype
    layers: list[_Layer] = []
    for axis, pair in enumerate(waves.faces):
        if not kinds((pair,), Cpml):
            continue
        a, b = layer_profiles(waves, axis, frequency, profiles)
        widths = [face.cells + waves.equations.differences.reach for face in pair]
        for side, face, box in zip(("low", "high"), pair, layer_ends(grid, axis, widths), strict=True):
            if not isinstance(face, Cpml):
                continue

            def fields(name: str, box: Box = box, end: str = f"{axes[axis]}_{side}") -> tuple[Field, ...]:
                return tuple(
                    Field(f"{name}_{wave.name}_{end}", grid, dtype, on=box, boundary=fixed(0.0)) for wave in seen
                )

            inners = [inner for inner, outer in waves.equations.mixed if outer == axis]
            chi = {inner: fields(f"chi_{axes[inner]}") for inner in inners}
            layers.append(_Layer(axis, box, fields("psi"), fields("zeta"), chi, (a, b)))
    return layers


def _psi(equations: Equations, axis: int) -> Kernel:
    d, here = equations.differences, equations.differences.here

    def cpml_psi(waves: Any, psis: Any, a: Any, b: Any) -> None:
        for u, psi in zip(waves, psis, strict=True):
            psi[here] = flushed(b[0] * psi[here] + a[0] * d.d1(u, axis))

    return Kernel(cpml_psi)


def _zeta(equations: Equations, axis: int) -> Kernel:
    d, here = equations.differences, equations.differences.here

    def cpml_zeta(waves: Any, psis: Any, zetas: Any, a: Any, b: Any) -> None:
        for u, psi, zeta in zip(waves, psis, zetas, strict=True):
            zeta[here] = flushed(b[0] * zeta[here] + a[0] * (d.d2(u, axis) + d.d1(psi, axis)))

    return Kernel(cpml_zeta)


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
