"""Fields brought to other layouts between two runs: the transfer that moves work from rank to rank.

Slot after slot goes through :func:`minga.space.transfer.move_transfer`, in messages of bounded size, so that a rank
holds beside its fields one of them twice and a few megabytes of messages. Sender and receiver cut the copies between
them alike, so they agree on every message without a word.
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
"""Bytes of messages that a rank has under way at once, each way, while fields move."""

_Kind = tuple[Grid, tuple[int, ...], Box | None]
"""What fields that own points alike have in common: grid, centre, box."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What one rank did to change layouts: bytes and messages it sent, bytes it copied within its own memory, seconds;
    `peak` is the most bytes that its fields and messages filled meanwhile, `resting` what the fields fill after it."""

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
    """Bring all fields of the grids in `layouts` there; collective. Also what was sent, and the last tag used.

    `tag` is the last one that this rank used so far, `dead` the slots that need not move. LayoutError on all ranks
    where they disagree, or where a layout does not fit.
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
        del old, new  # before the next field asks for memory
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
    """The copies of a message in groups of at most `most` cells, in order, large ones cut; at least a cell each."""
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
    """A copy as several of at most `most` cells, cut across the outermost axis that is long enough."""
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
    """Does transfers one after the other, and keeps account. `most`: bytes of a message."""

    comm: Comm
    tag: int
    most: int
    copied: int = 0
    held: int = 0
    peak: int = 0
    sent: dict[int, Traffic] = field(default_factory=dict)

    def holds(self, count: int) -> None:
        """So many bytes are filled by fields now."""
        self.held = count
        self.peak = max(self.peak, count)

    def move(self, old: Stored, new: Stored, index: int, transfer: RankTransfer) -> None:
        """Bring one slot from the old blocks to the new ones."""
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
    """What goes between this rank and each peer in the first round of messages, in the second, and so on."""
    pieces = {message.peer: in_pieces(message.copies, most) for message in messages}
    rounds = max(map(len, pieces.values()), default=0)
    return [{peer: groups[k] for peer, groups in pieces.items() if k < len(groups)} for k in range(rounds)]


def _packed(stored: Stored, index: int, copies: Sequence[Copy], dtype: np.dtype) -> np.ndarray:
    """The cells of several boxes in a row."""
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
    """Bytes of a field's arrays on this rank, with their padding."""
    arrays = (array for block in stored.blocks.values() for array in block.arrays)
    return sum((array if array.base is None else array.base).nbytes for array in arrays)


def _misfit(layouts: Mapping[Grid, Layout], comm: Comm) -> LayoutError | None:
    for grid, layout in layouts.items():
        if layout.domain != grid.box or layout.ranks != comm.size:
            return LayoutError(
                f"{layout!r} is no layout of {grid!r} for {comm.size} ranks",
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
    """A tag that no rank has used, and the largest number of peers of any; LayoutError unless all ranks do the same.

    ``misfit`` is what this rank has found wrong.
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
            "the ranks ask for different layouts, or hold different fields",
            remedy="decide on rank 0 and broadcast the layouts: every rank calls Engine.relayout with the same ones",
        )
    return int(words[2]) + 1, int(words[3])
