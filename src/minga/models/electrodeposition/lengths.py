"""Widths of cells and distances of their centres: numbers where they are equal, one-axis fields elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from minga.lang.cell import CellReader
from minga.lang.expr import Node
from minga.space.boundary import zero_gradient
from minga.space.field import Field
from minga.space.grid import Grid

Number = Node | float


@dataclass(frozen=True, eq=False)
class Lengths:
    """The lengths of a grid.

    Kernels take `fields` as an argument and pass its readers to `width` and `gap`.
    """

    grid: Grid
    fields: tuple[Field, ...] = field(init=False)
    initial: dict[Field, NDArray[np.float64]] = field(init=False)
    _even: tuple[float | None, ...] = field(init=False)

    def __post_init__(self) -> None:
        grid, put = self.grid, object.__setattr__
        even = tuple(float(s) if isinstance(s, float | int) else None for s in grid.spacing)
        boundary = zero_gradient() if grid.ndim == 1 and not grid.periodic[0] else None
        made = {
            Field(f"width {name}", grid, axes=(axis,), boundary=boundary, unit="m"): grid.widths(axis)
            for axis, name in enumerate(grid.axes)
            if None in even
        }
        put(self, "_even", even)
        put(self, "fields", tuple(made))
        put(self, "initial", made)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.grid.ndim

    def width(self, readers: Sequence[CellReader], axis: int, at: int = 0) -> Number:
        """Return the width of the cell `at` cells up an axis."""
        even = self._even[axis]
        return even if even is not None else readers[axis][at]

    def gap(self, readers: Sequence[CellReader], axis: int, at: int = 0) -> Number:
        """Return the distance of cell centres across the face `at` faces up an axis (0: the face below the cell)."""
        even = self._even[axis]
        return even if even is not None else 0.5 * (readers[axis][at - 1] + readers[axis][at])

    @property
    def smoothest(self) -> float:
        """Sum of (pi / extent)**2 over the axes, 1/m2: minus the Laplacian of the smoothest wave between walls."""
        each = (math.pi / float(np.sum(self.grid.widths(axis))) for axis in range(self.ndim))
        return math.fsum(number * number for number in each)


def plane_of(grid: Grid) -> float:
    """Return the area of the cathode's plane, m2; 1 or a length in cells that lack axes."""
    area = 1.0
    for axis, name in enumerate(grid.axes):
        if name != "y":
            area *= float(grid.widths(axis).sum())
    return area
