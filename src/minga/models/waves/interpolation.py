"""Interpolation weights of the cells around a point that lies between cells.

"sinc" uses eight cells along each axis with the weights sin(pi d) / (pi d) at a distance of d cells from the point, in
a Kaiser window of half-width 4 and b = 6.31. Source: G. J. Hicks, "Arbitrary source and receiver positioning in
finite-difference schemes using Kaiser windowed sinc functions", Geophysics 67(1), 2002. "linear" uses two. A point on
a cell is that cell, with weight 1. Cells beyond the grid are omitted: all waves are 0 there; beyond a free surface or
a rigid wall the cell that is mirrored there takes their weight, with the sign of the mirror. Weights are rounded to 12
decimals, since libraries differ in further bits.

Weights of a derivative along an axis, in cells, are minus the differences of eighth order of these: for sources that
of a point's waves by its position, for receivers that of the waves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.compile import portable
from minga.errors import CaseError, suggest
from minga.models.waves.domain import Domain, is_number
from minga.models.waves.medium import Floats
from minga.models.waves.stencils import first_weights
from minga.space.box import Box

__all__ = [
    "HALF_WIDTH",
    "INTERPOLATIONS",
    "Interpolation",
    "Placed",
    "check_point",
    "doubtful",
    "on_grid",
    "place",
    "place_all",
    "reach",
    "taps",
]

Interpolation = Literal["sinc", "linear"]
INTERPOLATIONS: Final = ("sinc", "linear")
HALF_WIDTH: Final = 4
KAISER: Final = 6.31
_TERMS: Final = 30
_SIDE: Final = np.array([float(w) for w in first_weights(8)])
_SLOPE: Final = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])
"""Weights of a first derivative."""
_ON_CELL: Final = 1e-6
"""Distance in cells up to which a point counts as lying on a cell: positions are rounded decimals."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A point on the grid: the first of its cells, and along each axis the weights of the cells from there on."""

    first: tuple[int, ...]
    weights: tuple[Floats, ...]
    base: tuple[int, ...]
    """Cell at or below the point; its owner is in charge of the point."""

    @property
    def single(self) -> bool:
        """True if a single cell represents the point."""
        return all(len(w) == 1 for w in self.weights)

    @property
    def box(self) -> Box:
        """Box of all cells with a weight."""
        return Box(self.first, tuple(lo + len(w) for lo, w in zip(self.first, self.weights, strict=True)))

    @property
    def products(self) -> Floats:
        """Weights of all cells of the box, in the order of its cells."""
        return reduce(np.multiply.outer, self.weights).ravel()


def place(
    position: Sequence[float],
    domain: Domain,
    interpolation: Interpolation,
    what: str,
    derivative: int | None = None,
) -> Placed:
    """Locate a point given in metres from the first cell of the model.

    Parameters
    ----------
    position
        Position of the point along each axis, m.
    domain
        Domain of the waves.
    interpolation
        "sinc" or "linear".
    what
        "source" or "receiver", for messages.
    derivative
        Axis along which the weights are those of a derivative, in cells; None: those of the value.

    Raises
    ------
    CaseError
        If the point lies outside the model, or on a free surface.
    """
    point = check_point(position, domain, interpolation, what)
    first, weights, base = zip(
        *(
            _along(x / h, domain, axis, interpolation, axis == derivative)
            for axis, (x, h) in enumerate(zip(point, domain.spacing))
        ),
        strict=True,
    )
    placed = Placed(first, weights, base)
    for axis, (low, high) in enumerate(zip(*domain.without_surfaces)):
        if len(weights[axis]) == 1 and not low <= first[axis] < high:
            raise CaseError(
                f"a {what} lies at ({', '.join(domain.axes)}) = {_metres(point)}, on a free surface, where p is 0",
                key=f"fletcher.{what}.position",
                remedy="give a point below the surface, a cell or more away from it",
            )
    return placed


