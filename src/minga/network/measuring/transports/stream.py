"""Ping-pong over transports that deliver messages reliably and in order: TCP and MPI.

Before each batch, the pinger sends the echo the mode, size and number of exchanges and waits until it is ready, so that
the messages themselves have exactly the size that is measured.
"""

from __future__ import annotations

import contextlib
import struct
from time import perf_counter
from typing import Final, Protocol

from minga.network.measuring.transports import Mode

__all__ = ["Room", "StreamPinger", "Wire", "echo"]

_ORDER: Final = struct.Struct("!BIQ")
_MODES: Final[tuple[Mode, ...]] = ("pingpong", "oneway", "both")
_STOP: Final = 255
_READY: Final = memoryview(b"!")
_PAGE: Final = 4096
_LINE: Final = 64
"""Bytes of a cache line; messages begin at different lines, so that they do not all map to the same cache sets."""


class Wire(Protocol):
    """One end of a connection. All calls block."""

    transport: str
    least: int
    """Bytes of the smallest message."""
    most: int
    """Bytes of the largest message."""

    def send(self, data: memoryview) -> None:
        """Send ``data``."""

    def receive(self, data: memoryview) -> None:
        """Fill ``data``; raise EOFError if the other end is gone, TimeoutError if it is silent for too long."""

    def both(self, sent: memoryview, received: memoryview) -> None:
        """Send and receive at the same time."""

    def close(self) -> None:
        """Close the connection."""


class Room:
    """Memory for messages: the same memory for all, or different memory each time, rotating through ``arena`` bytes.

    If the arena is larger than the last-level cache, neither a message to send nor the memory for one to receive is in
    a cache.
    """

    def __init__(self, arena: int = 0) -> None:
        self._arena = _buffer(arena) if arena else None
        self._at = 0
        self._sent, self._received = _buffer(0), _buffer(0)

    def take(self, size: int) -> tuple[memoryview, memoryview]:
        """Return memory for a message of ``size`` bytes to send, and for one to receive."""
        stride = size + _PAGE - size % _PAGE + _LINE
        if self._arena is None or 2 * stride > len(self._arena):
            if len(self._sent) < size:
                self._sent, self._received = _buffer(size), _buffer(size)
            return self._sent[:size], self._received[:size]
        if self._at + 2 * stride > len(self._arena):
            self._at = 0
        at, self._at = self._at, self._at + 2 * stride
        return self._arena[at : at + size], self._arena[at + stride : at + stride + size]


class StreamPinger:
    """Measuring end over a wire. ``arena``: see :class:`Room`."""

    def __init__(self, wire: Wire, arena: int = 0) -> None:
        self.wire = wire
        self.transport = wire.transport
        self.least, self.most = wire.least, wire.most
        self._room = Room(arena)

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """See :class:`Pinger`."""
        wire, take = self.wire, self._room.take
        take(size)  # touches newly allocated memory
        wire.send(memoryview(_ORDER.pack(_MODES.index(mode), count, size)))
        wire.receive(memoryview(bytearray(1)))
        answer = 1 if mode == "oneway" else size
        seconds = []
        for _ in range(count):
            sent, received = take(size)
            received = received[:answer]
            start = perf_counter()
            if mode == "both":
                wire.both(sent, received)
            else:
                wire.send(sent)
                wire.receive(received)
            seconds.append(perf_counter() - start)
        return [time / 2 for time in seconds] if mode == "pingpong" else seconds

    def close(self) -> None:
        """End the exchange."""
        with contextlib.suppress(OSError, EOFError):  # the other end may be gone already
            self.wire.send(memoryview(_ORDER.pack(_STOP, 0, 0)))
        self.wire.close()


def echo(wire: Wire, arena: int = 0) -> int:
    """Answer a pinger until it stops, and return the number of exchanges. ``arena``: see :class:`Room`."""
    order = memoryview(bytearray(_ORDER.size))
    room = Room(arena)
    served = 0
    while True:
        wire.receive(order)
        mode, count, size = _ORDER.unpack(order)
        if mode == _STOP:
            wire.close()
            return served
        room.take(size)
        answer = 1 if _MODES[mode] == "oneway" else size
        wire.send(_READY)
        for _ in range(count):
            back, there = room.take(size)
            if _MODES[mode] == "both":
                wire.both(back, there)
            else:
                wire.receive(there)
                wire.send(back[:answer])
        served += count


def _buffer(size: int) -> memoryview:
    """Allocate memory whose pages have all been touched."""
    return memoryview(bytearray(b"\1") * max(size, 1))
