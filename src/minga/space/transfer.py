"""Geometry of all data movement: the boxes that are copied from block to block, and the messages that carry them.

A halo exchange, a rebalancing, a gathering to fewer ranks and a restart on other ranks are all lists of copies. Only
points of the domain and their periodic images are copied, and none is delivered to a block twice. Each rank plans its
own part, with work in proportion to its own blocks; sender and receiver sort their copies by the same key, so they
agree on every message without communication.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from minga.errors import LayoutError
from minga.space.box import Box, Point, Widths, directions
from minga.space.boxes import Ints, intersect_pairs
from minga.space.grid import Grid
from minga.space.layout import Layout
from minga.space.ownership import Ownership
from minga.space.seams import axis_of, lines_beyond

__all__ = [
    "Copy",
    "Message",
    "RankTransfer",
    "Sources",
    "for_rank",
    "halo_boxes",
    "halo_transfer",
    "move_transfer",
    "plan_copies",
    "points_transfer",
]


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy of ``source_box`` of block ``source`` to block ``target``, with each index moved by ``shift``.

    Across a seam, a line of points becomes the line ``beyond``, along the same axis or the other one, or in reverse.
    """

    source: int
    target: int
    source_box: Box
    shift: Point
    beyond: Box | None = None
    reverse: bool = False

    @property
    def target_box(self) -> Box:
        """Destination of the points, in indices of the target block."""
        return self.source_box.shift(self.shift) if self.beyond is None else self.beyond

    @property
    def first(self) -> Point:
        """Index of the source that the first point of the target comes from."""
        return tuple(high - 1 for high in self.source_box.hi) if self.reverse else self.source_box.lo

    def strides(self, strides: Sequence[int]) -> tuple[int, ...]:
        """Return the strides at which the source is read along the axes of the target, given those of its array."""
        if self.beyond is None:
            return tuple(strides)
        along = strides[axis_of(self.source_box)] * (-1 if self.reverse else 1)
        return tuple(along if axis == axis_of(self.beyond) else 0 for axis in range(self.beyond.ndim))

    @property
    def key(self) -> tuple[int, int, Point]:
        """Sort key of copies: unique, as no point is delivered twice, and known to both sides."""
        return self.target, self.source, self.target_box.lo


@dataclass(frozen=True, slots=True)
class Message:
    """All data sent between two ranks in one exchange: copy ``i`` begins at element ``offsets[i]`` of ``cells``."""

    peer: int
    copies: tuple[Copy, ...]
    offsets: tuple[int, ...]
    cells: int


@dataclass(frozen=True, slots=True)
class RankTransfer:
    """One rank's part of a transfer: copies between its own blocks, and one message for each peer and direction."""

    rank: int
    local: tuple[Copy, ...]
    sends: tuple[Message, ...]
    receives: tuple[Message, ...]

    @property
    def cells_sent(self) -> int:
        """Number of elements that leave this rank."""
        return sum(m.cells for m in self.sends)

    @property
    def cells_received(self) -> int:
        """Number of elements that reach this rank."""
        return sum(m.cells for m in self.receives)


class Sources(Protocol):
    """Interface that :func:`plan_copies` needs of the owners of points; no point has two owners."""

    def overlapping(self, box: Box) -> Ints:
        """Return the numbers of all blocks that own points of ``box``, and perhaps some others, ascending."""

    def bounds(self, blocks: Sequence[int] | Ints) -> tuple[Ints, Ints]:
        """Return the low and high ends of the boxes that these blocks own."""


def halo_boxes(
    owned: Box,
    lo_width: Widths,
    hi_width: Widths,
    faces_only: bool = False,
    only: Sequence[Point] | None = None,
) -> list[Box]:
    """Return the halo around a box as disjoint boxes, one for each direction, without empty ones.

    ``faces_only`` leaves out edges and corners, which a star stencil does not read; ``only`` names directions instead.
    """
    towards = _Halo.of(owned.ndim, lo_width, hi_width, faces_only, only)
    lo, hi = towards.wanted(np.array([owned.lo]), np.array([owned.hi]))
    boxes = [Box(tuple(a), tuple(b)) for a, b in zip(lo.tolist(), hi.tolist(), strict=True)]
    return [] if owned.empty else [b for b in boxes if not b.empty]


