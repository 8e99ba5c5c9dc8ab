"""Layouts of a model's other grids - coarse ones, words of cells - when one of its grids is cut in a new way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from minga.errors import LayoutError
from minga.space.bit_words import WORD, cell_layout
from minga.space.boxes import Ints
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["Hierarchy", "follow"]


class Hierarchy(Protocol):
    """Grids whose layouts follow from that of one grid by a rule of their own, such as the levels of multigrid."""

    @property
    def grid(self) -> Grid:
        """The grid they follow."""

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids that follow it."""

    def layouts(self, layout: Layout) -> Mapping[Grid, Layout]:
        """The layout of each of `grids` where `layout` is that of `grid`."""


def follow(layout: Layout, leader: Grid, grid: Grid, words: Mapping[Grid, Grid]) -> Layout:
    """The layout of `grid` on the ranks that own the same places of `leader`, which is cut by `layout`.

    `words` gives for each grid of words the grid of its cells. A grid whose cells hold a whole number of the leader's
    (as in :meth:`Layout.coarsen`), or the other way round, is cut in the same places, others as near to them as cells
    go. Blocks that come out empty vanish. LayoutError for a grid of other axes.
    """
    if words.get(leader) == grid:
        return cell_layout(layout, grid)
    if grid.ndim != leader.ndim:
        raise LayoutError(
            f"{grid!r} has other axes than {leader!r}, so its blocks cannot lie where those of the other do",
            remedy='give the layout of each grid by a word, such as layout = "cartesian"',
        )
    lo, hi = layout.lo.copy(), layout.hi.copy()
    for axis, (fine, count) in enumerate(zip(leader.shape, grid.shape, strict=True)):
        factor = WORD if words.get(grid) == leader and axis == grid.ndim - 1 else 0
        lo[:, axis] = _scaled(lo[:, axis], fine, count, factor)
        hi[:, axis] = _scaled(hi[:, axis], fine, count, factor)
    kept = np.flatnonzero((lo < hi).all(axis=1))
    return Layout(grid.box, layout.ranks, lo[kept], hi[kept], layout.owner[kept])


def _scaled(ends: Ints, fine: int, count: int, factor: int) -> Ints:
    """Ends of blocks along an axis of `fine` cells as ends on one of `count`; `factor`: cells to one, 0 if unknown."""
    factor = factor or -(-fine // count)
    if -(-fine // factor) == count:
        return -(-ends // factor)
    if count % fine == 0:
        return ends * (count // fine)
    return -(-ends * count // fine)
