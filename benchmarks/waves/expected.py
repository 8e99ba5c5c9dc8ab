"""What a run should take, by a clock that costs nothing: computing, copying and writing without anything between."""

from __future__ import annotations

from benchmarks.waves.arms import Order
from benchmarks.waves.disks import Cached


def expected(order: Order, compute: float) -> float:
    """Seconds until the program can end. `compute`: seconds from frame to frame. Compressed frames take no time."""
    write = order.size**3 * 4 / order.rate if order.codec == "none" else 0.0
    if order.arm == "none":
        return (order.frames - 1) * compute
    if order.arm == "durable":
        return (order.frames - 1) * compute + order.frames * write
    if order.arm == "overlapped":
        return _queue(order.frames, compute, write, order.buffers)
    return _cached(order, compute, overlap=order.arm == "processes")


def _queue(frames: int, compute: float, write: float, buffers: int) -> float:
    """A bounded queue: frame k waits for the buffer of frame k - buffers."""
    now, written = 0.0, [0.0] * buffers
    for frame in range(frames):
        now = max(now + (compute if frame else 0.0), written[-buffers])
        written.append(max(now, written[-1]) + write)
    return max(now, written[-1])


def _cached(order: Order, compute: float, *, overlap: bool) -> float:
    """Through a page cache, in the solver or in a second process with one buffer."""
    solver = writer = 0.0
    at = [0.0]
    cache = Cached(order.rate, order.depth, clock=lambda: at[0])
    for frame in range(order.frames):
        solver += compute if frame else 0.0
        if overlap:
            solver = max(solver, writer)
        at[0] = solver + order.copy
        writer = at[0] + cache.delay(order.size**3 * 4)
        if not overlap:
            solver = writer
    return max(solver, writer)
