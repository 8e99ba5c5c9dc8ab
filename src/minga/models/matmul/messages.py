"""Single messages between ranks, with rows of A and blocks of C, if all matrices begin and end on rank 0."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from minga.engine.comm import Channel, Comm, Envelope
from minga.models.matmul.blocks import part
from minga.models.matmul.operands import Array, Operand, Range, length

__all__ = ["finished", "message", "parcels", "received"]


def message(comm: Comm, peer: int, data: Array, tag: int, *, send: bool) -> Channel:
    """Start one message to or from a rank.

    It consists of the bytes of a contiguous array, which must not change until the message is complete.
    """
    envelope = Envelope(peer, data.reshape(-1).view(np.uint8))
    channel = comm.channel([envelope] if send else [], [] if send else [envelope], tag)
    channel.start()
    return channel


def finished(transfer: Channel) -> float:
    """Complete a transfer; return the seconds that took."""
    began = time.perf_counter()
    transfer.wait()
    transfer.close()
    return time.perf_counter() - began


def parcels(operand: Operand, ranges: Sequence[Range], most: int) -> Iterator[Array]:
    """Yield rows of op(X), about ``most`` elements at a time, in the order in which a stripe of them lies in memory."""
    stored = operand.whole.T if operand.transposed else operand.whole
    count, depth = length(ranges), operand.shape[1]
    step = parcel(operand, count, most)
    for at in range(0, depth if operand.transposed else count, step):
        if operand.transposed:
            pieces = [stored[at : at + step, first:end] for first, end in ranges]
            yield np.concatenate(pieces, axis=1, dtype=operand.dtype)
        else:
            pieces = [stored[first:end] for first, end in part(ranges, at, min(count, at + step))]
            yield np.concatenate(pieces, dtype=operand.dtype)


def received(operand: Operand, flat: Array, count: int, most: int) -> Iterator[Array]:
    """Yield the parts of a stripe of ``count`` rows that :func:`parcels` fills, one after the other."""
    step = parcel(operand, count, most) * (count if operand.transposed else operand.shape[1])
    for at in range(0, len(flat), step):
        yield flat[at : at + step]


def parcel(operand: Operand, count: int, most: int) -> int:
    """Return the number of rows, or of columns if the operand is transposed, that are sent at a time."""
    return max(1, most // max(1, count if operand.transposed else operand.shape[1]))
