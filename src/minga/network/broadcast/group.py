"""A group of programs on several machines, and its broadcasts.

>>> with Group.of(MPI.COMM_WORLD) as group:
...     panel = group.bcast(panel if group.rank == 0 else None)

A broadcast is collective: all members call it, with the same root, in the same order. Whoever calls drives the sockets;
between calls a thread of the group's own does, so that a member that computes still answers the root's question
whether it has everything, passes on what others wait for, and takes in what already comes.
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
from minga.network.broadcast.joining import RouteName, Wishes, join
from minga.network.broadcast.lost import MembersLost
from minga.network.broadcast.meeting import CommMeeting, Communicator, LineMeeting, Meeting, TcpMeeting
from minga.network.broadcast.member import Message
from minga.network.broadcast.root import Root
from minga.network.broadcast.secret import read_key

__all__ = ["Group", "Statistics"]

_IDLE, _BUSY = 0.25, 0.01
"""Seconds between looks at the clock while nothing is under way, and while something is; less for the impatient."""
_LINGER: Final = 5.0
"""Seconds for which a member at most answers those who have not heard that it has everything."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What this member's part of all broadcasts so far was.

    ``messages`` and ``bytes`` sent or received, ``seconds`` inside of :meth:`Group.bcast`. ``datagrams`` sent as a root
    and ``repairs`` among them; on a chain ``chunks`` given to the next member.
    """

    route: RouteName
    messages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    datagrams: int = 0
    repairs: int = 0
    chunks: int = 0


class Group:
    """Members that broadcast to each other; made by :meth:`of` or :meth:`join`. A context manager.

    ``rank`` is this member's number, ``size`` how many there are, ``route`` what carries the messages, ``names`` the
    hosts of all members, ``passed_over`` why better routes were not taken. Threads may share a group; their
    broadcasts then happen one after another.
    """

    def __init__(self, meeting: Meeting, key: bytes, wishes: Wishes) -> None:
        joined = join(meeting, key, wishes)
        self.rank, self.size = meeting.rank, meeting.size
        self.route: RouteName = joined.route
        self.names = joined.names
        self.passed_over = joined.passed_over
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
        # Also when nobody closes the group: others may still need what this member has to pass on.
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
        dead_timeout: float = 10.0,
    ) -> Group:
        """A group of the ranks of a communicator (mpi4py's, or one of minga's own); collective.

        Parameters
        ----------
        address
            Of this member, the name of its interface, or the network to use (``"10.0.0.0/24"``), if there are several.
        route
            ``"multicast"``, ``"broadcast"`` (of the subnet) or ``"chain"`` (TCP, from member to member); ``"auto"``
            takes the first of these that carries a datagram from everybody to everybody.
        rate
            Bits per second that the network can take, all headers included; None: found out while sending.
        on_loss
            ``"raise"``: a broadcast that a member is lost in raises :class:`MembersLost` at the root, and wherever not
            all of it is there yet; ``"exclude"``: it goes on without that member (``lost``).
        dead_timeout
            Seconds of silence after which a member is lost.

        Rank 0 draws the key, and the communicator carries it, in the clear where that is MPI: who can read MPI's
        messages can forge this group's. Raises CaseError, LaunchError or RunError where the group cannot be made, at
        all members.
        """
        import secrets

        wishes = Wishes(address, route, rate, on_loss, dead_timeout)
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
        dead_timeout: float = 10.0,
        patience: float = 60.0,
    ) -> Group:
        """Become member ``rank`` of ``size`` without MPI. All call it; member 0 is where the others come to.

        Parameters
        ----------
        first
            Address and port of member 0, ``"10.0.0.1:5000"``, the same for all.
        key
            32 random bytes that all members share: themselves, a file with mode 0600
            (:func:`minga.network.broadcast.make_key_file`), or a pipe. Whoever knows them can send to the group.
        patience
            Seconds to wait for the others.

        The rest is as for :meth:`of`. RunError, naming who is missing, where not all come.
        """
        if not (1 <= size <= 255 and 0 <= rank < size):
            raise CaseError(f"member {rank} of {size}", remedy="members are numbered from 0, and 255 are the most")
        host, colon, port = first.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise CaseError(f"{first!r} is no address and port", remedy='write "10.0.0.1:5000"')
        wishes = Wishes(address, route, rate, on_loss, dead_timeout)
        secret = read_key(key)
        meeting = TcpMeeting(rank, size, (host, int(port)), secret, patience)
        try:
            return cls(meeting, secret, wishes)
        finally:
            meeting.close()

    @classmethod
    def by_lines(cls, rank: int, size: int, key: bytes, ask: Callable[[Any], list[Any]], wishes: Wishes) -> Group:
        """A group of processes that someone else has started, who answers what they ``ask`` when all have asked."""
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
        """The members that are gone, as far as this one knows: without a chain, those that missed its own messages."""
        transport = self._transport
        return tuple(sorted(transport.lost if isinstance(transport, Chain) else transport.endpoint.lost))

    @property
    def statistics(self) -> Statistics:
        """What this member's part was so far."""
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
        """Send from ``root`` to all; collective. What was sent, without a copy where it is there already.

        Parameters
        ----------
        data
            At the root: an array (any order and byte order) or something bytes-like. Elsewhere: None, for a new array
            or bytes as the root sent them, or a writable array or buffer of the same size, which is filled and
            returned; the receiver sees to the order of bytes.
        wait
            At the root ``"all"``: return when all members have everything, ``"local"``: as soon as all has been sent;
            the group sees to the rest, from a copy.

        Raises :class:`MembersLost` where members are gone, unless the group goes on without them; ProgramError in a
        group that is closed.
        """
        if not 0 <= root < self.size:
            raise ProgramError(f"member {root} cannot be a root", remedy=f"members are 0 to {self.size - 1}")
        if wait not in ("all", "local"):
            raise ProgramError(f"wait={wait!r}", remedy='choose "all" or "local"')
        if root == self.rank and data is None:
            raise ProgramError("the root of a broadcast gave nothing to send", remedy="give it an array or bytes")
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
        """Bytes of this member's latest message that have gone; may be asked while another thread sends it."""
        transport = self._transport
        if isinstance(transport, Chain):
            return transport.sent
        last = transport.endpoint.root
        return 0 if last is None else last.all_have * transport.endpoint.session.payload

    def close(self) -> None:
        """Leave the group; what others still need of this member they get in the background. Twice is nothing."""
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
    """Answer and pass on while the program does something else; look at the clock every ``idle`` seconds at least."""
    while not stop.is_set():
        poll = select.poll()
        for file in transport.files:
            with contextlib.suppress(OSError, ValueError):  # closed meanwhile
                poll.register(file, select.POLLIN)
        poll.poll(1000 * (min(_BUSY, idle) if transport.unfinished() else idle))
        with lock:
            if stop.is_set():
                return
            try:
                transport.progress(0.0)
            except (RunError, OSError):
                stop.wait(_BUSY)  # whoever calls next is told


def _end(transport: Driver | Chain, lock: threading.Lock, stop: threading.Event) -> None:
    """Part from the others. That may take a second in which the program goes on, but not its end."""
    stop.set()
    farewell = threading.Thread(target=_part, args=(transport, lock), name="minga broadcast farewell", daemon=False)
    try:
        farewell.start()
    except RuntimeError:  # the interpreter ends
        _part(transport, lock)


def _part(transport: Driver | Chain, lock: threading.Lock) -> None:
    with lock:
        with contextlib.suppress(RunError, OSError):
            transport.linger(_LINGER)
        if isinstance(transport, Chain):
            transport.close()
        else:
            transport.sockets.close()
