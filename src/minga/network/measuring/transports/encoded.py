"""Ping-pong of arrays: as in :mod:`.stream`, with numbers encoded and decoded at both ends.

The measuring end may emulate a machine of the other byte order; the echo uses its own order.
"""

from __future__ import annotations

import contextlib
import struct
from time import perf_counter
from typing import Final

from minga.network.measuring.encodings import ENCODINGS, Encoding, Order, Parcel
from minga.network.measuring.transports import Mode, Unavailable
from minga.network.measuring.transports.stream import Wire

__all__ = ["EncodedPinger", "echo_encoded"]

_ORDER: Final = struct.Struct("!BIQ")
_STOP: Final = 255
_READY: Final = b"!"


class EncodedPinger:
    """Measuring end for messages of float64; ``order`` is the byte order that it has or emulates."""

    least = 8

    def __init__(self, wire: Wire, encoding: Encoding, order: Order | None = None) -> None:
        self.wire = wire
        self.transport = wire.transport
        self.encoding = encoding
        self.order = order
        self.most = wire.most // 2  # descriptors and pickles are longer than their content

    def exchange(self, size: int, count: int, mode: Mode = "pingpong") -> list[float]:
        """See :class:`Pinger`; ping-pong only. The times include encoding, transmission and decoding of float64 arrays.

        Raises
        ------
        RunError
            If the numbers that come back are not those that were sent.
        """
        if mode != "pingpong":
            raise Unavailable(f"encodings are measured by ping-pong only, not {mode}")
        numbers = max(1, size // 8)
        self.wire.send(memoryview(_ORDER.pack(ENCODINGS.index(self.encoding), count, numbers)))
        parcel = Parcel(self.encoding, (numbers,), order=self.order)
        parcel.values[-1] = -numbers
        self.wire.receive(memoryview(bytearray(1)))
        seconds = []
        for _ in range(count):
            start = perf_counter()
            self.wire.send(parcel.encode())
            self.wire.receive(parcel.room)
            came = parcel.decode()
            seconds.append((perf_counter() - start) / 2)
            _check(came[-1] == -numbers)
        return seconds

    def close(self) -> None:
        """End the exchange."""
        with contextlib.suppress(OSError, EOFError):  # the other end may be gone already
            self.wire.send(memoryview(_ORDER.pack(_STOP, 0, 0)))
        self.wire.close()


def echo_encoded(wire: Wire) -> int:
    """Answer an :class:`EncodedPinger` until it stops, and return the number of exchanges.

    Received messages are decoded into numbers of this machine and encoded anew.
    """
    order = memoryview(bytearray(_ORDER.size))
    served = 0
    while True:
        wire.receive(order)
        encoding, count, numbers = _ORDER.unpack(order)
        if encoding == _STOP:
            wire.close()
            return served
        parcel = Parcel(ENCODINGS[encoding], (numbers,))
        wire.send(memoryview(_READY))
        for _ in range(count):
            wire.receive(parcel.room)
            came = parcel.decode()
            parcel.values[-1] = came[-1]
            wire.send(parcel.encode())
        served += count


def _check(right: bool) -> None:
    from minga.errors import RunError

    if not right:
        raise RunError(
            "the numbers that came back differ from those sent", remedy="use the same version of minga at both ends"
        )
