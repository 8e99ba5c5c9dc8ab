"""Partitions of a grid for ranks of unequal speed: slabs, columns, uneven meshes, weighted bisection, several blocks.

All functions take a :class:`Team`: some of the ranks, in the order of their places along the grid, and their shares.
Ranks outside the team own nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from minga.errors import LayoutError
from minga.plan.cost import compute_seconds
from minga.plan.ranks import RankGroup
from minga.plan.shares import Times, assign, equal_time
from minga.plan.work.work import Work
from minga.space.boxes import Ints, volumes
from minga.space.layout import Layout

__all__ = ["Team", "assign", "bisected", "blocks", "columns", "mesh", "slabs", "team_of"]

Floats = NDArray[np.float64]

_MOST_COLUMNS = 4096
"""Number of ranks up to which all ways of grouping them in columns are compared."""


@dataclass(frozen=True, eq=False)
class Team:
    """Ranks that share the work, in the order of their places.

    Attributes
    ----------
    work
        The work of a step.
    ranks
        Numbers of the ranks.
    group
        Only these ranks, in the same order.
    whole
        Number of all ranks.
    most
        Cells of the domain that each can hold, shape (ranks,).
    shares
        Share of each, of a total of 1; shape (ranks,).
    """

    work: Work
    ranks: Ints
    group: RankGroup
    whole: int
    most: Floats
    shares: Floats

    def times(self, across: int, extra: float | Floats = 0.0) -> Times:
        """Return the time as a function of the number of layers.

        A layer has ``across`` cells of the domain; ``extra`` are the seconds of messages.
        """
        each = np.float64(across * self.work.points)
        return lambda layers: compute_seconds(self.group, layers * each) + extra * (layers > 0)

    def layout(self, lo: Ints, hi: Ints, number: Ints) -> Layout:
        """Return the layout in which the team's rank ``number[i]`` owns ``[lo[i], hi[i])``, without empty blocks."""
        kept = np.flatnonzero((lo < hi).all(axis=1))
        return Layout(self.work.domain, self.whole, lo[kept], hi[kept], self.ranks[number[kept]])

    def sorted(self, order: Ints) -> Team:
        """Return the same ranks in another order."""
        return replace(
            self,
            ranks=self.ranks[order],
            group=self.group.part(order),
            most=self.most[order],
            shares=self.shares[order],
        )

    def holding(self, most: Floats) -> Team:
        """Return the same ranks with room for ``most`` cells each, and with new shares."""
        total = float(self.work.domain.size * self.work.points)
        shares = equal_time(self.group, total, np.maximum(most, 1e-9) * self.work.points)
        return replace(self, most=most, shares=shares / shares.sum())

    def sharing(self, shares: Floats) -> Team:
        """Return the same ranks with other shares."""
        return replace(self, shares=shares / shares.sum())


def team_of(work: Work, group: RankGroup, ranks: Ints | None = None) -> Team:
    """Make the team of some ranks (by default, all), in their order, that shares the work by functional performance.

    Shares are such that all ranks compute equally long, but no rank gets more than its memory can hold without halos.
    """
    ranks = group.seats.order if ranks is None else ranks
    part = group.part(ranks)
    memory = part.memory.astype(float)
    room = np.where(memory > 0, memory - work.rank_bytes, np.inf)
    most = np.clip(room / work.cell_bytes, 1e-9, float(work.domain.size))
    return Team(work, ranks, part, group.ranks, most, most).holding(most)


# Slabs and meshes ----------------------------------------------------------------------------------------------------
def slabs(team: Team, axis: int, extra: float | Floats = 0.0) -> Layout:
    """Cut slabs across an axis, optimal in whole layers if all cells cost the same.

    Parameters
    ----------
    team
        The ranks and their shares.
    axis
        The axis that is cut.
    extra
        Seconds that messages add to the time of each slab.

    Raises
    ------
    LayoutError
        If there is no room.
    """
    work = team.work
    lo, hi = _whole(work, len(team.ranks))
    across = work.domain.size // max(1, work.domain.shape[axis])
    if work.weights is None:
        most = np.floor(team.most / across).astype(np.int64)
        widths = _layers(team, axis, team.times(across, extra), most)
        ends = work.domain.lo[axis] + np.concatenate(([0], np.cumsum(widths)))
    else:
        ends = _weighted_ends(work, axis, team.shares)
    lo[:, axis], hi[:, axis] = ends[:-1], ends[1:]
    return team.layout(lo, hi, np.arange(len(team.ranks)))


