"""Operations on many boxes, given as int64 arrays ``lo`` and ``hi`` of shape (n, ndim).

The boxes can be measured, intersected, merged, verified and found.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.space.box import Box, Point

__all__ = ["BoxIndex", "Ints", "first_miscount", "intersect_pairs", "merge", "volumes"]

Ints = NDArray[np.int64]

_FAN = 16
"""Children of a node of the index: wide enough to be worth the overhead of one NumPy call for each level."""

_QUERIES = 4096
"""Queries that are answered together: many enough for NumPy, few enough that their pairs stay in cache."""


def volumes(lo: Ints, hi: Ints) -> Ints:
    """Return the number of cells in each box, zero for empty ones."""
    sizes: Ints = np.prod(np.maximum(hi - lo, 0), axis=1, dtype=np.int64)
    return sizes


def intersect_pairs(a_lo: Ints, a_hi: Ints, b_lo: Ints, b_hi: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return all pairs of boxes ``a[i]`` and ``b[j]`` that share a cell.

    The results are the arrays i and j, and the low and high ends of the shared boxes, in order of i, then j.
    """
    lo = np.maximum(a_lo[:, None], b_lo[None])
    hi = np.minimum(a_hi[:, None], b_hi[None])
    i, j = np.nonzero((lo < hi).all(axis=2))
    return i, j, lo[i, j], hi[i, j]


def merge(lo: Ints, hi: Ints, owner: Ints) -> tuple[Ints, Ints, Ints]:
    """Join boxes of one owner that make up a box together, innermost axis first, until no two can be joined."""
    count = -1
    while count != len(owner):
        count = len(owner)
        for axis in reversed(range(lo.shape[1])):
            lo, hi, owner = _merge_along(axis, lo, hi, owner)
    order = np.lexsort((*lo.T[::-1], owner))
    return lo[order], hi[order], owner[order]


def _merge_along(axis: int, lo: Ints, hi: Ints, owner: Ints) -> tuple[Ints, Ints, Ints]:
    """Join each run of boxes that touch along ``axis`` and agree in everything else."""
    across = [a for a in range(lo.shape[1]) if a != axis]
    same = np.column_stack((owner, lo[:, across], hi[:, across]))
    order = np.lexsort((lo[:, axis], *same.T))
    lo, hi, owner, same = lo[order], hi[order], owner[order], same[order]
    joined = (same[1:] == same[:-1]).all(axis=1) & (lo[1:, axis] == hi[:-1, axis])
    first = np.concatenate(([True], ~joined))
    last = np.concatenate((~joined, [True]))
    return lo[first], hi[last], owner[first]


def first_miscount(lo: Ints, hi: Ints, domain: Box) -> tuple[Point, int] | None:
    """Return the first cell that is not in exactly one box, and the number of boxes it is in; None if the boxes tile.

    A box is the sum over its corners of signed quadrants, so two sets of boxes cover every cell equally often exactly
    if their signed corners cancel. That needs one sort of the corners and never compares boxes pair by pair. At the
    first corner that is left over, no other one lies below: its sign is the error in the count there.
    """
    ndim = domain.ndim
    lo = np.concatenate((lo, [domain.lo]))
    hi = np.concatenate((hi, [domain.hi]))
    sign = np.concatenate((np.ones(len(lo) - 1, np.int64), [-1]))
    corners, signs = [], []
    for ends in itertools.product((False, True), repeat=ndim):
        corners.append(np.where(ends, hi, lo))
        signs.append(-sign if sum(ends) % 2 else sign)
    points, weights = np.concatenate(corners), np.concatenate(signs)
    order = np.lexsort(points.T[::-1])
    points, weights = points[order], weights[order]
    starts = np.flatnonzero(np.concatenate(([True], (points[1:] != points[:-1]).any(axis=1))))
    totals = np.add.reduceat(weights, starts)
    wrong = np.flatnonzero(totals)
    if not len(wrong):
        return None
    cell = tuple(points[starts[wrong[0]]].tolist())
    inside = domain.contains(Box(cell, tuple(c + 1 for c in cell)))
    return cell, int(totals[wrong[0]]) + inside


