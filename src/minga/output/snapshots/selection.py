"""Selection of the kept points of a field: those of a region, every n-th along each axis."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minga.engine.presentation import PLAIN, FieldStyle, Presentation
from minga.errors import CaseError, suggest
from minga.options import OutputSettings
from minga.output.variables import Variable, variable_of
from minga.space.box import Box
from minga.space.boxes import Ints
from minga.space.field import Field

__all__ = ["Selection", "selections_of"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Kept points of one field: those of `box`, in the field's own point indices, every `every[a]`-th.

    They have indices of their own, from 0: *kept indices*.
    """

    field: Field
    box: Box
    every: tuple[int, ...]
    style: FieldStyle = PLAIN

    @property
    def shape(self) -> tuple[int, ...]:
        """Kept points along each axis."""
        return tuple(-(-length // n) for length, n in zip(self.box.shape, self.every, strict=True))

    @property
    def variable(self) -> Variable:
        """The field as files see it."""
        whole = variable_of(self.field, self.style)
        first = self.field.bounds.lo
        coordinates = tuple(
            c.kept(low - start, high - start, n)
            for c, low, high, start, n in zip(
                whole.coordinates, self.box.lo, self.box.hi, first, self.every, strict=True
            )
        )
        return dataclasses.replace(whole, coordinates=coordinates)

    def bounds(self, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
        """Convert boxes of points, arrays of shape (n, axes), to kept indices; some are empty."""
        start, every = np.array(self.box.lo), np.array(self.every)
        low = -(-(np.maximum(lo, start) - start) // every)
        high = -(-(np.minimum(hi, self.box.hi) - start) // every)
        return low, np.maximum(low, high)

    def indices(self, box: Box) -> Box:
        """Convert a box of points to kept indices."""
        lo, hi = self.bounds(np.array([box.lo]), np.array([box.hi]))
        return Box(tuple(lo[0].tolist()), tuple(hi[0].tolist()))

    def slices(self, kept: Box, lo: Sequence[int]) -> tuple[slice, ...]:
        """Return the slices of a box of kept indices in an array whose first element is the point `lo`."""
        return tuple(
            slice(start + low * n - first, start + (high - 1) * n + 1 - first, n)
            for start, low, high, n, first in zip(self.box.lo, kept.lo, kept.hi, self.every, lo, strict=True)
        )


def selections_of(
    fields: Sequence[Field], settings: OutputSettings, presentation: Presentation | None = None
) -> tuple[Selection, ...]:
    """Return the kept points of each field.

    Raises
    ------
    CaseError
        For axes that do not exist, and if nothing would be left.
    """
    names = {axis: None for field in fields for axis in field.grid.axes}
    region, decimate = settings.region or {}, settings.decimate
    for key, given in (("output.region", region), ("output.decimate", decimate)):
        if isinstance(given, Mapping):
            for axis in given:
                if axis not in names:
                    raise CaseError(
                        f"there is no axis {axis!r}; the axes are {', '.join(names)}",
                        key=key,
                        suggestion=suggest(axis, names),
                    )
    looks = presentation or Presentation()
    return tuple(_kept(field, region, decimate, looks.style(field.name)) for field in fields)


def _kept(
    field: Field, region: Mapping[str, tuple[int, int]], decimate: int | Mapping[str, int], style: FieldStyle
) -> Selection:
    bounds, lo, hi, every = field.bounds, [], [], []
    for position, axis in enumerate(field.axes):
        name = field.grid.axes[axis]
        low, high = region.get(name, (0, field.grid.shape[axis]))
        if not 0 <= low < high <= field.grid.shape[axis]:
            raise CaseError(
                f"the range {low} to {high} of axis {name!r} is not part of its cells 0 to {field.grid.shape[axis]}",
                key="output.region",
                remedy=f"give the first cell and the one after the last: {name} = [0, {field.grid.shape[axis]}]",
            )
        # The faces of the cells of a region are one more than its cells.
        lo.append(max(low, bounds.lo[position]))
        hi.append(min(high + field.centre[axis], bounds.hi[position]))
        n = decimate if isinstance(decimate, int) else decimate.get(name, 1)
        if n < 1:
            raise CaseError(f"expected every 1st, 2nd, ... point along {name!r}, found {n}", key="output.decimate")
        every.append(n)
    box = Box(tuple(lo), tuple(hi))
    if box.empty and not bounds.empty:
        raise CaseError(
            f"the region holds no point of the field {field.name!r}, which exists on {bounds}",
            key="output.region",
            remedy="make the region larger, or leave the field out of output.fields",
        )
    return Selection(field, box, tuple(every), style)
