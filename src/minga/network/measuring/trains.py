"""LogGP parameters from trains of messages, which separate the costs of hosts, gaps and bytes.

``PRTT(k, d, n)`` is the time until the answer to a train of ``k`` messages of ``n`` bytes arrives, which were sent with
a pause of ``d`` between them (T. Hoefler, A. Lichei, W. Rehm, *Low-Overhead LogGP Parameter Assessment for Modern
Interconnection Networks*, IPDPS 2007)::

    PRTT(k, d, n) = PRTT(1, 0, n) + (k - 1) max(o + d, g + (n - 1) G)

so that long pauses give ``o``, and trains without pauses give ``g`` and, as a function of ``n``, ``G``.
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
    """Times of trains of messages of one size in seconds, each the minimum of all repetitions."""

    bytes: int
    messages: int
    """Number of messages in a train."""
    single: float
    """PRTT of one message."""
    close: float
    """PRTT of a train without pauses."""
    spaced: float
    """PRTT of a train with pauses."""
    pause: float

    @property
    def overhead(self) -> float:
        """Overhead ``o``: seconds for which a message occupies the sender."""
        return max(0.0, (self.spaced - self.single) / (self.messages - 1) - self.pause)

    @property
    def gap(self) -> float:
        """Gap ``g + (n - 1) G``: seconds between messages that are sent back to back."""
        return max(0.0, (self.close - self.single) / (self.messages - 1))

    def as_dict(self) -> dict[str, Any]:
        """Return the times as JSON-serialisable data."""
        return asdict(self) | {"overhead": self.overhead, "gap": self.gap}


@dataclass(frozen=True, slots=True)
class LogGP:
    """LogGP parameters in seconds: wire latency, overhead of the smallest message, gap per message and per byte."""

    latency: float
    overhead: float
    gap: float
    byte: float


def loggp(trains: Sequence[Train]) -> LogGP:
    """Return the parameters from trains of at least two sizes; raise ValueError for fewer.

    ``g`` and ``G`` are fitted to the gaps by a line with relative weights; ``L`` is the remainder of the time of the
    smallest message.
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
    """Measure trains; must run on both ends. Return the results (:meth:`Train.as_dict`) on the first end.

    The sizes share ``budget`` seconds; sizes for which not even the shortest trains fit are omitted.
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
    pause = single  # longer than any gap, because it includes a gap
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
                # In the formula, the pause begins once the sender is done with a message.
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
