"""Exchanges and moves of one rank: packing, sending, copying and unpacking, with one message per pair of ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from minga.engine import command as cmd
from minga.engine.active import Activity
from minga.engine.active_bind import NotedCopy, noted_commands, noted_copies
from minga.engine.backend import Backend
from minga.engine.comm import Channel, Comm, Envelope
from minga.engine.helpers import BoxAddress, copy_args
from minga.engine.helpers import Copy as BoxCopy
from minga.engine.reach import Reach
from minga.engine.schedule import HaloExchange
from minga.engine.storage import BlockArrays, Storage
from minga.space.box import Box
from minga.space.field import MARGIN, Field, Slot
from minga.space.transfer import Copy, Message, RankTransfer, halo_transfer


@dataclass(slots=True)
class BoundExchange:
    """Commands to be executed before the messages are sent, while they are in flight, and after their arrival."""

    channel: Channel
    pack: list[cmd.Command]
    local: list[cmd.Command]
    unpack: list[cmd.Command]
    remote: bool
    """True if this rank sends or receives anything."""
    sent: dict[int, list[Box]] = field(default_factory=dict)

    def sent_from(self, block: int) -> list[Box]:
        """Return the boxes of a block that are sent to other ranks, largest first."""
        return self.sent.get(block, [])


@dataclass(frozen=True, slots=True)
class Leg:
    """One slot's part of a transfer: source, target and copies.

    Messages are packed from `source`; copies between blocks of one rank are done when messages are unpacked, from the
    slot that is called `local` then. `reach` is the width of the exchange.
    """

    source: Slot
    local: Slot
    target: Slot
    transfer: RankTransfer
    reach: Reach


Room = Callable[[object, int], np.ndarray]
"""Function that allocates a number of bytes for a message, given a key that identifies the message."""


def bind_exchange(
    exchange: HaloExchange,
    storage: Storage,
    comm: Comm,
    tag: int,
    backend: Backend,
    active: Mapping[Field, Activity],
) -> BoundExchange:
    """Bind a halo exchange of several slots; `active` tracks the changes of ghost cells."""
    legs = []
    for start, finish, reach in zip(exchange.start, exchange.finish, exchange.reaches, strict=True):
        item = start.field
        transfer = halo_transfer(
            item.grid, storage.layout(item.grid), comm.rank, reach.lo, reach.hi,
            centre=item.centre, on=item.on, faces_only=reach.star,
        )  # fmt: skip
        legs.append(Leg(start, finish, finish, transfer, reach))
    return bind_legs(legs, storage, comm, tag, backend, active, lambda key, size: backend.message(size))


def bind_legs(
    legs: Sequence[Leg],
    storage: Storage,
    comm: Comm,
    tag: int,
    backend: Backend,
    active: Mapping[Field, Activity],
    room: Room,
) -> BoundExchange:
    """Bind several transfers together: their commands and messages."""
    pack: list[BoxCopy] = []
    local: list[BoxCopy] = []
    unpack: list[BoxCopy] = []
    noted_local: list[NotedCopy] = []
    noted_unpack: list[NotedCopy] = []
    sent: dict[int, list[Box]] = {}
    sends = _buffers(legs, [leg.transfer.sends for leg in legs], "out", room)
    receives = _buffers(legs, [leg.transfer.receives for leg in legs], "in", room)
    out = {peer: word_holding(buffer, backend) for peer, buffer in sends.items()}
    into = {peer: word_holding(buffer, backend) for peer, buffer in receives.items()}
    used_out, used_in, carried = dict.fromkeys(sends, 0), dict.fromkeys(receives, 0), dict.fromkeys(sends, 0)
    for leg in legs:
        size = np.dtype(leg.source.field.dtype).itemsize
        sources, targets = storage.stored(leg.source.field).blocks, storage.stored(leg.target.field).blocks
        activity = active.get(leg.target.field)
        for copy in leg.transfer.local:
            between = BoxCopy(
                source_place(sources[copy.source], leg.local, copy),
                box_place(targets[copy.target], leg.target, copy.target_box),
                copy.target_box.shape,
                size,
            )
            if activity is None:
                local.append(between)
            else:
                source = copy.source if activity.keeps(leg.target.field, leg.reach) else None
                noted_local += noted_copies(
                    between, copy.target_box, leg.target, activity, copy.target, source, copy.shift
                )
        for message in leg.transfer.sends:
            for copy in message.copies:
                sent.setdefault(copy.source, []).append(copy.source_box)
                buffer = BoxAddress(out[message.peer], used_out[message.peer], dense_strides(copy, size))
                pack.append(
                    BoxCopy(source_place(sources[copy.source], leg.source, copy), buffer, copy.target_box.shape, size)
                )
                used_out[message.peer] += copy.source_box.size * size
                carried[message.peer] += 1
        for message in leg.transfer.receives:
            for copy in message.copies:
                buffer = BoxAddress(into[message.peer], used_in[message.peer], dense_strides(copy, size))
                arrived = BoxCopy(
                    buffer, box_place(targets[copy.target], leg.target, copy.target_box), copy.target_box.shape, size
                )
                if activity is None:
                    unpack.append(arrived)
                else:
                    noted_unpack += noted_copies(arrived, copy.target_box, leg.target, activity, copy.target)
                used_in[message.peer] += copy.source_box.size * size
    channel = comm.channel(
        [Envelope(peer, buffer, carried[peer]) for peer, buffer in sends.items()],
        [Envelope(peer, buffer) for peer, buffer in receives.items()],
        tag,
    )
    for boxes in sent.values():
        boxes.sort(key=lambda box: (-box.size, box.lo))
    return BoundExchange(
        channel,
        copy_commands(pack, backend, "pack"),
        copy_commands(local, backend, "copy") + noted_commands(noted_local, backend, "copy"),
        copy_commands(unpack, backend, "unpack") + noted_commands(noted_unpack, backend, "unpack"),
        bool(sends or receives),
        sent,
    )


def continuation(slot: Slot, storage: Storage, backend: Backend) -> list[cmd.Command]:
    """Extend a field that every rank holds completely beyond its ends, periodically or with constant values."""
    arrays, commands = storage.stored(slot.field).blocks[0], []
    box = arrays.owned
    for number, axis in enumerate(slot.field.axes):
        low, high = box.lo[number], box.hi[number]
        copies = []
        for index in (*range(low - MARGIN, low), *range(high, high + MARGIN)):
            inside = low + (index - low) % (high - low) if slot.field.periodic[axis] else min(max(index, low), high - 1)
            size = np.dtype(slot.field.dtype).itemsize
            source, target = _layer(box, number, inside), _layer(box, number, index)
            copies.append(BoxCopy(box_place(arrays, slot, source), box_place(arrays, slot, target), source.shape, size))
        commands += copy_commands(copies, backend, "continue")
        box = _layer(box, number, low - MARGIN, high + MARGIN)
    return commands


def _layer(box: Box, axis: int, low: int, high: int | None = None) -> Box:
    """Return a box restricted or extended to some indices along an axis, to a single index by default."""
    high = low + 1 if high is None else high
    return Box((*box.lo[:axis], low, *box.lo[axis + 1 :]), (*box.hi[:axis], high, *box.hi[axis + 1 :]))


def copy_commands(copies: Sequence[BoxCopy], backend: Backend, label: str) -> list[cmd.Command]:
    """Return one command for all copies of a phase."""
    if not copies:
        return []
    return [backend.helper("copy_boxes", copy_args(copies), len(copies), cmd.Category.PACK, label)]


def _buffers(
    legs: Sequence[Leg], messages: Sequence[Sequence[Message]], towards: str, room: Room
) -> dict[int, np.ndarray]:
    """Return one byte buffer for each peer, in order of peers."""
    size: dict[int, int] = {}
    for leg, group in zip(legs, messages, strict=True):
        for message in group:
            size[message.peer] = size.get(message.peer, 0) + message.cells * np.dtype(leg.source.field.dtype).itemsize
    return {peer: room((towards, peer), size[peer]) for peer in sorted(size)}


def word_holding(buffer: np.ndarray, backend: Backend) -> int:
    """Return the address of a word that holds the buffer's address."""
    return backend.address(np.array([backend.address(buffer)], np.int64))


def box_place(arrays: BlockArrays, slot: Slot, box: Box) -> BoxAddress:
    """Return the place of a box in a slot's array."""
    array = arrays.arrays[0]
    first = sum((b - o) * s for b, o, s in zip(box.lo, arrays.box.lo, array.strides, strict=True))
    return BoxAddress(int(arrays.table.ctypes.data) + 8 * slot.index, first, array.strides)


def source_place(arrays: BlockArrays, slot: Slot, copy: Copy) -> BoxAddress:
    """Return the place of a copy's source in a slot's array, read in the order of its target."""
    place = box_place(arrays, slot, Box(copy.first, copy.source_box.hi))
    return replace(place, strides=copy.strides(place.strides))


def dense_strides(copy: Copy, size: int) -> tuple[int, ...]:
    """Return the byte strides of a copy's cells packed without gaps, in the order of its target."""
    strides = [size]
    for length in reversed(copy.target_box.shape[1:]):
        strides.insert(0, strides[0] * length)
    return tuple(strides)