def mesh(team: Team, parts: Sequence[int]) -> Layout:
    """Cut a mesh of parts with uneven cuts across the first axis that is cut: ranks of equal speed share rows.

    Along the other axes, parts are equal, and the slowest rank of a row counts. The mesh is balanced as far as the
    ranks of a row have equal speeds.
    """
    work = team.work
    axis = next((a for a, count in enumerate(parts) if count > 1), 0)
    team = team.sorted(np.argsort(-team.shares, kind="stable"))
    rows = np.arange(len(team.ranks)).reshape(parts[axis], -1)
    ends = [
        _even_ends(low, high, count, granule)
        for low, high, count, granule in zip(work.domain.lo, work.domain.hi, parts, work.granule, strict=True)
    ]
    if work.weights is None:
        slowest = team.sorted(rows[:, -1])
        across = work.domain.size / work.domain.shape[axis] / rows.shape[1]
        most = np.floor(team.most[rows].min(axis=1) / across).astype(np.int64)
        widths = _layers(slowest, axis, slowest.times(int(np.ceil(across))), most)
        ends[axis] = work.domain.lo[axis] + np.concatenate(([0], np.cumsum(widths)))
    else:
        ends[axis] = _weighted_ends(work, axis, team.shares[rows].sum(axis=1))
    moved = [axis, *(a for a in range(len(parts)) if a != axis)]
    number = np.arange(len(team.ranks)).reshape([parts[a] for a in moved])
    number = np.transpose(number, np.argsort(moved)).ravel()
    lo, hi = _corners([e[:-1] for e in ends]), _corners([e[1:] for e in ends])
    return team.layout(lo, hi, number)


def columns(team: Team, outer: int, inner: int) -> Layout:
    """Cut columns across one axis, and each of them across another, with areas in proportion to the shares.

    This is the column-based partition of Beaumont, Boudet, Rastello and Robert (*Matrix Multiplication on Heterogeneous
    Platforms*, IEEE TPDS 12, 2001): ranks are sorted by share, and of all ways to put runs of them into columns, the
    one with the smallest total boundary is chosen.

    Raises
    ------
    LayoutError
        If there is no room.
    """
    work = team.work
    if work.weights is not None or len(team.ranks) > _MOST_COLUMNS:
        raise LayoutError("columns need cells of equal cost, and at most 4096 ranks")
    team = team.sorted(np.argsort(-team.shares, kind="stable"))
    length, height = work.domain.shape[outer], work.domain.shape[inner]
    sizes = _columns(team.shares, length * _width(work, inner), height * _width(work, outer))
    starts = np.concatenate(([0], np.cumsum(sizes)))
    area = np.add.reduceat(team.shares, starts[:-1])
    widths = assign(
        length,
        lambda layers: layers / area,
        np.full(len(area), work.least[outer]),
        granule=work.granule[outer],
    )
    lo, hi = _whole(work, len(team.ranks))
    left = work.domain.lo[outer]
    across = work.domain.size // max(1, length * height)
    for column, width in enumerate(widths.tolist()):
        members = np.arange(starts[column], starts[column + 1])
        some = team.sorted(members)
        layer = across * width
        most = np.floor(some.most / layer).astype(np.int64)
        heights = _layers(some, inner, some.times(layer), most)
        ends = work.domain.lo[inner] + np.concatenate(([0], np.cumsum(heights)))
        lo[members, outer], hi[members, outer] = left, left + width
        lo[members, inner], hi[members, inner] = ends[:-1], ends[1:]
        left += width
    return team.layout(lo, hi, np.arange(len(team.ranks)))


