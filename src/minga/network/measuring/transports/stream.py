"""Ping-pong over anything that delivers messages reliably and in order: TCP and MPI.

Before each batch the pinger tells the echo mode, size and number of exchanges and waits until it is ready, so that the
messages themselves are of the size that is measured, to the byte.
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
"""Bytes of a cache's line: messages begin at different ones, so that they do not all fall into the same sets."""


class Wire(Protocol):
    """One end of a connection. All calls block."""

    transport: str
    least: int
    most: int

    def send(self, data: memoryview) -> None: ...
    def receive(self, data: memoryview) -> None:
        """Fill ``data``; EOFError when the other end is gone, TimeoutError when it is silent for too long."""

    def both(self, sent: memoryview, received: memoryview) -> None:
        """Send and receive at the same time."""

    def close(self) -> None: ...


class Room:
    """Memory for messages: the same for each of them, or other memory each time, all through ``arena`` bytes.

    With an arena larger than the last cache no message is in a cache when it is sent, nor its room when it comes.
    """

    def __init__(self, arena: int = 0) -> None:
        self._arena = _buffer(arena) if arena else None
        self._at = 0
        self._sent, self._received = _buffer(0), _buffer(0)

    def take(self, size: int) -> tuple[memoryview, memoryview]:
        """Room for a message of ``size`` bytes to send, and for one to receive."""
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
    """The end that measures. ``arena``: see :class:`Room`."""

    def __init__(self, wire: Wire, arena: int = 0) -> None:
        self.wire = wire
        self.transport = wire.transport
        self.least, self.most = wire.least, wire.most
        self._room = Room(arena)

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """See :class:`Pinger`."""
        wire, take = self.wire, self._room.take
        take(size)  # touches memory that is new
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
    """Answer a pinger until it stops; the number of exchanges. ``arena``: see :class:`Room`."""
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
    """Memory that is there: all of its pages are touched."""
    return memoryview(bytearray(b"\1") * max(size, 1))
