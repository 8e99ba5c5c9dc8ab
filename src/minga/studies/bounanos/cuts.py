"""Where a row of mesh points is cut into segments, and how fast the cuts could be if messages cost nothing.

Segment ``i`` is rows ``ends[i]`` to ``ends[i + 1]``; with more segments than nodes, node ``i % nodes`` does it.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.errors import LayoutError
from minga.plan.recut import divide
from minga.studies.bounanos.balancers import in_turns

__all__ = ["equal", "even", "fullest", "ideal_speedup", "loads"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def equal(rows: int, segments: int) -> Ints:
    """Segments of equally many rows, as the paper's first versions have them; shape (segments + 1,)."""
    _check(rows, segments)
    return np.arange(segments + 1, dtype=np.int64) * rows // segments


def fullest(weights: ArrayLike, segments: int) -> Ints:
    """The cut whose heaviest segment is as light as possible, each segment as full as that allows.

    Prefix sums, and bisection of the heaviest segment's weight. The last segments get what is left: few rows, or none.
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
    """The same heaviest segment as :func:`fullest`, the others near their exact shares, none without rows."""
    before = _prefix(weights)
    _check(len(before) - 1, segments)
    ends = divide(np.arange(len(before)), before, np.full(segments, 1.0 / segments), [1] * segments)
    assert ends is not None  # there is room: segments are no more than rows
    return ends


def loads(weights: ArrayLike, ends: ArrayLike) -> Floats:
    """The weight of every segment, shape (segments,)."""
    return np.diff(_prefix(weights)[np.asarray(ends, np.int64)])


def ideal_speedup(weights: ArrayLike, ends: ArrayLike, nodes: int) -> float:
    """All weight over that of the busiest node, with segments dealt out in turns."""
    each = loads(weights, ends)
    busy = np.bincount(in_turns(len(each), nodes), weights=each, minlength=nodes)
    return float(each.sum() / busy.max())


def _prefix(weights: ArrayLike) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.asarray(weights, float))])


def _greedy(before: list[float], segments: int, most: float) -> list[int]:
    """Ends of segments that weigh no more than `most` and are as full as they may be."""
    ends = [0]
    for _ in range(segments):
        ends.append(bisect_right(before, before[ends[-1]] + most) - 1)
    return ends


def _check(rows: int, segments: int) -> None:
    if not 1 <= segments <= rows:
        raise LayoutError(
            f"{rows} rows cannot be cut into {segments} segments", remedy=f"use 1 to {rows} segments: each needs a row"
        )
