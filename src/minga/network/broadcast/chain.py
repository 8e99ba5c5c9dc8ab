"""Broadcast along a chain of TCP connections: each member passes on what it gets while more of it is coming.

For networks that carry neither multicast nor broadcast, and for switches, where a chain of P receivers takes hardly
longer than one: (n/s + P - 1) chunks instead of n/s. The members form a ring, and the messages of a root end at the
member before it. When the last member has a message, it says so to the one before, and so it goes back to the root.

Everything a member passes on it keeps until those after it have it; a ring that is closed without a lost member goes on
where the new neighbour's bytes end.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.errors import RunError
from minga.network.broadcast.heads import Array, Bytes, Into, finish, new_store, pack_head, target, unpack_head
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.passing import Passing, Shelf, chunk_for
from minga.network.broadcast.ring import ACK, DATA, START, STATE, Ring

__all__ = ["Chain", "ChainCounters", "Costs"]

_START: Final = struct.Struct("!HIQI")
_DATA: Final = struct.Struct("!HIQ")
_NAME: Final = struct.Struct("!HI")
_STATE: Final = struct.Struct("!HIqB")
_UNKNOWN: Final = -1
_AHEAD: Final = 2
"""Chunks that wait in this process for the kernel, so that it always has some."""
_AT_ONCE: Final = 16
"""Chunks passed on before looking at what came in."""
_GLANCE: Final = 0.05
"""Seconds of a wait that is looked at again."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What passing on a chunk costs: ``alpha`` seconds each, ``beta`` seconds a byte; ``chunk`` instead of the best."""

    alpha: float = 1e-4
    beta: float = 8e-9
    chunk: int | None = None


@dataclass(slots=True)
class ChainCounters:
    """What this member did: chunks given to the next one, those given again after a loss, and bytes."""

    chunks: int = 0
    again: int = 0
    bytes: int = 0


