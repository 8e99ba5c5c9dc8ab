"""Kernels of a time step: velocities from stresses, and stresses from velocities.

With density rho and the moduli lambda and mu

    rho v_a,t = sum over b of s_ab,b
    s_aa,t = lambda div v + 2 mu v_a,a        s_ab,t = mu (v_a,b + v_b,a)

Each field is updated in place: velocities lie half a step before the stresses. On a free surface normal to z the
stress szz stays 0, and with it the strain along z follows from the other ones. Weights of differences contain dt, so
that a step adds coefficients times differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minga.lang.expr import flushed
from minga.lang.kernel import Kernel
from minga.models.waves.elastic.layout import Component
from minga.models.waves.elastic.medium import coefficient
from minga.models.waves.stencils import total

__all__ = ["Elasticity", "Fields"]

Fields = Mapping[str, Any]
"""Fields of a kernel by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Elasticity:
    """Equations of elastic waves on a grid.

    Attributes
    ----------
    axes
        Names of the grid's axes.
    components
        Components of the waves by name.
    weights
        Weights of the staggered differences along each axis, times dt / spacing.
    constants
        Coefficients that are uniform.
    """

    axes: str
    components: Mapping[str, Component]
    weights: tuple[tuple[float, ...], ...]
    constants: Mapping[str, float]

    @property
    def here(self) -> tuple[int, ...]:
        """Offsets of the cell itself."""
        return (0,) * len(self.axes)

    def named(self, kind: str) -> list[Component]:
        """Return the components of a kind: "velocity", "normal" or "shear"."""
        return [c for c in self.components.values() if c.kind == kind]

    def kernel(self, name: str, names: Sequence[str], act: Callable[[Fields], None]) -> Kernel:
        """Return a kernel with one list of fields, which `act` finds by their names."""

        def named(fields: Any) -> None:
            act(dict(zip(names, fields, strict=True)))

        named.__name__ = named.__qualname__ = name
        return Kernel(named)

    def coefficient(self, name: str, fields: Fields) -> Any:
        """Return a coefficient at a cell: a number, or the value of a field."""
        return self.constants[name] if name in self.constants else fields[name][self.here]

    def difference(self, u: Any, component: Component, axis: int) -> Any:
        """Return dt times the derivative of a component along an axis, at the places between its own."""
        first = 0 if component.half[axis] else 1  # cell of the value above the place of the derivative
        return total(
            w * (u[self._at(axis, first + k)] - u[self._at(axis, first - 1 - k)])
            for k, w in enumerate(self.weights[axis])
        )

    def _at(self, axis: int, cells: int) -> tuple[int, ...]:
        return tuple(cells if a == axis else 0 for a in range(len(self.axes)))

    def stress(self, a: int, b: int) -> Component:
        """Return the component of the stress with two axes."""
        return next(c for c in self.components.values() if not c.velocity and sorted(c.axes) == sorted((a, b)))

    def used(self, component: Component) -> list[str]:
        """Return the names of what a step of a component reads beside itself."""
        if component.velocity:
            return [self.stress(component.axes[0], b).name for b in range(len(self.axes))]
        return [self.velocity(axis).name for axis in dict.fromkeys(component.axes)]

    def velocity(self, axis: int) -> Component:
        """Return the component of the velocity along an axis."""
        return next(c for c in self.components.values() if c.velocity and c.axes == (axis,))

    def advance(self, component: Component, *, fresh: bool = False) -> Callable[[Fields], None]:
        """Return the step of a velocity or of a shear stress, or only its increment, if `fresh`."""

        def act(fields: Fields) -> None:
            u = fields[component.name]
            more = self.coefficient(coefficient(component), fields) * total(
                self.difference(fields[other.name], other, axis) for other, axis in self.terms(component)
            )
            u[self.here] = more if fresh else flushed(u[self.here] + more)

        return act

    def terms(self, component: Component) -> list[tuple[Component, int]]:
        """Return what is differentiated in the equation of a velocity or a shear stress, and along which axis."""
        order = range(len(self.axes) - 1, -1, -1)
        if component.velocity:
            return [(self.stress(component.axes[0], axis), axis) for axis in order]
        a, b = component.axes
        return [(self.velocity(a), b), (self.velocity(b), a)]

    def advance_normal(self, *, surface: bool, fresh: bool = False) -> Callable[[Fields], None]:
        """Return the step of the normal stresses, inside or on a free surface, or only their increments, if `fresh`."""

        def act(fields: Fields) -> None:
            axes = range(1, len(self.axes)) if surface else range(len(self.axes))
            strains = {
                axis: self.difference(fields[self.velocity(axis).name], self.velocity(axis), axis) for axis in axes
            }
            self.add_normal(fields, strains, surface=surface, fresh=fresh)

        return act

    def add_normal(self, fields: Fields, strains: Mapping[int, Any], *, surface: bool, fresh: bool = False) -> None:
        """Store the normal stresses with those of strains along some axes added.

        Parameters
        ----------
        fields
            The fields.
        strains
            Strains by the numbers of their axes.
        surface
            Whether the cell lies on a free surface.
        fresh
            Whether to store what is added alone.
        """
        modulus, shear = self.coefficient("lambda", fields), self.coefficient("mu", fields)
        twice = 2.0 * shear
        across = modulus * twice / (modulus + twice) if surface else modulus
        common = across * total(strains[axis] for axis in sorted(strains, reverse=True))
        for stress in self.named("normal"):
            axis = stress.axes[0]
            if surface and axis == 0:
                continue
            s = fields[stress.name]
            more = common + twice * strains[axis] if axis in strains else common
            s[self.here] = more if fresh else flushed(s[self.here] + more)
