"""Times that runs should take by a clock that costs nothing: computing, copying and writing, and nothing between."""

from __future__ import annotations

from minga.studies.machado.arms import Order
from minga.studies.machado.disks import Cached

__all__ = ["expected"]


def expected(order: Order, compute: float) -> float:
    """Return the seconds until the program can end; compressed frames take no time.

    Parameters
    ----------
    order
        The run.
    compute
        Seconds of computing from one frame to the next.
    """
    write = order.size**3 * 4 / order.rate if order.codec == "none" else 0.0
    if order.arm == "none":
        return (order.frames - 1) * compute
    if order.arm == "durable":
        return (order.frames - 1) * compute + order.frames * write
    if order.arm == "overlapped":
        return _queue(order.frames, compute, write, order.buffers)
    return _cached(order, compute, overlap=order.arm == "processes")


def _queue(frames: int, compute: float, write: float, buffers: int) -> float:
    """Return the seconds with a bounded queue: frame k waits for the buffer of frame k - buffers."""
    now, written = 0.0, [0.0] * buffers
    for frame in range(frames):
        now = max(now + (compute if frame else 0.0), written[-buffers])
        written.append(max(now, written[-1]) + write)
    return max(now, written[-1])


def _cached(order: Order, compute: float, *, overlap: bool) -> float:
    """Return the seconds through a page cache, filled by the solver or by a second process with one buffer."""
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
