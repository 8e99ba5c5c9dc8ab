"""Communication of members before they form a group: each contributes a small value, and all receive all values.

It uses an MPI communicator, pipes to the process that started the members, or TCP connections to the first member.
The values are trusted, so these are the channels on which the group's key is distributed or proved.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from minga.errors import RunError
from minga.network.broadcast.keys import JOINING
from minga.network.broadcast.link import Link, LinkError, connect, listen

__all__ = ["CommMeeting", "Communicator", "LineMeeting", "Rendezvous", "TcpMeeting"]

_MORE, _LAST = 1, 2
_PART: Final = 1 << 19
_PAUSE: Final = 0.05
_STRANGERS: Final = 32
"""Connections accepted at a time besides those of the members; if there are more, the oldest is dropped."""


class Rendezvous(Protocol):
    """Channel over which ``size`` members communicate; ``rank`` is the number of this one."""

    rank: int
    size: int

    def exchange(self, value: Any) -> list[Any]:
        """Contribute a JSON-serialisable value and return those of all members, in order; collective."""

    def close(self) -> None:
        """End the meeting."""


class Communicator(Protocol):
    """Part of MPI that is needed, which the communicators of mpi4py and minga's own provide."""

    @property
    def rank(self) -> int:
        """Number of this rank."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    def gather(self, value: Any, /) -> list[Any] | None:
        """Return the values of all ranks at rank 0, None at the others."""

    def bcast(self, value: Any, /) -> Any:
        """Return the value of rank 0 at all ranks."""


class CommMeeting:
    """Rendezvous of the ranks of a communicator."""

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.rank, self.size = communicator.rank, communicator.size

    def exchange(self, value: Any) -> list[Any]:
        """See :class:`Rendezvous`."""
        said: list[Any] = self.communicator.bcast(self.communicator.gather(value))
        return said

    def close(self) -> None:
        """Do nothing; the communicator remains open."""


class LineMeeting:
    """Rendezvous of processes with a common parent, which answers their ``ask`` once all of them have asked."""

    def __init__(self, rank: int, size: int, ask: Callable[[Any], list[Any]]) -> None:
        self.rank, self.size = rank, size
        self._ask = ask

    def exchange(self, value: Any) -> list[Any]:
        """See :class:`Rendezvous`."""
        return self._ask(value)

    def close(self) -> None:
        """Do nothing; the pipes remain open."""


class TcpMeeting:
    """Rendezvous over TCP connections to member 0, at an address and port known to all; each must know the key.

    Raises
    ------
    RunError
        If not all members arrive within ``patience`` seconds; the message names those that are missing.
    """

    def __init__(self, rank: int, size: int, place: tuple[str, int], key: bytes, patience: float) -> None:
        self.rank, self.size, self.patience = rank, size, patience
        self._place, self._key = place, key
        self._links: dict[int, Link] = {}
        self._guests: list[Link] = []
        self._heard: dict[Link, list[Any]] = {}
        self._parts: dict[Link, bytes] = {}
        self._gathering = False
        try:
            if rank == 0:
                self._gather()
            else:
                self._visit()
        except BaseException:
            self.close()
            raise

    def exchange(self, value: Any) -> list[Any]:
        """See :class:`Rendezvous`."""
        if self.rank:
            first = self._links[0]
            self._say(first, value)
            self._wait(lambda: [] if self._heard[first] else [0])
            answer: list[Any] = self._heard[first].pop(0)
            return answer
        self._wait(lambda: [member for member, link in self._links.items() if not self._heard[link]])
        said = [value, *(self._heard[self._links[member]].pop(0) for member in range(1, self.size))]
        for link in self._links.values():
            self._say(link, said)
        self._wait(lambda: [member for member, link in self._links.items() if link.pending])
        return said

    def close(self) -> None:
        """Close the connections."""
        for link in (*self._links.values(), *self._guests):
            link.close()
        self._links.clear()
        self._guests.clear()

    def _say(self, link: Link, value: Any) -> None:
        text = json.dumps(value).encode()
        for start in range(0, len(text), _PART):
            link.send(_LAST if start + _PART >= len(text) else _MORE, text[start : start + _PART])

    def _gather(self) -> None:
        try:
            listener = listen(*self._place)
        except OSError as error:
            raise RunError(
                f"member 0 cannot listen at {self._place[0]} port {self._place[1]}: {error.strerror}",
                remedy="give an address of this machine and a port that no other program uses",
            ) from error
        self._gathering = True
        with listener:
            self._wait(lambda: [member for member in range(1, self.size) if member not in self._links], listener)
        self._gathering = False
        for guest in self._guests:
            self._dismiss(guest)
        self._guests.clear()

    def _visit(self) -> None:
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self._links[0] = connect(self._place, self.rank, 0, self._key, JOINING)
                self._heard[self._links[0]] = []
                self._wait(lambda: [] if self._links[0].ready else [0])
                return
            except (LinkError, RunError) as error:
                if time.monotonic() > deadline or "key" in str(error):
                    raise RunError(
                        f"member {self.rank} cannot join at {self._place[0]} port {self._place[1]}: {error}",
                        remedy="start member 0 too, with the same key, address and port",
                    ) from error
            if 0 in self._links:
                self._dismiss(self._links.pop(0))
            time.sleep(_PAUSE)  # member 0 may start later

    def _wait(self, missing: Callable[[], list[int]], listener: socket.socket | None = None) -> None:
        """Read and write until no member is missing."""
        deadline = time.monotonic() + self.patience
        while waited_for := missing():
            if time.monotonic() > deadline:
                who = f"member{'s' if len(waited_for) > 1 else ''} {', '.join(map(str, waited_for))}"
                raise RunError(
                    f"{who} did not respond within {self.patience:g} s",
                    remedy="start all members, with the same size, address, port and key",
                )
            links = [*self._guests, *self._links.values()]
            inputs: list[Link | socket.socket] = [*links, *([] if listener is None else [listener])]
            ready, free, _ = select.select(inputs, [link for link in links if link.pending], (), 0.1)
            for link in free:
                self._guarded(link, link.write)
            for one in ready:
                if isinstance(one, Link):
                    if one.fileno() >= 0:
                        self._guarded(one, partial(self._hear, one))
                else:
                    self._accept(one)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed before it was accepted
            connection, _ = listener.accept()
            guest = Link(connection, self.rank, self._key, JOINING, None)
            self._guests.append(guest)
            self._heard[guest] = []
            if len(self._guests) > self.size + _STRANGERS:
                self._dismiss(self._guests.pop(0))

    def _dismiss(self, link: Link) -> None:
        link.close()
        self._heard.pop(link, None)
        self._parts.pop(link, None)

    def _hear(self, link: Link) -> None:
        for kind, content in link.read():
            text = self._parts.pop(link, b"") + bytes(content)
            if kind == _LAST:
                self._heard[link].append(json.loads(text))
            else:
                self._parts[link] = text
        if link.ready and link in self._guests:
            self._guests.remove(link)
            if 0 < link.peer < self.size and link.peer not in self._links:
                self._links[link.peer] = link
            else:
                self._dismiss(link)

    def _guarded(self, link: Link, action: Callable[[], None]) -> None:
        try:
            action()
        except LinkError as error:
            self._dismiss(link)
            if link in self._guests:
                self._guests.remove(link)  # not a member
            elif self._gathering:
                self._links.pop(link.peer)  # it may connect again
            else:
                raise RunError(
                    f"the group was not formed: {error}", remedy="see the errors of other members"
                ) from error
