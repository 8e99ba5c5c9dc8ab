"""Ownership of the points of a field: the layout of cells extended to staggered, projected and partial fields.

- *Staggered* (a centre bit of 1): point ``i`` belongs to the owner of cell ``i``, the last face of a non-periodic axis
  to the owner of the last cell.
- *Projected* (a subset of the grid's axes): every block holds the projection of its box, so many blocks hold the same
  point. A block that needs a point takes it from itself, else from a block of its own rank, else from the lowest block
  that has it.
- *Replicated* (:meth:`Layout.everywhere`): every rank has a block with all points; points are taken in the same order.
- *Partial* (``on``, a box of the field's own point indices): only points of that box exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from minga.errors import LayoutError
from minga.space.box import Box, Point, Widths
from minga.space.boxes import BoxIndex, Ints
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["Ownership", "owned"]


@dataclass(frozen=True, eq=False)
class Ownership:
    """Points of one kind of field on one layout; made by :meth:`of`. All boxes and widths have the field's axes."""

    grid: Grid
    """Grid along the field's axes."""
    layout: Layout
    axes: tuple[int, ...]
    """The field's axes among the layout's."""
    centre: Point
    points: Box
    """All points that exist."""
    positions: Box
    """All points that would exist without ``on``."""

    @classmethod
    def of(
        cls,
        grid: Grid,
        layout: Layout,
        centre: Sequence[int] | None = None,
        axes: Sequence[str | int] | None = None,
        on: Box | None = None,
    ) -> Ownership:
        """Return the ownership of a field.

        Parameters
        ----------
        grid, layout
            The whole grid and a layout of its cells.
        centre
            One bit for each of the field's axes, 0 for cells and 1 for faces; cells by default.
        axes
            The field's axes by name or number, in the grid's order; all by default.
        on
            The box of points that exist; all by default.

        Raises
        ------
        LayoutError
            If the layout, the axes or the box do not fit the grid.
        """
        if layout.domain != grid.box:
            raise LayoutError(f"the layout covers {layout.domain}, but the cells of the grid are {grid.box}")
        kept = tuple(range(grid.ndim)) if axes is None else tuple(map(grid.axis, axes))
        if not kept or list(kept) != sorted(set(kept)):
            raise LayoutError(f"a field's axes must be some of {grid.axes} in that order; found {tuple(axes or ())}")
        along = grid if len(kept) == grid.ndim else grid.project(kept)
        bits = tuple(centre) if centre is not None else (0,) * along.ndim
        positions = along.points(bits)
        if on is not None and (on.ndim != along.ndim or not positions.contains(on)):
            raise LayoutError(f"a field on {on} reaches beyond the points of its grid, {positions}")
        return cls(along, layout, kept, bits, positions if on is None else on, positions)

    @property
    def shared(self) -> bool:
        """True if several blocks may hold the same point.

        This is so if the field lacks some of the grid's axes, or the layout is replicated.
        """
        return self.layout.replicated or len(self.axes) < self.layout.ndim

    def around(self, blocks: Sequence[int] | Ints) -> tuple[Ints, Ints]:
        """Return the points that each block would have without ``on``, arrays of shape (blocks, ndim): never empty."""
        lo = self.layout.lo[blocks][:, self.axes]
        hi = self.layout.hi[blocks][:, self.axes]
        return lo, hi + (self._beyond & (hi == self.grid.shape))

    def bounds(self, blocks: Sequence[int] | Ints) -> tuple[Ints, Ints]:
        """Return the points that belong to each block, as arrays of shape (blocks, ndim); some may be empty."""
        lo, hi = self.around(blocks)
        return np.maximum(lo, self.points.lo), np.minimum(hi, self.points.hi)

    def owned(self, block: int) -> Box:
        """Return the points that belong to a block, possibly none."""
        return self.position(block) & self.points

    def position(self, block: int) -> Box:
        """Return the points that would belong to a block without ``on``."""
        lo, hi = self.around([block])
        return _box(lo[0], hi[0])

    def stored(self, block: int, lo: Widths, hi: Widths) -> Box:
        """Return the smallest box with a block's points and its halo of widths ``lo`` and ``hi``, or an empty one.

        If ``on`` makes a field partial, blocks next to that box own none of it, but store the points within their
        reach.
        """
        reach = self.position(block).grow(lo, hi)
        if self.points == self.positions:
            return reach
        stored = self.owned(block).grow(lo, hi) if not self.owned(block).empty else Box(reach.lo, reach.lo)
        for t in self.images(reach):
            stored = stored.hull(reach & self.points.shift(t).grow(lo, hi))
        return stored

    def images(self, reach: Box) -> list[Point]:
        """Return the periodic translations that bring existing points into ``reach``; zero is first if it is one."""
        return self.grid.images(reach, self.points)

    def overlapping(self, box: Box) -> Ints:
        """Return the blocks around a box of points, ascending: all that own some, and with ``on`` perhaps others."""
        lo, hi = list(self.layout.domain.lo), list(self.layout.domain.hi)
        reach = box & self.positions
        if reach.empty:
            return np.empty(0, np.int64)
        for axis, low, high in zip(self.axes, reach.lo, reach.hi, strict=True):
            # The face beyond the last cell is found with that cell.
            lo[axis], hi[axis] = min(low, hi[axis] - 1), min(high, hi[axis])
        return self.layout.overlapping(Box(tuple(lo), tuple(hi)))

    def sources(self, region: Box, rank: int, block: int | None) -> Iterator[tuple[int, Box]]:
        """Yield the sources from which ``block`` of ``rank`` takes a region of points that several blocks may hold.

        Each is a pair of a source block and a box; the boxes are disjoint and make up the region. All points of the
        region must exist.
        """
        left = [region]
        for source, box in self._preferred(region, rank, block):
            shared = [piece & box for piece in left]
            yield from ((source, piece) for piece in shared if not piece.empty)
            left = [rest for piece in left for rest in piece.subtract(box)]
            if not left:
                return

    def _preferred(self, region: Box, rank: int, block: int | None) -> Iterator[tuple[int, Box]]:
        """Yield blocks that hold parts of the region, the preferred ones first."""
        if block is not None:
            yield block, self.owned(block)
        mine = self.layout.blocks_of(rank)
        lo, hi = self.bounds(mine)
        for i in np.flatnonzero((np.maximum(lo, region.lo) < np.minimum(hi, region.hi)).all(axis=1)).tolist():
            yield mine[i], _box(lo[i], hi[i])
        shapes = self._shapes
        for i in shapes.index.overlapping(region).tolist():
            yield int(shapes.block[i]), _box(shapes.lo[i], shapes.hi[i])

    def lends(self, block: int) -> bool:
        """Return whether other ranks may take shared points from this block: it is the lowest that holds just these."""
        at = int(np.searchsorted(self._shapes.block, block))
        return at < len(self._shapes.block) and int(self._shapes.block[at]) == block

    @cached_property
    def _shapes(self) -> _Shapes:
        """The different boxes that blocks hold of a projected field, in order of the lowest block that holds each."""
        lo, hi = self.bounds(np.arange(len(self.layout)))
        _, first = np.unique(np.hstack((lo, hi)), axis=0, return_index=True)
        first = np.sort(first[(lo[first] < hi[first]).all(axis=1)])
        return _Shapes(first, lo[first], hi[first])

    @cached_property
    def _beyond(self) -> np.ndarray:
        """Flags of the axes that have a point beyond the last cell."""
        return np.array(self.positions.hi) > np.array(self.grid.shape)


@dataclass(frozen=True, eq=False)
class _Shapes:
    """Different boxes, and a block that holds each of them."""

    block: Ints
    lo: Ints
    hi: Ints

    @cached_property
    def index(self) -> BoxIndex:
        """Spatial index of the boxes."""
        return BoxIndex.build(self.lo, self.hi)


def owned(
    layout: Layout,
    block: int,
    grid: Grid,
    centre: Sequence[int] | None = None,
    axes: Sequence[str | int] | None = None,
    on: Box | None = None,
) -> Box:
    """Return the points of a field that belong to a block; see :meth:`Ownership.of`."""
    return Ownership.of(grid, layout, centre, axes, on).owned(block)


def _box(lo: Ints, hi: Ints) -> Box:
    return Box(tuple(lo.tolist()), tuple(hi.tolist()))
