"""Relative costs of cells: nothing for cells behind a mask, and more for rows in which a local solve takes longer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import FieldValue
from minga.engine.mask_kernels import SEGMENT
from minga.engine.model import Model
from minga.engine.values import at_points, is_of_position
from minga.errors import CaseError
from minga.space.bit_words import WORD
from minga.space.box import Box
from minga.space.boxes import Ints, volumes
from minga.space.field import Field
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["MOST_TILES", "Weights", "masked_cost", "measured_weights", "piece_starts", "tile_of", "weights_of"]

Floats = NDArray[np.float64]

MOST_TILES: Final = 1 << 18
"""Maximum number of tiles of a domain: small enough to be sent, fine enough for any cut."""
_SLAB: Final = 1 << 22
"""Number of cells whose costs are computed at once."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Costs of tiles of cells, in units of ordinary cells.

    The cost of a domain of ordinary cells is its number of cells.

    Attributes
    ----------
    domain
        The box that tiles cover.
    tile
        Shape of a tile; the last ones along each axis are cut off.
    cost
        ``cost[i, j, ...]`` is the total cost of the cells in one tile.
    """

    domain: Box
    tile: tuple[int, ...]
    cost: Floats

    def along(self, axis: int) -> Floats:
        """Return the cost of every plane of cells across an axis, shape (cells along it,); uniform within a tile."""
        sums = self.cost.sum(axis=tuple(a for a in range(self.cost.ndim) if a != axis))
        length = self.domain.shape[axis]
        widths = np.minimum(self.tile[axis], length - np.arange(len(sums)) * self.tile[axis])
        return np.repeat(sums / widths, widths)

    def of(self, lo: Ints, hi: Ints) -> Floats:
        """Return the cost of boxes ``[lo[i], hi[i])``, shape (boxes,); parts of tiles count in proportion."""
        result = np.zeros(len(lo))
        for corner in np.ndindex(*(2,) * self.cost.ndim):
            ends = np.where(np.array(corner, bool), hi, lo) - np.array(self.domain.lo)
            sign = (-1) ** (self.cost.ndim - sum(corner))
            result += sign * self._at(self._total, ends)
        return result

    def enlarged(self, domain: Box, factors: Sequence[int]) -> Weights:
        """Return the costs of a finer grid, each of whose tiles has ``factors`` times as many cells along each axis."""
        tile = tuple(size * factor for size, factor in zip(self.tile, factors, strict=True))
        cost = self.cost.copy()
        for axis, count in enumerate(cost.shape):
            first = np.arange(count)
            coarse = np.minimum(self.tile[axis], self.domain.shape[axis] - first * self.tile[axis])
            fine = np.minimum(tile[axis], domain.shape[axis] - first * tile[axis])
            along = [1] * cost.ndim
            along[axis] = -1
            cost *= (fine / coarse).reshape(along)
        return Weights(domain, tile, cost)

    @cached_property
    def _total(self) -> Floats:
        """Summed-area table: the cost below each corner of tiles."""
        total = self.cost
        for axis in range(self.cost.ndim):
            total = np.concatenate([np.zeros_like(total.take([0], axis)), np.cumsum(total, axis)], axis)
        return total

    def _at(self, total: Floats, ends: Ints) -> Floats:
        """Interpolate the summed-area table multilinearly, since costs are uniform within tiles."""
        base, part = [], []
        for axis, (length, tile) in enumerate(zip(self.domain.shape, self.tile, strict=True)):
            number = np.minimum(ends[:, axis] // tile, self.cost.shape[axis] - 1)
            width = np.minimum(tile, length - number * tile)
            base.append(number)
            part.append((ends[:, axis] - number * tile) / width)
        value = np.zeros(len(ends))
        for corner in np.ndindex(*(2,) * self.cost.ndim):
            share = np.ones(len(ends))
            for axis, up in enumerate(corner):
                share = share * (part[axis] if up else 1 - part[axis])
            value += share * total[tuple(b + up for b, up in zip(base, corner, strict=True))]
        return value


def weights_of(model: Model) -> Weights | None:
    """Return the costs of cells that a model declares (``Model.cost`` and ``Model.mask``), over the planned grid.

    Costs are relative: 1 for a cell that does all its work, 0 for a cell behind a mask. A word of cells costs their
    mean. Return None if all cells cost the same.

    Raises
    ------
    CaseError
        If costs are negative, not finite, or all zero, or do not have the requested shape.
    """
    if model.cost is None and model.mask is None:
        return None
    planned = model.planned_grid
    words = {packed.words: packed.cells.grid for packed in model.packed.values()}
    if planned != model.grid and words.get(planned) != model.grid:
        raise CaseError(
            f"model {model.name!r} declares costs of cells, but most of its memory is on {planned!r}",
            remedy="leave cost out",
        )
    tile = tile_of(planned.box)
    cells = 1 if planned == model.grid else WORD
    cost = _sums(model, (*tile[:-1], tile[-1] * cells)) / cells
    if model.cost is None and cost.sum() == planned.size:
        return None  # nothing is behind the mask yet
    if not np.isfinite(cost).all() or (cost < 0).any() or not cost.any():
        raise CaseError(
            f"the costs that model {model.name!r} declares must be finite, none negative and not all zero",
            remedy="give 1 for an ordinary cell, 0 for one that needs no work",
        )
    return Weights(planned.box, tile, cost)


def tile_of(domain: Box) -> tuple[int, ...]:
    """Return the shape of tiles (powers of two) of which a domain has at most ``MOST_TILES``."""
    tile = [1] * domain.ndim
    while True:
        counts = [-(-length // size) for length, size in zip(domain.shape, tile, strict=True)]
        if np.prod(counts) <= MOST_TILES:
            return tuple(tile)
        tile[counts.index(max(counts))] *= 2


def measured_weights(layout: Layout, seconds: Mapping[int, float]) -> Weights:
    """Return costs from the seconds of each block of a layout (by number), uniform within a block.

    The mean cost of a cell is 1, which is also that of cells in blocks without a measurement.
    """
    domain, tile = layout.domain, tile_of(layout.domain)
    sizes = volumes(layout.lo, layout.hi).astype(float)
    took = np.array([seconds.get(block, np.nan) for block in range(len(layout))])
    known = np.isfinite(took)
    mean = took[known].sum() / sizes[known].sum() if known.any() else 0.0
    density = np.where(known, took, mean * sizes) / sizes / mean if mean > 0 else np.ones(len(layout))
    cost = np.zeros([-(-length // size) for length, size in zip(domain.shape, tile, strict=True)])
    for lo, hi, value in zip(layout.lo - domain.lo, layout.hi - domain.lo, density, strict=True):
        parts = [_covered(int(a), int(b), size) for a, b, size in zip(lo, hi, tile, strict=True)]
        share = value * np.ones(())
        for _, cells in parts:
            share = np.multiply.outer(share, cells)
        cost[tuple(slice(first, first + len(cells)) for first, cells in parts)] += share
    return Weights(domain, tile, cost)


def _covered(low: int, high: int, size: int) -> tuple[int, Floats]:
    """Return the first tile that ``[low, high)`` touches along an axis, and the number of its cells in each tile."""
    first, last = low // size, -(-high // size)
    ends = np.arange(first, last + 1) * size
    return first, np.diff(np.clip(ends, low, high)).astype(float)


def _sums(model: Model, tile: tuple[int, ...]) -> Floats:
    """Return the cost of all cells in each tile of a model's grid."""
    grid, (first, *_) = model.grid, tile
    rows = first * max(1, _SLAB * grid.shape[0] // grid.size // first)
    slabs = []
    for low in range(0, grid.shape[0], rows):
        box = Box((low, *grid.box.lo[1:]), (min(low + rows, grid.shape[0]), *grid.shape[1:]))
        total = _declared(model, grid, box)
        for axis, size in enumerate(tile):
            total = np.add.reduceat(total, np.arange(0, total.shape[axis], size), axis)
        slabs.append(total)
    return np.concatenate(slabs)


def _declared(model: Model, grid: Grid, box: Box) -> Floats:
    """Return the costs of the cells of a box, which has whole rows."""
    value = _start_of(model, model.cost) if isinstance(model.cost, str) else model.cost
    costs = _values(1.0 if value is None else value, grid, box)
    if model.mask is not None and costs.shape == box.shape:
        costs = costs * masked_cost(_values(_start_of(model, model.mask), grid, box), box.lo[-1])
    if costs.shape != box.shape:
        raise CaseError(
            f"the cost of model {model.name!r} has shape {costs.shape} for a box of {box.shape} cells",
            remedy="return one number for each cell of the box",
        )
    return costs


def masked_cost(mask: NDArray[np.generic], first: int) -> Floats:
    """Return 1 for cells that are computed, 0 for those that are left out.

    As in the engine, segments of rows that lie entirely behind the mask are left out. ``first`` is the index of the
    first cell of rows.
    """
    length = mask.shape[-1]
    starts = piece_starts(first, length, SEGMENT)
    pieces = np.logical_or.reduceat(mask == 0, starts, axis=-1)
    return np.repeat(pieces, np.diff([*starts, length]), axis=-1).astype(float)


def piece_starts(first: int, length: int, size: int) -> list[int]:
    """Return the beginnings, relative to cell ``first``, of the pieces cut at multiples of ``size``."""
    return [0, *range(size - first % size, length, size)]


def _values(value: FieldValue, grid: Grid, box: Box) -> Floats:
    """Return the values of a box: the same for all cells, part of an array, or the result of a function."""
    if callable(value):
        return np.asarray(value(box), float)
    if isinstance(value, np.ndarray) and value.ndim:
        return np.asarray(value[box.slices(grid.box.lo)], float)
    return np.full(box.shape, float(value))


def _start_of(model: Model, name: str) -> FieldValue:
    """Return the initial values of a field of cells."""
    if name in model.packed or model.field(name).points != model.grid.box or model.field(name).replicated:
        raise CaseError(
            f"the costs of cells of model {model.name!r} are field {name!r}, which does not have one number per cell",
            remedy="name a field of cells, or give an array",
        )
    item = model.field(name)
    value = dict(model.start_values())[item.now]
    return partial(_placed, value, item) if callable(value) and is_of_position(value, item) else value


def _placed(function: Callable[..., Any], item: Field, box: Box) -> Floats:
    return np.asarray(at_points(function, item, box), float)
