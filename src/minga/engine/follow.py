"""Layouts of a model's other grids - coarse ones, words of cells - after one of its grids gets a new layout."""

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
    """Grids whose layouts follow from that of one grid by a specific rule, such as the levels of multigrid."""

    @property
    def grid(self) -> Grid:
        """The grid that they follow."""

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids that follow `grid`."""

    def layouts(self, layout: Layout) -> Mapping[Grid, Layout]:
        """Return the layout of each of `grids` if `layout` is that of `grid`."""


def follow(layout: Layout, leader: Grid, grid: Grid, words: Mapping[Grid, Grid]) -> Layout:
    """Return the layout of `grid` on the ranks that own the same regions of `leader`, which is cut by `layout`.

    `words` maps each grid of words to the grid of its cells. A grid whose cells cover a whole number of the leader's
    cells (as in :meth:`Layout.coarsen`), or the reverse, is cut at the same positions, other grids at the nearest
    cells. Blocks that become empty are dropped. Raise LayoutError for a grid with a different number of axes.
    """
    if words.get(leader) == grid:
        return cell_layout(layout, grid)
    if grid.ndim != leader.ndim:
        raise LayoutError(
            f"{grid!r} has a different number of axes from {leader!r}, so its blocks cannot follow",
            remedy='describe the layout of each grid in words, such as layout = "cartesian"',
        )
    lo, hi = layout.lo.copy(), layout.hi.copy()
    for axis, (fine, count) in enumerate(zip(leader.shape, grid.shape, strict=True)):
        factor = WORD if words.get(grid) == leader and axis == grid.ndim - 1 else 0
        lo[:, axis] = _scaled(lo[:, axis], fine, count, factor)
        hi[:, axis] = _scaled(hi[:, axis], fine, count, factor)
    kept = np.flatnonzero((lo < hi).all(axis=1))
    return Layout(grid.box, layout.ranks, lo[kept], hi[kept], layout.owner[kept])


def _scaled(ends: Ints, fine: int, count: int, factor: int) -> Ints:
    """Convert block ends on an axis of `fine` cells to one of `count`; `factor`: fine cells per cell, 0 if unknown."""
    factor = factor or -(-fine // count)
    if -(-fine // factor) == count:
        return -(-ends // factor)
    if count % fine == 0:
        return ends * (count // fine)
    return -(-ends * count // fine)
