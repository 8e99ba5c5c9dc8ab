"""Moving the cuts of a layout so that every rank gets its share of the work and keeps its neighbours.

Slabs, Cartesian parts, bisections and several blocks per rank are all trees of cuts: a plane through the whole box,
then planes through each side of it. The tree stays and its planes move, so that data only goes to neighbours. Each set
of parallel planes is placed optimally: the load of the most loaded part is as small as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.plan.work.weights import Weights
from minga.plan.work.work import Work
from minga.space.box import Box
from minga.space.boxes import Ints, intersect_pairs, volumes
from minga.space.layout import Layout

__all__ = ["costs_of_blocks", "divide", "moved_cells", "reassign", "recut"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_ROUNDING: Final = 1e-12
"""Relative error of sums of costs that must not change a cut."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Blocks that fill a box, which is cut across `axis` into `parts`, or is a single block."""

    blocks: Ints
    axis: int = -1
    parts: tuple[_Part, ...] = ()

    def needs(self, axis: int, least: Sequence[int]) -> int:
        """Return the number of cells along an axis below which one of its blocks would be too narrow."""
        if not self.parts:
            return least[axis]
        each = [part.needs(axis, least) for part in self.parts]
        return sum(each) if axis == self.axis else max(each)


def recut(layout: Layout, work: Work, shares: Floats, weights: Weights | None = None) -> Layout | None:
    """Return the same blocks of the same ranks, with costs in proportion to ``shares``.

    Cuts lie at multiples of ``work.granule``, and blocks are no narrower than ``work.least``.

    Parameters
    ----------
    layout, work
        The layout, and the work of a step.
    shares
        Share of each block, shape (blocks,).
    weights
        Costs of cells; by default, the same for all.

    Returns
    -------
    Layout or None
        None if the layout does not consist of planes through whole boxes, or is cut so finely that there is no room.
    """
    tree = _tree(layout, np.arange(len(layout)), work.granule)
    if tree is None:
        return None
    lo, hi = layout.lo.copy(), layout.hi.copy()
    least = [max(width, step) for width, step in zip(work.least, work.granule, strict=True)]
    if not _place(tree, layout.domain, lo, hi, shares, weights, work.granule, least):
        return None
    return Layout(layout.domain, layout.ranks, lo, hi, layout.owner)


def reassign(layout: Layout, shares: Floats, cost: Floats) -> Layout | None:
    """Distribute the same blocks anew, with ranks in their present order and costs in proportion to ``shares``.

    ``shares`` has shape (ranks,), ``cost`` (blocks,). Ranks without blocks get none. Return None if there are not more
    blocks than ranks that have some.
    """
    ranks = list(dict.fromkeys(layout.owner.tolist()))
    if len(layout) <= len(ranks):
        return None
    place = {rank: number for number, rank in enumerate(ranks)}
    order = np.argsort([place[rank] for rank in layout.owner.tolist()], kind="stable")
    ends = divide(
        np.arange(len(layout) + 1), np.concatenate([[0.0], np.cumsum(cost[order])]), shares[ranks], [1] * len(ranks)
    )
    if ends is None:
        return None
    owner = np.empty(len(layout), np.int64)
    owner[order] = np.repeat(ranks, np.diff(ends))
    return Layout(layout.domain, layout.ranks, layout.lo, layout.hi, owner)


