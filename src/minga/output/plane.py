"""Choice of the plane in which a field on three or more axes is shown.

It is the plane of the last two axes at the middle of the others; or, if the field says so (attribute ``section``, such
as ``y = 240.0``), the plane across that axis at that position, with its first axis downwards, as depth is drawn. If the
field names the axis that is drawn to the right (attribute ``drawn_along``), the other one goes upwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.output.variables import ALONG, SECTION, Coordinate

__all__ = ["Plane", "plane_of"]


@dataclass(frozen=True, slots=True)
class Plane:
    """Plane of a field, or all of a field on one or two axes.

    Attributes
    ----------
    at
        Index along each of the first axes: a number across the plane, or all of an axis in it.
    axes
        Coordinates of the plane, one or two; of two, the second one is drawn to the right.
    where
        Positions of the plane along the field's other axes, such as "z = 5".
    down
        Whether the first of these axes goes downwards although values are floats.
    turned
        Whether these axes are in reverse order of the field's; the first one then goes upwards.
    """

    at: tuple[int | slice, ...]
    axes: tuple[Coordinate, ...]
    where: tuple[str, ...]
    down: bool
    turned: bool = False

    @property
    def shown(self) -> tuple[int, ...]:
        """Axes of the field that lie in the plane, in the order of `axes`."""
        cut = [axis for axis, index in enumerate(self.at) if not isinstance(index, slice)]
        shown = tuple(axis for axis in range(len(cut) + len(self.axes)) if axis not in cut)
        return shown[::-1] if self.turned else shown

    def laid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder values of the plane from the order of the field's axes to that of `axes`."""
        return values.T if self.turned else values

    def upwards(self, dtype: np.dtype[Any]) -> bool:
        """Return whether the first axis is drawn upwards; whole numbers go downwards, as rules and patterns do."""
        return self.turned or (dtype.kind not in "bui" and not self.down)


def plane_of(coordinates: Sequence[Coordinate], attributes: Mapping[str, Any]) -> Plane:
    """Return the plane of a field with these coordinates and attributes."""
    plane = _plane(coordinates, attributes)
    if len(plane.axes) == 2 and plane.axes[0].name == attributes.get(ALONG):
        return replace(plane, axes=plane.axes[::-1], turned=True)
    return plane


def _plane(coordinates: Sequence[Coordinate], attributes: Mapping[str, Any]) -> Plane:
    """Return the plane, with its axes in the order of the field's."""
    across = _section(coordinates, attributes)
    if across is None:
        beyond = coordinates[:-2]
        at: tuple[int | slice, ...] = tuple(len(axis.values) // 2 for axis in beyond)
        shown = tuple(coordinates[len(beyond) :])
        return Plane(at, shown, _where(beyond, at), down=len(shown) == 2 and shown[0].down)
    axis, index = across
    at = (*(slice(None),) * axis, index)
    axes = tuple(other for number, other in enumerate(coordinates) if number != axis)
    return Plane(at, axes, _where([coordinates[axis]], [index]), down=True)


def _section(coordinates: Sequence[Coordinate], attributes: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the axis across which the field is to be cut, and the nearest point; None if the field names none."""
    name, _, number = str(attributes.get(SECTION, "")).partition(" = ")
    names = [axis.name for axis in coordinates]
    try:
        position = float(number)
    except ValueError:
        return None
    if len(names) != 3 or name not in names or not math.isfinite(position):
        return None
    axis = names.index(name)
    return axis, int(np.abs(coordinates[axis].values - position).argmin())


def _where(axes: Sequence[Coordinate], at: Sequence[int | slice]) -> tuple[str, ...]:
    return tuple(f"{axis.name} = {axis.values[index]:g}" for axis, index in zip(axes, at, strict=True))
