"""Growth and rotation of the longest and the shortest waves of a grid, from the entries of a cell's row.

Waves of infinite length are uniform states: the Jacobian is then a matrix of one entry for each pair of fields, whose
eigenvalues tell how fast states turn and grow. Of the shortest waves, whose sign alternates from cell to cell, only
what a field does to itself counts: where they grow faster than the longest ones, something diffuses backwards.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Mapping, Sequence

import numpy as np

from minga.lang.elementary import pow
from minga.lang.expr import Node, as_node, cast, extreme, square_root, where

__all__ = ["alternating", "uniform"]

Row = Mapping[tuple[int, tuple[int, ...]], Node]
"""The derivatives of a rate by all cells that it reads, by the number of the field and the offset."""

_ROUNDING = 1e-12
_MOST_IN_CIRCLES = 6
"""Most fields among which circles of three are looked for: their number grows with the cube, and all are compiled."""


def uniform(rows: Sequence[Row]) -> tuple[Node, Node]:
    """Return how fast uniform states turn without being damped as fast, and how fast they grow, in a kernel.

    Two fields turn by the imaginary part of their eigenvalues, which is exact where there are two. The rates of several
    pairs are added, and three fields that act on one another in a circle count as if they were alike.

    Parameters
    ----------
    rows
        The entries of each field's rate.

    Returns
    -------
    tuple of two Node
        The two rates, of at least 0.
    """
    numbers = range(len(rows))
    sums = [[_column(row, number, False) for number in numbers] for row in rows]
    sizes = [[_column(row, number, True) for number in numbers] for row in rows]
    turns: list[list[Node]] = [[] for _ in rows]
    growths = [each for i in numbers if (each := sums[i][i]) is not None]
    for i, j in itertools.combinations(numbers, 2):
        there, back = sums[i][j], sums[j][i]
        if there is None or back is None:
            continue
        turn, growth = _pair(_or_zero(sums[i][i]), _or_zero(sums[j][j]), there * back, _size(sizes, i, j))
        growths.append(growth)
        turns[i].append(turn)
        turns[j].append(turn)
    found = [functools.reduce(operator.add, each) for each in turns if each]
    if len(rows) <= _MOST_IN_CIRCLES:
        found += [_circle(sums, *three) for three in itertools.combinations(numbers, 3)]
    return _most(found), _most(growths)


def alternating(entries: Row, own: int) -> Node:
    """Return how fast the shortest waves grow, in a kernel; 0 where they do not grow faster than the longest ones.

    Parameters
    ----------
    entries
        The entries of a field's rate.
    own
        The number of the field.

    Returns
    -------
    Node
        The rate.
    """
    mine = {offsets: cast(entry, "f8") for (number, offsets), entry in entries.items() if number == own}
    if not mine:
        return _ZERO
    longest = _sum(list(mine.values()))
    size = _sum([abs(entry) for entry in mine.values()])
    odd = _sum([0.5 * abs(entry - mine.get(tuple(-n for n in at), _ZERO)) for at, entry in mine.items()])
    axes = range(len(next(iter(mine))))
    growths = []
    for chosen in itertools.chain.from_iterable(itertools.combinations(axes, n) for n in range(1, len(axes) + 1)):
        shortest = _sum([-entry if sum(at[a] for a in chosen) % 2 else entry for at, entry in mine.items()])
        backwards = (shortest - longest > odd + _ROUNDING * size) & (shortest > _ROUNDING * size)
        growths.append(where(backwards, shortest, 0.0))
    return _most(growths)


_ZERO = as_node(np.float64(0.0))


def _column(row: Row, number: int, absolute: bool) -> Node | None:
    """Return the sum of what one field does to another by all cells; None if it does nothing."""
    found = [cast(entry, "f8") for (each, _), entry in row.items() if each == number]
    return _sum([abs(entry) if absolute else entry for entry in found]) if found else None


def _pair(first: Node, second: Node, product: Node, size: Node) -> tuple[Node, Node]:
    """Return how fast two fields turn, unless they are damped as fast, and how fast they grow."""
    middle, half = 0.5 * (first + second), 0.5 * (first - second)
    squared = half * half + where(abs(product) > _ROUNDING * size, product, 0.0)
    turning = where(squared < 0.0, square_root(abs(squared)), 0.0)
    growing = middle + where(squared > 0.0, square_root(abs(squared)), 0.0)
    return where(turning > -middle, turning, 0.0), growing


def _size(sizes: Sequence[Sequence[Node | None]], i: int, j: int) -> Node:
    return _or_zero(sizes[i][j]) * _or_zero(sizes[j][i])


def _circle(sums: Sequence[Sequence[Node | None]], i: int, j: int, k: int) -> Node:
    """Return how fast three alike fields turn that act on one another in a circle, one way or the other."""

    def around(*order: int) -> Node:
        factors = [sums[a][b] for a, b in zip(order, (*order[1:], order[0]), strict=True)]
        if any(each is None for each in factors):
            return _ZERO
        product = functools.reduce(operator.mul, (each for each in factors if each is not None))
        root = pow(where(product == 0.0, 1.0, abs(product)), 1.0 / 3.0)
        return where(product > 0.0, root, where(product < 0.0, -root, 0.0))

    turning = math.sqrt(0.75) * abs(around(i, j, k) - around(i, k, j))
    damping = -(1.0 / 3.0) * _sum([_or_zero(sums[n][n]) for n in (i, j, k)])
    return where(turning > damping, turning, 0.0)


def _or_zero(value: Node | None) -> Node:
    return _ZERO if value is None else value


def _sum(values: Sequence[Node]) -> Node:
    return functools.reduce(operator.add, values)


def _most(values: Sequence[Node]) -> Node:
    """Return the largest of several values, at least 0."""
    return extreme("max", (*values, _ZERO)) if values else _ZERO
