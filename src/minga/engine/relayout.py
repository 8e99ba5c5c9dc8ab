"""Transfer of fields to other layouts between two runs, which moves work from rank to rank.

Slots pass one after another through :func:`minga.space.transfer.move_transfer`, in messages of bounded size, so that a
rank holds, in addition to its fields, one of them twice and a few megabytes of messages. Sender and receiver cut the
copies between them in the same way, so they agree on every message without communicating.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from minga.engine.comm import Comm, Envelope
from minga.engine.storage import Storage, Stored
from minga.engine.traffic import Traffic, count_sent
from minga.errors import LayoutError
from minga.space.box import Box
from minga.space.field import Field, Slot
from minga.space.grid import Grid
from minga.space.layout import Layout
from minga.space.transfer import Copy, Message, RankTransfer, move_transfer

__all__ = ["PIECE_BYTES", "Moved", "in_pieces", "move_fields"]

PIECE_BYTES: Final = 16 << 20
"""Bytes of messages that a rank has in flight at once, in each direction, while fields move."""

_Kind = tuple[Grid, tuple[int, ...], Box | None]
"""Key shared by fields with the same point ownership: grid, centre, box."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Statistics of one rank's layout change.

    bytes, messages  sent to other ranks
    copied           bytes copied within its own memory
    seconds          duration
    peak             largest number of bytes held by its fields and messages during the change
    resting          bytes held by its fields after the change
    """

    bytes: int
    messages: int
    copied: int
    seconds: float
    peak: int
    resting: int


def move_fields(
    storage: Storage,
    comm: Comm,
    layouts: Mapping[Grid, Layout],
    tag: int,
    dead: Collection[Slot] = (),
    piece_bytes: int = PIECE_BYTES,
) -> tuple[Moved, dict[int, Traffic], int]:
    """Move all fields of the grids in `layouts` to their new layouts. Collective.

    Return the statistics, what was sent to each rank, and the last tag used. `tag` is the last tag that this rank has
    used so far, `dead` the slots that need not move. Raise LayoutError on all ranks if they disagree or a layout does
    not fit.
    """
    began = time.perf_counter()
    changed = {grid: layout for grid, layout in layouts.items() if storage.layouts.get(grid) != layout}
    misfit = _misfit(changed, comm)
    moving = changed if misfit is None else {}
    fields = [item for item in storage.fields if not item.replicated and item.grid in moving]
    transfers: dict[_Kind, RankTransfer] = {}
    for item in fields:
        if _kind(item) not in transfers:
            transfers[_kind(item)] = move_transfer(
                storage.layout(item.grid), changed[item.grid], item.grid, comm.rank, centre=item.centre, on=item.on
            )
    peers = max((len(side) for t in transfers.values() for side in (t.sends, t.receives)), default=0)
    tag, peers = _agreed(comm, changed, fields, dead, tag, peers, misfit)
    storage.layouts = {**storage.layouts, **changed}
    mover = _Mover(comm, tag, max(1, piece_bytes // max(1, peers)))
    for item in fields:
        old = storage.fields[item]
        new = storage.allocate_field(item, old.halo)
        mover.holds(sum(map(_bytes, storage.fields.values())) + _bytes(new))
        for index in range(item.slots):
            if item.slot(index) not in dead:
                mover.move(old, new, index, transfers[_kind(item)])
        storage.fields[item] = new
        del old, new  # before the next field allocates memory
    sent = mover.sent
    resting = sum(map(_bytes, storage.fields.values()))
    moved = Moved(
        bytes=sum(traffic.bytes for traffic in sent.values()),
        messages=sum(traffic.messages for traffic in sent.values()),
        copied=mover.copied,
        seconds=time.perf_counter() - began,
        peak=max(mover.peak, resting),
        resting=resting,
    )
    return moved, sent, tag


def in_pieces(copies: Sequence[Copy], most: int) -> list[list[Copy]]:
    """Split the copies of a message, in order, into groups of at most `most` cells (at least one); cut large copies."""
    groups: list[list[Copy]] = []
    room = 0
    for part in itertools.chain.from_iterable(_cut(copy, most) for copy in copies):
        size = part.source_box.size
        if size > room:
            groups.append([])
            room = most
        groups[-1].append(part)
        room -= size
    return groups


def _cut(copy: Copy, most: int) -> Iterator[Copy]:
    """Yield a copy as pieces of at most `most` cells, cut across the outermost axis that is long enough."""
    box = copy.source_box
    if box.size <= most or box.size == 1:
        yield copy
        return
    axis = next(axis for axis, length in enumerate(box.shape) if length > 1)
    step = max(1, most // (box.size // box.shape[axis]))
    for low in range(box.lo[axis], box.hi[axis], step):
        high = min(low + step, box.hi[axis])
        part = Box(
            (*box.lo[:axis], low, *box.lo[axis + 1 :]),
            (*box.hi[:axis], high, *box.hi[axis + 1 :]),
        )
        yield from _cut(Copy(copy.source, copy.target, part, copy.shift), most)


@dataclass(slots=True)
class _Mover:
    """Executes transfers one after another and keeps statistics. `most` limits the bytes of a message."""

    comm: Comm
    tag: int
    most: int
    copied: int = 0
    held: int = 0
    peak: int = 0
    sent: dict[int, Traffic] = field(default_factory=dict)

    def holds(self, count: int) -> None:
        """Record the number of bytes that fields hold now."""
        self.held = count
        self.peak = max(self.peak, count)

    def move(self, old: Stored, new: Stored, index: int, transfer: RankTransfer) -> None:
        """Move one slot from the old blocks to the new ones."""
        dtype = np.dtype(old.field.dtype)
        most = max(1, self.most // dtype.itemsize)
        sends, receives = _by_round(transfer.sends, most), _by_round(transfer.receives, most)
        nothing: dict[int, list[Copy]] = {}
        for outgoing, incoming in itertools.zip_longest(sends, receives, fillvalue=nothing):
            out = {peer: _packed(old, index, copies, dtype) for peer, copies in outgoing.items()}
            into = {peer: np.empty(_cells(copies), dtype) for peer, copies in incoming.items()}
            self.peak = max(self.peak, self.held + sum(b.nbytes for b in (*out.values(), *into.values())))
            channel = self.comm.channel(
                [Envelope(peer, buffer.view(np.uint8), len(outgoing[peer])) for peer, buffer in out.items()],
                [Envelope(peer, buffer.view(np.uint8)) for peer, buffer in into.items()],
                self.tag,
            )
            channel.start()
            channel.wait()
            self.sent = count_sent([channel], self.sent)
            channel.close()
            for peer, buffer in into.items():
                _unpack(new, index, incoming[peer], buffer)
        for copy in transfer.local:
            values = old.blocks[copy.source].view(index, copy.source_box)
            new.blocks[copy.target].view(index, copy.target_box)[...] = values
            self.copied += values.nbytes


def _by_round(messages: Sequence[Message], most: int) -> list[dict[int, list[Copy]]]:
    """Return the copies exchanged between this rank and each peer, one dictionary per round of messages."""
    pieces = {message.peer: in_pieces(message.copies, most) for message in messages}
    rounds = max(map(len, pieces.values()), default=0)
    return [{peer: groups[k] for peer, groups in pieces.items() if k < len(groups)} for k in range(rounds)]


def _packed(stored: Stored, index: int, copies: Sequence[Copy], dtype: np.dtype) -> np.ndarray:
    """Return the cells of several boxes packed one after another."""
    buffer, at = np.empty(_cells(copies), dtype), 0
    for copy in copies:
        size = copy.source_box.size
        buffer[at : at + size].reshape(copy.source_box.shape)[...] = stored.blocks[copy.source].view(
            index, copy.source_box
        )
        at += size
    return buffer


def _unpack(stored: Stored, index: int, copies: Sequence[Copy], buffer: np.ndarray) -> None:
    at = 0
    for copy in copies:
        size = copy.source_box.size
        values = buffer[at : at + size].reshape(copy.source_box.shape)
        stored.blocks[copy.target].view(index, copy.target_box)[...] = values
        at += size


def _cells(copies: Sequence[Copy]) -> int:
    return sum(copy.source_box.size for copy in copies)


def _kind(item: Field) -> _Kind:
    return item.grid, item.centre, item.on


def _bytes(stored: Stored) -> int:
    """Return the bytes of a field's arrays on this rank, including padding."""
    arrays = (array for block in stored.blocks.values() for array in block.arrays)
    return sum((array if array.base is None else array.base).nbytes for array in arrays)