def plan_copies(
    sources: Sources, wanted: Iterable[tuple[int, Box]], images: Callable[[Box], Iterable[Point]]
) -> list[Copy]:
    """Return the copies that fill ``wanted``, pairs of a target block and a box, from the blocks that own the points.

    ``images(reach)`` gives the translations under which owned points can lie in ``reach``. Consecutive boxes for one
    target are looked up together, so keep them together; those of one target must be disjoint.
    """
    copies = []
    for target, group in itertools.groupby(wanted, key=lambda pair: pair[0]):
        boxes = [box for _, box in group if not box.empty]
        if not boxes:
            continue
        lo, hi = np.array([b.lo for b in boxes]), np.array([b.hi for b in boxes])
        reach = Box(tuple(lo.min(axis=0).tolist()), tuple(hi.max(axis=0).tolist()))
        for t in images(reach):
            candidates = sources.overlapping(reach.shift([-s for s in t]))
            own_lo, own_hi = sources.bounds(candidates)
            _, j, part_lo, part_hi = intersect_pairs(lo, hi, own_lo + t, own_hi + t)
            copies += _copies(candidates[j], itertools.repeat(target), part_lo - t, part_hi - t, t)
    return copies


def for_rank(
    copies: Iterable[Copy], source_owner: Sequence[int] | Ints, target_owner: Sequence[int] | Ints, rank: int
) -> RankTransfer:
    """Return the part of one rank in a list of copies; copies between other ranks are ignored.

    ``source_owner`` and ``target_owner`` give the rank of every source and target block. Messages are in order of their
    peers, and hold their copies in order of :attr:`Copy.key`.
    """
    local: list[Copy] = []
    sends: dict[int, list[Copy]] = {}
    receives: dict[int, list[Copy]] = {}
    for copy in copies:
        sender, receiver = int(source_owner[copy.source]), int(target_owner[copy.target])
        if sender == receiver == rank:
            local.append(copy)
        elif sender == rank:
            sends.setdefault(receiver, []).append(copy)
        elif receiver == rank:
            receives.setdefault(sender, []).append(copy)
    return RankTransfer(rank, tuple(sorted(local, key=_key)), _messages(sends), _messages(receives))


def halo_transfer(
    grid: Grid,
    layout: Layout,
    rank: int,
    lo_width: Widths,
    hi_width: Widths,
    *,
    centre: Sequence[int] | None = None,
    axes: Sequence[str | int] | None = None,
    on: Box | None = None,
    faces_only: bool = False,
    only: Sequence[Point] | None = None,
) -> RankTransfer:
    """Return the part of ``rank`` in filling a field's halos, ``lo_width`` below and ``hi_width`` above each axis."""
    points = Ownership.of(grid, layout, centre, axes, on)
    halo = _Halo.of(len(points.axes), lo_width, hi_width, faces_only, only)
    mine = layout.blocks_of(rank)
    if points.shared:
        copies = _shared_halo_copies(points, halo, rank, [*mine, *_shared_takers(points, halo, mine)])
    else:
        copies = plan_copies(points, _wanted(points, halo, mine), points.images)
        copies += _halo_copies_from(points, halo, mine)
    if grid.seam is not None:
        copies += _seam_copies(points, halo)
    return for_rank(copies, layout.owner, layout.owner, rank)


def move_transfer(
    source: Layout,
    target: Layout,
    grid: Grid,
    rank: int,
    *,
    centre: Sequence[int] | None = None,
    axes: Sequence[str | int] | None = None,
    on: Box | None = None,
) -> RankTransfer:
    """Return the part of ``rank`` in moving a field from one layout to another: rebalancing, gathering, scattering.

    Copies go from blocks of ``source`` to blocks of ``target``; data that stays on its rank is a local copy, too.
    """
    if source.ranks != target.ranks:
        raise LayoutError(
            f"a field moves between layouts of the same ranks; found {source.ranks} and {target.ranks}",
            remedy="make both layouts for all ranks of the run; ranks may own nothing",
        )
    old, new = Ownership.of(grid, source, centre, axes, on), Ownership.of(grid, target, centre, axes, on)
    return points_transfer(old, new, rank)