def place_all(
    positions: Sequence[Sequence[float]], domain: Domain, interpolation: Interpolation, what: str
) -> list[Placed]:
    """Locate many points as `place` does; their weights are computed together, which takes a fraction of the time.

    Parameters
    ----------
    positions
        Position of each point along each axis, m.
    domain
        Domain of the waves.
    interpolation
        "sinc" or "linear".
    what
        "source" or "receiver", for messages.

    Raises
    ------
    CaseError
        If a point lies outside the model, or on a free surface.
    """
    points = [check_point(position, domain, interpolation, what) for position in positions]
    if interpolation == "sinc" and points:
        cells = np.array(points) / domain.spacing
        offs = np.unique(cells - np.floor(cells + _ON_CELL))
        offs = offs[np.abs(offs) > _ON_CELL]
        if len(_SINC) + len(offs) > _MOST_KNOWN:
            _SINC.clear()
        _SINC.update(zip(offs.tolist(), _sinc(offs), strict=True))
    return [place(point, domain, interpolation, what) for point in points]


def check_point(
    position: Sequence[float], domain: Domain, interpolation: Interpolation, what: str, number: int | None = None
) -> tuple[float, ...]:
    """Return a point as floats; raise CaseError if it lies outside the model or there is no such interpolation.

    Parameters
    ----------
    position
        Position of the point along each axis, m.
    domain
        Domain of the waves.
    interpolation
        "sinc" or "linear".
    what
        "source" or "receiver", for messages.
    number
        Its number, likewise.
    """
    called, key = f"a {what}", f"fletcher.{what}"
    if number is not None:
        called, key = f"{what} {number}", f"fletcher.{what}s[{number}]"
    if not isinstance(interpolation, str) or interpolation not in INTERPOLATIONS:
        raise CaseError(
            f"there is no interpolation {interpolation!r}",
            key=f"{key}.interpolation",
            suggestion=suggest(str(interpolation), INTERPOLATIONS),
            remedy='choose "sinc" or "linear"',
        )
    ends, axes = domain.ends, ", ".join(domain.axes)
    if not isinstance(position, list | tuple | np.ndarray) or not all(is_number(x) for x in position):
        raise CaseError(
            f"{called} has the position {position!r}", key=f"{key}.position", remedy=f"give metres along {axes}"
        )
    point = tuple(map(float, position))
    slack = tuple(_ON_CELL * h for h in domain.spacing)
    inside = len(point) == len(ends) and all(
        -s <= x <= end + s for x, end, s in zip(point, ends, slack, strict=True)
    )  # False for NaN
    if not inside:
        raise CaseError(
            f"{called} lies at ({axes}) = {_metres(point)}, {_outside(point, domain)}",
            key=f"{key}.position",
            remedy=f"give a point between {_metres([0.0] * len(ends))} and {_metres(ends)}",
        )
    return point


def _outside(point: Sequence[float], domain: Domain) -> str:
    """Return where a point lies that is not in the model."""
    if len(point) != len(domain.shape):
        return f"outside the model, which has the axes {', '.join(domain.axes)}"
    first = [-low * h for low, h in zip(domain.low, domain.spacing, strict=True)]
    last = [a + (n - 1) * h for a, n, h in zip(first, domain.cells, domain.spacing, strict=True)]
    in_layer = all(a <= x <= b for a, x, b in zip(first, point, last, strict=True))
    return "outside the model, in a layer at its end" if in_layer else "outside the model"


def doubtful(points: Floats, domain: Domain) -> NDArray[np.bool_]:
    """Return for many points whether `place` may refuse them; it takes long to ask it for each.

    Parameters
    ----------
    points
        Positions in metres, a row for each point and a column for each axis.
    domain
        Domain of the waves.
    """
    found = np.zeros(len(points), bool)
    if any(domain.periodic):
        return ~found
    for axis, (low, high) in enumerate(zip(*domain.without_surfaces)):
        place = points[:, axis] / domain.spacing[axis]
        found |= ~((place >= -_ON_CELL) & (place <= domain.shape[axis] - 1 + _ON_CELL))  # True for NaN
        cell = np.floor(np.where(found, 0.0, place) + _ON_CELL).astype(np.int64) + domain.low[axis]
        found |= (cell < low) | (cell >= high)
    return found


