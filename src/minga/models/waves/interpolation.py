"""Interpolation weights of the cells around a point that lies between cells.

"sinc" uses eight cells along each axis with the weights sin(pi d) / (pi d) at a distance of d cells from the point, in
a Kaiser window of half-width 4 and b = 6.31. Source: G. J. Hicks, "Arbitrary source and receiver positioning in
finite-difference schemes using Kaiser windowed sinc functions", Geophysics 67(1), 2002. "linear" uses two. A point on a
cell is that cell, with weight 1. Cells beyond the grid are omitted: all waves are 0 there. Weights are rounded to 12
decimals, since libraries differ in further bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from minga.compile import portable
from minga.errors import CaseError, suggest
from minga.models.waves.medium import Floats
from minga.space.box import Box

__all__ = ["INTERPOLATIONS", "Interpolation", "Placed", "place"]

Interpolation = Literal["sinc", "linear"]
INTERPOLATIONS: Final = ("sinc", "linear")
HALF_WIDTH: Final = 4
KAISER: Final = 6.31
_TERMS: Final = 30
_ON_CELL: Final = 1e-6
"""Distance in cells up to which a point counts as lying on a cell: positions are rounded decimals."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A point on the grid: the first of its cells, and along each axis the weights of the cells from there on."""

    first: tuple[int, int, int]
    weights: tuple[Floats, Floats, Floats]
    base: tuple[int, int, int]
    """Cell at or below the point; its owner is in charge of the point."""

    @property
    def single(self) -> bool:
        """True if a single cell represents the point."""
        return all(len(w) == 1 for w in self.weights)

    @property
    def box(self) -> Box:
        """Box of all cells with a weight."""
        return Box(self.first, tuple(lo + len(w) for lo, w in zip(self.first, self.weights, strict=True)))


def place(
    position: Sequence[float],
    shape: Sequence[int],
    spacing: Sequence[float],
    layers: int,
    interpolation: Interpolation,
    what: str,
) -> Placed:
    """Locate a point given in metres from the first cell of the model.

    Parameters
    ----------
    position
        z, y, x of the point, m.
    shape
        Shape of the model, without layers.
    spacing
        Distances between cells, m.
    layers
        Cells that the grid has in addition at both ends of each axis.
    interpolation
        "sinc" or "linear".
    what
        "source" or "receiver", for messages.

    Raises
    ------
    CaseError
        If the point lies outside the model.
    """
    if interpolation not in INTERPOLATIONS:
        raise CaseError(
            f"there is no interpolation {interpolation!r}",
            key=f"fletcher.{what}.interpolation",
            suggestion=suggest(str(interpolation), INTERPOLATIONS),
            remedy='choose "sinc" or "linear"',
        )
    point = tuple(float(x) for x in position)
    ends = tuple((n - 1) * h for n, h in zip(shape, spacing, strict=True))
    slack = tuple(_ON_CELL * h for h in spacing)
    inside = len(point) == len(ends) and all(
        -s <= x <= end + s for x, end, s in zip(point, ends, slack, strict=True)
    )  # False for NaN
    if not inside:
        raise CaseError(
            f"a {what} lies at (z, y, x) = {_metres(point)}, outside the model",
            key=f"fletcher.{what}.position",
            remedy=f"give a point between (0, 0, 0) and {_metres(ends)}",
        )
    first, weights, base = zip(
        *(_along(x / h, n, layers, interpolation) for x, h, n in zip(point, spacing, shape, strict=True)), strict=True
    )
    return Placed(first, weights, base)


def _along(place: float, length: int, layers: int, interpolation: Interpolation) -> tuple[int, Floats, int]:
    """Return the first cell, weights and base cell of a point along one axis; `place` and `length` are in cells."""
    below = math.floor(place + _ON_CELL)
    off = place - below
    if abs(off) <= _ON_CELL:
        return below + layers, np.ones(1), below + layers
    if interpolation == "linear":
        cells, weights = np.arange(2), np.array([1 - off, off])
    else:
        cells = np.arange(1 - HALF_WIDTH, 1 + HALF_WIDTH)
        away = cells - off
        window = _bessel(KAISER * np.sqrt(np.maximum(0, 1 - np.square(away / HALF_WIDTH)))) / _bessel(KAISER)
        weights = portable.sin(np.pi * away) / (np.pi * away) * window
    cells = cells + below + layers
    kept = (cells >= 0) & (cells < length + 2 * layers)
    return int(cells[kept][0]), np.round(weights[kept], 12), below + layers


def _bessel(x: Floats | float) -> Floats:
    """Return the modified Bessel function I0 by its power series, for |x| <= 8."""
    quarter: Floats = 0.25 * np.square(x)
    total = np.ones_like(quarter)
    for k in range(_TERMS, 0, -1):
        total = 1.0 + quarter / (k * k) * total
    return total


def _metres(point: Sequence[float]) -> str:
    return f"({', '.join(f'{x:g}' for x in point)})"
