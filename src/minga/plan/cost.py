"""The cost model: seconds of a step for every rank of a layout, from speeds, links and the work of the step.

    seconds = max over ranks (compute + exchange - hidden) + reduce

compute   the rank's curve of time against size, at all cells that it computes, including those of a deep halo, with
          weights; plus the cost of the short rows of shells and deep halos if the innermost axis is cut
exchange  its messages one after another, ``alpha + beta * bytes`` each. Ranks of a node share its network interface,
          where the bytes of all of them queue, and likewise nodes of a switch its uplink, if its bandwidth is known; on
          a shared medium (a hub), the bytes of all nodes queue
hidden    the part of the exchange that passes while the interior is computed: at most the overlap that links allow
reduce    an allreduce is ``log2`` messages in a row on every level of the machine

The terms are those of Hockney (1994) for messages, of LogGP (Alexandrov et al. 1995) for a shared interface, and of
Meng and Skadron (*A Performance Study for Iterative Stencil Loops on GPUs with Ghost Zone Optimizations*, 2011) for
deep halos.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from minga.errors import LayoutError
from minga.plan.contacts import contacts_of
from minga.plan.plan import Prediction
from minga.plan.ranks import RankGroup
from minga.plan.work.recorded import work_of
from minga.plan.work.work import Deep, HaloRound, Work
from minga.space.boxes import Ints, volumes
from minga.space.layout import Layout

__all__ = ["Pairs", "busiest_uplinks", "compute_seconds", "pairs_of", "predict", "reduce_seconds", "work_of"]

Floats = NDArray[np.float64]

_NUMBER_BYTES = 64
"""Bytes of a message of a reduction."""

_SHORT_ROW = 5e-9
"""Seconds to begin a row of a few cells: measured 3 ns on 128 x 128 cells and 10 ns on 512 x 512 of 8 bytes, Zen 3."""

_SWEEP_UNIT = 1 << 14
"""Number of cells after which an exact sweep lets the next block begin (see :mod:`minga.engine.sweep`)."""


def predict(
    work: Work,
    group: RankGroup,
    layout: Layout,
    halo_depth: int = 1,
    overlap: bool = True,
    *,
    pairs: Pairs | None = None,
) -> Prediction:
    """Predict the time of a step and the memory of every rank. For 262,144 ranks, this takes a few seconds.

    Parameters
    ----------
    work, group, layout
        The work of a step, the ranks, and the layout.
    halo_depth
        Number of steps per exchange.
    overlap
        True if messages overlap with computation.
    pairs
        The communicating pairs of the layout (:func:`pairs_of`), if known already.
    """
    if layout.ranks != group.ranks:
        raise LayoutError(f"a layout for {layout.ranks} ranks, but {group.ranks} are known")
    deep = work.depth(halo_depth)
    blocks = _Blocks.of(work, layout, deep)
    if pairs is None:
        pairs = pairs_of(work, group, layout, corners=any(e.corners for e in deep.exchanges))
    compute = compute_seconds(group, blocks.cells * work.points, blocks.cost * work.points)
    # A step that sends is split; of the steps that share an exchange, all but the last compute beyond their own cells.
    split = (1.0 if overlap else 0.0) + deep.steps - 1
    compute = compute + _SHORT_ROW * max(1, work.rounds) * split / deep.steps * blocks.short_rows
    if work.swept:
        compute = compute + _waiting(work, group, layout)
    sent, hidable = _exchange_seconds(group, deep.exchanges, pairs)
    inside = compute * np.divide(blocks.inner, blocks.cells, out=np.zeros(layout.ranks), where=blocks.cells > 0)
    hidden = np.minimum(hidable, inside) if overlap else np.zeros(layout.ranks)
    # Of several steps that share an exchange, the last one hides it.
    return Prediction(
        compute=compute,
        exchange=sent / deep.steps,
        hidden=hidden / deep.steps,
        memory=blocks.memory,
        reduce=work.reductions * reduce_seconds(group) if work.reductions else 0.0,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """Blocks that touch in one direction, one of which sends and the other receives.

    axes    axes that messages cross
    above   for each of these axes, True if the receiver lies above
    number  number of the pair of ranks
    cells   number of cells that each pair of blocks shares, for a halo one cell wide, without corners
    past    for each axis, the cells they share, and how far the sender extends below and above the receiver's own
            cells, shape (3, blocks, ndim); None if no block does
    """

    axes: tuple[int, ...]
    above: tuple[bool, ...]
    number: Ints
    cells: Floats
    past: Ints | None

    def shared(self, exchange: HaloRound) -> Floats:
        """Return the cells that each pair of blocks shares, including corners of the receiver's halo if read."""
        if self.past is None or not exchange.corners:
            return self.cells
        shared, below, above = self.past
        across = [axis for axis in range(shared.shape[1]) if axis not in self.axes]
        wide = shared + np.minimum(below, exchange.low) + np.minimum(above, exchange.high)
        cells: Floats = wide[:, across].prod(axis=1).astype(float)
        return cells


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of ranks that send to each other in a layout, and the faces, edges and corners between them.

    ``common`` are the numbers of levels of the machine that each pair has in common.
    """

    sender: Ints
    receiver: Ints
    sides: tuple[_Side, ...]
    common: Ints
    exchanged: dict[tuple[HaloRound, ...], tuple[Floats, Floats]] = field(default_factory=dict)
    """Results of :func:`_exchange_seconds`, which do not depend on overlap."""

    def bytes(self, exchange: HaloRound) -> Floats:
        """Return the bytes that every pair sends in a round of messages, shape (pairs,)."""
        total = np.zeros(len(self.sender))
        for side in self.sides:
            if len(side.axes) > 1 and not exchange.corners:
                continue
            # The receiver that lies above reads the halo below itself.
            width = math.prod(
                (exchange.low if up else exchange.high)[axis] for axis, up in zip(side.axes, side.above, strict=True)
            )
            if width:
                total += np.bincount(side.number, side.shared(exchange), len(total)) * (width * exchange.bytes)
        return total


def pairs_of(work: Work, group: RankGroup, layout: Layout, *, corners: bool) -> Pairs:
    """Return the communicating pairs of a layout; only across faces unless ``corners``."""
    keys, found = [], []
    mesh = math.prod(len(cuts) for cuts in layout.cuts) == len(layout)
    for each in contacts_of(layout, work.periodic, corners):
        axes = tuple(axis for axis, sign in enumerate(each.towards) if sign)
        apart = np.flatnonzero(layout.owner[each.block] != layout.owner[each.beyond])
        shared = each.shared[apart]
        cells = shared.prod(axis=1).astype(float)
        for up, sender, receiver in ((True, each.block, each.beyond), (False, each.beyond, each.block)):
            above = tuple((each.towards[axis] > 0) == up for axis in axes)
            one, other = sender[apart], receiver[apart]
            below, beyond = layout.lo[other] - layout.lo[one], layout.hi[one] - layout.hi[other]
            past = None if mesh or not corners else np.maximum(np.stack([shared, below, beyond]), 0)
            keys.append(layout.owner[one] * layout.ranks + layout.owner[other])
            found.append((axes, above, cells, past))
    names, number = np.unique(np.concatenate([*keys, np.empty(0, np.int64)]), return_inverse=True)
    numbers = np.split(number.reshape(-1), np.cumsum([len(key) for key in keys])[:-1]) if keys else []
    sender, receiver = names // layout.ranks, names % layout.ranks
    sides = tuple(
        _Side(axes, above, at, cells, past) for (axes, above, cells, past), at in zip(found, numbers, strict=True)
    )
    return Pairs(sender, receiver, sides, group.seats.common(sender, receiver))


def busiest_uplinks(work: Work, group: RankGroup, pairs: Pairs, halo_depth: int = 1) -> tuple[tuple[str, int], ...]:
    """Return the most bytes that leave one group in a step, for each level up to the node.

    Parameters
    ----------
    work, group, pairs
        The work of a step, the ranks, and the communicating pairs of their layout.
    halo_depth
        Number of steps per exchange.

    Returns
    -------
    tuple of (str, int)
        Name of the level and bytes, the outermost level first; levels with a single group are left out.
    """
    deep, found = work.depth(halo_depth), []
    sent = np.zeros(len(pairs.sender))
    for exchange in deep.exchanges:
        sent += exchange.times * pairs.bytes(exchange)
    for level in range(group.seats.above + 1):
        groups = group.seats.groups(level)
        if groups.max(initial=0):
            out = np.bincount(groups[pairs.sender], np.where(pairs.common <= level, sent, 0.0))
            found.append((group.seats.levels[level], round(float(out.max(initial=0.0)) / deep.steps)))
    return tuple(found)


def compute_seconds(group: RankGroup, cells: Floats, cost: Floats | None = None) -> Floats:
    """Return the seconds of every rank for so many cells of the model, shape (ranks,).

    ``cost`` is the cost of the cells in units of ordinary cells; their number determines the speed of memory.
    """
    seconds = np.zeros(group.ranks)
    for number, speed in enumerate(group.speeds):
        chosen = group.speed_of == number
        seconds[chosen] = speed.time(cells[chosen])
    if cost is None:
        return seconds
    return seconds * np.divide(cost, cells, out=np.zeros(len(cells)), where=cells > 0)


def reduce_seconds(group: RankGroup) -> float:
    """Return the seconds of an allreduce of one number over all ranks.

    This is the cost of recursive doubling (Thakur, Rabenseifner and Gropp, IJHPCA 19, 2005) for a short message: log2
    of the number of groups on each level, one message after another.
    """
    seconds, before = 0.0, 1
    links = group.links.levels
    name = np.zeros(group.ranks, np.int64)
    for level, column in enumerate([*group.seats.paths.T, np.arange(group.ranks)]):
        names, name = np.unique(name * (int(column.max()) + 1) + column, return_inverse=True)
        groups, name = len(names), name.reshape(-1)
        if groups > before:
            link = links[min(level, len(links) - 1)]
            seconds += math.ceil(math.log2(groups / before)) * float(link.time(_NUMBER_BYTES))
        before = groups
    return seconds


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Totals over the blocks of every rank, shape (ranks,).

    cells       number of cells computed in a step, including those of a deep halo
    cost        their cost, in units of ordinary cells
    inner       cost of the cells that no other block reads
    short_rows  number of pieces of rows at sides across the innermost axis that others read
    memory      bytes
    """

    cells: Floats
    cost: Floats
    inner: Floats
    short_rows: Floats
    memory: Ints

    @classmethod
    def of(cls, work: Work, layout: Layout, deep: Deep) -> _Blocks:
        lo, hi, owner, ranks = layout.lo, layout.hi, layout.owner, layout.ranks
        own = volumes(lo, hi).astype(float)
        price = work.weights.of(lo, hi) / own if work.weights is not None else np.ones(len(own))
        wide = own if deep.steps == 1 else _with_extents(work, layout, deep)
        low, high = _widest(work, deep)
        # Arrays have room for the halo on all sides, even beyond the ends of the domain.
        stored = np.prod(hi - lo + np.array(low) + np.array(high), axis=1).astype(float)
        below, above = _read_widths(work, layout, low, high)
        inner = np.prod(np.maximum(hi - lo - below - above, 0), axis=1)
        sides = (below[:, -1] > 0).astype(float) + (above[:, -1] > 0)
        short = sides * own / np.maximum(hi - lo, 1)[:, -1]

        def total(values: Floats) -> Floats:
            return np.bincount(owner, values, ranks).astype(float)

        memory = total(stored) * work.cell_bytes + work.rank_bytes
        bytes_ = np.ceil(memory).astype(np.int64)
        return cls(total(wide), total(wide * price), total(inner * price), total(short), bytes_)


