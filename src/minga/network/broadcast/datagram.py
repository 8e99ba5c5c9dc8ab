"""Format of a UDP datagram: a fixed header, a payload and an authentication tag.

All numbers are unsigned and big-endian:

====== ======= ==========================================================================================
bytes  name    meaning
====== ======= ==========================================================================================
2      mark    16 bits of a hash of the session, so that foreign datagrams are dropped without cryptography
1      kind    version in the upper four bits, :class:`Kind` in the lower
1      sender  number of the member that sent it
4      message number of the message among those of its root; wraps around
4      seq     DATA: the segment; other kinds: a counter of the sender, which reveals copies
4      nseg    number of segments of the message
2      length  bytes of payload
1      root    number of the member whose message the datagram concerns
1      flags   DATA: :data:`ASK`, and bytes of the head in units of :data:`HEAD_UNIT` in the upper bits
====== ======= ==========================================================================================

The tag is a MAC over header and payload (:mod:`~minga.network.broadcast.keys`). A :class:`Datagram` is created only
for bytes with a valid tag, so code that receives one need not authenticate it again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from minga.errors import RunError

__all__ = [
    "ASK",
    "HEADER",
    "HEADER_BYTES",
    "HEAD_UNIT",
    "LARGEST_PAYLOAD",
    "OVERHEAD",
    "SMALLEST_PAYLOAD",
    "TAG_BYTES",
    "VERSION",
    "Abort",
    "Datagram",
    "Kind",
    "Poll",
    "Reason",
    "Reply",
    "newer",
    "payload_for",
]

VERSION = 1
HEADER = struct.Struct("!HBBIIIHBB")
HEADER_BYTES = HEADER.size
TAG_BYTES = 16
OVERHEAD = HEADER_BYTES + TAG_BYTES
SMALLEST_PAYLOAD = 64
LARGEST_PAYLOAD = 65507 - OVERHEAD  # the longest datagram of UDP over IPv4
UDP_AND_IP = 28
LONGER_IN_6 = 20
"""Bytes by which the header of IPv6 is longer than that of IPv4."""

ASK = 1  # flag of DATA: reply at once, as if a POLL followed
HEAD_SHIFT = 3
HEAD_UNIT = 8

_REPLY = struct.Struct("!IIII")
_RANGE = struct.Struct("!II")
_POLL = struct.Struct("!I")


class Kind(IntEnum):
    """Purpose of a datagram."""

    HELLO = 1
    READY = 2
    DATA = 3
    POLL = 4
    ACK = 5
    NACK = 6
    ABORT = 7


class Reason(IntEnum):
    """Reason for which a root aborted a message."""

    LOST = 1  # other members are lost
    EXCLUDED = 2  # the recipient of the notice is itself considered lost
    CANCELLED = 3  # the program at the root ended it


class Datagram(NamedTuple):
    """An authenticated datagram; ``payload`` is a view of the receive buffer."""

    kind: int
    sender: int
    message: int
    seq: int
    nseg: int
    root: int
    flags: int
    payload: memoryview


class Reply(NamedTuple):
    """Payload of ACK and NACK: the segments of a message that a member has.

    ``have`` is the number of contiguous segments from the start, ``seen`` the number that the member knows to have
    been sent; ``echo`` is the sequence number of the question that is answered, 0 for none; ``incarnation`` is a random
    number of the running process; ``missing`` are half-open ranges of segments.
    """

    have: int
    seen: int
    echo: int
    incarnation: int
    missing: tuple[tuple[int, int], ...] = ()

    def arrived(self) -> int:
        """Return the smallest number of segments that the member can have."""
        if not self.missing:
            return self.have
        return self.missing[-1][1] - sum([last - first for first, last in self.missing])

    def pack(self) -> bytes:
        """Return the payload as bytes."""
        fixed = _REPLY.pack(self.have, self.seen, self.echo, self.incarnation)
        return fixed + b"".join(_RANGE.pack(*pair) for pair in self.missing)

    @classmethod
    def unpack(cls, payload: memoryview, nseg: int) -> Reply | None:
        """Return the reply in a payload, or None if it is malformed.

        Ranges must not overlap, go backwards or lie beyond the ``nseg`` segments of the message.
        """
        if len(payload) < _REPLY.size or (len(payload) - _REPLY.size) % _RANGE.size:
            return None
        have, seen, echo, incarnation = _REPLY.unpack_from(payload)
        missing = tuple(_RANGE.iter_unpack(payload[_REPLY.size :]))
        end = have
        for first, last in missing:
            if not end <= first < last:
                return None
            end = last
        return cls(have, seen, echo, incarnation, missing) if end <= seen <= nseg else None

    @staticmethod
    def ranges_that_fit(payload: int) -> int:
        """Return the number of ranges that fit into a datagram of ``payload`` bytes."""
        return (payload - _REPLY.size) // _RANGE.size


class Poll(NamedTuple):
    """Payload of POLL: the root has sent all segments below ``sent`` at least once."""

    sent: int

    def pack(self) -> bytes:
        """Return the payload as bytes."""
        return _POLL.pack(self.sent)

    @classmethod
    def unpack(cls, payload: memoryview, nseg: int) -> Poll | None:
        """Return the question in a payload, or None if it is malformed or exceeds the ``nseg`` segments."""
        if len(payload) != _POLL.size:
            return None
        (sent,) = _POLL.unpack(payload)
        return cls(sent) if sent <= nseg else None


class Abort(NamedTuple):
    """Payload of ABORT: the reason, and the lost members."""

    reason: Reason
    members: tuple[int, ...]

    def pack(self) -> bytes:
        """Return the payload as bytes."""
        return bytes((self.reason, *self.members))

    @classmethod
    def unpack(cls, payload: memoryview) -> Abort | None:
        """Return the notice in a payload, or None if it is malformed."""
        if not payload or payload[0] not in tuple(Reason):
            return None
        return cls(Reason(payload[0]), tuple(payload[1:]))


def newer(a: int, b: int) -> bool:
    """Return True if ``a`` comes after ``b``; both are counted modulo 2³² (serial number arithmetic, RFC 1982)."""
    return 0 < (a - b) & 0xFFFFFFFF < 0x80000000


def payload_for(mtu: int | Iterable[int]) -> int:
    """Return the payload bytes of a datagram that no link with these MTUs fragments, 1436 for Ethernet's 1500.

    Raises
    ------
    RunError
        If an MTU leaves no room.
    """
    least = mtu if isinstance(mtu, int) else min(mtu)
    payload = min(least - UDP_AND_IP - OVERHEAD, LARGEST_PAYLOAD)
    if payload < SMALLEST_PAYLOAD:
        raise RunError(
            f"an MTU of {least} bytes leaves no room for a broadcast: at least "
            f"{SMALLEST_PAYLOAD + OVERHEAD + UDP_AND_IP} are needed",
            remedy="check the interface with `ip link`; Ethernet has 1500",
        )
    return payload
