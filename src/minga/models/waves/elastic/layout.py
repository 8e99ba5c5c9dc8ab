"""Places of the components of elastic waves on the staggered grid, and what they are beyond its ends.

Component v_a lies half a cell above the cells along a, s_ab along both a and b if a and b differ, and s_aa at the
cells: cell i of a component that is staggered along an axis lies at (i + 1/2) * spacing. Sources: J. Virieux,
Geophysics 51(4), 1986; A. R. Levander, "Fourth-order finite-difference P-SV seismograms", Geophysics 53(11), 1988.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minga.models.waves.boundary import Free, Pairs, Rigid
from minga.models.waves.elastic.stencils import Image, even, extrapolated, nothing, odd
from minga.space.boundary import Condition, fixed

__all__ = ["Component", "components", "conditions", "images"]


@dataclass(frozen=True, slots=True)
class Component:
    """A component of the waves.

    Attributes
    ----------
    name
        "vz", "szz", "sxz" and so on.
    axes
        Numbers of the axes in its name.
    half
        For each axis of the grid whether it lies half a cell above the cells.
    """

    name: str
    axes: tuple[int, ...]
    half: tuple[bool, ...]

    @property
    def kind(self) -> str:
        """One of "velocity", "normal" and "shear"."""
        return "velocity" if self.velocity else "normal" if self.normal else "shear"

    @property
    def normal(self) -> bool:
        """True for a normal stress."""
        return len(self.axes) == 2 and self.axes[0] == self.axes[1]

    @property
    def velocity(self) -> bool:
        """True for a component of the velocity."""
        return len(self.axes) == 1


def components(axes: str) -> dict[str, Component]:
    """Return the components on some axes by name: velocities, normal stresses, shear stresses."""
    count = range(len(axes))
    chosen: list[tuple[int, ...]] = [
        *((a,) for a in count), *((a, a) for a in count), *((a, b) for b in count for a in range(b + 1, len(axes)))
    ]  # fmt: skip
    found = {}
    for numbers in chosen:
        name = "vs"[len(numbers) - 1] + "".join(axes[a] for a in numbers)
        half = tuple(numbers.count(a) == 1 for a in count)
        found[name] = Component(name, numbers, half)
    return found


def images(component: Component, axis: int, faces: Pairs) -> tuple[Image, Image]:
    """Return the images of a component beyond both ends of an axis."""
    half = component.half[axis]
    low, high = faces[axis]
    ends: list[Image] = [nothing, nothing]
    if isinstance(low, Rigid):
        ends[0] = odd(2) if half else even
    elif isinstance(low, Free):
        ends[0] = _above_surface(component, axis)
    if isinstance(high, Rigid):
        ends[1] = odd(0) if half else even
    return ends[0], ends[1]


def _above_surface(component: Component, axis: int) -> Image:
    """Return the image of a component above the free surface through the first cells."""
    if component.velocity:
        return extrapolated(0)
    if axis not in component.axes:
        return nothing  # not used: no force depends on this derivative
    return odd(0) if component.normal else odd(1)


def conditions(component: Component, faces: Pairs, periodic: tuple[bool, ...]) -> dict[str | int, Any]:
    """Return the boundary conditions of a component, for all axes that are not periodic."""
    return {
        axis: tuple(map(_condition, images(component, axis, faces))) for axis in range(len(faces)) if not periodic[axis]
    }


def _condition(image: Image) -> Condition:
    if image is nothing:
        return fixed(0.0)

    def ghost(edge: Any) -> Any:
        terms = [edge[cell] * float(factor) for cell, factor in image(edge.layer).items()]
        return sum(terms[1:], terms[0]) if terms else edge[0] * 0.0

    return Condition("image", ghost, homogeneous=True)
