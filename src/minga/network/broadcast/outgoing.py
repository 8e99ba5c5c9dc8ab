"""Outgoing messages: their division into segments, and batches of datagrams that are sent together."""

from __future__ import annotations

from typing import NamedTuple

from minga.errors import RunError
from minga.network.broadcast.datagram import ASK, HEAD_SHIFT, HEAD_UNIT, OVERHEAD, Kind
from minga.network.broadcast.heads import pack_head
from minga.network.broadcast.keys import Buffer, Keys
from minga.network.broadcast.options import BroadcastOptions, wire_bytes

__all__ = ["GROUP", "Batch", "Outgoing"]

GROUP = -1
"""Destination of datagrams for all members."""

MOST_SEGMENTS = 1 << 31


class Batch(NamedTuple):
    """Datagrams for one destination, in order; all have the same length, except that the last may be shorter.

    Each datagram is a tuple of buffers to be concatenated.
    """

    destination: int
    datagrams: list[tuple[Buffer, ...]]


class Outgoing:
    """A message and its segments; the bytes are not copied and must not change until the message is done.

    ``data`` is an array or a bytes-like object.

    Raises
    ------
    RunError
        If the data cannot be sent.
    """

    def __init__(self, keys: Keys, sender: int, number: int, data: object, settings: BroadcastOptions) -> None:
        self.keys = keys
        self.sender = sender
        self.number = number
        self.payload = keys.session.payload
        self.head, self.data = pack_head(data)
        if len(self.head) > self.payload:
            raise RunError(
                f"type and shape of the array need {len(self.head)} bytes, a datagram of this group has {self.payload}",
                remedy="send array.reshape(-1)",
            )
        length = len(self.head) + len(self.data)
        self.nseg = max(1, -(-length // self.payload))
        if len(self.data) > settings.max_bytes or self.nseg >= MOST_SEGMENTS:
            raise RunError(
                f"a message of this group has at most {settings.max_bytes} bytes, found {len(self.data)}",
                remedy="send it in parts, or raise max_bytes of the group",
            )
        self.wire = wire_bytes(min(length, self.payload) + OVERHEAD, settings.headers)
        """Bytes on the wire of a segment (of the longest one if they differ)."""
        self._flags = len(self.head) // HEAD_UNIT << HEAD_SHIFT

    def segment(self, seq: int, *, ask: bool) -> tuple[Buffer, ...]:
        """Return the datagram of one segment; ``ask`` requests an immediate reply."""
        first = seq * self.payload - len(self.head)
        piece = self.data[max(first, 0) : first + self.payload]
        pieces: tuple[Buffer, ...] = (piece,) if seq or not self.head else (self.head, piece)
        flags = self._flags | ASK if ask else self._flags
        return self.keys.seal_pieces(Kind.DATA, self.sender, self.number, seq, self.nseg, self.sender, flags, pieces)
