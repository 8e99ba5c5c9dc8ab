"""Candidate layouts of a plan for one team of ranks, and teams of fewer and fewer nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from minga.errors import LayoutError
from minga.plan import partition
from minga.plan.cost import Pairs, busiest_uplinks, compute_seconds, pairs_of, predict
from minga.plan.partition import Team, team_of
from minga.plan.placement import grids_by_cost, reassigned
from minga.plan.plan import Prediction
from minga.plan.ranks import RankGroup
from minga.plan.work.work import Work
from minga.space.boxes import Ints
from minga.space.layout import Layout

__all__ = ["Option", "badly_joined", "fewer", "fits", "fitted", "options", "refined", "unhidden"]

Floats = NDArray[np.float64]
Cut = Callable[[Team], Layout]

MOST_REFINED = 2048
"""Number of ranks up to which shares are corrected for the cost of each rank's messages."""

_MESHES = 4
"""Number of process grids that are tried: those with the cheapest messages."""

_VERY_MANY = 1 << 16
"""Number of ranks above which only the best process grid is tried: each takes seconds."""

_TYPICAL = 1 << 16
"""Bytes of a message by which links are compared."""

_FITTINGS = 5
"""Maximum number of times that shares are reduced if memory does not hold the halo."""

_FEW_UNITS = 12
"""Number of nodes up to which every smaller number of nodes is tried."""


