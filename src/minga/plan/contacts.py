"""Contacts between the blocks of a layout and their sizes, from which halo messages are derived.

Two disjoint boxes that touch along ``n`` axes meet at the same coordinates on exactly these axes and overlap on the
others. Therefore contacts are found by sorting, without comparing all pairs of blocks, for any layout.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from minga.space.box import Point
from minga.space.boxes import Ints
from minga.space.layout import Layout

__all__ = ["Contacts", "Mesh", "contacts_of", "mesh_of"]

_CHUNK = 1 << 22
"""Number of pairs of blocks that are compared at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Contacts:
    """Pairs of blocks in one direction: ``beyond[i]`` lies beyond ``block[i]`` along every axis with a sign.

    towards  for each axis, 1 or -1 if the blocks touch with ``beyond`` above or below, 0 if they overlap
    shared   cells of the overlap, shape (pairs, ndim); 1 on the axes where they touch
    """

    towards: tuple[int, ...]
    block: Ints
    beyond: Ints
    shared: Ints


@dataclass(frozen=True, eq=False)
class Mesh:
    """The blocks of a Cartesian layout as points of a mesh: ``blocks[i, j, ...]`` is the block at a point.

    ``sizes[a]`` are the numbers of cells of the parts along axis ``a``.
    """

    blocks: Ints
    sizes: tuple[Ints, ...]

    @property
    def shape(self) -> Point:
        """Number of parts along each axis."""
        return self.blocks.shape


def mesh_of(layout: Layout) -> Mesh | None:
    """Return the mesh that a layout's blocks form, or None if the layout is not Cartesian."""
    shape = tuple(len(cuts) for cuts in layout.cuts)
    if math.prod(shape) != len(layout):
        return None
    columns = [np.searchsorted(cuts, layout.lo[:, axis]) for axis, cuts in enumerate(layout.cuts)]
    blocks = np.full(shape, -1, np.int64)
    blocks[tuple(columns)] = np.arange(len(layout))
    ends = [np.array((*cuts, high), np.int64) for cuts, high in zip(layout.cuts, layout.domain.hi, strict=True)]
    return Mesh(blocks, tuple(end[1:] - end[:-1] for end in ends))


def contacts_of(layout: Layout, periodic: Sequence[bool], corners: bool = True) -> list[Contacts]:
    """Return all contacts of a layout's blocks, each pair in only one of two opposite directions.

    Without ``corners``, only contacts across faces are returned. A pair may touch in several directions if an axis is
    periodic.
    """
    directions = [
        towards
        for towards in itertools.product((1, 0, -1), repeat=layout.ndim)
        if next((sign for sign in towards if sign), 0) == 1 and (corners or sum(map(abs, towards)) == 1)
    ]
    mesh = mesh_of(layout)
    if mesh is not None:
        return list(_mesh_contacts(layout, mesh.blocks, tuple(periodic), directions))
    places = _Places.of(layout, tuple(periodic))
    return [contacts for contacts in (_touching(places, towards) for towards in directions) if len(contacts.block)]


