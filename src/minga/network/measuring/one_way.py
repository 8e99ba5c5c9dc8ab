"""One-way times of messages, by clocks that are compared through messages.

The difference of two clocks is known to within half of the shortest round trip (F. Cristian, *Probabilistic clock
synchronization*, Distributed Computing 3, 1989), so one-way times are reported only for messages that take far longer.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np

from minga.network.measuring.transports.stream import Wire

__all__ = ["Clocks", "measure_one_way", "telling"]

_STAMP: Final = struct.Struct("!d")
_EXCHANGES: Final = 100
_TELLING: Final = 10
"""Least ratio of the time of a message to the uncertainty of the clocks."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Comparison of two clocks, in seconds.

    ``offset`` is the other end's clock minus this end's, at time ``when`` of this end, with uncertainty ``doubt``.
    """

    when: float
    offset: float
    doubt: float


def measure_one_way(wire: Wire, first: bool, sizes: Sequence[int], budget: float) -> list[dict[str, Any]]:
    """Measure one-way times; must run on both ends with the same sizes.

    Returns
    -------
    list of dict
        On the first end, for each size: ``bytes``, ``there`` and ``back`` (median seconds), and ``doubt`` (seconds by
        which both may be wrong, in opposite directions). Empty on the second end.
    """
    if not first:
        _second(wire, sizes)
        return []
    before = _compare(wire)
    found = []
    for size in sizes:
        data = memoryview(bytearray(b"\1") * max(size, wire.least, 1))
        ways = [_exchange(wire, data)]
        took = ways[0][1] - ways[0][0]
        for _ in range(int(max(2, min(50, budget / len(sizes) / max(took, 1e-6))))):
            wire.send(memoryview(b"+"))
            ways.append(_exchange(wire, data))
        wire.send(memoryview(b"."))
        found.append((len(data), ways))
    after = _compare(wire)
    return [_point(size, ways, before, after) for size, ways in found]


def telling(points: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """Return the points for which the clocks are known well enough, and a text about their accuracy."""
    if not points:
        return [], "one-way times were not measured"
    doubt = max(float(point["doubt"]) for point in points)
    good = [point for point in points if min(point["there"], point["back"]) > _TELLING * doubt]
    known = f"the clocks are known to within {doubt * 1e6:.3g} us"
    if not good:
        return [], f"{known}, not accurately enough for one-way times of these messages"
    least = min(int(point["bytes"]) for point in good)
    return good, f"{known}, accurately enough for one-way times from {least} bytes on"


def _exchange(wire: Wire, data: memoryview) -> tuple[float, float, float, float]:
    """Exchange a message; return when the first end sent and received, then when the other end received and sent."""
    stamp = memoryview(bytearray(2 * _STAMP.size))
    sent = perf_counter()
    wire.send(data)
    wire.receive(data)
    arrived = perf_counter()
    wire.receive(stamp)
    there, back = (value for (value,) in _STAMP.iter_unpack(stamp))
    return sent, arrived, there, back


def _second(wire: Wire, sizes: Sequence[int]) -> None:
    _be_compared(wire)
    for size in sizes:
        data = memoryview(bytearray(b"\1") * max(size, wire.least, 1))
        more = memoryview(bytearray(b"+"))
        while bytes(more) == b"+":
            wire.receive(data)
            reached = perf_counter()
            left = perf_counter()
            wire.send(data)
            wire.send(memoryview(_STAMP.pack(reached) + _STAMP.pack(left)))
            wire.receive(more)
    _be_compared(wire)


def _compare(wire: Wire) -> Clocks:
    """Compare the clocks by the shortest of many round trips."""
    mark, stamp = memoryview(bytearray(_STAMP.size)), memoryview(bytearray(_STAMP.size))
    best = Clocks(0.0, 0.0, float("inf"))
    for _ in range(_EXCHANGES):
        start = perf_counter()
        wire.send(mark)
        wire.receive(stamp)
        end = perf_counter()
        if (end - start) / 2 < best.doubt:
            (other,) = _STAMP.unpack(stamp)
            best = Clocks((start + end) / 2, other - (start + end) / 2, (end - start) / 2)
    return best


def _be_compared(wire: Wire) -> None:
    mark = memoryview(bytearray(_STAMP.size))
    for _ in range(_EXCHANGES):
        wire.receive(mark)
        wire.send(memoryview(_STAMP.pack(perf_counter())))


def _point(
    size: int, ways: Sequence[tuple[float, float, float, float]], before: Clocks, after: Clocks
) -> dict[str, Any]:
    """Return the median times; the clocks are assumed to drift linearly between the two comparisons."""
    there, back = [], []
    for sent, arrived, reached, left in ways:
        there.append(reached - _offset(before, after, sent) - sent)
        back.append(arrived - (left - _offset(before, after, arrived)))
    doubt = max(before.doubt, after.doubt)
    return {"bytes": size, "there": float(np.median(there)), "back": float(np.median(back)), "doubt": doubt}


def _offset(before: Clocks, after: Clocks, when: float) -> float:
    span = after.when - before.when
    part = (when - before.when) / span if span > 0 else 0.0
    return before.offset + part * (after.offset - before.offset)
