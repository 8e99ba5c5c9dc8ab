"""Shared parts of all multigrid hierarchies: axes to coarsen, layouts of coarse grids, relaxation weights, checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from minga.compile import portable
from minga.errors import LayoutError, ProgramError
from minga.space.box import Point
from minga.space.field import Field, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout

UNEVEN: Final = 1.25
"""Factor by which rounded cuts may increase the cells of the busiest rank; they save moves on coarser levels."""
EQUAL_WIDTHS: Final = 1.5
"""Axes whose widest cell is within this factor of the narrowest axis' are coarsened together."""
STRETCHED: Final = 4.0
"""Ratio of the widest to the narrowest cell of an axis above which its lines are worth solving exactly."""


def choose_factors(grid: Grid, solved: int | None = None) -> Point:
    """Return 2 for each axis to coarsen next, else 1: the axes of strongest coupling, so point relaxation suffices.

    `solved` is an axis whose lines are solved exactly, and which need not be coarsened.
    """
    widest = [float(grid.widths(axis).max()) for axis in range(grid.ndim)]
    long = [axis for axis, n in enumerate(grid.shape) if n > 1 and axis != solved]
    narrow = min((widest[axis] for axis in long), default=0.0)
    return tuple(2 if axis in long and widest[axis] <= EQUAL_WIDTHS * narrow else 1 for axis in range(grid.ndim))


def stretched_axis(grid: Grid) -> int | None:
    """Return the axis whose lines are better solved exactly: the only one or the most stretched one, or None.

    Where an axis has wide and narrow cells, the strongest coupling lies along it in some cells and across it in others:
    no choice of axes to coarsen leaves an error that point relaxation can smooth.
    """
    ends = [axis for axis, n in enumerate(grid.shape) if n > 1 and not grid.periodic[axis]]
    if len([n for n in grid.shape if n > 1]) == 1 and ends:
        return ends[0]
    ratio = {axis: float(grid.widths(axis).max() / grid.widths(axis).min()) for axis in ends}
    most = max(ratio, key=lambda axis: ratio[axis], default=None)
    return most if most is not None and ratio[most] > STRETCHED else None


def rough_share(grid: Grid, factors: Point, solved: int | None = None) -> float:
    """Return the lowest eigenvalue of the scaled Laplacian among the modes that a coarse grid cannot represent.

    The highest eigenvalue is at most 2. The lowest belongs to a wave of four cells along a coarsened axis: it is the
    share of that axis in the couplings (Trottenberg, Oosterlee and Schüller, Multigrid, 2001, section 2.1).
    """
    coupled = [n > 1 and axis != solved for axis, n in enumerate(grid.shape)]
    widest = [float(grid.widths(a).max()) for a in range(grid.ndim)]
    coupling = [1.0 / (h * h) if is_coupled else 0.0 for h, is_coupled in zip(widest, coupled, strict=True)]
    total = math.fsum(coupling)
    return min((coupling[a] / total for a, f in enumerate(factors) if f > 1), default=1.0)


def matches(layout: Layout, factors: Point) -> bool:
    """Return True if all cuts lie on multiples of the factors: `layout.coarsen(factors)` then has the same blocks."""
    low = np.array(layout.domain.lo)
    return not ((layout.lo - low) % np.array(factors) * (layout.lo != low)).any()


def snap(layout: Layout, granule: int) -> Layout:
    """Return the layout with every cut at the nearest multiple of `granule`, without blocks that become empty.

    All boxes are rounded in the same way, so they remain a tiling.
    """
    low, high = np.array(layout.domain.lo), np.array(layout.domain.hi)

    def rounded(ends: np.ndarray) -> np.ndarray:
        near = low + (ends - low + granule // 2) // granule * granule
        return np.where((ends == low) | (ends == high), ends, np.minimum(near, high))

    lo, hi = rounded(layout.lo), rounded(layout.hi)
    kept = (lo < hi).all(axis=1)
    return Layout(layout.domain, layout.ranks, lo[kept], hi[kept], layout.owner[kept])


def settle(layout: Layout, factors: Point, cells_per_rank: int) -> Layout:
    """Return the layout that a level works on: `layout` itself if it is suitable, else one worth moving to.

    The level moves to half as many ranks or fewer if a rank has fewer than `cells_per_rank` cells, and to other cuts if
    they do not lie on multiples of `factors`. New cuts lie on multiples of the highest power of two that leaves the
    ranks about evenly loaded, so that the levels below need not move again.
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


def chebyshev_weights(low: float, high: float, steps: int) -> tuple[float, ...]:
    """Return the weights of Jacobi steps that damp eigenvalues in [low, high] best.

    They are the inverse roots of a Chebyshev polynomial:

    Saad, Iterative Methods for Sparse Linear Systems (2nd edition, 2003), section 12.3.
    """
    middle, half = 0.5 * (high + low), 0.5 * (high - low)
    return tuple(1.0 / (middle + half * portable.cos(math.pi * (2 * k + 1) / (2 * steps))) for k in range(steps))


def follow_levels(
    layout: Layout, grid: Grid, levels: Iterable[tuple[Grid, Point, Grid | None]], cells_per_rank: int
) -> Mapping[Grid, Layout]:
    """Return the layouts of all levels' grids, and of the grids between them, for a layout of the finest grid.

    Each level is given by its grid, the factors of its coarsening, and the grid of its coarse cells (None on the last).
    """
    if layout.domain != grid.box:
        raise LayoutError(f"the layout is for {layout.domain}, the grid has {grid.box}")
    found: dict[Grid, Layout] = {}
    for level, factors, below in levels:
        layout = settle(layout, factors, cells_per_rank)
        found[level] = layout
        if below is not None:
            layout = layout.coarsen(factors)
            found[below] = layout
    return found


def check_levels(grid: Grid, steps: int, cells_per_rank: int) -> None:
    """Raise LayoutError for a grid or for settings that multigrid cannot work with."""
    if grid.twisted:
        raise LayoutError(
            "multigrid on a shifted torus: its coarse grids would not join",
            remedy="use conjugate gradients without a preconditioner, or no shift",
        )
    if steps < 1 or cells_per_rank < 1:
        raise LayoutError(f"multigrid with {steps} steps and {cells_per_rank} cells a rank", remedy="give 1 or more")


def check_vectors(grid: Grid, *vectors: Field | Slot) -> tuple[Slot, ...]:
    """Return the slots of vectors with all cells of a grid; ProgramError for a field of other points."""
    slots = tuple(item.now if isinstance(item, Field) else item for item in vectors)
    for slot in slots:
        if slot.field.grid != grid or any(slot.field.centre) or slot.field.on is not None:
            raise ProgramError(
                f"multigrid on {grid!r} is applied to {slot.field!r}",
                remedy="apply it to fields with all cells of its grid",
            )
    return slots