@dataclass(frozen=True, slots=True, eq=False)
class BoxIndex:
    """Index that finds the boxes that meet a box, among very many, in logarithmic time.

    It is a packed R-tree (Roussopoulos and Leifker 1985): boxes in Morton order, so that neighbours in the list are
    close in space, with the hulls of ``_FAN`` consecutive ones on the level above. Boxes may overlap and have any
    sizes.
    """

    order: Ints
    levels: tuple[tuple[Ints, Ints], ...]
    """(lo, hi) of the nodes, from the sorted boxes up to a level of at most ``_FAN`` hulls."""

    @classmethod
    def build(cls, lo: Ints, hi: Ints) -> BoxIndex:
        """Build the index of boxes, none of which is empty."""
        order = np.argsort(_morton(lo + (hi - lo) // 2), kind="stable")
        levels = [(lo[order], hi[order])]
        while len(levels[-1][0]) > _FAN:
            below_lo, below_hi = levels[-1]
            starts = np.arange(0, len(below_lo), _FAN)
            levels.append((np.minimum.reduceat(below_lo, starts), np.maximum.reduceat(below_hi, starts)))
        return cls(order, tuple(levels))

    def overlapping(self, box: Box) -> Ints:
        """Return the numbers of the boxes that share a cell with ``box``, ascending."""
        return self.visit(box)[0]

    def visit(self, box: Box) -> tuple[Ints, int]:
        """Return the result of :meth:`overlapping`, and the number of boxes and hulls that were examined to find it."""
        if box.empty:
            return np.empty(0, np.int64), 0
        lo, hi = np.array(box.lo), np.array(box.hi)
        nodes = np.arange(len(self.levels[-1][0]))
        seen = 0
        for depth in reversed(range(len(self.levels))):
            node_lo, node_hi = self.levels[depth]
            seen += len(nodes)
            nodes = nodes[((node_lo[nodes] < hi) & (node_hi[nodes] > lo)).all(axis=1)]
            if depth:
                nodes = (nodes[:, None] * _FAN + np.arange(_FAN)).ravel()
                nodes = nodes[nodes < len(self.levels[depth - 1][0])]
        return np.sort(self.order[nodes]), seen

    def pairs(self, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
        """Return all pairs of a query ``[lo[q], hi[q])`` and an indexed box that share a cell, by query and box."""
        found = [self._pairs(lo, hi, first) for first in range(0, len(lo), _QUERIES)]
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        queries, boxes = (np.concatenate(column) for column in zip(*found, strict=True))
        return queries, boxes

    def _pairs(self, lo: Ints, hi: Ints, first: int) -> tuple[Ints, Ints]:
        """Return the pairs of a run of queries, which descend the tree together."""
        queries = first + np.flatnonzero((lo[first : first + _QUERIES] < hi[first : first + _QUERIES]).all(axis=1))
        top = len(self.levels[-1][0])
        queries, nodes = np.repeat(queries, top), np.tile(np.arange(top), len(queries))
        for depth in reversed(range(len(self.levels))):
            node_lo, node_hi = self.levels[depth]
            for axis in range(lo.shape[1]):
                kept = (node_lo[nodes, axis] < hi[queries, axis]) & (node_hi[nodes, axis] > lo[queries, axis])
                queries, nodes = queries[kept], nodes[kept]
            if depth:
                nodes = (nodes[:, None] * _FAN + np.arange(_FAN)).ravel()
                queries = np.repeat(queries, _FAN)
                inside = nodes < len(self.levels[depth - 1][0])
                queries, nodes = queries[inside], nodes[inside]
        boxes = self.order[nodes]
        order = np.lexsort((boxes, queries))
        return queries[order], boxes[order]


def _morton(points: Ints) -> Ints:
    """Return the position of each point on the Z-order curve through all of them: interleaved bits of coordinates."""
    ndim = points.shape[1]
    bits = min(62 // ndim, 16)
    low = points.min(axis=0, initial=np.iinfo(np.int64).max)
    extent = max(int((points - low).max(initial=0)), 1)
    down = max(extent.bit_length() - bits, 0)
    scaled = (points - low) >> down
    code = np.zeros(len(points), np.int64)
    for bit in range(min(bits, extent.bit_length())):
        for axis in range(ndim):
            code |= ((scaled[:, axis] >> bit) & 1) << (bit * ndim + ndim - 1 - axis)
    return code