@dataclass(frozen=True, eq=False)
class Option:
    """A layout and its name. Its cuts lie where the work allows them.

    ``team`` and ``cut`` are what it was made with, if it can be corrected.
    """

    name: str
    layout: Layout
    work: Work
    team: Team | None = None
    cut: Cut | None = None
    known: dict[bool, Pairs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", self.work.aligned(self.layout))

    def predict(self, group: RankGroup, halo_depth: int, overlap: bool) -> Prediction:
        """Return the predicted costs of a step."""
        pairs = self._pairs(group, halo_depth)
        return predict(self.work, group, self.layout, halo_depth, overlap, pairs=pairs)

    def uplinks(self, group: RankGroup, halo_depth: int) -> tuple[tuple[str, int], ...]:
        """Return the most bytes that leave one group in a step, by level, as :func:`busiest_uplinks`."""
        return busiest_uplinks(self.work, group, self._pairs(group, halo_depth), halo_depth)

    def _pairs(self, group: RankGroup, halo_depth: int) -> Pairs:
        corners = any(exchange.corners for exchange in self.work.depth(halo_depth).exchanges)
        # Pairs across corners can also be used for faces.
        pairs = self.known.get(True) or self.known.get(corners)
        if pairs is None:
            pairs = self.known[corners] = pairs_of(self.work, group, self.layout, corners=corners)
        return pairs

    def placed(self, ranks: Ints) -> Option:
        """Return the same blocks, with rank ``ranks[r]`` owning what rank ``r`` owned."""
        return Option(self.name, reassigned(self.layout, ranks), self.work)


def fits(group: RankGroup, told: Prediction) -> bool:
    """Return True if the memory of each rank holds what it would store; a memory of 0 means unknown."""
    return bool(((told.memory <= group.memory) | (group.memory <= 0)).all())


def options(team: Team, halo_depth: int = 1) -> Iterator[Option]:
    """Yield all layouts for a team, the plain ones first; those that are impossible are left out.

    They are cut for ``halo_depth``: deep halos make messages cheap for slabs that would otherwise get few cells.
    """
    for name, cut in _cuts(team, halo_depth):
        try:
            yield Option(name, cut(team), team.work, team, cut)
        except LayoutError:
            continue


def _cuts(team: Team, halo_depth: int) -> Iterator[tuple[str, Cut]]:
    work, count = team.work, len(team.ranks)
    axes = [a for a in range(work.domain.ndim) if work.one_axis in (None, a)]
    for parts in _meshes(team):
        yield f"cartesian:{'x'.join(map(str, parts))}", _mesh(parts)
    for axis in axes:
        if work.domain.shape[axis] >= count * work.least[axis] or work.weights is not None:
            yield f"slabs:{axis}", _slabs(axis, halo_depth)
            if team.group.links.nodes:
                yield f"slabs:{axis}", _slabs(axis, halo_depth, outwards=True)
    if len(axes) > 1 and not alike(team) and work.weights is None:
        for outer in axes:
            for inner in axes:
                if outer != inner:
                    yield f"columns:{outer}x{inner}", _columns(outer, inner)
    if count > 1 and not (count > MOST_REFINED and len(axes) > 1 and alike(team) and work.weights is None):
        yield "bisection", partition.bisected
    if work.weights is not None and count > 1:
        for each in (2, 4):
            yield f"blocks:{each}", _blocks(each)


def _mesh(parts: Sequence[int]) -> Cut:
    return lambda team: partition.mesh(team, parts)


def _slabs(axis: int, halo_depth: int, outwards: bool = False) -> Cut:
    def cut(team: Team) -> Layout:
        placed = team.sorted(_outwards(team)) if outwards else team
        return partition.slabs(placed, axis, unhidden(placed, axis, halo_depth))

    return cut


def _outwards(team: Team) -> Ints:
    """Return an order of ranks with the nodes of the slowest links at both ends, where slabs have one neighbour."""
    group = team.group
    node = group.seats.nodes
    numbers, first = np.unique(node, return_index=True)
    between = group.links.between(group.seats)
    slowness = [float(group.links.nodes.get(int(n), between).time(_TYPICAL)) for n in numbers]
    by_speed = np.lexsort((first, -np.array(slowness)))
    row = np.concatenate((by_speed[0::2], by_speed[1::2][::-1]))
    place = np.empty(len(numbers), np.int64)
    place[row] = np.arange(len(numbers))
    return np.argsort(place[np.searchsorted(numbers, node)], kind="stable")


def _columns(outer: int, inner: int) -> Cut:
    return lambda team: partition.columns(team, outer, inner)


def _blocks(each: int) -> Cut:
    return lambda team: partition.blocks(team, each)


def alike(team: Team) -> bool:
    """Return True if all ranks of a team should get the same share."""
    return float(np.ptp(team.shares)) <= 1e-9 * float(team.shares.max())


def _meshes(team: Team) -> list[tuple[int, ...]]:
    """Return the process grids with the cheapest messages, without slabs."""
    if len(team.ranks) == 1:
        return [(1,) * team.work.domain.ndim]
    most = _MESHES if len(team.ranks) <= MOST_REFINED else _MESHES // 2 if len(team.ranks) <= _VERY_MANY else 1
    grids = [parts for _, parts in grids_by_cost(team.work, team.group.seats, team.group.links)]
    return [parts for parts in grids if sum(count > 1 for count in parts) > 1][:most]


def unhidden(team: Team, axis: int, halo_depth: int = 1) -> Floats:
    """Return the seconds per step of slabs' messages that no computation can hide, shape (ranks,)."""
    work, group, count = team.work, team.group, len(team.ranks)
    seconds = np.zeros(count)
    if count == 1:
        return seconds
    upper, lower = np.arange(count - 1), np.arange(1, count)
    if work.periodic[axis] and count > 2:
        upper, lower = np.append(upper, count - 1), np.append(lower, 0)
    face = work.domain.size // work.domain.shape[axis]
    common = np.minimum(group.seats.common(upper, lower), len(group.links.levels) - 1)
    hidden = np.array([link.overlap for link in group.links.levels])[common]
    deep = work.depth(halo_depth)
    for exchange in deep.exchanges:
        size = face * max(exchange.low[axis], exchange.high[axis]) * exchange.bytes
        if size:
            between = group.links.time(group.seats, upper, lower, size) * (1 - hidden) * (exchange.times / deep.steps)
            seconds += np.bincount(upper, between, count) + np.bincount(lower, between, count)
    return seconds


def fitted(
    option: Option, group: RankGroup, halo_depth: int, overlap: bool, told: Prediction
) -> tuple[Option, Prediction]:
    """Reduce the shares of ranks whose memory does not also hold their halo; return the option unchanged if in vain."""
    team, cut = option.team, option.cut
    if team is None or cut is None:
        return option, told
    found, seen = option, told
    for _ in range(_FITTINGS):
        memory = group.memory[team.ranks]
        over = np.where(memory > 0, seen.memory[team.ranks] / np.maximum(memory, 1), 0.0)
        if not (over > 1).any():
            return found, seen
        held = found.layout.cells()[team.ranks]
        team = team.holding(np.where(over > 1, np.minimum(team.most, held / np.maximum(over, 1.0) * 0.99), team.most))
        if float(team.most.sum()) < option.work.domain.size:
            break
        try:
            found = Option(option.name, cut(team), option.work, team, cut)
        except LayoutError:
            break
        seen = found.predict(group, halo_depth, overlap)
    return option, told


def refined(option: Option, group: RankGroup, halo_depth: int, overlap: bool, rounds: int = 4) -> Option:
    """Correct the shares by the total time of ranks, including messages; return the option itself if it is best.

    Ranks that are predicted to finish late get less: the shares are divided by the times, repeatedly.
    """
    team, cut = option.team, option.cut
    if team is None or cut is None or len(team.ranks) > MOST_REFINED:
        return option
    if option.name.startswith(("slabs", "cartesian")) and option.work.weights is None:
        return option  # these are based on times, not on shares, and are optimal already
    best, told = option, option.predict(group, halo_depth, overlap)
    last, shortest = told, told.seconds
    for _ in range(rounds):
        needed = (last.compute + last.exchange - last.hidden)[team.ranks]
        busy = needed > 0
        if not busy.any() or float(np.ptp(needed[busy])) < 1e-3 * float(needed.max()):
            break
        factor = np.ones(len(needed))
        factor[busy] = np.clip(needed[busy].mean() / needed[busy], 0.5, 2.0) ** 0.8
        team = team.sharing(team.shares * factor)
        try:
            layout = cut(team)
        except LayoutError:
            break
        found = Option(option.name, layout, option.work, team, cut)
        last = found.predict(group, halo_depth, overlap)
        if last.seconds < shortest and fits(group, last):
            best, shortest = found, last.seconds
    return best


def badly_joined(group: RankGroup) -> list[int]:
    """Return the numbers of the nodes whose own link is slower than the links between others."""
    usual = float(group.links.between(group.seats).time(_TYPICAL))
    return [node for node, link in sorted(group.links.nodes.items()) if float(link.time(_TYPICAL)) > usual]


def fewer(
    work: Work, group: RankGroup, within: Ints | None = None, unwanted: Sequence[int] = ()
) -> Iterator[tuple[Team, float]]:
    """Yield teams of fewer and fewer nodes, without the slowest ones, each with the least time its speeds allow.

    On a single node, ranks are left out, the last one first.

    Parameters
    ----------
    work, group
        The work and all ranks.
    within
        Use only these ranks.
    unwanted
        Nodes that are left out before all others, however fast they are.
    """
    order = group.seats.order if within is None else within
    node = group.seats.nodes[order]
    numbers = np.unique(node)
    if len(numbers) == 1:
        unit = np.arange(len(order))
    else:
        cells = np.full(group.ranks, work.domain.size * work.points / len(order))
        rate = 1 / compute_seconds(group, cells)[order]
        of_node = np.bincount(np.searchsorted(numbers, node), rate)
        place = np.empty(len(numbers), np.int64)
        place[np.lexsort((numbers, -of_node, np.isin(numbers, unwanted)))] = np.arange(len(numbers))
        unit = place[np.searchsorted(numbers, node)]
    for count in _counts(int(unit.max()) + 1, unit, group.speed_of[order]):
        ranks = order[unit < count]
        try:
            team = team_of(work, group, ranks)
        except LayoutError:
            continue
        cells = team.shares * work.domain.size * work.points
        weight = float(work.weights.cost.sum()) / work.domain.size if work.weights is not None else 1.0
        yield team, float(compute_seconds(team.group, cells).max()) * weight


def _counts(most: int, unit: Ints, kind: Ints) -> list[int]:
    """Return the numbers of nodes to try, beginning with all: those where speeds change, and repeated halves."""
    if most <= _FEW_UNITS:
        return list(range(most, 0, -1))
    first = np.full(most, np.iinfo(np.int64).max)
    np.minimum.at(first, unit, kind)
    changes = (np.flatnonzero(np.diff(first)) + 1).tolist()
    halves = [math.ceil(most / 2**power) for power in range(most.bit_length() + 1)]
    return sorted({*halves, *changes[:_FEW_UNITS], *range(1, 9)}, reverse=True)
