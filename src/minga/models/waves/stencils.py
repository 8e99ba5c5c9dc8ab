"""Central and staggered differences of any even order, and their wavenumbers.

A stencil of order 2 m is given by its weights for offsets 1 .. m (weights of a second derivative start with that of
offset 0). Source of the weights: B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids",
Math. Comp. 51 (1988), in closed form for equal spacing, at cells or halfway between them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import factorial
from typing import Any, Final

from minga.errors import CaseError

__all__ = ["ORDERS", "Differences", "first_weights", "halfway_weights", "nyquist", "second_weights", "total"]

ORDERS: Final = (4, 8, 12, 16)


def first_weights(order: int) -> tuple[Fraction, ...]:
    """Return the weights c of a first derivative with unit spacing.

    The derivative is the sum of c[k - 1] * (u[k] - u[-k]) over k = 1 .. order / 2, over the spacing.
    """
    m = _half(order)
    return tuple(_sign(k) * _common(m, k) / k for k in range(1, m + 1))


def second_weights(order: int) -> tuple[Fraction, ...]:
    """Return the weights c of a second derivative: c[0] u[0] + the sum of c[k] (u[k] + u[-k]), over spacing squared."""
    m = _half(order)
    sides = [2 * _sign(k) * _common(m, k) / k**2 for k in range(1, m + 1)]
    return (-2 * sum(sides, Fraction(0)), *sides)


def halfway_weights(pairs: int) -> tuple[Fraction, ...]:
    """Return the weights c of a first derivative halfway between cells of unit spacing, whose order is 2 pairs.

    The derivative is the sum of c[k - 1] * (u[k] - u[1 - k]) over k = 1 .. pairs.
    """
    m = pairs
    common = Fraction(factorial(2 * m - 1), 4 ** (m - 1) * factorial(m - 1)) ** 2
    return tuple(
        _sign(k) * common / ((2 * k - 1) ** 2 * factorial(m + k - 1) * factorial(m - k)) for k in range(1, m + 1)
    )


def nyquist(order: int) -> float:
    """Return minus the second derivative, in cells, of the shortest wave on a grid: the stencil's largest value."""
    weights = second_weights(order)
    return float(-weights[0] - 2 * sum(_sign(k + 1) * w for k, w in enumerate(weights[1:], 1)))


def _half(order: int) -> int:
    if order not in ORDERS:
        raise CaseError(
            f"there is no stencil of order {order}",
            key="fletcher.order",
            remedy=f"choose one of {', '.join(map(str, ORDERS))}",
        )
    return order // 2


def _sign(k: int) -> int:
    return 1 if k % 2 else -1


def _common(m: int, k: int) -> Fraction:
    return Fraction(factorial(m) ** 2, factorial(m - k) * factorial(m + k))


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences along the axes of a grid, inside a kernel.

    Attributes
    ----------
    first, second
        Weights of the derivatives for each axis, scaled by its spacing (see `of`).
    """

    first: tuple[tuple[float, ...], ...]
    second: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, order: int, steps: Sequence[float]) -> Differences:
        """Return differences of an order; `steps[axis]` scales derivatives along an axis: 1 / spacing, in some unit."""
        return cls(
            tuple(tuple(float(w) * step for w in first_weights(order)) for step in steps),
            tuple(tuple(float(w) * step * step for w in second_weights(order)) for step in steps),
        )

    @property
    def here(self) -> tuple[int, ...]:
        """Offsets of the cell itself."""
        return (0,) * len(self.first)

    @property
    def reach(self) -> int:
        """Number of cells to either side that are read."""
        return len(self.first[0])

    def d1(self, u: Any, axis: int) -> Any:
        """Return the first derivative of a field or a local along an axis."""
        return total(w * (u[self._at(axis, k)] - u[self._at(axis, -k)]) for k, w in enumerate(self.first[axis], 1))

    def d2(self, u: Any, axis: int) -> Any:
        """Return the second derivative along an axis."""
        middle, *sides = self.second[axis]
        pairs = [w * (u[self._at(axis, k)] + u[self._at(axis, -k)]) for k, w in enumerate(sides, 1)]
        return total([middle * u[self.here], *pairs])

    def _at(self, axis: int, cells: int) -> tuple[int, ...]:
        return tuple(cells if a == axis else 0 for a in range(len(self.first)))


def total(terms: Iterable[Any]) -> Any:
    """Return the sum from left to right (that of Python starts with 0, which costs one more operation)."""
    return reduce(operator.add, terms)
