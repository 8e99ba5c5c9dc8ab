"""Cuts of the rows of a mesh into segments, and the ideal speed-up of a cut with messages that cost nothing.

Segment ``i`` has the rows from ``ends[i]`` to ``ends[i + 1]``; with more segments than nodes, it runs on node
``i % nodes``.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import LayoutError
from minga.plan.recut import divide
from minga.studies.bounanos.balancers import round_robin

__all__ = ["equal", "even", "fullest", "ideal_speedup", "loads"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def equal(rows: int, segments: int) -> Ints:
    """Return segments of equal numbers of rows, as in the paper's first versions; shape (segments + 1,)."""
    _check(rows, segments)
    return np.arange(segments + 1, dtype=np.int64) * rows // segments


def fullest(weights: ArrayLike, segments: int) -> Ints:
    """Return the cut with the lightest possible heaviest segment, and each segment as full as this allows.

    The weight of the heaviest segment is found by bisection on prefix sums. The last segments receive the remainder:
    few rows, or none.
    """
    before = _prefix(weights).tolist()
    rows = len(before) - 1
    _check(rows, segments)
    heaviest = max(b - a for a, b in pairwise(before))
    low = max(before[-1] / segments, heaviest)
    high = low + heaviest
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if _greedy(before, segments, middle)[-1] == rows else (middle, high)
    return np.array(_greedy(before, segments, high), np.int64)


def even(weights: ArrayLike, segments: int) -> Ints:
    """Return a cut as heavy as :func:`fullest`, but with the others near their exact shares, and none empty."""
    before = _prefix(weights)
    _check(len(before) - 1, segments)
    ends = divide(np.arange(len(before)), before, np.full(segments, 1.0 / segments), [1] * segments)
    assert ends is not None  # there is room: segments are no more than rows
    return ends


def loads(weights: ArrayLike, ends: ArrayLike) -> Floats:
    """Return the weight of every segment, shape (segments,)."""
    return np.diff(_prefix(weights)[np.asarray(ends, np.int64)])


def ideal_speedup(weights: ArrayLike, ends: ArrayLike, nodes: int) -> float:
    """Return the total weight over that of the busiest node, with segments assigned in turns."""
    each = loads(weights, ends)
    busy = np.bincount(round_robin(len(each), nodes), weights=each, minlength=nodes)
    return float(each.sum() / busy.max())


def _prefix(weights: ArrayLike) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.asarray(weights, float))])


def _greedy(before: list[float], segments: int, most: float) -> list[int]:
    """Return ends of segments that weigh at most `most` and are as full as possible."""
    ends = [0]
    for _ in range(segments):
        ends.append(bisect_right(before, before[ends[-1]] + most) - 1)
    return ends


def _check(rows: int, segments: int) -> None:
    if not 1 <= segments <= rows:
        raise LayoutError(
            f"{rows} rows cannot be cut into {segments} segments", remedy=f"use 1 to {rows} segments: each needs a row"
        )
