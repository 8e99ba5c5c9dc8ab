"""Eigenvalues of small matrices with the same bits on every processor, which LAPACK's are not.

A stability limit, and with it the time step, may depend on them. Operations are those of Python's floats, each of which
rounds once: elimination to Hessenberg form and the implicit double shift of J. G. F. Francis, after the routine HQR of
R. S. Martin, G. Peters and J. H. Wilkinson, Numer. Math. 14, 1970. A matrix of 32 rows takes some 20 ms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from numpy.typing import NDArray

__all__ = ["eigenvalues"]

Rows = list[list[float]]
Pair = tuple[float, float]
"""The real and the imaginary part."""

_STEPS: Final = 60
"""Steps after which an eigenvalue is given up; usually there are two or three."""


def eigenvalues(matrix: NDArray) -> list[Pair]:  # type: ignore[type-arg]
    """Return the real and imaginary parts of all eigenvalues of a real matrix.

    Parameters
    ----------
    matrix
        A square matrix of finite numbers.

    Returns
    -------
    list of tuple of float
        The eigenvalues, in no particular order.

    Raises
    ------
    ArithmeticError
        If an eigenvalue is not found.
    """
    h = _hessenberg([[float(value) for value in row] for row in matrix])
    norm = _sum(abs(value) for row in h for value in row)
    found: list[Pair] = []
    last, steps, moved = len(h) - 1, 0, 0.0
    while last >= 0:
        first = _first_of_block(h, last, norm)
        if last - first < 2:
            found += [(h[last][last] + moved, 0.0)] if first == last else _of_two(h, last, moved)
            last, steps = first - 1, 0
            continue
        steps += 1
        if steps > _STEPS:
            raise ArithmeticError("an eigenvalue of the matrix was not found")
        shift = h[last][last], h[last - 1][last - 1], h[last][last - 1] * h[last - 1][last]
        if steps % 10 == 0:  # an unusual shift ends a cycle
            moved += shift[0]
            for k in range(last + 1):
                h[k][k] -= shift[0]
            size = abs(h[last][last - 1]) + abs(h[last - 1][last - 2])
            shift = 0.75 * size, 0.75 * size, -0.4375 * size * size
        _step(h, first, last, shift)
    return found


def _hessenberg(a: Rows) -> Rows:
    """Return a similar matrix without entries below the first lower diagonal."""
    n = len(a)
    for k in range(1, n - 1):
        pivot = max(range(k, n), key=lambda i: abs(a[i][k - 1]))
        if not a[pivot][k - 1]:
            continue
        a[k], a[pivot] = a[pivot], a[k]
        for row in a:
            row[k], row[pivot] = row[pivot], row[k]
        for i in range(k + 1, n):
            factor = a[i][k - 1] / a[k][k - 1]
            if not factor:
                continue
            a[i] = [x - factor * y for x, y in zip(a[i], a[k], strict=True)]
            a[i][k - 1] = 0.0
            for row in a:
                row[k] += factor * row[i]
    return a


def _first_of_block(h: Rows, last: int, norm: float) -> int:
    """Return the first row of the last block that no negligible entry divides."""
    for k in range(last, 0, -1):
        size = abs(h[k - 1][k - 1]) + abs(h[k][k]) or norm
        if abs(h[k][k - 1]) + size == size:
            return k
    return 0


def _of_two(h: Rows, last: int, moved: float) -> list[Pair]:
    """Return the eigenvalues of the last block of two rows."""
    a, b = h[last - 1][last - 1], h[last][last]
    product = h[last][last - 1] * h[last - 1][last]
    half = 0.5 * (a - b)
    square = half * half + product
    root = math.sqrt(abs(square))
    if square < 0.0:
        return [(b + half + moved, root), (b + half + moved, -root)]
    far = half + math.copysign(root, half)
    return [(b + far + moved, 0.0), (b - product / far + moved if far else b + moved, 0.0)]


def _step(h: Rows, first: int, last: int, shift: tuple[float, float, float]) -> None:
    """Do one step with two shifts in the rows and columns of a block."""
    start, vector = _start(h, first, last, shift)
    for k in range(start + 2, last + 1):
        h[k][k - 2] = 0.0
        if k > start + 2:
            h[k][k - 3] = 0.0
    for k in range(start, last):
        count = min(3, last - k + 1)
        scale = 1.0
        if k > start:
            vector = [h[k + i][k - 1] for i in range(count)]
            scale = _sum(map(abs, vector))
            if not scale:
                continue
            vector = [value / scale for value in vector]
        vector = vector[:count]
        size = math.copysign(math.sqrt(_sum(value * value for value in vector)), vector[0])
        if not size:
            continue
        if k > start:
            h[k][k - 1] = -size * scale
        elif start > first:
            h[k][k - 1] = -h[k][k - 1]
        _reflect(h, (k, first, last), [vector[0] + size, *vector[1:]], size)


def _start(h: Rows, first: int, last: int, shift: tuple[float, float, float]) -> tuple[int, list[float]]:
    """Return the row in which a step may begin, as two entries before it are small, and its first vector."""
    x, y, w = shift
    for k in range(last - 2, first - 1, -1):
        z = h[k][k]
        r, s = x - z, y - z
        vector = [(r * s - w) / h[k + 1][k] + h[k][k + 1], h[k + 1][k + 1] - z - r - s, h[k + 2][k + 1]]
        scale = _sum(map(abs, vector))
        vector = [value / scale for value in vector]
        if k == first:
            break
        small = abs(h[k][k - 1]) * (abs(vector[1]) + abs(vector[2]))
        large = abs(vector[0]) * (abs(h[k - 1][k - 1]) + abs(z) + abs(h[k + 1][k + 1]))
        if small + large == large:
            break
    return k, vector


def _reflect(h: Rows, at: tuple[int, int, int], vector: Sequence[float], size: float) -> None:
    """Apply a reflection to rows and columns from k on, of a block from `first` to `last`."""
    k, first, last = at
    left = [value / size for value in vector]
    right = [value / vector[0] for value in vector]
    rows = h[k : k + len(vector)]
    for j in range(k, last + 1):
        total = _sum(factor * row[j] for factor, row in zip(right, rows, strict=True))
        for factor, row in zip(left, rows, strict=True):
            row[j] -= total * factor
    for i in range(first, min(last, k + 3) + 1):
        row = h[i]
        total = _sum(factor * row[k + n] for n, factor in enumerate(left))
        for n, factor in enumerate(right):
            row[k + n] -= total * factor


def _sum(values: Iterable[float]) -> float:
    """Return the sum from left to right; Python's own has another rounding since 3.12."""
    total = 0.0
    for value in values:
        total += value
    return total
