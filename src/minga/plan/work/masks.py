"""Costs of cells if a mask changes while a model runs, such as that of a growing deposit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from minga.engine.active import touched
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.plan.work.weights import Weights, masked_cost, piece_starts, tile_of
from minga.space.box import Box
from minga.space.field import Field

__all__ = ["MaskWatch"]

Floats = NDArray[np.float64]
Part = tuple[tuple[int, ...], Floats]
"""First tile of a box along each axis, and the cost of the tiles from there on, as far as they lie in the box."""


class MaskWatch:
    """Observer of a model's mask that is evaluated from time to time, by each rank on its own cells."""

    def __init__(self, item: Field) -> None:
        self.item, self.domain = item, item.points
        self.tile = tile_of(self.domain)
        self._sent: list[Part] | None = None
        self._parts: dict[int, list[Part]] = {}

    @classmethod
    def of(cls, model: Model) -> MaskWatch | None:
        """Return a watch if steps of the model change its mask, otherwise None."""
        if model.mask is None or model.cost is not None or model.field(model.mask).grid != model.planned_grid:
            return None
        item = model.field(model.mask)
        return cls(item) if item in touched(model.step.operations, frozenset()).fields else None

    def forget(self) -> None:
        """Discard what was sent; call this on all ranks when blocks have moved."""
        self._sent = None

    def part(self, engine: Engine) -> list[Part] | None:
        """Return the present costs of this rank's cells; None if they have not changed since the last call."""
        found = [_sums(masked_cost(values, box.lo[-1]), box, self.tile) for box, values in engine.blocks(self.item)]
        if self._sent is not None and len(found) == len(self._sent):
            pairs = zip(found, self._sent, strict=True)
            if all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in pairs):
                return None
        self._sent = found
        return found

    def weights(self, parts: Sequence[list[Part] | None]) -> Weights | None:
        """Return the costs of all cells from the ranks' parts; None if nothing has changed or all costs are zero."""
        self._parts |= {rank: part for rank, part in enumerate(parts) if part is not None}
        if all(part is None for part in parts):
            return None
        cost = np.zeros([-(-length // size) for length, size in zip(self.domain.shape, self.tile, strict=True)])
        for part in self._parts.values():
            for first, sums in part:
                cost[tuple(slice(a, a + n) for a, n in zip(first, sums.shape, strict=True))] += sums
        return Weights(self.domain, self.tile, cost) if cost.any() else None


def _sums(cost: Floats, box: Box, tile: Sequence[int]) -> Part:
    """Add up the costs of cells by tiles."""
    for axis, size in enumerate(tile):
        cost = np.add.reduceat(cost, piece_starts(box.lo[axis], cost.shape[axis], size), axis)
    return tuple(low // size for low, size in zip(box.lo, tile, strict=True)), cost
