"""Who owns the cells of coarse grids: cuts that survive coarsening, and fewer ranks where little is left to do."""

from __future__ import annotations

from typing import Final

import numpy as np

from minga.space.box import Point
from minga.space.grid import Grid
from minga.space.layout import Layout

UNEVEN: Final = 1.25
"""How much more the busiest rank may get when cuts are rounded, if that saves moves on coarser levels."""
EQUAL_WIDTHS: Final = 1.5
"""Axes whose widest cell is within this factor of the narrowest axis' are coarsened together."""
STRETCHED: Final = 4.0
"""How much wider than the narrowest cell of an axis the widest is, where its lines are worth solving exactly."""


def choose_factors(grid: Grid, solved: int | None = None) -> Point:
    """2 for each axis to coarsen next, else 1: the axes of strongest coupling, so that point relaxation is enough.

    `solved` is an axis whose lines are solved exactly, and which need not be coarsened.
    """
    widest = [float(grid.widths(axis).max()) for axis in range(grid.ndim)]
    long = [axis for axis, n in enumerate(grid.shape) if n > 1 and axis != solved]
    narrow = min((widest[axis] for axis in long), default=0.0)
    return tuple(2 if axis in long and widest[axis] <= EQUAL_WIDTHS * narrow else 1 for axis in range(grid.ndim))


def stretched_axis(grid: Grid) -> int | None:
    """The axis whose lines are better solved exactly: the only one, or the most stretched one; None if none is.

    Where an axis has wide and narrow cells, the strongest coupling is here along it and there across it: no choice of
    axes to coarsen leaves to point relaxation what it can do.
    """
    ends = [axis for axis, n in enumerate(grid.shape) if n > 1 and not grid.periodic[axis]]
    if len([n for n in grid.shape if n > 1]) == 1 and ends:
        return ends[0]
    ratio = {axis: float(grid.widths(axis).max() / grid.widths(axis).min()) for axis in ends}
    most = max(ratio, key=lambda axis: ratio[axis], default=None)
    return most if most is not None and ratio[most] > STRETCHED else None


def rough_share(grid: Grid, factors: Point, solved: int | None = None) -> float:
    """The lowest eigenvalue of the scaled Laplacian (whose highest is at most 2) among what a coarse grid cannot hold.

    A wave of four cells along a coarsened axis: its share of the couplings (Trottenberg, Oosterlee and Schüller,
    Multigrid, 2001, section 2.1).
    """
    coupled = [n > 1 and axis != solved for axis, n in enumerate(grid.shape)]
    coupling = [1.0 / float(grid.widths(a).max()) ** 2 if is_coupled else 0.0 for a, is_coupled in enumerate(coupled)]
    total = sum(coupling)
    return min((coupling[a] / total for a, f in enumerate(factors) if f > 1), default=1.0)


def matches(layout: Layout, factors: Point) -> bool:
    """Whether all cuts lie on multiples of the factors, so that `layout.coarsen(factors)` has the same blocks."""
    low = np.array(layout.domain.lo)
    return not ((layout.lo - low) % np.array(factors) * (layout.lo != low)).any()


def snap(layout: Layout, granule: int) -> Layout:
    """The layout with every cut at the nearest multiple of `granule`. What becomes empty is dropped.

    The same rounding of all boxes keeps them a tiling.
    """
    low, high = np.array(layout.domain.lo), np.array(layout.domain.hi)

    def rounded(ends: np.ndarray) -> np.ndarray:
        near = low + (ends - low + granule // 2) // granule * granule
        return np.where((ends == low) | (ends == high), ends, np.minimum(near, high))

    lo, hi = rounded(layout.lo), rounded(layout.hi)
    kept = (lo < hi).all(axis=1)
    return Layout(layout.domain, layout.ranks, lo[kept], hi[kept], layout.owner[kept])


def settle(layout: Layout, factors: Point, cells_per_rank: int) -> Layout:
    """The layout a level works on: `layout` itself if it will do, else one worth moving to.

    It is moved to half as many ranks or fewer where a rank has less than `cells_per_rank` cells, and where cuts do not
    lie on multiples of `factors`. New cuts lie on the highest power of two that leaves the ranks about evenly loaded:
    the levels below then stay where they are.
    """
    busy = len(np.unique(layout.owner))
    wanted = max(1, min(busy, layout.domain.size // cells_per_rank))
    gathered = layout.gather(wanted) if 2 * wanted <= busy else layout
    if gathered is layout and matches(layout, factors):
        return layout
    if len(gathered) == 1:
        return gathered
    bound = UNEVEN * gathered.cells().max()
    granule = 2
    while 2 * granule < max(layout.domain.shape) and snap(gathered, 2 * granule).cells().max() <= bound:
        granule *= 2
    return snap(gathered, granule)
