"""Cells of a model's output fields as files, digests and pictures see them, however an engine stores them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.space.bit_words import Packed, cell_layout
from minga.space.box import Box
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["blocks_of_cells", "gather_cells", "layout_of_cells"]

Array = NDArray[Any]
_SLAB = 1 << 22
"""Number of words that are unpacked at once, so that large fields need little memory."""


def gather_cells(engine: Engine, model: Model, name: str) -> Array | None:
    """Return a whole field of a model on rank 0, None elsewhere; collective.

    Parameters
    ----------
    engine
        The engine that runs the model.
    model
        The model.
    name
        The name of the field.

    Returns
    -------
    ndarray or None
        The values on rank 0, None on the others.
    """
    packed = model.packed.get(name)
    if packed is None:
        return engine.gather(model.field(name))
    planes = [engine.gather(plane) for plane in packed.planes]
    whole = [plane for plane in planes if plane is not None]
    if not whole:
        return None
    cells = np.empty(packed.cells.grid.shape, np.uint8)
    for box, states in _unpacked(packed, packed.words.box, whole):
        cells[box.slices(packed.cells.bounds.lo)] = states
    return cells


def blocks_of_cells(engine: Engine, model: Model, name: str) -> Iterator[tuple[Box, Array]]:
    """Yield this rank's boxes of a field and their values, which are read-only. A block may come in several pieces."""
    packed = model.packed.get(name)
    if packed is None:
        yield from engine.blocks(model.field(name))
        return
    pieces = [engine.blocks(plane) for plane in packed.planes]
    for parts in zip(*pieces, strict=True):
        yield from _unpacked(packed, parts[0][0], [values for _, values in parts])


def layout_of_cells(engine: Engine, model: Model, grid: Grid | None = None) -> Layout:
    """Return the layout of a grid (by default the model's); for packed cells, that of their words."""
    wanted = grid or model.grid
    for packed in model.packed.values():
        if packed.cells.grid == wanted:
            return cell_layout(engine.storage.layout(packed.words), wanted)
    return engine.storage.layout(wanted)


def _unpacked(packed: Packed, words: Box, planes: list[Array]) -> Iterator[tuple[Box, Array]]:
    """Yield the cells of a box of words in slabs along the first axis; boxes of one axis at once."""
    if words.empty:
        return
    rows = words.shape[0] if words.ndim == 1 else max(1, _SLAB // max(1, words.size // words.shape[0]))
    for first in range(0, words.shape[0], rows):
        last = min(first + rows, words.shape[0])
        slab = Box((words.lo[0] + first, *words.lo[1:]), (words.lo[0] + last, *words.hi[1:]))
        yield packed.box(slab), packed.unpack(slab, [values[first:last] for values in planes])