def _along(
    place: float, domain: Domain, axis: int, interpolation: Interpolation, slope: bool
) -> tuple[int, Floats, int]:
    """Return the first cell, weights and base cell of a point along one axis; `place` is in cells of the model."""
    below, cells, weights = taps(place, interpolation)
    if slope:
        cells = np.arange(cells[0] - len(_SLOPE) // 2, cells[-1] + len(_SLOPE) // 2 + 1)
        slopes = np.zeros(len(cells))
        for number, slope_weight in enumerate(_SLOPE):
            slopes[number : number + len(weights)] += slope_weight * weights
        weights = slopes
    layer = domain.low[axis]
    if len(cells) == 1:
        return below + layer, weights, below + layer
    return *on_grid(cells, weights, domain, axis), below + layer


def on_grid(cells: NDArray[np.int64], weights: Floats, domain: Domain, axis: int) -> tuple[int, Floats]:
    """Return the first of some successive cells along an axis on the grid, and their weights.

    Parameters
    ----------
    cells
        The cells, counted from the first one of the model.
    weights
        Their weights.
    domain
        Domain of the waves, whose cells take the weights of those beyond its ends.
    axis
        The axis.
    """
    cells = cells + domain.low[axis]
    low, high = (corner[axis] for corner in domain.without_surfaces)
    if not ((cells >= low) & (cells < high)).all():
        cells, weights = _folded(cells, weights, domain, axis)
    return int(cells[0]), np.round(weights, 12)


def reach(count: int) -> str:
    """Return how far from a point the farthest of a number of cells around it lies, as text."""
    return "1 cell" if count < 4 else f"{count // 2} cells"


def taps(place: float, interpolation: Interpolation) -> tuple[int, NDArray[np.int64], Floats]:
    """Return the cell at or below a place along an axis, in cells, and the cells around it with their weights."""
    below = math.floor(place + _ON_CELL)
    off = place - below
    if abs(off) <= _ON_CELL:
        return below, np.array([below]), np.ones(1)
    if interpolation == "linear":
        cells, weights = np.arange(2), np.array([1 - off, off])
    else:
        known = _SINC.get(off)
        cells, weights = _SINC_CELLS, _sinc(np.array([off]))[0] if known is None else known
    return below, cells + below, weights


_SINC: Final[dict[float, Floats]] = {}
"""Windowed sinc weights by the distance of a place from the cell below it."""
_MOST_KNOWN: Final = 1 << 16
_SINC_CELLS: Final = np.arange(1 - HALF_WIDTH, 1 + HALF_WIDTH)


def _sinc(offs: Floats) -> Floats:
    """Return the weights of the cells around places, shape (places, 8), from their distances to the cells below."""
    away = _SINC_CELLS - offs[:, None]
    window = _bessel(KAISER * np.sqrt(np.maximum(0, 1 - np.square(away / HALF_WIDTH)))) / _bessel(KAISER)
    weights: Floats = portable.sin(np.pi * away) / (np.pi * away) * window
    return weights


def _folded(cells: NDArray[np.int64], weights: Floats, domain: Domain, axis: int) -> tuple[NDArray[np.int64], Floats]:
    """Return cells of the grid and their weights, with those beyond its ends taken by the cells that they repeat."""
    length, (low, high) = domain.cells[axis], domain.mirrors[axis]
    first, end = (corner[axis] for corner in domain.without_surfaces)
    if domain.periodic[axis]:
        raise CaseError(
            f"a point lies within {reach(len(cells))} of the periodic ends of {domain.axes[axis]}",
            key="fletcher.boundary",
            remedy="put it farther inside, or on a cell: fewer cells around it are then needed",
        )
    found: dict[int, float] = {}
    for given, weight in zip(cells.tolist(), weights.tolist(), strict=True):
        cell, sign = given, 1
        if given < 0 and low:
            cell, sign = -given - (low > 0), low
        elif given >= length and high:
            cell, sign = 2 * (length - 1) - given + (high > 0), high
        if first <= cell < end:
            found[cell] = found.get(cell, 0.0) + sign * weight
    kept = np.arange(min(found), max(found) + 1)
    return kept, np.array([found.get(cell, 0.0) for cell in kept.tolist()])


def _bessel(x: Floats | float) -> Floats:
    """Return the modified Bessel function I0 by its power series, for |x| <= 8."""
    quarter: Floats = 0.25 * np.square(x)
    total = np.ones_like(quarter)
    for k in range(_TERMS, 0, -1):
        total = 1.0 + quarter / (k * k) * total
    return total


def _metres(point: Sequence[float]) -> str:
    return f"({', '.join(f'{x:g}' for x in point)})"
