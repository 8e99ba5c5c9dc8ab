"""UDP sockets of one member: one that receives what is sent to the group, and an individual one for everything else.

If the kernel can split one send into many datagrams (UDP_SEGMENT, Linux 4.18) and deliver many at once (UDP_GRO, Linux
5.0), this is used; otherwise each datagram is sent and received separately. No privileges are needed.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from minga.errors import RunError
from minga.network.broadcast.keys import Buffer

__all__ = ["Address", "Arrival", "Sockets"]

Address: TypeAlias = tuple[str, int]

LINUX = sys.platform == "linux"
# Linux constants that Python's socket module does not define.
SOL_UDP, UDP_SEGMENT, UDP_GRO = 17, 103, 104
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
IPV6_MTU_DISCOVER = 23

SEND_BUFFER = 1 << 20
LARGEST_READ = 1 << 16
MOST_READS = 64
"""Largest number of consecutive reads before the timers are served, so that a flood cannot block them."""

_BLOCKED = {errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS}
_NO_SEGMENTING = {errno.EINVAL, errno.EIO, errno.ENOPROTOOPT, errno.EOPNOTSUPP}
_SEGMENT = struct.Struct("=H")
_NUMBER = struct.Struct("@I")
_GRO_SPACE = socket.CMSG_SPACE(struct.calcsize("=i")) if hasattr(socket, "CMSG_SPACE") else 0


class Arrival(NamedTuple):
    """A received datagram; ``data`` is valid until the next one is fetched.

    ``by_group`` is True if it arrived at the address of the group, which proves that this address works.
    """

    data: memoryview
    source: Address
    by_group: bool


class Sockets:
    """The sockets of one member, created by :meth:`open`. A context manager.

    Attributes
    ----------
    segmenting, merging
        True if the kernel splits sends and merges received datagrams.
    dropped
        Number of datagrams that the kernel refused to send; the protocol treats and repairs them like losses.
    last_error
        Error of the last refused send.
    """

    def __init__(self, own: socket.socket, shared: socket.socket | None, *, segmenting: bool) -> None:
        self._own = own
        self._shared = shared
        self.segmenting = segmenting and LINUX
        self.merging = segmenting and LINUX and all(_merge(one) for one in self._all())
        self.dropped = 0
        self.last_error: OSError | None = None
        self._buffer = bytearray(LARGEST_READ)
        self._selector = selectors.DefaultSelector()
        for one in self._all():
            one.setblocking(False)
            self._selector.register(one, selectors.EVENT_READ)

    @classmethod
    def open(
        cls,
        own: Address,
        *,
        group: Address | None,
        route: Literal["multicast", "broadcast"] = "multicast",
        loop: bool = False,
        ttl: int = 1,
        rcvbuf: int = 4 << 20,
        segmenting: bool = True,
        interface: str = "",
    ) -> Sockets:
        """Open and bind the sockets.

        Parameters
        ----------
        own
            Address of the interface to use, and a port, or 0 for any.
        group
            Address and port of the group: a multicast address, or the interface's broadcast address; None for none.
        route
            ``"multicast"`` or ``"broadcast"``.
        loop
            Let multicasts of this member also reach other members on this machine.
        ttl
            Number of routers that a multicast may pass, plus one.
        rcvbuf
            Requested receive buffer in bytes; the system may grant less.
        segmenting
            Use UDP_SEGMENT and UDP_GRO if the system supports them.
        interface
            Name of the interface, needed for multicasts of IPv6.

        Raises
        ------
        RunError
            If an address cannot be bound or joined.
        """
        opened: list[socket.socket] = []
        try:
            family = socket.AF_INET6 if ":" in own[0] else socket.AF_INET
            single = _udp(opened, family, rcvbuf)
            single.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            if route == "broadcast":
                single.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            if family == socket.AF_INET6:
                _send_as_6(single, interface, loop=loop, hops=ttl)
            else:
                _send_as_4(single, own[0], loop=loop, ttl=ttl)
            single.bind(own)
            shared = None if group is None else _udp(opened, family, rcvbuf)
            if shared is not None and group is not None:
                shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                shared.bind(group)
                if route == "multicast" and family == socket.AF_INET6:
                    request = socket.inet_pton(family, group[0]) + _NUMBER.pack(socket.if_nametoindex(interface))
                    shared.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
                elif route == "multicast":
                    request = socket.inet_aton(group[0]) + socket.inet_aton(own[0])
                    shared.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        except OSError as error:
            for one in opened:
                one.close()
            raise RunError(
                f"a socket for {route} to {_shown(group)} cannot be opened at {_shown(own)}: {error.strerror or error}",
                remedy="give the address of one of this machine's interfaces (`ip address`) and a free port",
            ) from error
        return cls(single, shared, segmenting=segmenting)

    def _all(self) -> tuple[socket.socket, ...]:
        return (self._own,) if self._shared is None else (self._own, self._shared)

    @property
    def address(self) -> Address:
        """Address and port at which others reach this member individually."""
        host, port = self._own.getsockname()[:2]
        return host, port

    @property
    def granted(self) -> int:
        """Receive buffer in bytes, as the system counts it; the smaller one of the two sockets."""
        return min([one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for one in self._all()])

    @property
    def files(self) -> tuple[int, ...]:
        """File descriptors that become readable when something arrives."""
        return tuple(one.fileno() for one in self._all())

    # -- sending

    def send(self, destination: Address, datagrams: Sequence[Buffer | Sequence[Buffer]]) -> int:
        """Send datagrams, each a buffer or a sequence of buffers.

        All but the last must have the same length.

        Returns
        -------
        int
            Number of datagrams that the kernel accepted before its buffer was full.

        Raises
        ------
        RunError
            If a datagram is too long for the network.
        """
        split = [(one,) if isinstance(one, (bytes, bytearray, memoryview)) else one for one in datagrams]
        if self.segmenting and len(split) > 1:
            taken = self._send_cut(destination, split)
            if taken is not None:
                return taken
        for index, pieces in enumerate(split):
            if not self._send_one(destination, pieces):
                return index
        return len(split)

    def _send_cut(self, destination: Address, datagrams: Sequence[Sequence[Buffer]]) -> int | None:
        """Send all in one call, split by the kernel; return None if it cannot do so."""
        size = sum([len(piece) for piece in datagrams[0]])
        pieces = [piece for datagram in datagrams for piece in datagram]
        try:
            self._own.sendmsg(pieces, [(SOL_UDP, UDP_SEGMENT, _SEGMENT.pack(size))], 0, destination)
        except OSError as error:
            if error.errno in _NO_SEGMENTING:
                self.segmenting = False
                return None
            return self._failed(error, size, len(datagrams))
        return len(datagrams)

    def _send_one(self, destination: Address, pieces: Sequence[Buffer]) -> int:
        try:
            self._own.sendmsg(pieces, (), 0, destination)
        except OSError as error:
            return self._failed(error, sum([len(piece) for piece in pieces]), 1)
        return 1

    def _failed(self, error: OSError, size: int, many: int) -> int:
        """Return 0 if the kernel's buffer is full, so that the caller retries; ``many`` if the send was refused.

        Refused datagrams are treated like lost ones.
        """
        if error.errno in _BLOCKED:
            return 0
        if error.errno == errno.EMSGSIZE:
            raise RunError(
                f"a datagram of {size} bytes is too long for the network, which does not fragment it",
                remedy="use the smallest MTU of all members' interfaces: payload_for(mtu)",
            ) from error
        self.dropped += many
        self.last_error = error
        return many

    # -- receiving

    def receive(self, most: int = MOST_READS) -> Iterator[Arrival]:
        """Yield the datagrams that have arrived, without waiting; at most ``most`` reads of each socket."""
        for one in self._all():
            by_group = one is self._shared
            for _ in range(most):
                try:
                    length, ancillary, flags, source = one.recvmsg_into([self._buffer], _GRO_SPACE)
                except OSError:  # nothing has arrived, or an ICMP error of an earlier send
                    break
                if flags & socket.MSG_TRUNC:
                    continue
                view = memoryview(self._buffer)[:length]
                size = _merged(ancillary) or length
                for first in range(0, length, size) if length else (0,):
                    yield Arrival(view[first : first + size], source, by_group)

    def wait(self, seconds: float | None, *, write: bool = False) -> bool:
        """Wait until something arrives or, with ``write``, can be sent.

        Return False if nothing has happened after ``seconds`` (None: no limit).
        """
        if write:
            self._selector.modify(self._own, selectors.EVENT_READ | selectors.EVENT_WRITE)
        try:
            return bool(self._selector.select(seconds))
        finally:
            if write:
                self._selector.modify(self._own, selectors.EVENT_READ)

    def close(self) -> None:
        """Close the sockets."""
        self._selector.close()
        for one in self._all():
            one.close()

    def __enter__(self) -> Sockets:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _send_as_4(one: socket.socket, address: str, *, loop: bool, ttl: int) -> None:
    """Let a socket send multicasts from the interface with an address, and never fragment."""
    one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, int(loop))
    one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
    if LINUX:
        one.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)


def _send_as_6(one: socket.socket, interface: str, *, loop: bool, hops: int) -> None:
    """Let a socket send multicasts of IPv6 from an interface, and never fragment."""
    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(interface))
    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, int(loop))
    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
    if LINUX:
        one.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IP_PMTUDISC_DO)


def _udp(opened: list[socket.socket], family: int, rcvbuf: int) -> socket.socket:
    one = socket.socket(family, socket.SOCK_DGRAM)
    opened.append(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    return one


def _merge(one: socket.socket) -> bool:
    """Request that the kernel delivers many datagrams at once; return False if it cannot."""
    try:
        one.setsockopt(SOL_UDP, UDP_GRO, 1)
    except OSError:
        return False
    return True


def _merged(ancillary: Iterable[tuple[int, int, bytes]]) -> int:
    """Return the length of datagrams that were delivered merged; 0 for a single one."""
    for level, kind, data in ancillary:
        if level == SOL_UDP and kind == UDP_GRO:
            return int.from_bytes(data[:4], sys.byteorder)
    return 0


def _shown(address: Address | None) -> str:
    if address is None:
        return "nobody"
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
