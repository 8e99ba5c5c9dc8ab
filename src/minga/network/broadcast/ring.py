"""Connections of a chain: each member has one to the next member of a ring and one from the member before it.

The neighbours of a member detect its loss, at once if the connection breaks, otherwise after ``patience`` seconds of
silence, and notify all others. With ``around``, the ring is then closed without the lost member.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from minga.network.broadcast.link import Link, LinkError, connect

__all__ = ["ACK", "DATA", "START", "STATE", "Ring", "User"]

START, DATA, ACK, STATE, HEART, LOST, BYE = range(1, 8)
_LOSS: Final = struct.Struct("!HB")
_BEATS: Final = 4
"""Signs of life sent within the time after which a silent member is considered lost."""
_FAREWELL: Final = 0.5
"""Time limit, in seconds, of each phase of leaving."""
_MOST_GUESTS: Final = 16
"""Connections whose key is not proved yet; if there are more, the oldest is dropped to make room for members."""


class User(Protocol):
    """Object that sends and receives over a ring."""

    def heard(self, kind: int, content: memoryview, *, before: bool) -> None:
        """Process a frame from the member before or behind; the content is valid only during the call."""

    def joined(self, *, before: bool) -> None:
        """Note that a connection with the member before or behind is ready, be it the first one or a new one."""

    def changed(self) -> None:
        """Note that members were lost."""


class Ring:
    """The ring connections of one member.

    Parameters
    ----------
    user
        Object that is notified of frames, connections and losses.
    listener
        Listening socket of this member.
    own
        Number of this member.
    order
        The members in ring order; the last is followed by the first.
    places
        Address and port of each member's listener.
    key, session
        Key and session of the group.
    patience
        Seconds of silence after which a neighbour is considered lost.
    around
        Close the ring without lost members.
    clock
        Monotonic clock.
    """

    def __init__(
        self,
        user: User,
        listener: socket.socket,
        own: int,
        order: Sequence[int],
        places: Sequence[tuple[str, int]],
        key: bytes,
        session: bytes,
        *,
        patience: float,
        around: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.user, self.own, self.order, self.places = user, own, list(order), list(places)
        self.lost: dict[int, str] = {}
        """Lost members, with the reason for each."""
        self.listener = listener
        self.previous: Link | None = None
        self.next: Link | None = None
        self.patience, self.around, self.clock = patience, around, clock
        self.reading = True
        """True if frames from the member before are accepted; otherwise they wait at their sender."""
        self._key, self._session = key, session
        self._guests: list[Link] = []
        self._left: set[int] = set()
        self._looked_at = clock()
        self._heard: dict[Link, float] = {}
        self._spoken: dict[Link, float] = {}

    def open(self) -> None:
        """Begin to connect to the member behind this one."""
        if len(self.order) > 1:
            self._connect()

    @property
    def alive(self) -> list[int]:
        """Members that are not lost, in ring order."""
        return [member for member in self.order if member not in self.lost]

    def neighbour(self, step: int) -> int:
        """Return the member ``step`` places behind this one, among those that are not lost."""
        alive = self.alive
        return alive[(alive.index(self.own) + step) % len(alive)]

    def ends(self, root: int) -> bool:
        """Return True if messages of a root end here, because all members between here and the root are lost."""
        count = len(self.order)
        own, last = self.order.index(self.own), self.order.index(root)
        between = ((own + step) % count for step in range(1, (last - own) % count or count))
        return all(self.order[place] in self.lost for place in between)

    # Progress ---------------------------------------------------------------------------------------------------------
    def files(self) -> tuple[list[Link | socket.socket], list[Link]]:
        """Return the objects to wait on for reading and for writing."""
        links = [link for link in (self.previous, self.next, *self._guests) if link is not None]
        readable: list[Link | socket.socket] = [link for link in links if self.reading or link is not self.previous]
        return [*readable, self.listener], [link for link in links if link.pending]

    def progress(self, seconds: float) -> None:
        """Read and write what is possible, after waiting at most ``seconds`` for the first event."""
        readable, writable = self.files()
        poll = select.poll()  # not `select`, which supports no descriptors above 1023
        known: dict[int, Link | socket.socket] = {one.fileno(): one for one in readable}
        for number in known:
            poll.register(number, select.POLLIN)
        for link in writable:
            known[link.fileno()] = link
            poll.register(link.fileno(), select.POLLOUT | (select.POLLIN if link in readable else 0))
        for number, events in poll.poll(max(0.0, seconds) * 1000):
            one = known[number]
            if not isinstance(one, Link):
                self._accept()
                continue
            if events & select.POLLOUT:
                self._guarded(one, one.write)
            if events & ~select.POLLOUT and one.fileno() >= 0:
                self._guarded(one, partial(self._read, one))
        self._look_at_clock()

    def flush(self) -> None:
        """Pass queued data to the kernel."""
        for link in (self.previous, self.next):
            if link is not None and link.pending:
                self._guarded(link, link.write)

    def send(self, kind: int, *parts: bytes | memoryview, before: bool) -> bool:
        """Send a frame to the member before or behind; return False if there is no connection at present."""
        link = self.previous if before else self.next
        if link is None or not link.ready:
            return False
        link.send(kind, *parts)
        self._spoken[link] = self.clock()
        return True

    def room(self, most: int) -> bool:
        """Return True if fewer than ``most`` bytes are queued for the member behind."""
        return self.next is not None and self.next.ready and self.next.pending < most

    def need(self, *, before: bool) -> None:
        """Declare that a neighbour is needed; if it has left the group, it is considered lost from now on."""
        if len(self.alive) > 1 and (member := self.neighbour(-1 if before else 1)) in self._left:
            self.lose({member: "it had left the group"})

    def lose(self, members: dict[int, str]) -> None:
        """Mark members as lost, notify the others, and close the ring without them if ``around`` is set."""
        news = {member: why for member, why in members.items() if member not in self.lost and member != self.own}
        if not news or (self.lost and not self.around):
            return  # the group has already failed, and others leave because of that
        self.lost |= news
        for before in (True, False):
            self.send(LOST, self._said(), before=before)
        for link in [link for link in (self.previous, self.next) if link is not None and link.peer in news]:
            self._drop(link)
        if self.around and len(self.alive) > 1:
            if self.next is not None and self.next.peer != self.neighbour(1):
                self._drop(self.next)
            if self.next is None:
                self._connect()
        self.user.changed()

    def leave(self) -> None:
        """Notify the neighbours that this member leaves, and close the connections."""
        for before in (True, False):
            self.send(BYE, before=before)
        deadline = self.clock() + _FAREWELL
        while any(link.pending for link in (self.previous, self.next) if link) and self.clock() < deadline:
            self.progress(0.05)
        # Closing a connection with unread input would make the other end discard the last data that were sent to it.
        for link in (self.previous, self.next):
            if link is not None:
                link.drain(self.clock() + _FAREWELL)
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for link in (self.previous, self.next, *self._guests):
            if link is not None:
                link.close()
        self.previous = self.next = None
        self._guests.clear()
        self.listener.close()

    # Connections ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        peer = self.neighbour(1)
        try:
            link = connect(self.places[peer], self.own, peer, self._key, self._session)
        except LinkError as error:
            self.lose({peer: str(error)})
            return
        self.next = link
        self._heard[link] = self._spoken[link] = self.clock()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed before it was accepted, or no descriptors left
            connection, _ = self.listener.accept()
            guest = Link(connection, self.own, self._key, self._session, None)
            self._guests.append(guest)
            self._heard[guest] = self._spoken[guest] = self.clock()
            if len(self._guests) > _MOST_GUESTS:
                self._forget(self._guests.pop(0))

    def _admit(self, guest: Link) -> None:
        """Admit a connection whose key is proved: that of the member before, or of the one that replaces it."""
        self._guests.remove(guest)
        expected = self.neighbour(-1) if len(self.alive) > 1 else self.own
        if guest.peer in self.lost or guest.peer not in self.order or (guest.peer != expected and not self.around):
            self._forget(guest)
            return
        if self.previous is not None:
            self._drop(self.previous)
        self.previous = guest
        if guest.peer != expected:  # it knows of losses of which this member has not been notified yet
            alive = self.alive
            place, own = alive.index(guest.peer), alive.index(self.own)
            between = [alive[(place + step) % len(alive)] for step in range(1, (own - place) % len(alive))]
            self.lose(dict.fromkeys(between, "the member before it found it gone"))
        self.user.joined(before=True)

    def _read(self, link: Link) -> None:
        was_ready = link.ready
        self._heard[link] = self.clock()
        for kind, content in link.read():
            if not was_ready:
                was_ready = True
                self._welcome(link)
            self._take(link, kind, content)
            if link not in (self.previous, self.next):
                return
        if link.ready and not was_ready:
            self._welcome(link)

    def _welcome(self, link: Link) -> None:
        if link in self._guests:
            self._admit(link)
        else:
            self.user.joined(before=False)
        if self.lost and link in (self.previous, self.next):
            link.send(LOST, self._said())

    def _take(self, link: Link, kind: int, content: memoryview) -> None:
        before = link is self.previous
        if kind == LOST:
            self.lose(self._losses(bytes(content)))
        elif kind == BYE:
            self._left.add(link.peer)
        elif kind != HEART and (before or link is self.next):
            self.user.heard(kind, content, before=before)

    def _said(self) -> bytes:
        said = [(member, why.encode()[:200]) for member, why in self.lost.items()]
        return b"".join(_LOSS.pack(member, len(why)) + why for member, why in said)

    def _losses(self, content: bytes) -> dict[int, str]:
        found, at = {}, 0
        while at + _LOSS.size <= len(content):
            member, length = _LOSS.unpack_from(content, at)
            at += _LOSS.size + length
            if member in self.order:
                found[member] = content[at - length : at].decode(errors="replace")
        return found

    def _guarded(self, link: Link, action: Callable[[], None]) -> None:
        """Perform an action on a link; if the link is broken, its member is lost, unless it has left the group."""
        try:
            action()
        except LinkError as error:
            if link in self._guests:
                self._guests.remove(link)
                self._forget(link)
            elif link in (self.previous, self.next):
                self._drop(link)
                if link.peer not in self._left:
                    self.lose({link.peer: str(error)})

    def _drop(self, link: Link) -> None:
        if link is self.previous:
            self.previous = None
        elif link is self.next:
            self.next = None
        self._forget(link)

    def _forget(self, link: Link) -> None:
        link.close()
        self._heard.pop(link, None)
        self._spoken.pop(link, None)

    def _look_at_clock(self) -> None:
        now = self.clock()
        if now - self._looked_at > self.patience / 2:  # this member was suspended, and received nothing
            self._heard = dict.fromkeys(self._heard, now)
        self._looked_at = now
        for link in (self.previous, self.next):
            if link is None or link not in (self.previous, self.next):
                continue  # the same member on both sides: its loss has ended both connections
            if link.ready and now - self._spoken[link] > self.patience / _BEATS:
                self.send(HEART, before=link is self.previous)
            unheard = self.reading or link is not self.previous
            if unheard and now - self._heard[link] > self.patience:
                self._drop(link)
                self.lose({link.peer: f"it was silent for {self.patience:g} s"})
        for guest in [guest for guest in self._guests if now - self._heard[guest] > min(self.patience, 5.0)]:
            self._guests.remove(guest)
            self._forget(guest)
