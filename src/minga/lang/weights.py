"""Weights of finite differences, interpolation and reconstruction, by Fornberg's algorithm.

The algorithm needs the four operations only, so one function serves exact rationals (uniform axes: integer positions,
each weight rounded once) and arrays of f8 (stretched axes: one stencil for each point of the axis).

Source: B. Fornberg, Generation of finite difference formulas on arbitrarily spaced grids, Math. Comp. 51 (1988) 699.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

__all__ = ["average_weights", "fornberg", "reach", "uniform_averages", "uniform_weights"]


def fornberg(points: Sequence[Any], derivative: int) -> list[Any]:
    """Return the weights of a derivative at 0 for values at some points.

    Parameters
    ----------
    points
        Positions relative to where the derivative is taken, all different: rationals, or arrays of f8 of one shape.
    derivative
        Order of the derivative; 0 interpolates.

    Returns
    -------
    list
        One weight for each point, exact for polynomials of a degree below the number of points.
    """
    weights: list[list[Any]] = [[points[0] * 0 + 1] + [points[0] * 0] * derivative]
    product = points[0] * 0 + 1
    for i in range(1, len(points)):
        before, last = product, weights[i - 1]
        product = points[0] * 0 + 1
        for j in range(i):
            distance = points[i] - points[j]
            product = product * distance
            weights[j] = [
                (points[i] * weights[j][k] - (k * weights[j][k - 1] if k else 0)) / distance
                for k in range(derivative + 1)
            ]
            if j == i - 1:
                factor = before / product
                new = [
                    factor * ((k * last[k - 1] if k else 0) - points[i - 1] * last[k]) for k in range(derivative + 1)
                ]
        weights.append(new)
    return [each[derivative] for each in weights]


def reach(derivative: int, order: int, staggered: bool) -> int:
    """Return how many points a centred formula of even accuracy `order` has on each side of the point it is for."""
    if staggered:
        return (derivative + order) // 2
    return (derivative + 1) // 2 + order // 2 - 1


@functools.lru_cache(maxsize=1024)
def uniform_weights(derivative: int, positions: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Return the weights of a derivative at 0 for values at rational positions, in units of the spacing."""
    return tuple(fornberg(positions, derivative))


def average_weights(faces: Sequence[Any], derivative: int = 0) -> list[Any]:
    """Return the weights by which averages over adjacent cells give the value at 0, or a derivative.

    `faces` are the ends of the cells, one more than cells, relative to the point. The value is the derivative of the
    integral, which is known at the faces.
    """
    of_faces = fornberg(faces, derivative + 1)
    weights, total = [], faces[0] * 0
    for low, high, weight in zip(reversed(faces[:-1]), reversed(faces[1:]), reversed(of_faces[1:]), strict=True):
        total = total + weight
        weights.append(total * (high - low))
    return weights[::-1]


@functools.lru_cache(maxsize=256)
def uniform_averages(low: int, high: int) -> tuple[Fraction, ...]:
    """Return the weights of averages over cells `low` to `high` - 1 for the value at the lower face of cell 0."""
    return tuple(average_weights([Fraction(n) for n in range(low, high + 1)]))
