"""Numbers of a grid that kernels ask for: spacings, weights of differences, face areas and volumes.

Operators (`minga.lang.operators`) name what they need, and an engine supplies it: a scalar where cells along an axis
have one width, else a table along the axis, as for coordinates. Beyond the ends of an axis the points go on evenly with
the last spacing; along a periodic one they are those of the other end.

========================================  ==========================================================================
name                                      value
========================================  ==========================================================================
``@coordinateA``                          position of the point, of cells or faces as the stored field has it; beyond a
                                          periodic end that of the cell which lies there
``@spacingA``                             width of the cell: scalar or table
``@per_spacingA_N``                       1 / width**N, scalar
``@weightA_N_ST_LO_HI_K``                 weight of the value at offset K in the derivative of order N, at points T
                                          from points S (c cells, f faces) at the offsets LO to HI
``@averageA_LO_HI_K``                     weight of cell K's average in the value at the lower face, from cells LO to HI
``@idealA_LO_HI_K``                       share of the parabola through cells K to K + 2 in that value from LO to HI
``@tiltA_LO_HI_C_K``                      weight of cell K's average in h times the slope at the centre of cell C, of
                                          width h, of the parabola from cells LO to HI
``@bendA_LO_HI_C_K``                      the same for h**2 times its second derivative
``@reachA_C_K``                           distance of the centres of cells C and C + K by half the width of cell C
``@per_reachA_C_K``                       its inverse
``@areaA``                                factor of the area of the lower face
``@measureA``                             the same of the cell's volume
``@volumeA``                              its inverse
``@slendernessA``                         the factor of the area of a face across an angle over ``@measureA``: 1 / r or
                                          1 / sin(theta), as means that fit the volume
``@openA_E``                              0 on the faces at the closed ends E (l low, h high, lh both), else 1
``@scaleA_T``                             r, or sin(theta), at points T
``@per_scaleA_T``                         its inverse; 0 where the scale is 0
``@cotangentA_T``                         cos(theta) / sin(theta) at points T
========================================  ==========================================================================

A is the number of the axis among those that the kernel runs over.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from minga.compile import portable
from minga.errors import ProgramError
from minga.lang.trace import Metric
from minga.lang.weights import average_weights, fornberg
from minga.space.field import MARGIN, Constant, coordinate_constant
from minga.space.grid import Floats, Grid
from minga.space.poles import poles

__all__ = ["measures", "metric_of", "supplied_constant", "supplied_scalar"]

_NAME: Final = re.compile(r"@([a-z_]+?)(\d+)((?:_[a-z0-9]+)*)")
_POWERS: Final = {"polar": 1, "cylindrical": 1, "spherical": 2}
"""Powers of r in the area of a face across r."""


def metric_of(grid: Grid, axes: Sequence[int]) -> Metric:
    """Return what a kernel that runs over some axes of a grid has to know of it."""
    across = tuple(_across(grid, axis, axes) for axis in axes)
    return Metric(grid.geometry, tuple(map(grid.uniform, axes)), across if any(across) else ())


def _across(grid: Grid, axis: int, axes: Sequence[int]) -> bool:
    """Return whether the cells beyond an end of an axis lie at other angles, which some of the axes are."""
    turned = {"r": {"theta", "phi"}, "theta": {"phi"}}.get(grid.axes[axis], set())
    return any(poles(grid, axis)) and not turned.isdisjoint(grid.axes[each] for each in axes)


def supplied_scalar(grid: Grid, axes: Sequence[int], name: str) -> float | None:
    """Return a number that a kernel over some axes of a grid asks for; None if it is not one of the grid's."""
    found = _NAME.fullmatch(name)
    if found is None or found[1] not in ("spacing", "per_spacing"):
        return None
    width = grid.spacing[axes[int(found[2])]]
    assert isinstance(width, float)
    return width if found[1] == "spacing" else float(1 / Fraction(width) ** int(found[3][1:]))


def supplied_constant(grid: Grid, axis: int, name: str, centre: int, margin: int = MARGIN) -> Constant:
    """Return the table along an axis that a kernel asks for by its name.

    Raises
    ------
    ProgramError
        If the axis is too short for the stencil.
    """
    found = _NAME.fullmatch(name)
    assert found is not None
    if found[1] == "coordinate":
        return coordinate_constant(grid, axis, centre, margin)
    array = _table(grid, axis, found[1], tuple(found[3].split("_")[1:]), margin)
    return Constant(name, (axis,), (-margin,), array)