def divide(positions: Ints, cost: Floats, shares: Floats, least: Sequence[int]) -> Ints | None:
    """Find the best cuts of a row into parts.

    The largest ``cost of a part / share`` is as small as possible; among such cuts, those near the exact proportions
    are chosen.

    Parameters
    ----------
    positions
        Allowed ends of parts, ascending.
    cost
        ``cost[i]`` is the cost below ``positions[i]``.
    shares
        Shares of the parts; 0 counts as next to nothing.
    least
        Minimum number of cells of each part.

    Returns
    -------
    ndarray or None
        The ends of all parts, shape (parts + 1,); None if there is no room.
    """
    together = float(shares.sum())
    if together <= 0:
        return None
    shares = np.maximum(shares, 1e-9 * together)
    row = _Row(positions, cost, shares, [positions.searchsorted(positions + width) for width in least])
    if not row.ends_within(np.inf):
        return None
    total = float(cost[-1] - cost[0])
    low = total / float(shares.sum())
    high = 2 * low + np.finfo(float).tiny
    while not row.ends_within(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if row.ends_within(middle) else (middle, high)
        if high - low <= 1e-7 * high:
            break
    exact = cost[0] + total * np.cumsum(shares) / float(shares.sum())
    ends = [0]
    for part, begins in enumerate(row.begins(high)[1:]):
        chosen = np.flatnonzero(begins)
        first, last = row.wide[part][ends[-1]], row.reach(part, ends[-1], high)
        chosen = chosen[(chosen >= first) & (chosen <= last)]
        ends.append(int(chosen[np.argmin(np.abs(cost[chosen] - exact[part]))]))
    return positions[ends]


@dataclass(frozen=True, slots=True)
class _Row:
    """The row that :func:`divide` cuts; part ``p``, beginning at position ``i``, ends at ``wide[p][i]`` or beyond."""

    positions: Ints
    cost: Floats
    shares: Floats
    wide: list[Ints]

    def reach(self, part: int, begin: int | Ints, most: float) -> Ints:
        """Return the last position up to which a part that begins at ``begin`` costs at most ``most`` per share."""
        within = self.cost[begin] + most * self.shares[part] * (1 + _ROUNDING)
        last: Ints = self.cost.searchsorted(within, "right") - 1
        return last

    def ends_within(self, most: float) -> bool:
        """Return True if there are cuts whose parts all cost at most ``most`` per share."""
        if not self._farthest(most, narrow=True):
            return False  # not even if widths did not matter
        return self._farthest(most, narrow=False) or bool(self.begins(most)[0][0])

    def _farthest(self, most: float, narrow: bool) -> bool:
        """Return True if the parts reach the end of the row when each of them is as long as possible.

        This is decisive if parts may be ``narrow``. Otherwise, a part that ended earlier might let the next one stay
        out of a costly cell.
        """
        end, last = 0, len(self.cost) - 1
        for part, wide in enumerate(self.wide):
            begin, end = end, int(self.reach(part, end, most))
            if not narrow and end < wide[begin]:
                return False
        return end == last

    def begins(self, most: float) -> list[Bools]:
        """Return where each part may begin so that it and all later ones cost at most ``most`` per share.

        The last entry is for the end of the row.
        """
        everywhere = np.arange(len(self.cost))
        found = [everywhere == len(self.cost) - 1]
        for part in reversed(range(len(self.shares))):
            before = np.concatenate([[0], np.cumsum(found[-1])])
            beyond = self.reach(part, everywhere, most) + 1
            found.append(before[beyond] > before[np.minimum(self.wide[part], beyond)])
        return found[::-1]


def costs_of_blocks(layout: Layout, weights: Weights | None) -> Floats:
    """Return the cost of the cells of each block, shape (blocks,)."""
    return volumes(layout.lo, layout.hi).astype(float) if weights is None else weights.of(layout.lo, layout.hi)


def moved_cells(old: Layout, new: Layout) -> tuple[Ints, Ints, Ints]:
    """Return the senders, receivers and numbers of cells sent when a layout replaces another."""
    pairs: dict[tuple[int, int], int] = {}
    for block in range(len(new)):
        near = old.overlapping(new.box(block))
        other = near[old.owner[near] != new.owner[block]]
        i, _, lo, hi = intersect_pairs(old.lo[other], old.hi[other], new.lo[[block]], new.hi[[block]])
        for giver, cells in zip(old.owner[other[i]].tolist(), volumes(lo, hi).tolist(), strict=True):
            key = giver, int(new.owner[block])
            pairs[key] = pairs.get(key, 0) + cells
    table = np.array([(*pair, cells) for pair, cells in sorted(pairs.items())], np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _tree(layout: Layout, blocks: Ints, granule: Sequence[int]) -> _Part | None:
    """Return the tree of cuts of blocks that fill a box; None if no plane passes between them.

    If planes across several axes do, the axis with the fewest positions for them comes first: cuts within its parts can
    compensate for its coarseness.
    """
    if len(blocks) == 1:
        return _Part(blocks)
    lo, hi = layout.lo[blocks], layout.hi[blocks]
    best: tuple[float, int, Ints] | None = None
    lengths = (hi.max(axis=0) - lo.min(axis=0)) / np.array(granule)
    for axis in range(layout.ndim):
        # At places below which as many blocks have ended as have begun, no block lies across.
        places = np.unique(lo[:, axis])[1:]
        begun = np.searchsorted(np.sort(lo[:, axis]), places)
        ended = np.searchsorted(np.sort(hi[:, axis]), places, "right")
        planes = places[begun == ended]
        if len(planes) and (best is None or lengths[axis] < best[0]):
            best = float(lengths[axis]), axis, planes
    if best is None:
        return None
    _, axis, planes = best
    side = np.searchsorted(planes, lo[:, axis], "right")
    parts = [_tree(layout, blocks[side == number], granule) for number in range(len(planes) + 1)]
    found = tuple(part for part in parts if part is not None)
    return _Part(blocks, axis, found) if len(found) == len(parts) else None


def _place(
    part: _Part,
    box: Box,
    lo: Ints,
    hi: Ints,
    shares: Floats,
    weights: Weights | None,
    granule: Sequence[int],
    least: Sequence[int],
) -> bool:
    """Place the blocks of a part in a box; return True if there was room."""
    if not part.parts:
        lo[part.blocks[0]], hi[part.blocks[0]] = box.lo, box.hi
        return all(length >= width for length, width in zip(box.shape, least, strict=True))
    axis, step = part.axis, granule[part.axis]
    low, high = box.lo[axis], box.hi[axis]
    inside = np.arange(-(-(low + 1) // step) * step, high, step)
    positions = np.concatenate([[low], inside, [high]])
    ends = divide(
        positions,
        _cost_below(box, axis, positions, weights),
        np.array([shares[inner.blocks].sum() for inner in part.parts]),
        [inner.needs(axis, least) for inner in part.parts],
    )
    if ends is None:
        return False
    for inner, first, last in zip(part.parts, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        slab = Box(
            (*box.lo[:axis], first, *box.lo[axis + 1 :]),
            (*box.hi[:axis], last, *box.hi[axis + 1 :]),
        )
        if not _place(inner, slab, lo, hi, shares, weights, granule, least):
            return False
    return True


def _cost_below(box: Box, axis: int, positions: Ints, weights: Weights | None) -> Floats:
    """Return the cost of the cells of a box below each position along an axis."""
    if weights is None:
        cells: Floats = (positions - box.lo[axis]).astype(float)
        return cells * (box.size // max(1, box.shape[axis]))
    lo = np.tile(np.array(box.lo), (len(positions), 1))
    hi = np.tile(np.array(box.hi), (len(positions), 1))
    hi[:, axis] = positions
    return np.maximum.accumulate(weights.of(lo, hi))
