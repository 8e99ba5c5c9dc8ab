"""The messages of a step between ranks: the graph that a placement maps to a machine.

The boxes are those of :func:`minga.space.transfer.halo_transfer`, for all blocks at once. They follow from contacts of
blocks or, if halos extend further, from a search for all of them in the layout's index. Thus the numbers are those that
the transport counts (:mod:`minga.engine.traffic`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minga.plan.contacts import contacts_of, mesh_of
from minga.plan.work.work import HaloRound
from minga.space.box import Box, Point, directions
from minga.space.boxes import Ints, volumes
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["Edges", "edges_of"]


@dataclass(frozen=True, eq=False)
class Edges:
    """The messages of a step, as int64 arrays of shape (messages,).

    A message carries all data of an exchange for a rank; ``copies`` is its number of boxes of cells, and ``times`` the
    number of times it is sent.
    """

    ranks: int
    sender: Ints
    receiver: Ints
    bytes: Ints
    copies: Ints
    times: Ints

    def __len__(self) -> int:
        return len(self.sender)


def edges_of(
    layout: Layout,
    periodic: Sequence[bool] = (),
    exchanges: Sequence[HaloRound] = (),
    shift: Sequence[Point] = (),
) -> Edges:
    """Return the messages between the ranks of a layout.

    Parameters
    ----------
    layout
        The layout.
    periodic
        For each axis, True if its ends are neighbours; none by default.
    exchanges
        The exchanges of a step; by default, one byte is sent for each cell of the faces, one cell deep.
    shift
        As :attr:`Grid.shift`; none by default.
    """
    around = tuple(periodic) or (False,) * layout.ndim
    rounds = tuple(exchanges) or (HaloRound((1,) * layout.ndim, (1,) * layout.ndim, 1),)
    shifted = any(map(any, shift))
    mesh, narrowest = mesh_of(layout), (layout.hi - layout.lo).min(axis=0)
    columns: list[tuple[Ints, ...]] = []
    for exchange in rounds:
        # If cuts are not aligned, the block across a corner may also touch with a face.
        beside = not shifted and (mesh is not None or not exchange.corners)
        if beside and (np.maximum(exchange.low, exchange.high) <= narrowest).all():
            copies = _copies_of_contacts(layout, exchange, around)
        else:
            copies = _copies_anywhere(layout, exchange, Grid(layout.domain.shape, periodic=around, shift=shift))
        found = _messages(layout, exchange.bytes, *copies)
        columns.append((*found, np.full(len(found[0]), exchange.times, np.int64)))
    return Edges(layout.ranks, *(np.concatenate(column) for column in zip(*columns, strict=True)))


def _copies_of_contacts(layout: Layout, exchange: HaloRound, periodic: tuple[bool, ...]) -> tuple[Ints, Ints, Ints]:
    """Return sending block, receiving block and cells of every copy if no halo extends beyond neighbouring blocks."""
    givers, takers, cells = [], [], []
    for contacts in contacts_of(layout, periodic, exchange.corners):
        touching = [(axis, sign) for axis, sign in enumerate(contacts.towards) if sign]
        shared = contacts.shared.prod(axis=1)
        # A block reads from above the width of its high halo, and is read from there with the width of the low halo.
        read = math.prod(exchange.high[axis] if sign > 0 else exchange.low[axis] for axis, sign in touching)
        given = math.prod(exchange.low[axis] if sign > 0 else exchange.high[axis] for axis, sign in touching)
        for giver, taker, width in (
            (contacts.beyond, contacts.block, read),
            (contacts.block, contacts.beyond, given),
        ):
            if width:
                givers.append(giver)
                takers.append(taker)
                cells.append(shared * width)
    nothing = np.empty(0, np.int64)
    return tuple(np.concatenate(column) if column else nothing for column in (givers, takers, cells))  # type: ignore[return-value]


def _copies_anywhere(layout: Layout, exchange: HaloRound, grid: Grid) -> tuple[Ints, Ints, Ints]:
    """Return the same for any halos and blocks: each halo is looked up in the layout's index, per periodic image."""
    low, high = np.array(exchange.low, np.int64), np.array(exchange.high, np.int64)
    origin = np.array(layout.domain.lo, np.int64)
    lo, hi = layout.lo - origin, layout.hi - origin
    reach_lo, reach_hi = lo - low, hi + high
    everywhere = Box(tuple(reach_lo.min(axis=0).tolist()), tuple(reach_hi.max(axis=0).tolist()))
    givers, takers, cells = [], [], []
    for image in grid.images(everywhere, grid.box):
        taker, giver = layout.index.pairs(reach_lo - image + origin, reach_hi - image + origin)
        from_lo, from_hi = lo[giver] + image, hi[giver] + image
        for towards in np.array(directions(layout.ndim, faces_only=not exchange.corners)):
            below, above = towards < 0, towards > 0
            want_lo = np.where(below, reach_lo, np.where(above, hi, lo))[taker]
            want_hi = np.where(below, lo, np.where(above, reach_hi, hi))[taker]
            count = volumes(np.maximum(want_lo, from_lo), np.minimum(want_hi, from_hi))
            kept = count > 0
            givers.append(giver[kept])
            takers.append(taker[kept])
            cells.append(count[kept])
    return np.concatenate(givers), np.concatenate(takers), np.concatenate(cells)


def _messages(layout: Layout, cell_bytes: int, giver: Ints, taker: Ints, cells: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return sender, receiver, bytes and copies of every message; copies between two ranks are sent together."""
    sender, receiver = layout.owner[giver], layout.owner[taker]
    apart = sender != receiver
    pair = sender[apart] * layout.ranks + receiver[apart]
    order = np.argsort(pair, kind="stable")
    pair, cells = pair[order], cells[apart][order]
    first = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]][: len(pair)])
    if not len(first):
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing, nothing
    ends = np.r_[first, len(pair)]
    return (
        pair[first] // layout.ranks,
        pair[first] % layout.ranks,
        np.add.reduceat(cells, first) * cell_bytes,
        np.diff(ends),
    )
