"""Group of programs on several machines, and its broadcasts.

>>> with Group.of(MPI.COMM_WORLD) as group:
...     panel = group.bcast(panel if group.rank == 0 else None)

A broadcast is collective: all members call it, with the same root, in the same order. The calling thread drives the
sockets; between calls, a background thread of the group does so. A member that is busy computing thus still answers
the root's question whether it has everything, forwards data that others wait for, and receives data that arrive early.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import numpy as np

from minga.errors import CaseError, ProgramError, RunError
from minga.network.broadcast.chain import Chain
from minga.network.broadcast.driver import Driver
from minga.network.broadcast.heads import Into, copied
from minga.network.broadcast.joining import GroupOptions, RouteName, join
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.member import Message
from minga.network.broadcast.options import DEAD_TIMEOUT
from minga.network.broadcast.rendezvous import CommMeeting, Communicator, LineMeeting, Rendezvous, TcpMeeting
from minga.network.broadcast.root import Root
from minga.network.broadcast.secret import read_key

__all__ = ["Group", "Statistics"]

_IDLE, _BUSY = 0.25, 0.01
"""Seconds between checks of the timers while idle and while busy; shorter if ``dead_timeout`` is short."""
_LINGER: Final = 5.0
"""Longest time, in seconds, for which a leaving member answers those that do not know that it has everything."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counters of this member over all broadcasts so far.

    ``messages`` and ``bytes`` count what was sent or received; ``seconds`` is the time spent in :meth:`Group.bcast`;
    ``datagrams`` counts those sent as a root, including ``repairs``; ``chunks`` counts those passed to the next member
    of a chain.
    """

    route: RouteName
    messages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    datagrams: int = 0
    repairs: int = 0
    chunks: int = 0


class Group:
    """Group of members that broadcast to each other, created by :meth:`of` or :meth:`join`. A context manager.

    Threads may share a group; their broadcasts are then carried out one after another.

    Parameters
    ----------
    meeting
        How members find each other.
    key
        32 random bytes that all members share.
    wishes
        Options of the group.

    Attributes
    ----------
    rank
        Number of this member.
    size
        Number of members.
    route
        Route that carries the messages.
    names
        Host names of all members.
    rejected_routes
        Reasons why better routes were not chosen.
    """

    def __init__(self, meeting: Rendezvous, key: bytes, wishes: GroupOptions) -> None:
        joined = join(meeting, key, wishes)
        self.rank, self.size = meeting.rank, meeting.size
        self.route: RouteName = joined.route
        self.names = joined.names
        self.rejected_routes = joined.rejected_routes
        self._transport = joined.transport
        self._lock = threading.Lock()
        self._on_loss = wishes.on_loss
        self._messages = self._bytes = 0
        self._last: Root | None = None
        self._before = (0, 0)
        self._seconds = 0.0
        self._stop = threading.Event()
        self._keeper = threading.Thread(
            target=_keep,
            args=(self._transport, self._lock, self._stop, min(_IDLE, wishes.dead_timeout / 8)),
            name="minga broadcast",
            daemon=True,
        )
        # This must also run if the group is never closed: others may still need data that this member forwards.
        self._end = weakref.finalize(self, _end, self._transport, self._lock, self._stop)
        self._keeper.start()

    @classmethod
    def of(
        cls,
        comm: Communicator,
        *,
        address: str | None = None,
        route: str = "auto",
        rate: float | None = None,
        on_loss: str = "raise",
        dead_timeout: float = DEAD_TIMEOUT,
    ) -> Group:
        """Create a group of the ranks of a communicator (of mpi4py, or one of minga's own); collective.

        Parameters
        ----------
        comm
            The communicator.
        address
            Address of this member, name of its interface, or network to use (``"10.0.0.0/24"``), if there are several.
        route
            ``"multicast"``, ``"broadcast"`` (of the subnet) or ``"chain"`` (TCP, from member to member); ``"auto"``
            selects the first of these that carries a datagram from every member to every other.
        rate
            Rate of the network in bits per second, including all headers; None determines it while sending.
        on_loss
            ``"raise"``: if a member is lost during a broadcast, :class:`MembersLost` is raised at the root and at every
            member that does not have the whole message yet; ``"exclude"``: the group continues without that member,
            which is listed in ``lost``.
        dead_timeout
            Seconds of silence after which a member is considered lost.

        Returns
        -------
        Group
            The group.

        Raises
        ------
        CaseError, LaunchError, RunError
            If the group cannot be created; raised at all members.

        Notes
        -----
        Rank 0 draws the key, and the communicator distributes it, unencrypted in the case of MPI: anyone who can read
        the MPI messages can forge messages of this group.
        """
        import secrets

        wishes = GroupOptions(address, route, rate, on_loss, dead_timeout)
        key = comm.bcast(secrets.token_bytes(32) if comm.rank == 0 else None)
        return cls(CommMeeting(comm), key, wishes)

    @classmethod
    def join(
        cls,
        rank: int,
        size: int,
        first: str,
        key: bytes | str | Path | BinaryIO,
        *,
        address: str | None = None,
        route: str = "auto",
        rate: float | None = None,
        on_loss: str = "raise",
        dead_timeout: float = DEAD_TIMEOUT,
        patience: float = 60.0,
    ) -> Group:
        """Become member ``rank`` of a group of ``size`` without MPI. All members call it and connect to member 0.

        Parameters
        ----------
        rank, size
            Number of this member, and number of members (at most 255).
        first
            Address or name and port of member 0, ``"10.0.0.1:5000"`` or ``"[fd00::1]:5000"``, the same for all.
        key
            32 random bytes that all members share: the bytes themselves, a file with mode 0600
            (:func:`minga.network.broadcast.make_key_file`), or a pipe. Anyone who knows them can send to the group.
        address, route, rate, on_loss, dead_timeout
            See :meth:`of`.
        patience
            Seconds to wait for the other members.

        Returns
        -------
        Group
            The group.

        Raises
        ------
        CaseError
            If an argument is invalid.
        RunError
            If not all members arrive; the message names those that are missing.
        """
        if not (1 <= size <= 255 and 0 <= rank < size):
            raise CaseError(f"member {rank} of {size}", remedy="members are numbered from 0, and there are at most 255")
        host, colon, port = first.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise CaseError(f"{first!r} is not an address with a port", remedy='write "10.0.0.1:5000"')
        wishes = GroupOptions(address, route, rate, on_loss, dead_timeout)
        secret = read_key(key)
        meeting = TcpMeeting(rank, size, (host, int(port)), secret, patience)
        try:
            return cls(meeting, secret, wishes)
        finally:
            meeting.close()

    @classmethod
    def by_lines(cls, rank: int, size: int, key: bytes, ask: Callable[[Any], list[Any]], wishes: GroupOptions) -> Group:
        """Create a group of processes that share a parent; it answers their ``ask`` once all of them have asked.

        Parameters
        ----------
        rank
            The number of this member.
        size
            The number of members.
        key
            32 random bytes that all members share.
        ask
            A function that passes a value to the starter of the processes and returns the values of all when all have
            asked.
        wishes
            Options of the group.

        Returns
        -------
        Group
            The group.
        """
        return cls(LineMeeting(rank, size, ask), key, wishes)

    def __repr__(self) -> str:
        if not self._end.alive:
            return f"Group(member {self.rank} of {self.size}, closed)"
        said = self.statistics
        lost = f", lost {', '.join(self.names[one] for one in self.lost)}" if self.lost else ""
        return (
            f"Group(member {self.rank} of {self.size}, {self.route}, {said.messages} messages, "
            f"{said.bytes / 1e6:.4g} MB in {said.seconds:.4g} s{lost})"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def lost(self) -> tuple[int, ...]:
        """Members known to be lost; on routes other than a chain, those that missed this member's own messages."""
        transport = self._transport
        return tuple(sorted(transport.lost if isinstance(transport, Chain) else transport.endpoint.lost))

    @property
    def statistics(self) -> Statistics:
        """Counters of this member so far."""
        transport = self._transport
        own = Statistics(self.route, self._messages, self._bytes, self._seconds)
        if isinstance(transport, Chain):
            return replace(own, chunks=transport.counters.chunks)
        last = self._last
        if last is None:
            return own
        before = self._before
        return replace(own, datagrams=before[0] + last.sent + last.repairs, repairs=before[1] + last.repairs)

    def bcast(self, data: Any = None, root: int = 0, *, wait: str = "all") -> np.ndarray[Any, Any] | bytes:
        """Send data from ``root`` to all members; collective.

        Parameters
        ----------
        data
            At the root: an array (of any memory and byte order) or a bytes-like object. At other members: None for a
            new array or bytes, like those the root sent, or a writable array or buffer of the same size, which is
            filled and returned; the receiver converts the byte order.
        root
            Number of the sending member.
        wait
            At the root: ``"all"`` returns when all members have everything, ``"local"`` as soon as everything has been
            sent; the group then completes the broadcast from a copy.

        Returns
        -------
        numpy.ndarray or bytes
            The data that were sent; at the root without a copy.

        Raises
        ------
        MembersLost
            If members were lost, unless the group continues without them.
        ProgramError
            If an argument is invalid or the group is closed.
        """
        if not 0 <= root < self.size:
            raise ProgramError(f"member {root} cannot be a root", remedy=f"members are 0 to {self.size - 1}")
        if wait not in ("all", "local"):
            raise ProgramError(f"invalid value wait={wait!r}", remedy='choose "all" or "local"')
        if root == self.rank and data is None:
            raise ProgramError("the root of a broadcast gave no data to send", remedy="pass an array or bytes")
        with self._lock:
            if not self._end.alive:
                raise ProgramError("the group is closed")
            start = time.perf_counter()
            try:
                value = self._send(data, wait) if root == self.rank else self._receive(root, data)
            except MembersLost as error:
                raise error.named(self.names) from None
            finally:
                self._seconds += time.perf_counter() - start
            self._messages += 1
            self._bytes += value.nbytes if isinstance(value, np.ndarray) else len(value)
        return value

    def under_way(self) -> int:
        """Return the bytes of this member's latest message sent so far; may be called while another thread sends it.

        Returns
        -------
        int
            The number of bytes.
        """
        transport = self._transport
        if isinstance(transport, Chain):
            return transport.sent
        last = transport.endpoint.root
        return 0 if last is None else last.all_have * transport.endpoint.session.payload

    def close(self) -> None:
        """Leave the group. A background thread serves what others still need; a second call has no effect."""
        self._end()

    def _send(self, data: Any, wait: str) -> np.ndarray[Any, Any] | bytes:
        if self.size > 1:
            own = data
            if wait == "local":
                own = copied(data)
            sent = self._transport.broadcast(own, wait=wait == "all")
            if isinstance(sent, Root):
                if self._last is not None:
                    datagrams, repairs = self._before
                    self._before = datagrams + self._last.sent + self._last.repairs, repairs + self._last.repairs
                self._last = sent
        if isinstance(data, bytes):
            return data
        return np.frombuffer(data, np.uint8) if isinstance(data, (bytearray, memoryview)) else np.asarray(data)

    def _receive(self, root: int, into: Into | None) -> np.ndarray[Any, Any] | bytes:
        got = self._transport.receive(root, into)
        return got.value if isinstance(got, Message) else got


def _keep(transport: Driver | Chain, lock: threading.Lock, stop: threading.Event, idle: float) -> None:
    """Reply and forward while the program does something else; check the timers at least every ``idle`` seconds."""
    while not stop.is_set():
        poll = select.poll()
        for file in transport.files:
            with contextlib.suppress(OSError, ValueError):  # closed in the meantime
                poll.register(file, select.POLLIN)
        poll.poll(1000 * (min(_BUSY, idle) if transport.unfinished() else idle))
        with lock:
            if stop.is_set():
                return
            try:
                transport.progress(0.0)
            except (RunError, OSError):
                stop.wait(_BUSY)  # the next call of the program raises the error


def _end(transport: Driver | Chain, lock: threading.Lock, stop: threading.Event) -> None:
    """Leave the others, in a thread; the program may continue meanwhile, but its exit waits for the thread."""
    stop.set()
    farewell = threading.Thread(target=_part, args=(transport, lock), name="minga broadcast farewell", daemon=False)
    try:
        farewell.start()
    except RuntimeError:  # the interpreter is shutting down
        _part(transport, lock)


def _part(transport: Driver | Chain, lock: threading.Lock) -> None:
    with lock:
        with contextlib.suppress(RunError, OSError):
            transport.linger(_LINGER)
        if isinstance(transport, Chain):
            transport.close()
        else:
            transport.sockets.close()
