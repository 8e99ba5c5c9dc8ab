"""Overhead of a message on the two hosts, apart from the wire: time in send and receive calls, and processor time.

``o_s`` is the time inside the call that sends, ``o_r`` that inside the call that receives a message which has already
arrived (D. Culler and others, *LogP*, PPoPP 1993).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from minga.network.measuring.transports.mpi import MpiWire
from minga.network.measuring.transports.stream import Wire

__all__ = ["measure_overhead"]

_MARK = 1


def measure_overhead(wire: Wire, first: bool, sizes: Sequence[int], repeats: int = 20) -> list[dict[str, Any]]:
    """Measure the overhead of messages; must run on both ends with the same sizes.

    Returns
    -------
    list of dict
        On the first end, for each size: ``bytes``, ``send`` and ``receive`` (median seconds of one call), ``cpu_send``
        and ``cpu_receive`` (processor seconds per byte while messages stream; a library that polls while waiting uses
        all of the waiting time). Empty on the second end.
    """
    results = []
    for size in sizes:
        data = memoryview(bytearray(max(size, wire.least)))
        mark = memoryview(bytearray(max(_MARK, wire.least)))
        if first:
            results.append(_first(wire, data, mark, repeats))
        else:
            _second(wire, data, mark, repeats)
    return results


def _first(wire: Wire, data: memoryview, mark: memoryview, repeats: int) -> dict[str, Any]:
    sending, receiving = [], []
    for _ in range(repeats):
        wire.receive(mark)  # the other end is ready
        start = perf_counter()
        done = _post(wire, data)
        sending.append(perf_counter() - start)
        done()
        wire.receive(mark)
    arrival = memoryview(bytearray(8))
    wire.receive(arrival)
    wait = float(np.frombuffer(arrival)[0])
    for _ in range(_receptions(wait, repeats)):
        wire.send(mark)
        time.sleep(wait)
        start = perf_counter()
        wire.receive(data)
        receiving.append(perf_counter() - start)
    count = _stream_length(len(data), wait)
    processor = time.process_time()
    for _ in range(count):
        wire.send(data)
    wire.receive(mark)
    cpu_send = time.process_time() - processor
    wire.send(mark)
    processor = time.process_time()
    for _ in range(count):
        wire.receive(data)
    cpu_receive = time.process_time() - processor
    bytes_moved = count * len(data)
    return {
        "bytes": len(data),
        "send": float(np.median(sending)),
        "receive": float(np.median(receiving)),
        "cpu_send": cpu_send / bytes_moved,
        "cpu_receive": cpu_receive / bytes_moved,
    }


def _second(wire: Wire, data: memoryview, mark: memoryview, repeats: int) -> None:
    arrivals = []
    for _ in range(repeats):
        start = perf_counter()
        wire.send(mark)
        wire.receive(data)
        arrivals.append(perf_counter() - start)
        wire.send(mark)
    # After this time a message has certainly arrived, unless the library moves large ones only in the receiver's call.
    wait = min(0.5, 3 * float(np.median(arrivals)) + 1e-3)
    wire.send(memoryview(np.array([wait]).tobytes()))
    for _ in range(_receptions(wait, repeats)):
        wire.receive(mark)
        wire.send(data)
    count = _stream_length(len(data), wait)
    for _ in range(count):
        wire.receive(data)
    wire.send(mark)
    wire.receive(mark)
    for _ in range(count):
        wire.send(data)


def _receptions(wait: float, repeats: int) -> int:
    """Return the number of receptions that fit into about a second, the same on both ends."""
    return max(3, min(repeats, round(1 / wait)))


def _stream_length(size: int, wait: float) -> int:
    """Return the number of messages that take about a fifth of a second, the same on both ends."""
    return max(2, min(2000, round(0.2 / wait * 3), (1 << 28) // size))


def _post(wire: Wire, data: memoryview) -> Any:
    """Begin to send; return the function that completes it."""
    if isinstance(wire, MpiWire):
        from mpi4py import MPI

        return wire.communicator.Isend((data, MPI.BYTE), wire.peer, wire.tag).Wait
    wire.send(data)
    return lambda: None