def _mesh_contacts(
    layout: Layout, at: Ints, periodic: tuple[bool, ...], directions: Sequence[tuple[int, ...]]
) -> Iterator[Contacts]:
    """Yield the contacts of blocks that form the mesh ``at``."""
    sizes = layout.hi - layout.lo
    for towards in directions:
        kept = tuple(
            slice(None) if sign == 0 or wraps else slice(0, -1) if sign > 0 else slice(1, None)
            for sign, wraps in zip(towards, periodic, strict=True)
        )
        block = at[kept].ravel()
        beyond = np.roll(at, [-sign for sign in towards], axis=tuple(range(at.ndim)))[kept].ravel()
        if len(block):
            yield Contacts(towards, block, beyond, np.where(towards, 1, sizes[block]))


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Ends of blocks as positions among all ends along an axis: small numbers with the same order."""

    lo: Ints
    hi: Ints
    count: int
    layout: Layout
    periodic: tuple[bool, ...]

    @classmethod
    def of(cls, layout: Layout, periodic: tuple[bool, ...]) -> _Places:
        ends = [np.unique(np.concatenate((layout.lo[:, a], layout.hi[:, a]))) for a in range(layout.ndim)]
        lo = np.stack([np.searchsorted(e, layout.lo[:, a]) for a, e in enumerate(ends)], axis=1)
        hi = np.stack([np.searchsorted(e, layout.hi[:, a]) for a, e in enumerate(ends)], axis=1)
        return cls(lo, hi, max(map(len, ends)) + 1, layout, periodic)

    def keys(self, towards: tuple[int, ...]) -> tuple[Ints, Ints, Ints]:
        """Return, as single numbers, each block's end towards its neighbour and its beginning as seen by a neighbour.

        The third result are the numbers of the blocks that can have a neighbour in this direction.
        """
        ends, begins = np.zeros(len(self.lo), np.int64), np.zeros(len(self.lo), np.int64)
        open_ended = np.zeros(len(self.lo), bool)
        for axis, sign in enumerate(towards):
            if sign == 0:
                continue
            near, far = (self.hi, self.lo) if sign > 0 else (self.lo, self.hi)
            end, begin = near[:, axis].copy(), far[:, axis].copy()
            low, high = 0, int(self.hi[:, axis].max())
            if self.periodic[axis]:
                end[end == high], begin[begin == high] = low, low
            else:
                open_ended |= end == (high if sign > 0 else low)
            ends, begins = ends * self.count + end, begins * self.count + begin
        return ends, begins, np.flatnonzero(~open_ended)


def _touching(places: _Places, towards: tuple[int, ...]) -> Contacts:
    ends, begins, asking = places.keys(towards)
    along = [axis for axis, sign in enumerate(towards) if sign == 0]
    names = np.unique(begins)
    group_of = np.searchsorted(names, begins)
    wanted = np.searchsorted(names, ends[asking])
    found = (wanted < len(names)) & (names[np.minimum(wanted, len(names) - 1)] == ends[asking])
    asking, wanted = asking[found], wanted[found]
    if along:
        # Of the axes on which blocks overlap, the one that distinguishes most blocks leaves the fewest to compare.
        axis = max(along, key=lambda a: len(np.unique(places.lo[:, a])))
        low = group_of * places.count + places.lo[:, axis]
        order = np.argsort(low, kind="stable")
        reached = np.maximum.accumulate((group_of * places.count + places.hi[:, axis])[order])
        first = np.searchsorted(reached, wanted * places.count + places.lo[asking, axis], side="right")
        last = np.searchsorted(low[order], wanted * places.count + places.hi[asking, axis], side="left")
    else:
        order = np.argsort(group_of, kind="stable")
        first = np.searchsorted(group_of[order], wanted, side="left")
        last = np.searchsorted(group_of[order], wanted, side="right")
    pairs = [
        (blocks[kept], others[kept])
        for blocks, others in _expanded(asking, first, last, order)
        for kept in [_overlap(places, blocks, others, along)]
    ]
    empty = np.empty(0, np.int64)
    block = np.concatenate([a for a, _ in pairs] or [empty])
    beyond = np.concatenate([b for _, b in pairs] or [empty])
    lo = np.maximum(places.layout.lo[block], places.layout.lo[beyond])
    hi = np.minimum(places.layout.hi[block], places.layout.hi[beyond])
    return Contacts(towards, block, beyond, np.where(towards, 1, hi - lo))


def _overlap(places: _Places, a: Ints, b: Ints, axes: Sequence[int]) -> Ints:
    """Return the numbers of the pairs that overlap along all given axes."""
    kept = np.ones(len(a), bool)
    for axis in axes:
        kept &= (places.lo[a, axis] < places.hi[b, axis]) & (places.lo[b, axis] < places.hi[a, axis])
    return np.flatnonzero(kept)


def _expanded(asking: Ints, first: Ints, last: Ints, order: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield every block with its candidates ``order[first:last]``, one chunk of pairs at a time."""
    counts = np.maximum(last - first, 0)
    total = np.cumsum(counts)
    start = 0
    while start < len(asking):
        before = int(total[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(total, before + _CHUNK, side="right")))
        some = counts[start:end]
        within = np.arange(int(some.sum())) - np.repeat(np.cumsum(some) - some, some)
        yield np.repeat(asking[start:end], some), order[np.repeat(first[start:end], some) + within]
        start = end