def points_transfer(old: Ownership, new: Ownership, rank: int, box: Box | None = None) -> RankTransfer:
    """Return the part of ``rank`` in moving points of one kind of field to those of another.

    By default the indices stay the same. ``box`` chooses points of the first field, which go to the first points of the
    second in the same order. If the target is replicated, all other ranks get the same data from each rank that has
    some of them.
    """
    source, target = old.layout, new.layout
    t = (0,) * len(old.axes) if box is None else tuple(b - a for a, b in zip(box.lo, new.points.lo, strict=True))
    back = tuple(-s for s in t)

    def wanted(taker: int) -> Box:
        """Return the points that a block of the target takes, in indices of the target."""
        return new.owned(taker) if box is None else new.owned(taker) & box.shift(t)

    def given(giver: int) -> Box:
        """Return the points that a block of the source has, in indices of the target."""
        return (old.owned(giver) if box is None else old.owned(giver) & box).shift(t)

    mine, givers = target.blocks_of(rank), source.blocks_of(rank)
    if old.shared:
        takers = _distinct([new.overlapping(given(b)) for b in givers if old.lends(b)], without=mine)
        copies = [
            Copy(giver, taker, part, t)
            for taker in (*mine, *takers)
            if not wanted(taker).empty
            for giver, part in old.sources(wanted(taker).shift(back), int(target.owner[taker]), None)
        ]
    else:
        copies = plan_copies(old, ((b, wanted(b)) for b in mine), lambda reach: [t])
        for giver in givers:
            region = given(giver)
            if region.empty:
                continue
            others = new.overlapping(region)
            others = others[target.owner[others] != rank]
            i, _, lo, hi = intersect_pairs(*new.bounds(others), np.array([region.lo]), np.array([region.hi]))
            copies += _copies(itertools.repeat(giver), others[i], lo - t, hi - t, t)
    return for_rank(copies, source.owner, target.owner, rank)