def _columns(shares: Floats, along: float, high: float) -> list[int]:
    """Return the number of ranks of each column.

    A column of ``n`` ranks with area ``s`` has boundaries of ``n s along + high``.
    """
    count = len(shares)
    area = np.concatenate(([0.0], np.cumsum(shares)))
    cost, size = np.zeros(count + 1), np.zeros(count + 1, np.int64)
    for end in range(1, count + 1):
        start = np.arange(end)
        total = cost[:end] + (end - start) * (area[end] - area[:end]) * along + high
        # On ties, the first minimum makes fewer columns.
        best = int(np.argmin(total))
        cost[end], size[end] = total[best], end - best
    found = []
    while count:
        found.append(int(size[count]))
        count -= found[-1]
    return found[::-1]


def _layers(team: Team, axis: int, times: Times, most: Ints) -> Ints:
    work = team.work
    length, granule = work.domain.shape[axis], work.granule[axis]
    least = np.full(len(team.ranks), work.least[axis])
    return assign(length, times, least, np.maximum(most, 0) if (most < length).any() else None, granule)


def _whole(work: Work, count: int) -> tuple[Ints, Ints]:
    return np.tile(np.array(work.domain.lo), (count, 1)), np.tile(np.array(work.domain.hi), (count, 1))


def _even_ends(low: int, high: int, parts: int, granule: int) -> Ints:
    places = (low + (high - low) * np.arange(parts + 1) / parts) / granule
    ends = np.floor(places + 0.5).astype(np.int64) * granule
    ends[0], ends[-1] = low, high
    return np.clip(ends, low, high)


def _weighted_ends(work: Work, axis: int, shares: Floats) -> Ints:
    """Return the ends of parts along an axis with costs, by the work's weights, in proportion to ``shares``."""
    assert work.weights is not None
    low, granule = work.domain.lo[axis], work.granule[axis]
    before = np.concatenate(([0.0], np.cumsum(work.weights.along(axis))))
    goal = np.cumsum(shares) / shares.sum() * before[-1]
    place = np.interp(goal, before, np.arange(len(before)))
    ends = low + np.floor(place / granule + 0.5).astype(np.int64) * granule
    ends[-1] = work.domain.hi[axis]
    return np.concatenate(([low], np.clip(ends, low, work.domain.hi[axis])))


def _corners(columns_: Sequence[Ints]) -> Ints:
    return np.stack([m.ravel() for m in np.meshgrid(*columns_, indexing="ij")], axis=1)


def _width(work: Work, axis: int) -> int:
    return max(1, *(e.low[axis] + e.high[axis] for e in work.exchanges)) if work.exchanges else 1


# Bisection -----------------------------------------------------------------------------------------------------------
def bisected(team: Team) -> Layout:
    """Cut one block per rank by repeatedly halving the team and its box, preferably between switches, then nodes."""
    lo, hi = _bisect(team.work, team.shares, _joints(team))
    return team.layout(lo, hi, np.arange(len(team.ranks)))