@functools.lru_cache(maxsize=1024)
def _table(grid: Grid, axis: int, kind: str, what: tuple[str, ...], margin: int) -> Floats:
    """Return a table with one entry for each point of an axis and for `margin` more beyond each end."""
    length = grid.shape[axis]
    numbers = np.arange(-margin, length + margin + 1)
    if grid.periodic[axis]:
        numbers %= length
    array = np.array(_TABLES[kind](grid, axis, numbers, *what), np.float64)
    array.flags.writeable = False
    return array


# Tables --------------------------------------------------------------------------------------------------------------
def _points(grid: Grid, axis: int, kind: str, numbers: np.ndarray) -> Floats:
    """Return positions of cells (kind c) or faces (f) of any numbers."""
    return grid.continued(axis, numbers, kind == "f")


def _offset(text: str) -> int:
    return -int(text[1:]) if text[0] == "m" else int(text)


def _spacing(grid: Grid, axis: int, numbers: np.ndarray) -> Floats:
    return np.asarray(grid.widths(axis)[np.clip(numbers, 0, grid.shape[axis] - 1)])


@functools.lru_cache(maxsize=64)
def _weights(
    grid: Grid, axis: int, numbers: bytes, derivative: int, points: str, low: int, high: int
) -> tuple[Floats, ...]:
    at = np.frombuffer(numbers, np.int64)
    _check_length(grid, axis, high - low)
    here = _points(grid, axis, points[1], at)
    return tuple(fornberg([_points(grid, axis, points[0], at + n) - here for n in range(low, high + 1)], derivative))


def _weight(
    grid: Grid, axis: int, numbers: np.ndarray, derivative: str, points: str, low: str, high: str, number: str
) -> Floats:
    first = _offset(low)
    weights = _weights(grid, axis, numbers.tobytes(), int(derivative), points, first, _offset(high))
    return weights[_offset(number) - first]


def _average(grid: Grid, axis: int, numbers: np.ndarray, low: str, high: str, number: str) -> Floats:
    first, last = _offset(low), _offset(high)
    _check_length(grid, axis, last - first)
    here = _points(grid, axis, "f", numbers)
    faces = [_points(grid, axis, "f", numbers + n) - here for n in range(first, last + 1)]
    return np.asarray(average_weights(faces)[_offset(number) - first])


def _ideal(grid: Grid, axis: int, numbers: np.ndarray, low: str, high: str, number: str) -> Floats:
    """Return the share of one of three parabolas in the value of fifth order on a face.

    The cells at the ends are in one parabola each, from which its share follows; the one in the middle has the rest.
    """
    first, last = _offset(low), _offset(high)

    def share(outermost: int, start: int, end: int) -> Floats:
        whole = _average(grid, axis, numbers, low, high, str(outermost))
        return np.asarray(whole / _average(grid, axis, numbers, str(start), str(end), str(outermost)))

    lowest, highest = share(first, first, first + 3), share(last - 1, last - 3, last)
    return (lowest, 1.0 - lowest - highest, highest)[_offset(number) - first]


def _of_parabola(derivative: int) -> Callable[..., Floats]:
    def weights(grid: Grid, axis: int, numbers: np.ndarray, low: str, high: str, centre: str, number: str) -> Floats:
        first, last, at = _offset(low), _offset(high), numbers + _offset(centre)
        _check_length(grid, axis, last - first)
        here, width = _points(grid, axis, "c", at), _width(grid, axis, at)
        faces = [_points(grid, axis, "f", numbers + n) - here for n in range(first, last + 1)]
        scale = portable.power(width, derivative)
        return np.asarray(average_weights(faces, derivative)[_offset(number) - first] * scale)

    return weights


def _width(grid: Grid, axis: int, numbers: np.ndarray) -> Floats:
    return np.asarray(_points(grid, axis, "f", numbers + 1) - _points(grid, axis, "f", numbers))


def _reach(grid: Grid, axis: int, numbers: np.ndarray, centre: str, number: str) -> Floats:
    at = numbers + _offset(centre)
    distance = _points(grid, axis, "c", at + _offset(number)) - _points(grid, axis, "c", at)
    return np.asarray(2.0 * np.abs(distance) / _width(grid, axis, at))


def _per_reach(grid: Grid, axis: int, numbers: np.ndarray, centre: str, number: str) -> Floats:
    return 1.0 / _reach(grid, axis, numbers, centre, number)


def _area(grid: Grid, axis: int, numbers: np.ndarray) -> Floats:
    faces = _points(grid, axis, "f", numbers)
    if grid.axes[axis] == "theta":
        return np.array([_sine(each) for each in faces])
    return np.asarray(np.abs(faces) if _POWERS[grid.geometry] == 1 else faces * faces)


