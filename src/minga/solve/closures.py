"""Conditions of higher order at walls widen the spectrum of differences, which interior rows do not show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.elementwise import evaluated
from minga.errors import KernelError
from minga.lang.derivative import derivative
from minga.lang.graph import topological
from minga.lang.weights import uniform_weights
from minga.solve.eigenvalues import eigenvalues
from minga.space.boundary import Fill, Side, dirichlet, trace_fill
from minga.space.field import Field

__all__ = ["widening"]

_CELLS: Final = 32
_DIGITS: Final = 1000.0
Closures = tuple[tuple[tuple[int, float], ...], ...]


def widening(fields: Sequence[Field], reach: Mapping[tuple[int, int], int]) -> tuple[float, float]:
    """Return the factor by which walls widen the spectrum of second derivatives, and its imaginary part.

    Both are those of the second derivative along one axis that reads as far, and are rounded up.

    Parameters
    ----------
    fields
        The fields.
    reach
        How many cells the rate of a field reads itself along an axis, by the numbers of the field and the axis.

    Returns
    -------
    tuple of two float
        The largest of the absolute eigenvalues, at least 1, and the largest of their imaginary parts, both in units of
        the sum of the absolute weights.
    """
    wider, turned = 1.0, 0.0
    for (number, axis), cells in reach.items():
        item = fields[number]
        if not cells or item.grid.periodic[axis] or item.boundary.sides[axis] == (None, None):
            continue
        ends = tuple(_closures(item, axis, side, cells) for side in ("low", "high"))
        if all(len(ghost) <= 1 for end in ends for ghost in end):
            continue  # mirrors
        found, imaginary = _spectrum(ends, cells)
        wider, turned = max(wider, found), max(turned, imaginary)
    return wider, turned


def _closures(item: Field, axis: int, side: Side, layers: int) -> Closures:
    """Return for each layer of ghost cells the cells inside that it depends on, and the factors.

    A condition whose factors are not numbers, such as Robin's with a function of the place, counts as Dirichlet's of
    its order, which widens more than Robin's with any factor that is not negative.
    """
    found: list[tuple[tuple[int, float], ...]] = []
    for layer in range(1, layers + 1):
        fill = trace_fill(item, axis, side, layer)
        if fill is None:
            return ((),) * layers
        factors = _factors(fill, item, axis, layer)
        if factors is None:
            order = max(2, fill.depth + fill.depth % 2)
            wall = Field("wall", item.grid, centre=item.centre, boundary={axis: dirichlet(0.0, order)})
            return _closures(wall, axis, side, layers)
        found.append(factors)
    return tuple(found)


def _factors(fill: Fill, item: Field, axis: int, layer: int) -> tuple[tuple[int, float], ...] | None:
    """Return the cells inside that a ghost cell depends on, with their factors; None if these are not numbers."""
    value = fill.graph.stores[0].value
    factors: list[tuple[int, float]] = []
    for node in topological([value]):
        if node.op == "read" and fill.operands[node.data[0]] is item:
            try:
                factor = derivative(value, node)
            except KernelError:
                return None
            if any(each.op != "const" for each in topological([factor]) if not each.args):
                return None
            factors.append((abs(node.data[2][axis]) - layer, float(evaluated(factor, {}))))
    return tuple(factors)


def _spectrum(ends: Sequence[Closures], cells: int) -> tuple[float, float]:
    """Return the widening and the imaginary part for the second derivative that reads so many cells on each side."""
    weights = [float(each) for each in uniform_weights(2, tuple(Fraction(n) for n in range(-cells, cells + 1)))]
    count = max(_CELLS, 4 * cells + 4)
    matrix: NDArray[np.float64] = np.zeros((count, count))
    for row in range(count):
        for column, weight in enumerate(weights, row - cells):
            if 0 <= column < count:
                matrix[row, column] += weight
                continue
            low = column < 0
            ghost = ends[0][-column - 1] if low else ends[1][column - count]
            for n, factor in ghost:
                matrix[row, n if low else count - 1 - n] += weight * factor
    whole, values = math.fsum(map(abs, weights)), eigenvalues(matrix)
    wider = math.sqrt(max(re * re + im * im for re, im in values)) / whole
    turned = max(abs(im) for _, im in values) / whole
    return max(1.0, _up(wider)), _up(turned) if turned > 1.0 / _DIGITS else 0.0


def _up(value: float) -> float:
    """Return a value that is rounded up to three decimals."""
    return math.ceil(value * _DIGITS) / _DIGITS