def _misfit(layouts: Mapping[Grid, Layout], comm: Comm) -> LayoutError | None:
    for grid, layout in layouts.items():
        if layout.domain != grid.box or layout.ranks != comm.size:
            return LayoutError(
                f"{layout!r} is not a layout of {grid!r} for {comm.size} ranks",
                remedy="make it for the grid's box and all ranks of the run; ranks may own nothing",
            )
    return None


def _agreed(
    comm: Comm,
    changed: Mapping[Grid, Layout],
    fields: Sequence[Field],
    dead: Collection[Slot],
    tag: int,
    peers: int,
    misfit: LayoutError | None,
) -> tuple[int, int]:
    """Return a tag that no rank has used and the largest number of peers of any rank.

    ``misfit`` is the error found by this rank. Raise LayoutError unless all ranks do the same.
    """
    described = [layout.fingerprint() for layout in changed.values()]
    described += [f"{item.name} {[item.slot(k) in dead for k in range(item.slots)]}" for item in fields]
    digest = int.from_bytes(hashlib.sha256("\n".join(described).encode()).digest()[:7], "little")
    words = np.array([digest, -digest, tag, peers], np.int64)
    comm.allreduce(words, "max")
    if misfit is not None:
        raise misfit
    if words[0] != -words[1]:
        raise LayoutError(
            "the ranks request different layouts, or hold different fields",
            remedy="decide on rank 0 and broadcast the layouts: every rank calls Engine.relayout with the same ones",
        )
    return int(words[2]) + 1, int(words[3])
