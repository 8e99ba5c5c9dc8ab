"""Broadcast along a chain of TCP connections: each member forwards data while it is still receiving more.

This route is meant for networks that carry neither multicast nor broadcast, and for switches, where a chain of P
receivers takes hardly longer than a single one: the time of (n/s + P - 1) chunks instead of n/s, for a message of n
bytes in chunks of s. The members form a ring, and the messages of a root end at the member before it. When the last
member has received a message, it acknowledges it to the member before, which passes the acknowledgement on, and so
back to the root.

A member keeps everything it forwards until the members behind it have received it. When the ring is closed around a
lost member, transfer resumes where the data of the new neighbour end.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.errors import RunError
from minga.network.broadcast.forwarding import Forwarding, MessageStore, chunk_for
from minga.network.broadcast.heads import Array, Bytes, Into, finish, new_store, pack_head, target, unpack_head
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.ring import ACK, DATA, START, STATE, Ring

__all__ = ["Chain", "ChainCounters", "Costs"]

_START: Final = struct.Struct("!HIQI")
_DATA: Final = struct.Struct("!HIQ")
_NAME: Final = struct.Struct("!HI")
_STATE: Final = struct.Struct("!HIqB")
_UNKNOWN: Final = -1
_AHEAD: Final = 2
"""Chunks queued in this process, so that the kernel never runs out of data to send."""
_AT_ONCE: Final = 16
"""Largest number of chunks of a message that are forwarded before incoming data are read."""
_GLANCE: Final = 0.05
"""Longest wait, in seconds, before conditions are checked again."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost of forwarding a chunk: ``alpha`` seconds plus ``beta`` seconds per byte.

    ``chunk`` fixes the bytes of a chunk; None selects the best size.
    """

    alpha: float = 1e-4
    beta: float = 8e-9
    chunk: int | None = None


@dataclass(slots=True)
class ChainCounters:
    """Counters of a member: chunks and bytes forwarded, and messages resumed after a loss (``again``)."""

    chunks: int = 0
    again: int = 0
    bytes: int = 0


class Chain:
    """One member's end of the chain. :meth:`start` sets ``ring``, because chain and ring refer to each other.

    Data move only during calls of :meth:`broadcast`, :meth:`receive` and :meth:`progress`, which only one thread may
    make at a time.
    """

    def __init__(self, own: int, size: int, costs: Costs, *, waiting_bytes: int = 64 << 20, max_bytes: int = 1 << 34):
        self.own, self.size, self.costs = own, size, costs
        self.counters = ChainCounters()
        self.shelf = MessageStore()
        self._waiting_bytes, self._max_bytes = waiting_bytes, max_bytes
        self._number = 0
        self._ring: Ring | None = None
        self._compared = False  # True once the member behind has told what it has already
        self._asking = False
        self._more = False

    def start(self, ring: Ring) -> None:
        """Open the ring that provides the connections."""
        self._ring = ring
        ring.open()

    @property
    def ring(self) -> Ring:
        """Ring of connections to the neighbours."""
        assert self._ring is not None
        return self._ring

    @property
    def lost(self) -> dict[int, str]:
        """Lost members, with the reason for each."""
        return self.ring.lost

    # Interface for the group ------------------------------------------------------------------------------------------
    def connect(self, seconds: float) -> bool:
        """Wait until both neighbours are connected; return False if they are not after ``seconds``."""
        deadline = time.monotonic() + seconds
        while not self._connected() and not self._broken() and time.monotonic() < deadline:
            self.ring.progress(_GLANCE)
        return self._connected()

    def broadcast(self, data: object, *, wait: bool = True) -> Forwarding:
        """Send a message to all members.

        Returns when all members have received it or, with ``wait=False``, when all of it has been passed to the next
        member.

        Raises
        ------
        MembersLost
            If members were lost and the ring cannot be closed around them.
        RunError
            If the message is too long.
        """
        self._raise_lost()
        head, view = pack_head(data)
        if len(view) > self._max_bytes:
            raise RunError(
                f"a message of this group has at most {self._max_bytes} bytes, found {len(view)}",
                remedy="send it in parts",
            )
        self._number += 1
        chunk = self.costs.chunk or chunk_for(len(view), self.size - 1, self.costs.alpha, self.costs.beta)
        message = Forwarding(self.own, self._number, len(view), chunk, head, view, have=len(view), taken=True)
        self.shelf.add(message)
        self._pump()
        while not (message.answered or (not wait and self._given(message))):
            self.progress(_GLANCE)
            self._raise_lost()
        return message

    def receive(self, root: int, into: Into | None = None, *, timeout: float | None = None) -> Array | bytes:
        """Receive and return the next message of a root, in ``into`` if given.

        Raises
        ------
        TimeoutError
            If the message is not complete after ``timeout`` seconds.
        MembersLost
            If the message can no longer arrive.
        RunError
            If the message does not fit.
        """
        target(into)
        deadline = None if timeout is None else time.monotonic() + timeout
        self._asking = True
        try:
            message = self._await(root, deadline)
        finally:
            self._asking = False
        self.shelf.take(message)
        self._pump()
        data: Bytes = np.frombuffer(message.data, np.uint8)
        if into is None and not message.answered:
            data = data.copy()  # this buffer is still being forwarded
        return finish(data, unpack_head(message.head), into)

    def progress(self, seconds: float = 0.0) -> None:
        """Forward received data, waiting at most ``seconds`` for the first of it."""
        self.ring.progress(0.0 if self._more else seconds)
        self._pump()

    @property
    def sent(self) -> int:
        """Bytes of this member's latest message that were passed to the next member."""
        own = self.shelf.find(self.own, self._number)
        return max(0, own.passed) if own is not None else 0

    @property
    def files(self) -> list[int]:
        """File descriptors to wait on."""
        return [one.fileno() for one in self.ring.files()[0]]

    def unfinished(self) -> bool:
        """Return True if other members still need data from this member."""
        return self.shelf.unfinished()

    def linger(self, seconds: float) -> None:
        """Forward everything that others still need, until they have it or nothing has moved for ``seconds``."""
        deadline, before = time.monotonic() + seconds, -1
        while self.shelf.unfinished() and not self._broken() and time.monotonic() < deadline:
            self.progress(_GLANCE)
            if self.shelf.moved() != before:
                deadline, before = time.monotonic() + seconds, self.shelf.moved()

    def close(self) -> None:
        """Leave the ring."""
        self.ring.leave()

    # Interface for the ring -------------------------------------------------------------------------------------------
    def heard(self, kind: int, content: memoryview, *, before: bool) -> None:
        """See :class:`~minga.network.broadcast.ring.User`. Malformed messages are dropped."""
        if kind == START and before and len(content) >= _START.size:
            self._begin(content)
        elif kind == DATA and before and len(content) >= _DATA.size:
            self._store(content)
        elif kind == ACK and not before and len(content) == _NAME.size:
            if message := self.shelf.find(*_NAME.unpack(content)):
                message.acknowledged = True
        elif kind == STATE and not before and len(content) % _STATE.size == 0:
            self._compare(content)
        self._pump()

    def joined(self, *, before: bool) -> None:
        """See :class:`~minga.network.broadcast.ring.User`. A new member before is told what this member has already."""
        if before:
            entries = [
                _STATE.pack(one.root, one.number, one.have, one.answered)
                for one in self.shelf.messages.values()
                if one.root != self.own
            ]
            entries += [_STATE.pack(root, number, _UNKNOWN, 0) for root, number in self.shelf.wanted.items()]
            self.ring.send(STATE, b"".join(entries), before=True)
            for one in self.shelf.messages.values():
                if one.answered and one.root != self.own:
                    self._answer(one)
        else:
            self._compared = False
        self._pump()

    def changed(self) -> None:
        """See :class:`~minga.network.broadcast.ring.User`."""
        for message in list(self.shelf.messages.values()):
            if message.root in self.lost and not message.complete:
                self.shelf.drop(message)

    # Inside -----------------------------------------------------------------------------------------------------------
    def _await(self, root: int, deadline: float | None) -> Forwarding:
        while True:
            self._raise_lost()
            message = self.shelf.next(root)
            if message is not None and message.complete:
                return message
            if root in self.lost:
                raise MembersLost((root,), why=self.lost[root])
            self.ring.need(before=True)
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
            self.progress(_GLANCE)

    def _begin(self, content: memoryview) -> None:
        root, number, total, chunk = _START.unpack_from(content)
        known = self.shelf.find(root, number)
        if known is None and not self.shelf.old(root, number) and root in self.ring.order and root != self.own:
            if total > self._max_bytes:
                raise RunError(
                    f"member {root} announced a message of {total} bytes; the maximum is {self._max_bytes}",
                    remedy="send it in several messages",
                )
            head, store = bytes(content[_START.size :]), new_store(total).data
            self.shelf.add(Forwarding(root, number, total, max(1, chunk), head, store))

    def _store(self, content: memoryview) -> None:
        root, number, offset = _DATA.unpack_from(content)
        message, data = self.shelf.find(root, number), content[_DATA.size :]
        if message is None or message.root == self.own:
            return
        skip = message.have - offset  # after the ring was closed anew, some data may arrive twice
        if 0 <= skip < len(data) and offset + len(data) <= message.total:
            message.data[message.have : offset + len(data)] = data[skip:]
            message.have = offset + len(data)

    def _compare(self, content: memoryview) -> None:
        """Resume all messages where the data of a new member behind end, given the state that it sent."""
        wanted: dict[int, int] = {}
        there: dict[tuple[int, int], tuple[int, int]] = {}
        for root, number, have, answered in _STATE.iter_unpack(content):
            if have == _UNKNOWN:
                wanted[root] = number
            else:
                there[root, number] = have, answered
        for message in self.shelf.messages.values():
            have, answered = there.get((message.root, message.number), (_UNKNOWN, 0))
            if answered or (have == _UNKNOWN and message.number < wanted.get(message.root, 1)):
                message.acknowledged = True
                continue
            message.resume(min(have, message.total))
            self.counters.again += 1
        self._compared = True

    def _pump(self) -> None:
        """Pass available data to the member behind, and acknowledge completed messages to the member before."""
        ring, self._more = self.ring, False
        for message in list(self.shelf.messages.values()):
            if ring.ends(message.root):
                message.acknowledged = True
            elif not message.acknowledged and ring.next is None:
                ring.need(before=False)
            for _ in range(_AT_ONCE):
                if not (self._may_pass(message) and self._pass(message)):
                    break
                ring.flush()  # until the kernel's buffer is full; polling then tells when there is room again
            else:
                self._more = True
            if message.acknowledged and message.complete and not message.answered:
                message.answered = True
                if message.root != self.own:
                    self._answer(message)
                self.shelf.tidy(message)
        ring.reading = self._asking or self.shelf.held() <= self._waiting_bytes
        ring.flush()

    def _may_pass(self, message: Forwarding) -> bool:
        return self._compared and not message.acknowledged and self.ring.room(_AHEAD * message.chunk)

    def _pass(self, message: Forwarding) -> bool:
        """Pass the next piece of a message to the member behind; return False if there is none."""
        name = message.root, message.number
        if message.passed < 0:
            self.ring.send(START, _START.pack(*name, message.total, message.chunk), message.head, before=False)
            message.passed = 0
            return True
        size = message.ready_to_pass()
        if not size:
            return False
        piece = message.data[message.passed : message.passed + size]
        self.ring.send(DATA, _DATA.pack(*name, message.passed), piece, before=False)
        message.passed += size
        self.counters.chunks += 1
        self.counters.bytes += size
        return True

    def _answer(self, message: Forwarding) -> None:
        self.ring.send(ACK, _NAME.pack(message.root, message.number), before=True)

    def _given(self, message: Forwarding) -> bool:
        behind = self.ring.next
        return message.passed == message.total and (behind is None or not behind.pending)

    def _connected(self) -> bool:
        links = (self.ring.previous, self.ring.next)
        return len(self.ring.alive) == 1 or all(link is not None and link.ready and not link.pending for link in links)

    def _broken(self) -> bool:
        return bool(self.lost) and not self.ring.around

    def _raise_lost(self) -> None:
        if self._broken():
            raise MembersLost(tuple(self.lost), why="; ".join(dict.fromkeys(self.lost.values())))
