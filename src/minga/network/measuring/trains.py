"""LogGP from trains of messages: what hosts, gaps and bytes cost, apart from each other.

``PRTT(k, d, n)`` is the time until the answer to a train of ``k`` messages of ``n`` bytes is here, which were sent with
a pause of ``d`` between them (T. Hoefler, A. Lichei, W. Rehm, *Low-Overhead LogGP Parameter Assessment for Modern
Interconnection Networks*, IPDPS 2007)::

    PRTT(k, d, n) = PRTT(1, 0, n) + (k - 1) max(o + d, g + (n - 1) G)

so that long pauses give ``o``, none give ``g`` and, over ``n``, ``G``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np

from minga.network.measuring.transports.stream import Wire

__all__ = ["LogGP", "Train", "loggp", "measure_trains"]

_ORDER: Final = struct.Struct("!QII")
_READY: Final = b"!"
_MESSAGES: Final = 16
_LEAST_MESSAGES, _LEAST_REPEATS, _MOST_REPEATS = 4, 3, 40


@dataclass(frozen=True, slots=True)
class Train:
    """What trains of messages of one size took, in seconds: the least of all repetitions."""

    bytes: int
    messages: int
    """In a train."""
    single: float
    """PRTT of one message."""
    close: float
    """PRTT of a train without pauses."""
    spaced: float
    """PRTT of a train with pauses."""
    pause: float

    @property
    def overhead(self) -> float:
        """``o``: seconds for which a message keeps the sender."""
        return max(0.0, (self.spaced - self.single) / (self.messages - 1) - self.pause)

    @property
    def gap(self) -> float:
        """``g + (n - 1) G``: seconds between messages that follow each other as fast as they can."""
        return max(0.0, (self.close - self.single) / (self.messages - 1))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"overhead": self.overhead, "gap": self.gap}


@dataclass(frozen=True, slots=True)
class LogGP:
    """The parameters: latency of the wire, overhead of the smallest message, gap of messages, gap of bytes; seconds."""

    latency: float
    overhead: float
    gap: float
    byte: float


def loggp(trains: Sequence[Train]) -> LogGP:
    """Of trains of at least two sizes; ValueError for fewer.

    ``g`` and ``G`` are a line through the gaps with relative weights; ``L`` is what the smallest message leaves.
    """
    if len({train.bytes for train in trains}) < 2:
        raise ValueError("a gap for each byte needs trains of at least two sizes")
    first = min(trains, key=lambda train: train.bytes)
    sizes = np.array([train.bytes - 1 for train in trains], float)
    gaps = np.array([max(train.gap, 1e-9) for train in trains])
    matrix = np.stack([np.ones_like(sizes), sizes], axis=1) / gaps[:, None]
    (gap, byte), *_ = np.linalg.lstsq(matrix, np.ones_like(gaps), rcond=None)
    byte = max(float(byte), 0.0)
    latency = first.single / 2 - 2 * first.overhead - (first.bytes - 1) * byte
    return LogGP(max(0.0, latency), first.overhead, max(0.0, float(gap)), byte)


def measure_trains(wire: Wire, first: bool, sizes: Sequence[int], budget: float) -> list[dict[str, Any]]:
    """Run on both ends; the results (:meth:`Train.as_dict`) are the first end's.

    ``budget`` seconds are shared by the sizes; those of which not even the shortest trains fit are left out.
    """
    if not first:
        _answer(wire)
        return []
    found = []
    for size in sizes:
        train = _measure(wire, max(size, wire.least, 1), budget / len(sizes))
        if train is None:
            break
        found.append(train.as_dict())
    wire.send(memoryview(_ORDER.pack(0, 0, 0)))
    return found


def _measure(wire: Wire, size: int, budget: float) -> Train | None:
    start = perf_counter()
    single = min(_prtt(wire, size, 1, 0.0, _LEAST_REPEATS))
    pause = single  # longer than any gap, as a gap is part of it
    messages = int(min(_MESSAGES, budget / (2 * _LEAST_REPEATS * 2 * single)))
    if messages < _LEAST_MESSAGES:
        return None
    close = min(_prtt(wire, size, messages, 0.0, _LEAST_REPEATS))
    spaced = min(_prtt(wire, size, messages, pause, _LEAST_REPEATS))
    left = budget - (perf_counter() - start)
    more = int(min(_MOST_REPEATS, left / (single + close + spaced)))
    if more > 0:
        single = min(single, *_prtt(wire, size, 1, 0.0, more))
        close = min(close, *_prtt(wire, size, messages, 0.0, more))
        spaced = min(spaced, *_prtt(wire, size, messages, pause, more))
    return Train(size, messages, single, close, spaced, pause)


def _prtt(wire: Wire, size: int, messages: int, pause: float, repeats: int) -> list[float]:
    data, back = memoryview(bytearray(b"\1") * size), memoryview(bytearray(b"\1") * size)
    wire.send(memoryview(_ORDER.pack(size, messages, repeats)))
    wire.receive(memoryview(bytearray(len(_READY))))
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        wire.send(data)
        for _ in range(messages - 1):
            if pause:
                # The formula's pause begins when a message is out of the sender's hands.
                until = perf_counter() + pause
                while perf_counter() < until:
                    pass
            wire.send(data)
        wire.receive(back)
        seconds.append(perf_counter() - start)
    return seconds


def _answer(wire: Wire) -> None:
    order = memoryview(bytearray(_ORDER.size))
    while True:
        wire.receive(order)
        size, messages, repeats = _ORDER.unpack(order)
        if size == 0:
            return
        data = memoryview(bytearray(b"\1") * size)
        wire.send(memoryview(_READY))
        for _ in range(repeats):
            for _ in range(messages):
                wire.receive(data)
            wire.send(data)
