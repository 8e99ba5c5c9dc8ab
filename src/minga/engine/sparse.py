"""The values of a slot that are not 0, with their indices on an unbounded plane: what is kept of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.space.box import Box
from minga.space.field import Slot

__all__ = ["SparseValues", "gather_sparse"]


@dataclass(frozen=True, slots=True, eq=False)
class SparseValues:
    """Values that are not 0: ``points``, i8 of shape (n, axes), holds their indices, ``values`` the values."""

    points: NDArray[np.int64]
    values: NDArray[Any]

    def shifted(self, vector: Sequence[int]) -> SparseValues:
        """Return the same values at indices moved by a vector."""
        return SparseValues(self.points + np.asarray(vector, np.int64), self.values)

    def within(self, box: Box) -> NDArray[Any]:
        """Return the values on a box as an array."""
        found = np.zeros(box.shape, self.values.dtype)
        inside = ((self.points >= box.lo) & (self.points < box.hi)).all(axis=1)
        found[tuple((self.points[inside] - box.lo).T)] = self.values[inside]
        return found


def gather_sparse(engine: Engine, slot: Slot) -> SparseValues:
    """Return the values of a slot that are not 0 on all ranks; collective."""
    points, values = [], []
    for box, block in engine.blocks(slot):
        # Rows without values, which are most, are passed over by a look at whole rows.
        rows = np.flatnonzero(block.reshape(block.shape[0], -1).any(axis=1))
        found = np.nonzero(block[rows])
        points.append(np.stack([rows[found[0]] + box.lo[0], *(f + o for f, o in zip(found[1:], box.lo[1:]))], axis=1))
        values.append(block[rows][found])
    width = slot.field.grid.ndim
    mine = SparseValues(
        np.concatenate([np.empty((0, width), np.int64), *points]),
        np.concatenate([np.empty(0, slot.field.dtype), *values]),
    )
    parts = engine.comm.gather(mine)
    whole = None
    if parts is not None:
        whole = SparseValues(np.concatenate([p.points for p in parts]), np.concatenate([p.values for p in parts]))
        order = np.lexsort(whole.points.T[::-1])
        whole = SparseValues(whole.points[order], whole.values[order])
    result: SparseValues = engine.comm.bcast(whole)
    return result
