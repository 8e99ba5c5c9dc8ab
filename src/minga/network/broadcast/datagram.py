"""What travels in one UDP datagram: a fixed header, a payload, a tag.

All numbers are unsigned and big-endian:

====== ======= ==========================================================================================
bytes  name    meaning
====== ======= ==========================================================================================
2      mark    16 bits of a hash of the session, so that strangers on the address cost no cryptography
1      kind    version in the upper four bits, :class:`Kind` in the lower
1      sender  number of the member that sent it
4      message number of the message among those of its root; wraps around
4      seq     DATA: the segment; other kinds: a counter of the sender, so that copies are told from originals
4      nseg    segments of the whole message
2      length  bytes of payload
1      root    number of the member whose message this is about
1      flags   DATA: :data:`ASK`, and bytes of the head in units of :data:`HEAD_UNIT` in the upper bits
====== ======= ==========================================================================================

The tag is a MAC over header and payload (:mod:`~minga.network.broadcast.keys`). A :class:`Datagram` exists only for
bytes whose tag was right, so whatever takes one need not ask again where it came from.
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

ASK = 1  # flag of DATA: answer at once, as if a POLL followed
HEAD_SHIFT = 3
HEAD_UNIT = 8

_REPLY = struct.Struct("!IIII")
_RANGE = struct.Struct("!II")
_POLL = struct.Struct("!I")


class Kind(IntEnum):
    """What a datagram is for."""

    HELLO = 1
    READY = 2
    DATA = 3
    POLL = 4
    ACK = 5
    NACK = 6
    ABORT = 7


class Reason(IntEnum):
    """Why a root gave a message up."""

    LOST = 1  # other members are gone
    EXCLUDED = 2  # the one told is taken for gone
    CANCELLED = 3  # the program at the root ended it


class Datagram(NamedTuple):
    """An authenticated datagram; ``payload`` is a view of the buffer it was received in."""

    kind: int
    sender: int
    message: int
    seq: int
    nseg: int
    root: int
    flags: int
    payload: memoryview


class Reply(NamedTuple):
    """Payload of ACK and NACK: what a member has.

    ``have`` counts the segments it has without a hole before them, ``seen`` those it knows to have been sent; ``echo``
    names the question that is answered, 0 for none; ``incarnation`` is a random number of the running process;
    ``missing`` are half-open ranges of segments.
    """

    have: int
    seen: int
    echo: int
    incarnation: int
    missing: tuple[tuple[int, int], ...] = ()

    def arrived(self) -> int:
        """How many segments the member has at least."""
        if not self.missing:
            return self.have
        return self.missing[-1][1] - sum([last - first for first, last in self.missing])

    def pack(self) -> bytes:
        fixed = _REPLY.pack(self.have, self.seen, self.echo, self.incarnation)
        return fixed + b"".join(_RANGE.pack(*pair) for pair in self.missing)

    @classmethod
    def unpack(cls, payload: memoryview, nseg: int) -> Reply | None:
        """None where it cannot be: ranges that overlap, go backwards or beyond the ``nseg`` segments of the message."""
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
        """How many ranges a datagram of so many bytes of payload holds."""
        return (payload - _REPLY.size) // _RANGE.size


class Poll(NamedTuple):
    """Payload of POLL: the root has sent all segments below ``sent`` at least once."""

    sent: int

    def pack(self) -> bytes:
        return _POLL.pack(self.sent)

    @classmethod
    def unpack(cls, payload: memoryview, nseg: int) -> Poll | None:
        if len(payload) != _POLL.size:
            return None
        (sent,) = _POLL.unpack(payload)
        return cls(sent) if sent <= nseg else None


class Abort(NamedTuple):
    """Payload of ABORT: why, and which members are gone."""

    reason: Reason
    members: tuple[int, ...]

    def pack(self) -> bytes:
        return bytes((self.reason, *self.members))

    @classmethod
    def unpack(cls, payload: memoryview) -> Abort | None:
        if not payload or payload[0] not in tuple(Reason):
            return None
        return cls(Reason(payload[0]), tuple(payload[1:]))


def newer(a: int, b: int) -> bool:
    """Whether number ``a`` comes after ``b``, both counted modulo 2³² (serial number arithmetic, RFC 1982)."""
    return 0 < (a - b) & 0xFFFFFFFF < 0x80000000


def payload_for(mtu: int | Iterable[int]) -> int:
    """Bytes of payload in a datagram that no link of these MTUs cuts: 1436 for Ethernet's 1500.

    Raises :class:`minga.errors.RunError` for an MTU that leaves no room.
    """
    least = mtu if isinstance(mtu, int) else min(mtu)
    payload = min(least - UDP_AND_IP - OVERHEAD, LARGEST_PAYLOAD)
    if payload < SMALLEST_PAYLOAD:
        raise RunError(
            f"an MTU of {least} bytes leaves no room for a broadcast: at least "
            f"{SMALLEST_PAYLOAD + OVERHEAD + UDP_AND_IP} are needed",
            remedy="look at the interface with `ip link`; Ethernet has 1500",
        )
    return payload
