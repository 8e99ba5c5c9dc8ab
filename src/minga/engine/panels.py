"""Moves of one rank: packing, sending and unpacking for each box that a move may copy.

If the target is replicated, each rank that owns a part sends the same data to all others: it is packed once, and sent
by one of the routes of `minga.engine.routes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from minga.engine import command as cmd
from minga.engine.comm import Channel
from minga.engine.exchange import BoundExchange, Leg, bind_legs, box_place, copy_commands, dense_strides, word_holding
from minga.engine.helpers import BoxAddress
from minga.engine.helpers import Copy as BoxCopy
from minga.engine.program import Move
from minga.engine.reach import Reach
from minga.engine.routes import Spread
from minga.errors import LayoutError
from minga.space.ownership import Ownership
from minga.space.transfer import RankTransfer, points_transfer

if TYPE_CHECKING:
    from minga.engine.backend import Backend
    from minga.engine.bind import Binder

__all__ = ["BoundMove", "Buffers", "bind_move", "finish_move", "start_move"]


@dataclass(slots=True, eq=False)
class BoundMove:
    """A move of one rank: commands and messages for each of its boxes, and the register that selects one of them."""

    boxes: list[BoundExchange]
    number: np.ndarray | None

    def test(self) -> bool:
        """Make progress; return True when all messages have arrived."""
        if self.number is None:
            return self.boxes[0].channel.test()
        number = int(self.number[0])
        return not 0 <= number < len(self.boxes) or self.boxes[number].channel.test()

    @property
    def channels(self) -> list[Channel]:
        """Channels that send or receive something."""
        return [bound.channel for bound in self.boxes if bound.remote]


@dataclass(slots=True)
class Buffers:
    """Memory for the messages of moves to one target, which use it in turn: only one is in progress at a time."""

    backend: Backend
    known: dict[object, np.ndarray] = field(default_factory=dict)

    def of(self, key: object, size: int) -> np.ndarray:
        """Return a number of bytes for a key."""
        memory = self.known.get(key)
        if memory is None or memory.nbytes < size:
            memory = self.known[key] = self.backend.message(size)
        return memory[:size]


def bind_move(binder: Binder, move: Move) -> None:
    """Emit a move as a whole."""
    start_move(binder, move)
    finish_move(binder, move)


def start_move(binder: Binder, move: Move) -> None:
    """Emit packing and sending, then the copies that stay on this rank."""
    bound = _bound(binder, move)

    def start(each: BoundExchange) -> None:
        binder.emit(*each.pack)
        if each.remote:
            binder.emit(*binder.backend.settled(), cmd.Start(each.channel))
        binder.emit(*each.local)

    _for_chosen(binder, move, bound, start)
    binder.moving[id(move)] = bound
    binder.open += bound.channels


def finish_move(binder: Binder, move: Move) -> None:
    """Emit waiting for the messages and unpacking them."""
    bound = binder.moving.pop(id(move))

    def finish(each: BoundExchange) -> None:
        if each.remote:
            binder.emit(cmd.Wait(each.channel))
        binder.emit(*each.unpack)

    _for_chosen(binder, move, bound, finish)
    for channel in bound.channels:
        binder.open.remove(channel)


def _for_chosen(binder: Binder, move: Move, bound: BoundMove, emit: Callable[[BoundExchange], None]) -> None:
    """Emit commands for every box, of which only those of the selected box are executed."""
    if move.number is None:
        emit(bound.boxes[0])
        return
    fetched, address = binder.backend.on_host(binder.storage.of(move.number))
    binder.emit(*fetched)
    labels, after = [cmd.Label() for _ in bound.boxes], cmd.Label()
    binder.pending.append(lambda: cmd.Switch(address, tuple(label.position for label in labels)))
    binder.jump(after)
    for label, each in zip(labels, bound.boxes, strict=True):
        binder.mark(label)
        emit(each)
        binder.jump(after)
    binder.mark(after)


def _bound(binder: Binder, move: Move) -> BoundMove:
    storage, comm = binder.storage, binder.comm
    a, b = move.source.field, move.target.field
    source, target = storage.layout(a.grid), storage.layout(b.grid)
    if source.ranks != target.ranks:
        raise LayoutError(
            f"{a!r} moves between layouts of the same ranks; found {source.ranks} and {target.ranks}",
            remedy="make both layouts for all ranks of the run; ranks may own nothing",
        )
    old, new = Ownership.of(a.grid, source, a.centre, None, a.on), Ownership.of(b.grid, target, b.centre, None, b.on)
    buffers = binder.buffers.setdefault(move.target, Buffers(binder.backend))
    boxes = []
    for box in move.boxes or (None,):
        transfer = points_transfer(old, new, comm.rank, box)
        if target.replicated:
            boxes.append(_spread(binder, move, transfer, buffers))
        else:
            leg = Leg(move.source, move.source, move.target, transfer, Reach.none(a.grid.ndim))
            boxes.append(bind_legs([leg], storage, comm, binder.next_tag(), binder.backend, {}, buffers.of))
    binder.channels += [bound.channel for bound in boxes]
    number = None if move.number is None else storage.of(move.number)
    bound = BoundMove(boxes, number)
    binder.keep.append((move, bound))
    return bound


def _spread(binder: Binder, move: Move, transfer: RankTransfer, buffers: Buffers) -> BoundExchange:
    """Bind a move to a replicated layout: one payload from each rank that owns a part of it to all others."""
    storage, size = binder.storage, np.dtype(move.source.field.dtype).itemsize
    sources, targets = storage.stored(move.source.field).blocks, storage.stored(move.target.field).blocks
    pack: list[BoxCopy] = []
    unpack: list[BoxCopy] = []
    spreads: list[Spread] = []
    payloads = {message.peer: message for message in transfer.receives}
    if transfer.sends:
        payloads[transfer.rank] = transfer.sends[0]
    for root in sorted(payloads):
        message = payloads[root]
        buffer = buffers.of(("spread", len(spreads)), message.cells * size)  # not by root: roots differ between boxes
        spreads.append(Spread(root, buffer, len(message.copies)))
        word = word_holding(buffer, binder.backend)
        for copy, at in zip(message.copies, message.offsets, strict=True):
            place, shape = BoxAddress(word, at * size, dense_strides(copy, size)), copy.source_box.shape
            if root == transfer.rank:
                pack.append(BoxCopy(box_place(sources[copy.source], move.source, copy.source_box), place, shape, size))
            else:
                unpack.append(
                    BoxCopy(place, box_place(targets[copy.target], move.target, copy.target_box), shape, size)
                )
    local = [
        BoxCopy(
            box_place(sources[copy.source], move.source, copy.source_box),
            box_place(targets[copy.target], move.target, copy.target_box),
            copy.source_box.shape,
            size,
        )
        for copy in transfer.local
    ]
    return BoundExchange(
        binder.routes.channel(binder.comm, spreads, binder.next_tag),
        copy_commands(pack, binder.backend, "pack"),
        copy_commands(local, binder.backend, "copy"),
        copy_commands(unpack, binder.backend, "unpack"),
        bool(spreads),
    )