@dataclass(frozen=True, slots=True)
class _Halo:
    """Widths and directions of a halo."""

    lo_width: Ints
    hi_width: Ints
    towards: Ints
    """Directions, shape (directions, ndim)."""

    @classmethod
    def of(cls, ndim: int, lo_width: Widths, hi_width: Widths, faces_only: bool, only: Sequence[Point] | None) -> _Halo:
        """Return a halo of checked widths and sorted directions."""
        low = np.broadcast_to(np.asarray(lo_width, np.int64), (ndim,))
        high = np.broadcast_to(np.asarray(hi_width, np.int64), (ndim,))
        if min(low.min(), high.min()) < 0:
            raise LayoutError(f"halo widths must not be negative; found {lo_width} below and {hi_width} above")
        chosen = directions(ndim, faces_only) if only is None else sorted(set(only))
        return cls(low, high, np.array(chosen, np.int64).reshape(-1, ndim))

    def wanted(self, lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
        """Return the halo boxes of boxes (n, ndim) as arrays (n * directions, ndim), grouped by box; some are empty."""
        lo, hi = lo[:, None], hi[:, None]
        below, above = self.towards < 0, self.towards > 0
        low = np.where(below, lo - self.lo_width, np.where(above, hi, lo))
        high = np.where(below, lo, np.where(above, hi + self.hi_width, hi))
        return low.reshape(-1, lo.shape[-1]), high.reshape(-1, lo.shape[-1])

    def readers_of(self, box: Box) -> Box:
        """Return the points whose halo reaches into ``box``."""
        return box.grow(self.hi_width.tolist(), self.lo_width.tolist())


def _wanted(points: Ownership, halo: _Halo, blocks: Iterable[int]) -> Iterable[tuple[int, Box]]:
    """Yield the halo boxes of blocks; they lie around the position of a block even if it owns no points there."""
    for block in blocks:
        lo, hi = halo.wanted(*points.around([block]))
        for low, high in zip(lo.tolist(), hi.tolist(), strict=True):
            yield block, Box(tuple(low), tuple(high))


def _readers(points: Ownership, halo: _Halo, box: Box) -> Iterable[tuple[Ints, Point]]:
    """Yield the blocks whose halo reaches into an image of ``box``, and the translation of that image."""
    if box.empty:
        return
    reach = halo.readers_of(box)
    # Moving the box by t towards the readers is moving the readers by -t towards the box.
    for back in points.grid.images(reach, points.positions):
        t = tuple(-s for s in back)
        yield points.overlapping(reach.shift(t)), t


def _halo_copies_from(points: Ownership, halo: _Halo, mine: Sequence[int]) -> list[Copy]:
    """Return the copies out of blocks of one rank into halos of other ranks."""
    copies = []
    for giver in mine:
        region = points.owned(giver)
        for readers, t in _readers(points, halo, region):
            takers = readers[points.layout.owner[readers] != points.layout.owner[giver]]
            if not len(takers):
                continue
            image = region.shift(t)
            lo, hi = halo.wanted(*points.around(takers))
            i, _, lo, hi = intersect_pairs(lo, hi, np.array([image.lo]), np.array([image.hi]))
            copies += _copies(itertools.repeat(giver), takers[i // len(halo.towards)], lo - t, hi - t, t)
    return copies


def _seam_copies(points: Ownership, halo: _Halo) -> list[Copy]:
    """Return the copies between all blocks that fill halos beyond the seam of a grid."""
    grid = points.grid
    if grid.seam is None or points.shared or any(points.centre) or max(*halo.lo_width, *halo.hi_width) > 1:
        raise LayoutError(
            f"fields of {grid} are cells that are read at most one cell away", remedy="use a torus or a bounded plane"
        )
    layout = points.layout
    at_ends = (layout.lo == 0).any(axis=1) | (layout.hi == grid.shape).any(axis=1)
    copies = []
    for taker, box in _wanted(points, halo, np.flatnonzero(at_ends).tolist()):
        for line in lines_beyond(grid.seam, grid.shape):
            part = line.within(target=box)
            for giver in () if part is None else points.overlapping(part.source).tolist():
                piece = part.within(source=points.owned(giver)) if part is not None else None
                if piece is not None:
                    copies.append(Copy(giver, taker, piece.source, (0,) * grid.ndim, piece.target, piece.reverse))
    return copies


def _shared_takers(points: Ownership, halo: _Halo, mine: Sequence[int]) -> list[int]:
    """Return blocks of other ranks that may take points of a projected field from one of ``mine``."""
    lenders = [points.owned(block) for block in mine if points.lends(block)]
    return _distinct([readers for box in lenders for readers, _ in _readers(points, halo, box)], without=mine)


def _shared_halo_copies(points: Ownership, halo: _Halo, rank: int, takers: Iterable[int]) -> list[Copy]:
    """Return the copies that fill halos of a projected field."""
    copies = []
    for taker, box in _wanted(points, halo, takers):
        for t in points.images(box):
            region = box.shift([-s for s in t]) & points.points
            home = int(points.layout.owner[taker])
            copies += [Copy(giver, taker, part, t) for giver, part in points.sources(region, home, taker)]
    return copies


def _copies(givers: Iterable[int] | Ints, takers: Iterable[int] | Ints, lo: Ints, hi: Ints, t: Point) -> list[Copy]:
    """Return one copy for each row of ``lo`` and ``hi``."""
    return [
        Copy(giver, taker, Box(tuple(low), tuple(high)), t)
        for giver, taker, low, high in zip(_listed(givers), _listed(takers), lo.tolist(), hi.tolist(), strict=False)
    ]


def _listed(numbers: Iterable[int] | Ints) -> Iterable[int]:
    return numbers.tolist() if isinstance(numbers, np.ndarray) else numbers


def _distinct(groups: Sequence[Ints], without: Sequence[int]) -> list[int]:
    if not groups:
        return []
    rest: list[int] = np.setdiff1d(np.concatenate(groups), without).tolist()
    return rest


def _key(copy: Copy) -> tuple[int, int, Point]:
    return copy.key


def _messages(by_peer: dict[int, list[Copy]]) -> tuple[Message, ...]:
    messages = []
    for peer in sorted(by_peer):
        copies = sorted(by_peer[peer], key=_key)
        ends = list(itertools.accumulate((c.source_box.size for c in copies), initial=0))
        messages.append(Message(peer, tuple(copies), tuple(ends[:-1]), ends[-1]))
    return tuple(messages)