def measures(grid: Grid, axis: int) -> Floats:
    """Return the factor of an axis in the volume of each cell along it.

    Parameters
    ----------
    grid
        The grid.
    axis
        Number of the axis.

    Returns
    -------
    Floats
        One number for each cell: the integral of r, r squared or sin(theta) over it, or its width.
    """
    if grid.geometry == "cartesian" or grid.axes[axis] not in ("r", "theta"):
        return grid.widths(axis)
    return _measure(grid, axis, np.arange(grid.shape[axis]))


def _volume(grid: Grid, axis: int, numbers: np.ndarray) -> Floats:
    return _inverse(_measure(grid, axis, numbers))


def _measure(grid: Grid, axis: int, numbers: np.ndarray) -> Floats:
    low, high = _points(grid, axis, "f", numbers), _points(grid, axis, "f", numbers + 1)
    if grid.axes[axis] == "theta":
        # cos(a) - cos(b) = 2 sin((a + b) / 2) sin((b - a) / 2)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        volume = np.array([2.0 * _sine(a) * _sine(b) for a, b in zip(middle, half, strict=True)])
    elif _POWERS[grid.geometry] == 1:
        volume = (high - low) * 0.5 * (high + low)
    else:
        volume = (high - low) * (high * high + high * low + low * low) / 3.0
    return np.asarray(np.abs(volume))


def _slenderness(grid: Grid, axis: int, numbers: np.ndarray) -> Floats:
    low, high = _points(grid, axis, "f", numbers), _points(grid, axis, "f", numbers + 1)
    if grid.axes[axis] == "theta":
        middle = np.array([_sine(each) for each in 0.5 * (low + high)])
        return np.asarray(np.copysign((high - low) * _volume(grid, axis, numbers), middle))
    if _POWERS[grid.geometry] == 1:
        return _per_scale(grid, axis, numbers, "c")
    return 1.5 * (low + high) * _inverse(high * high + high * low + low * low)


def _open(grid: Grid, axis: int, numbers: np.ndarray, ends: str) -> Floats:
    shut = [number for end, number in (("l", 0), ("h", grid.shape[axis])) if end in ends]
    return np.where(np.isin(numbers, shut), 0.0, 1.0)


def _scale(grid: Grid, axis: int, numbers: np.ndarray, kind: str) -> Floats:
    points = _points(grid, axis, kind, numbers)
    return np.array([_sine(each) for each in points]) if grid.axes[axis] == "theta" else points


def _per_scale(grid: Grid, axis: int, numbers: np.ndarray, kind: str) -> Floats:
    return _inverse(_scale(grid, axis, numbers, kind))


def _cotangent(grid: Grid, axis: int, numbers: np.ndarray, kind: str) -> Floats:
    points = _points(grid, axis, kind, numbers)
    return np.array([_sine(0.5 * np.pi - each) for each in points]) * _per_scale(grid, axis, numbers, kind)


def _inverse(values: Floats) -> Floats:
    """Return 1 / values, and 0 for 0: on an axis, where what it multiplies is 0 as well."""
    return np.where(values == 0.0, 0.0, 1.0 / np.where(values == 0.0, 1.0, values))


def _sine(angle: float) -> float:
    """Return the sine of an angle by operations that round alike on every machine; 0 at 0 and at pi."""
    turned = abs(np.remainder(float(angle) + np.pi, 2 * np.pi) - np.pi)
    x = min(turned, np.pi - turned)
    term, total, square = x, 0.0, x * x
    for n in range(1, 14):
        total += term
        term *= -square / ((2 * n) * (2 * n + 1))
    return float(np.copysign(total, np.remainder(float(angle) + np.pi, 2 * np.pi) - np.pi))


def _check_length(grid: Grid, axis: int, points: int) -> None:
    if grid.periodic[axis] and grid.shape[axis] < points:
        raise ProgramError(
            f"a stencil of {points} points on the periodic axis {grid.axes[axis]!r} of {grid.shape[axis]} cells",
            remedy="use more cells, or a lower order",
        )


_TABLES: Final[dict[str, Callable[..., Any]]] = {
    "spacing": _spacing, "weight": _weight, "average": _average, "area": _area, "measure": _measure, "volume": _volume,
    "slenderness": _slenderness, "open": _open, "scale": _scale, "per_scale": _per_scale, "cotangent": _cotangent,
    "ideal": _ideal, "tilt": _of_parabola(1), "bend": _of_parabola(2), "reach": _reach, "per_reach": _per_reach,
}  # fmt: skip