class Chain:
    """The chain at one member. ``ring`` is made by :meth:`start`, as both need each other.

    Nothing happens but in calls of :meth:`broadcast`, :meth:`receive` and :meth:`progress`, one thread at a time.
    """

    def __init__(self, own: int, size: int, costs: Costs, *, waiting_bytes: int = 64 << 20, max_bytes: int = 1 << 34):
        self.own, self.size, self.costs = own, size, costs
        self.counters = ChainCounters()
        self.shelf = Shelf()
        self._waiting_bytes, self._max_bytes = waiting_bytes, max_bytes
        self._number = 0
        self._ring: Ring | None = None
        self._compared = False  # whether the member behind has said what it has already
        self._asking = False
        self._more = False

    def start(self, ring: Ring) -> None:
        """Begin with these connections."""
        self._ring = ring
        ring.open()

    @property
    def ring(self) -> Ring:
        """The connections."""
        assert self._ring is not None
        return self._ring

    @property
    def lost(self) -> dict[int, str]:
        """The members that are gone, and why."""
        return self.ring.lost

    # What a group calls -----------------------------------------------------------------------------------------------
    def connect(self, seconds: float) -> bool:
        """Wait until both neighbours are there; False where they are not after so many seconds."""
        deadline = time.monotonic() + seconds
        while not self._connected() and not self._broken() and time.monotonic() < deadline:
            self.ring.progress(_GLANCE)
        return self._connected()

    def broadcast(self, data: object, *, wait: bool = True) -> Passing:
        """Send a message. Returns when all have it, or (``wait=False``) when the next member was given all of it.

        Raises MembersLost where that could not be, unless the ring is closed without lost members; RunError for a
        message that is too long.
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
        message = Passing(self.own, self._number, len(view), chunk, head, view, have=len(view), taken=True)
        self.shelf.add(message)
        self._pump()
        while not (message.answered or (not wait and self._given(message))):
            self.progress(_GLANCE)
            self._raise_lost()
        return message

    def receive(self, root: int, into: Into | None = None, *, timeout: float | None = None) -> Array | bytes:
        """The next message of a root, in ``into`` if given.

        TimeoutError after so many seconds, MembersLost where it cannot come any more, RunError where it does not fit.
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
            data = data.copy()  # others still get it from here
        return finish(data, unpack_head(message.head), into)

    def progress(self, seconds: float = 0.0) -> None:
        """Pass on what has come, waiting so long for the first of it."""
        self.ring.progress(0.0 if self._more else seconds)
        self._pump()

    @property
    def sent(self) -> int:
        """Bytes of this member's latest message that were given to the next one."""
        own = self.shelf.find(self.own, self._number)
        return max(0, own.passed) if own is not None else 0

    @property
    def files(self) -> list[int]:
        """Descriptors to wait on."""
        return [one.fileno() for one in self.ring.files()[0]]

    def unfinished(self) -> bool:
        """Whether others still need something of this member."""
        return self.shelf.unfinished()

    def linger(self, seconds: float) -> None:
        """Pass on all that others still need, until they have it or nothing has moved for so long."""
        deadline, before = time.monotonic() + seconds, -1
        while self.shelf.unfinished() and not self._broken() and time.monotonic() < deadline:
            self.progress(_GLANCE)
            if self.shelf.moved() != before:
                deadline, before = time.monotonic() + seconds, self.shelf.moved()

    def close(self) -> None:
        """Leave the ring."""
        self.ring.leave()

    # What the ring calls ----------------------------------------------------------------------------------------------
    def heard(self, kind: int, content: memoryview, *, before: bool) -> None:
        """See :class:`~minga.network.broadcast.ring.User`. What makes no sense is dropped."""
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
        """See :class:`~minga.network.broadcast.ring.User`: a new member before is told what is here already."""
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
    def _await(self, root: int, deadline: float | None) -> Passing:
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
                    f"member {root} announced a message of {total} bytes; {self._max_bytes} is the most",
                    remedy="send it in several messages",
                )
            head, store = bytes(content[_START.size :]), new_store(total).data
            self.shelf.add(Passing(root, number, total, max(1, chunk), head, store))

    def _store(self, content: memoryview) -> None:
        root, number, offset = _DATA.unpack_from(content)
        message, data = self.shelf.find(root, number), content[_DATA.size :]
        if message is None or message.root == self.own:
            return
        skip = message.have - offset  # after the ring was closed anew, some may come twice
        if 0 <= skip < len(data) and offset + len(data) <= message.total:
            message.data[message.have : offset + len(data)] = data[skip:]
            message.have = offset + len(data)

    def _compare(self, content: memoryview) -> None:
        """The member behind is another one: go on where its bytes end."""
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
        """Give the member behind what there is for it, and tell the one before what is done."""
        ring, self._more = self.ring, False
        for message in list(self.shelf.messages.values()):
            if ring.ends(message.root):
                message.acknowledged = True
            elif not message.acknowledged and ring.behind is None:
                ring.need(before=False)
            for _ in range(_AT_ONCE):
                if not (self._may_pass(message) and self._pass(message)):
                    break
                ring.flush()  # until the kernel is full: then it tells when it has room again
            else:
                self._more = True
            if message.acknowledged and message.complete and not message.answered:
                message.answered = True
                if message.root != self.own:
                    self._answer(message)
                self.shelf.tidy(message)
        ring.reading = self._asking or self.shelf.held() <= self._waiting_bytes
        ring.flush()

    def _may_pass(self, message: Passing) -> bool:
        return self._compared and not message.acknowledged and self.ring.room(_AHEAD * message.chunk)

    def _pass(self, message: Passing) -> bool:
        """Give a message's next piece to the member behind; False where there is none."""
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

    def _answer(self, message: Passing) -> None:
        self.ring.send(ACK, _NAME.pack(message.root, message.number), before=True)

    def _given(self, message: Passing) -> bool:
        behind = self.ring.behind
        return message.passed == message.total and (behind is None or not behind.pending)

    def _connected(self) -> bool:
        links = (self.ring.before, self.ring.behind)
        return len(self.ring.alive) == 1 or all(link is not None and link.ready and not link.pending for link in links)

    def _broken(self) -> bool:
        return bool(self.lost) and not self.ring.around

    def _raise_lost(self) -> None:
        if self._broken():
            raise MembersLost(tuple(self.lost), why="; ".join(dict.fromkeys(self.lost.values())))
