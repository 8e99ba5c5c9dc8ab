"""Domain of a wave model: its cells, and the layers of further cells at its faces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.space.box import Box
from minga.space.grid import Grid

__all__ = ["AXES", "Domain", "axes_of", "check_shape", "check_spacing", "folded", "is_number"]

AXES: Final = {1: "z", 2: "zx", 3: "zyx"}
"""Names of the axes of models on one, two or three of them; z points down."""


def axes_of(ndim: int) -> str:
    """Return the names of the axes of a model, "zyx", "zx" or "z"; raise CaseError for any other number of axes."""
    if ndim not in AXES:
        raise CaseError(
            f"waves are on one, two or three axes; the model has {ndim}",
            key="grid.shape",
            remedy="give the cells along z, along z, x, or along z, y, x: [80, 80, 80]",
        )
    return AXES[ndim]


@dataclass(frozen=True, slots=True)
class Domain:
    """Cells of a model, and of the grid on which it is computed: that of the model with layers at its faces.

    Positions are in metres from the first cell of the model; cell i of an axis lies at i * spacing.

    Parameters
    ----------
    shape
        Cells of the model along each axis.
    spacing
        Metres between cells along each axis.
    low, high
        Cells that the grid has in addition before the first and after the last cell of the model, along each axis.
    mirrors
        For each axis the sign with which waves are mirrored at its low and at its high end, and 0 where they are not:
        -1 about the last cell (a free surface), 1 about the end of the last cell (a rigid wall).
    periodic
        Whether the two ends of each axis are joined.
    """

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    mirrors: tuple[tuple[int, int], ...]
    periodic: tuple[bool, ...]

    @property
    def axes(self) -> str:
        """Names of the axes."""
        return axes_of(len(self.shape))

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells of the grid along each axis, layers included."""
        return tuple(a + n + b for a, n, b in zip(self.low, self.shape, self.high, strict=True))

    @property
    def inside(self) -> Box:
        """Box of the grid that is the model."""
        return Box(self.low, tuple(a + n for a, n in zip(self.low, self.shape, strict=True)))

    @property
    def without_surfaces(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """First cell of the grid along each axis, and the one past its last, without the rows of free surfaces."""
        low = tuple(int(pair[0] < 0) for pair in self.mirrors)
        return low, tuple(n - int(pair[1] < 0) for n, pair in zip(self.cells, self.mirrors, strict=True))

    @property
    def ends(self) -> tuple[float, ...]:
        """Position of the last cell of the model."""
        return tuple((n - 1) * h for n, h in zip(self.shape, self.spacing, strict=True))

    @property
    def middle(self) -> tuple[float, ...]:
        """Position of the cell in the middle of the model, where sources lie by default."""
        return tuple(n // 2 * h for n, h in zip(self.shape, self.spacing, strict=True))

    def grid(self) -> Grid:
        """Return a grid of these cells, layers included; the first cell of the model lies at coordinate 0."""
        return Grid(
            self.cells,
            axes=self.axes,
            spacing=self.spacing,
            origin=tuple(-(low + 0.5) * h for low, h in zip(self.low, self.spacing, strict=True)),
            units="m",
            periodic=self.periodic,
            down="z",
        )


def check_shape(shape: object) -> tuple[int, ...]:
    """Return the cells of a model along each axis; raise CaseError if they are invalid.

    Parameters
    ----------
    shape
        One to three whole numbers.

    Returns
    -------
    tuple of int
        Cells along z, along z, x, or along z, y, x.
    """
    lengths: tuple[Any, ...] = tuple(shape) if isinstance(shape, tuple | list) else ()
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in lengths)
    if len(lengths) not in AXES or not whole:
        raise CaseError(
            f"shape={shape!r}: expected one, two or three whole numbers of cells",
            key="grid.shape",
            remedy="give the cells along z, along z, x, or along z, y, x: (100, 100, 100)",
        )
    return tuple(map(int, lengths))


def check_spacing(spacing: Sequence[float] | float, ndim: int) -> tuple[float, ...]:
    """Return the distances between cells along each axis; raise CaseError if they are invalid.

    Parameters
    ----------
    spacing
        One number for all axes, or one for each, m.
    ndim
        Number of axes.

    Returns
    -------
    tuple of float
        Metres between cells along each axis.
    """
    given: Any = spacing
    several = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0)
    widths: tuple[Any, ...] = tuple(given) if several else (given,) * ndim
    if len(widths) != ndim or not all(is_number(h) and 0 < h < math.inf for h in widths):
        raise CaseError(
            f"spacing={spacing!r}: expected a positive number of metres, or one for each axis",
            key="fletcher.spacing",
            remedy=f"give the distances of cells along {', '.join(axes_of(ndim))}: {(12.5,) * ndim}",
        )
    return tuple(map(float, widths))


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is one real number."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def folded(values: NDArray[np.float64], domain: Domain) -> NDArray[np.float64]:
    """Return sums over the cells of the grid that repeat each cell of the model: itself, and those of layers.

    Parameters
    ----------
    values
        Values on the grid.
    domain
        The domain.
    """
    for axis, (low, n) in enumerate(zip(domain.low, domain.shape, strict=True)):
        values = np.moveaxis(values, axis, 0)
        inside = values[low : low + n].copy()
        inside[0] += np.add.accumulate(values[:low], axis=0)[-1] if low else 0.0
        rest = values[low + n :]
        inside[-1] += np.add.accumulate(rest, axis=0)[-1] if len(rest) else 0.0
        values = np.moveaxis(inside, 0, axis)
    return values
