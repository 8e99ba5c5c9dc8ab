"""Scattering of a whole field from rank 0: each rank gets the cells that it owns."""

from __future__ import annotations

from typing import Final

import numpy as np

from minga.engine.comm import Comm, Envelope
from minga.engine.rank_zero import on_rank_zero
from minga.engine.storage import Storage
from minga.engine.values import FieldValue, check_shape, fitting
from minga.space.box import Box
from minga.space.field import Slot

__all__ = ["scattered"]

TAG: Final = 32748


def scattered(storage: Storage, comm: Comm, slot: Slot, whole: np.ndarray | None) -> FieldValue:
    """Return values for the cells of this rank from the whole field, which rank 0 gives; collective."""
    target = slot.field
    checked: list[np.ndarray] = []

    def check() -> None:
        checked.append(fitting(target, whole))
        check_shape(target, checked[0])

    on_rank_zero(comm, check, f"scatter of {target.name!r}")
    if comm.size == 1:
        return checked[0]
    if target.replicated or storage.layout(target.grid).replicated:
        value: np.ndarray = comm.bcast(checked[0] if checked else None)
        return value
    boxes = [box for box, _ in storage.pieces(slot)]
    everything = comm.gather(boxes)
    parts = {box: np.empty(box.shape, target.dtype) for box in boxes}
    sends: list[Envelope] = []
    receives = [Envelope(0, _bytes(part)) for part in parts.values()]
    if everything is not None:
        parts = {box: _part(checked[0], box, slot) for box in boxes}
        receives = []
        sends = [
            Envelope(rank, _bytes(_part(checked[0], box, slot)))
            for rank, theirs in enumerate(everything)
            for box in (theirs if rank else ())
        ]
    channel = comm.channel(sends, receives, TAG)
    channel.start()
    channel.wait()
    channel.close()
    return lambda box: parts[box]


def _part(whole: np.ndarray, box: Box, slot: Slot) -> np.ndarray:
    return np.ascontiguousarray(whole[box.slices(slot.field.bounds.lo)], slot.field.dtype)


def _bytes(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1).view(np.uint8)