def blocks(team: Team, each: int) -> Layout:
    """Cut several blocks for each rank, near one another."""
    lo, hi = _bisect(team.work, np.repeat(team.shares, each), [each * joints for joints in _joints(team)])
    return team.layout(lo, hi, np.arange(len(lo)) // each)


def _joints(team: Team) -> list[Ints]:
    """Return the numbers of the ranks at which groups begin, for each level from the node outwards."""
    seats = team.group.seats
    return [np.flatnonzero(np.diff(seats.groups(level))) + 1 for level in range(seats.above, -1, -1)]


def _bisect(work: Work, shares: Floats, levels: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the boxes of all leaves, shape (leaves, ndim); all cuts of a depth are made at once.

    ``levels`` are the positions between leaves at which groups of the machine begin, the innermost level first.
    """
    leaves, ndim = len(shares), work.domain.ndim
    before = np.concatenate(([0.0], np.cumsum(shares)))
    out_lo, out_hi = np.empty((leaves, ndim), np.int64), np.empty((leaves, ndim), np.int64)
    lo, hi = np.array([work.domain.lo]), np.array([work.domain.hi])
    first, last = np.array([0]), np.array([leaves])
    while len(first):
        whole = last - first == 1
        out_lo[first[whole]], out_hi[first[whole]] = lo[whole], hi[whole]
        lo, hi, first, last = lo[~whole], hi[~whole], first[~whole], last[~whole]
        if not len(first):
            break
        middle = (first + last) // 2
        for joints in levels:
            middle = _nearest(first, last, middle, joints)
        total = before[last] - before[first]
        share = np.divide(before[middle] - before[first], total, out=np.zeros(len(first)), where=total > 0)
        axis, cut = _best_cut(work, lo, hi, share)
        low_hi, high_lo = hi.copy(), lo.copy()
        rows = np.arange(len(first))
        low_hi[rows, axis], high_lo[rows, axis] = cut, cut
        lo, hi = np.concatenate((lo, high_lo)), np.concatenate((low_hi, hi))
        first, last = np.concatenate((first, middle)), np.concatenate((middle, last))
    return out_lo, out_hi


def _nearest(first: Ints, last: Ints, otherwise: Ints, joints: Ints) -> Ints:
    """Return where runs of leaves are halved: at the joint nearest to the middle, or elsewhere if there is none."""
    if not len(joints):
        return otherwise
    middle = (first + last) // 2
    at = np.searchsorted(joints, middle)
    below, above = joints[np.maximum(at - 1, 0)], joints[np.minimum(at, len(joints) - 1)]
    nearest = np.where(np.abs(above - middle) <= np.abs(middle - below), above, below)
    return np.where((first < nearest) & (nearest < last), nearest, otherwise)


def _best_cut(work: Work, lo: Ints, hi: Ints, share: Floats) -> tuple[Ints, Ints]:
    """Return, for each box, the axis to cut and the position, so that about ``share`` of its cost lies below.

    The axis is the one with the fewest cells on the wrong side and in the halo of the cut; axes that leave both sides
    as wide as the work requires are preferred.
    """
    length = np.maximum(hi - lo, 0)
    count, ndim = lo.shape
    cuts, costs = np.empty((count, ndim), np.int64), np.empty((count, ndim))
    for axis in range(ndim):
        ideal = lo[:, axis] + share * length[:, axis]
        if work.weights is not None:
            ideal = _weighted_place(work, lo, hi, axis, share)
        granule = work.granule[axis]
        cut = np.floor(ideal / granule + 0.5).astype(np.int64) * granule
        room = -(-work.least[axis] // granule) * granule
        low, high = lo[:, axis] + room, hi[:, axis] - room
        narrow = low > high
        parted = (share > 0) & (share < 1)
        cut = np.where(narrow | ~parted, cut, np.clip(cut, low, high))
        cut = np.clip(cut, lo[:, axis], np.maximum(lo[:, axis], hi[:, axis]))
        across = np.prod(np.delete(length, axis, axis=1), axis=1).astype(float)
        costs[:, axis] = (np.abs(cut - ideal) + _width(work, axis)) * across
        costs[narrow & parted, axis] *= 1e6
        empty = (cut <= lo[:, axis]) | (cut >= hi[:, axis])
        costs[empty & parted, axis] *= 1e12
        if work.one_axis is not None and axis != work.one_axis:
            costs[:, axis] = np.inf
        cuts[:, axis] = cut
    axis = np.argmin(costs, axis=1)
    return axis, cuts[np.arange(count), axis]


def _weighted_place(work: Work, lo: Ints, hi: Ints, axis: int, share: Floats) -> Floats:
    """Return the position along an axis below which a share of each box's cost lies.

    It is found by bisection in whole cells and by linear interpolation between two of them.
    """
    assert work.weights is not None
    some = np.flatnonzero(volumes(lo, hi) > 0)
    place = lo[:, axis].astype(float)
    if not len(some):
        return place
    box_lo, box_hi = lo[some], hi[some].copy()
    goal = share[some] * work.weights.of(box_lo, box_hi)
    low, high = box_lo[:, axis].copy(), box_hi[:, axis].copy()
    below, above = np.zeros(len(some)), work.weights.of(box_lo, box_hi)
    while (high - low > 1).any():
        middle = (low + high) // 2
        box_hi[:, axis] = middle
        cost = work.weights.of(box_lo, box_hi)
        less = cost <= goal
        low, below = np.where(less, middle, low), np.where(less, cost, below)
        high, above = np.where(less, high, np.maximum(middle, low + 1)), np.where(less, above, cost)
    part = np.divide(goal - below, above - below, out=np.zeros(len(some)), where=above > below)
    place[some] = low + np.clip(part, 0.0, 1.0)
    return place
