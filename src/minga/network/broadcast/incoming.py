"""State of an incoming message: the segments that have arrived, and the memory for their bytes."""

from __future__ import annotations

from minga.network.broadcast.datagram import HEAD_SHIFT, HEAD_UNIT, Datagram
from minga.network.broadcast.heads import Array, Bytes, Into, finish, new_store, target, unpack_head

__all__ = ["Incoming"]


class Incoming:
    """An incoming message at one member.

    Parameters
    ----------
    number, nseg, head_bytes
        Number of the message, number of its segments and length of its head, all of which each segment states.
    payload
        Bytes of a full segment.
    into
        Destination that the reader requested, if known by now. Segments are written directly there if the message
        can have exactly that length; the last segment decides.

    Attributes
    ----------
    have
        Number of contiguous segments from the start.
    sent
        Number of segments that the root is known to have sent.
    """

    def __init__(self, number: int, nseg: int, head_bytes: int, payload: int, into: Into | None) -> None:
        self.number = number
        self.nseg = nseg
        self.head_bytes = head_bytes
        self.payload = payload
        self.have = 0
        self.sent = 0
        self.acknowledged = 0
        self._here = bytearray(nseg)
        self._head = b""
        self._missing_count = nseg
        self._length: int | None = None
        self._store: Bytes = self._place(into)
        self._view = self._store.data

    @staticmethod
    def bytes_needed(nseg: int, payload: int) -> int:
        """Return the largest number of bytes that a message of ``nseg`` segments can contain."""
        return nseg * payload

    def _place(self, into: Into | None) -> Bytes:
        largest = self.nseg * self.payload - self.head_bytes
        direct = target(into)
        if direct is not None and largest - self.payload < direct.nbytes <= largest:
            return direct
        return new_store(largest)

    @property
    def complete(self) -> bool:
        """True if all segments have arrived."""
        return not self._missing_count

    @property
    def has_gap(self) -> bool:
        """True if a segment that the root has sent is missing."""
        return self.have < self.sent

    def matches(self, datagram: Datagram) -> bool:
        """Return True if a datagram describes the message in the same way as its first datagram did."""
        return datagram.nseg == self.nseg and (datagram.flags >> HEAD_SHIFT) * HEAD_UNIT == self.head_bytes

    def add(self, seq: int, piece: memoryview) -> bool:
        """Store a segment; return False for a duplicate, or if its number or length is invalid."""
        if seq >= self.nseg or self._here[seq] or not self._right_length(seq, len(piece)):
            return False
        self._write(seq, piece)
        self._here[seq] = 1
        self._missing_count -= 1
        if seq >= self.sent:
            self.sent = seq + 1
        if seq == self.have:
            if self.sent == seq + 1:
                self.have = seq + 1
            else:
                hole = self._here.find(0, seq + 1)
                self.have = hole if hole >= 0 else self.nseg
        return True

    def _right_length(self, seq: int, length: int) -> bool:
        if seq < self.nseg - 1:
            return length == self.payload
        if self.nseg == 1:
            return self.head_bytes <= length <= self.payload
        return 0 < length <= self.payload

    def _write(self, seq: int, piece: memoryview) -> None:
        first = seq * self.payload - self.head_bytes
        end = first + len(piece)
        if seq == self.nseg - 1:
            self._length = end
            if end != self._store.nbytes:
                self._leave_direct(end)
        if seq == 0 and self.head_bytes:
            self._head = bytes(piece[: self.head_bytes])
            piece = piece[self.head_bytes :]
            first = 0
        self._view[first:end] = piece

    def _leave_direct(self, length: int) -> None:
        """Move to separate memory a message longer than its destination; the error is raised once it is complete."""
        if self._store.nbytes >= length:
            return
        store = new_store(length)
        store[: self._store.nbytes] = self._store
        self._store = store
        self._view = store.data

    def missing(self, most: int) -> tuple[tuple[int, int], ...]:
        """Return the first ranges (half-open, at most ``most``) of segments that were sent but have not arrived."""
        ranges: list[tuple[int, int]] = []
        first = self.have
        while first < self.sent and len(ranges) < most:
            end = self._here.find(1, first, self.sent)
            if end < 0:
                end = self.sent
            ranges.append((first, end))
            first = self._here.find(0, end, self.sent)
            if first < 0:
                break
        return tuple(ranges)

    def value(self, into: Into | None) -> Array | bytes:
        """Return the complete message, in ``into`` or new; see :func:`minga.network.broadcast.heads.finish`."""
        return finish(self._store[: self._length], unpack_head(self._head), into)
