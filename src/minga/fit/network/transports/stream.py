"""Ping-pong over anything that delivers messages reliably and in order: TCP and MPI.

Before each batch the pinger tells the echo mode, size and number of exchanges and waits until it is ready, so that the
messages themselves are of the size that is measured, to the byte.
"""

from __future__ import annotations

import contextlib
import struct
from time import perf_counter
from typing import Final, Protocol

from minga.fit.network.transports import Mode

__all__ = ["StreamPinger", "Wire", "echo"]

_ORDER: Final = struct.Struct("!BIQ")
_MODES: Final[tuple[Mode, ...]] = ("pingpong", "oneway", "both")
_STOP: Final = 255
_READY: Final = memoryview(b"!")


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


class StreamPinger:
    """The end that measures."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.transport = wire.transport
        self.least, self.most = wire.least, wire.most
        self._sent, self._received = _buffer(0), _buffer(0)

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """See :class:`Pinger`."""
        wire = self.wire
        self._grow(size)
        wire.send(memoryview(_ORDER.pack(_MODES.index(mode), count, size)))
        wire.receive(memoryview(bytearray(1)))
        sent, received = self._sent[:size], self._received[: 1 if mode == "oneway" else size]
        seconds = []
        if mode == "both":
            for _ in range(count):
                start = perf_counter()
                wire.both(sent, received)
                seconds.append(perf_counter() - start)
            return seconds
        for _ in range(count):
            start = perf_counter()
            wire.send(sent)
            wire.receive(received)
            seconds.append(perf_counter() - start)
        return seconds if mode == "oneway" else [time / 2 for time in seconds]

    def close(self) -> None:
        """End the exchange."""
        with contextlib.suppress(OSError, EOFError):  # the other end may be gone already
            self.wire.send(memoryview(_ORDER.pack(_STOP, 0, 0)))
        self.wire.close()

    def _grow(self, size: int) -> None:
        if len(self._sent) < size:
            self._sent, self._received = _buffer(size), _buffer(size)


def echo(wire: Wire) -> int:
    """Answer a pinger until it stops; the number of exchanges."""
    order = memoryview(bytearray(_ORDER.size))
    sent, received = _buffer(0), _buffer(0)
    served = 0
    while True:
        wire.receive(order)
        mode, count, size = _ORDER.unpack(order)
        if mode == _STOP:
            wire.close()
            return served
        if len(sent) < size:
            sent, received = _buffer(size), _buffer(size)
        there, back = received[:size], sent[: 1 if _MODES[mode] == "oneway" else size]
        wire.send(_READY)
        if _MODES[mode] == "both":
            for _ in range(count):
                wire.both(back, there)
        else:
            for _ in range(count):
                wire.receive(there)
                wire.send(back)
        served += count


def _buffer(size: int) -> memoryview:
    """Memory that is there: all of its pages are touched."""
    return memoryview(bytearray(b"\1") * max(size, 1))
