"""Copies of a slot at many steps, in few large pieces of memory."""

from __future__ import annotations

from typing import Final

import numpy as np

from minga.engine.engine import Engine
from minga.space.field import Slot

__all__ = ["Frames"]

_PIECE: Final = 64 << 20
"""Bytes of a piece of memory: large ones come in large pages, which take a fraction of the time to be provided."""


class Frames:
    """Copies of this rank's cells of a slot, by number.

    Parameters
    ----------
    engine
        The engine.
    slot
        The slot.
    count
        Number of copies.
    """

    def __init__(self, engine: Engine, slot: Slot, count: int) -> None:
        self._slot = slot
        self._shapes = [values.shape for _, values in engine.blocks(slot)]
        size = max(1, sum(values.nbytes for _, values in engine.blocks(slot)))
        self._each = max(1, min(count, _PIECE // size))
        self._dtype = slot.field.dtype
        self._pieces: dict[int, list[np.ndarray]] = {}

    def keep(self, engine: Engine, number: int) -> None:
        """Copy the present values."""
        for copy, (_, values) in zip(self._of(number), engine.blocks(self._slot), strict=True):
            copy[...] = values

    def restore(self, engine: Engine, number: int) -> None:
        """Make a copy the present values again, in a call of a Program that names the slot in its writes."""
        for copy, (_, values) in zip(self._of(number), engine.blocks(self._slot), strict=True):
            values[...] = copy

    def _of(self, number: int) -> list[np.ndarray]:
        piece, place = divmod(number, self._each)
        if piece not in self._pieces:
            self._pieces[piece] = [np.empty((self._each, *shape), self._dtype) for shape in self._shapes]
        return [array[place] for array in self._pieces[piece]]