def _widest(work: Work, deep: Deep) -> tuple[tuple[int, ...], tuple[int, ...]]:
    none = (0,) * work.domain.ndim
    low = [none, *(e.low for e in deep.exchanges)]
    high = [none, *(e.high for e in deep.exchanges)]
    return tuple(map(max, zip(*low))), tuple(map(max, zip(*high)))


def _with_extents(work: Work, layout: Layout, deep: Deep) -> Floats:
    """Return the average cells that blocks compute per step, shape (blocks,); none lie beyond non-periodic ends."""
    cells = np.zeros(len(layout))
    for extent in deep.extents:
        lengths = layout.hi - layout.lo
        for axis, wraps in enumerate(work.periodic):
            lengths[:, axis] += np.where(wraps | (layout.lo[:, axis] > layout.domain.lo[axis]), extent.low[axis], 0)
            lengths[:, axis] += np.where(wraps | (layout.hi[:, axis] < layout.domain.hi[axis]), extent.high[axis], 0)
        cells += extent.part * np.prod(lengths.astype(float), axis=1)
    return cells


def _read_widths(work: Work, layout: Layout, low: Sequence[int], high: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the widths at the low and high sides of blocks that others read, shape (blocks, ndim).

    They are 0 along axes that are not cut.
    """
    inside_low = layout.lo > np.array(layout.domain.lo)
    inside_high = layout.hi < np.array(layout.domain.hi)
    wraps = np.array(work.periodic) & (inside_low | inside_high)
    # A block sends upwards what the next block reads below itself.
    below: Ints = (inside_low | wraps) * np.array(high)
    above: Ints = (inside_high | wraps) * np.array(low)
    return below, above


def _exchange_seconds(group: RankGroup, exchanges: Sequence[HaloRound], pairs: Pairs) -> tuple[Floats, Floats]:
    """Return the seconds in which the messages of every rank travel, and the part that computation can hide."""
    known = pairs.exchanged.get(tuple(exchanges))
    if known is not None:
        return known
    seconds, hidable = np.zeros(group.ranks), np.zeros(group.ranks)
    for exchange in exchanges:
        size = pairs.bytes(exchange)
        some = np.flatnonzero(size)
        if len(some):
            messages = _Messages(pairs.sender[some], pairs.receiver[some], size[some], pairs.common[some])
            sent, share = _queued(group, messages)
            seconds += exchange.times * sent
            hidable += exchange.times * sent * share
    pairs.exchanged[tuple(exchanges)] = seconds, hidable
    return seconds, hidable


@dataclass(frozen=True, slots=True, eq=False)
class _Messages:
    """One message for each pair of ranks."""

    sender: Ints
    receiver: Ints
    bytes: Floats
    common: Ints

    def time(self, group: RankGroup, size: Floats | float) -> Floats:
        """Return the seconds of messages of ``size`` bytes, shape (pairs,)."""
        return group.links.time(group.seats, self.sender, self.receiver, size, self.common)


def _queued(group: RankGroup, messages: _Messages) -> tuple[Floats, Floats]:
    """Return the seconds in which all messages of a rank pass, and the share that computation can hide.

    Both have shape (ranks,). Sending and receiving overlap, so the longer of the two counts, except on a shared medium.
    """
    whole = messages.time(group, messages.bytes)
    start = np.minimum(messages.time(group, 0.0), whole)
    node, apart = group.seats.nodes, group.seats.apart(messages.common)
    wire = np.where(apart, whole - start, 0.0)
    seconds = np.zeros(group.ranks)
    for end in (messages.sender, messages.receiver):
        alone = np.bincount(end, whole, group.ranks)
        own_wire = np.bincount(end, wire, group.ranks)
        if group.links.shared:
            passing = np.full(group.ranks, wire.sum())
        else:
            passing = np.maximum(np.bincount(node, own_wire)[node], _through_uplinks(group, messages, end))
        # While bytes of others pass, a rank begins its next messages: only the first message begins before any byte.
        first = np.full(group.ranks, np.inf)
        np.minimum.at(first, end, np.where(apart, start, np.inf))
        seconds = np.maximum(seconds, np.maximum(alone, np.where(own_wire > 0, first + passing, 0.0)))
    return seconds, _hidable(group, messages, whole)


def _through_uplinks(group: RankGroup, messages: _Messages, end: Ints) -> Floats:
    """Return the seconds in which the bytes of a rank's group pass the busiest of its uplinks, shape (ranks,).

    It is 0 for ranks whose own messages stay inside the group.
    """
    longest = np.zeros(group.ranks)
    for level, beta in enumerate(group.links.uplinks):
        if beta:
            mine = np.bincount(end, np.where(messages.common <= level, beta * messages.bytes, 0.0), group.ranks)
            groups = group.seats.groups(level)
            longest = np.maximum(longest, np.where(mine > 0, np.bincount(groups, mine)[groups], 0.0))
    return longest


def _hidable(group: RankGroup, messages: _Messages, whole: Floats) -> Floats:
    """Return the share of each rank's messages that passes while it computes, 0 to 1."""
    links = group.links
    parts = np.array([link.overlap for link in links.levels])
    if not links.nodes and (parts == parts[0]).all():
        return np.full(group.ranks, parts[0])
    part = parts[np.minimum(messages.common, len(parts) - 1)]
    if links.nodes:
        node = group.seats.nodes
        own = np.ones(int(node.max()) + 1)
        for number, link in links.nodes.items():
            if number < len(own):
                own[number] = link.overlap
        slower = np.minimum(own[node[messages.sender]], own[node[messages.receiver]])
        part = np.where(group.seats.apart(messages.common), np.minimum(part, slower), part)
    hidden, total = np.zeros(group.ranks), np.zeros(group.ranks)
    for end in (messages.sender, messages.receiver):
        hidden += np.bincount(end, whole * part, group.ranks)
        total += np.bincount(end, whole, group.ranks)
    return np.divide(hidden, total, out=np.zeros(group.ranks), where=total > 0)


def _waiting(work: Work, group: RankGroup, layout: Layout) -> Floats:
    """Return the seconds for which an exact sweep fills its pipeline: one unit for each block that it passes."""
    cells = layout.cells() * work.points
    unit = np.minimum(cells, _SWEEP_UNIT * work.points).astype(float)
    passed = sum(len(layout.cuts[axis]) - 1 for axis in work.swept)
    link = group.links.widest(group.seats)
    slowest = float(compute_seconds(group, unit).max()) + float(link.time(_NUMBER_BYTES))
    return np.where(cells > 0, passed * slowest, 0.0)
