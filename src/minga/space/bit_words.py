"""Cells of few states stored as bits: 64 cells of a row in a word, one field of words for each bit of a state.

Bit k of word j along the innermost axis is cell 64 j + k. The words have a grid of their own, so all code that cuts,
moves and fills fields handles them like cells. If 64 does not divide the length of a row, the last word has unused bits
above the row's end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import LayoutError
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["WORD", "Packed", "cell_box", "cell_layout", "pack", "unpack", "word_grid"]

WORD: Final = 64
"""Cells in a word."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Field whose cells are stored as bits.

    Attributes
    ----------
    cells
        The field as users see it: u1 on the grid of cells. It is declared only; an engine stores the planes.
    planes
        Fields of type u8 on the grid of words: bit p of a cell's state is in planes[p].
    row
        Fields of type u8 along the rows of words: data that kernels need about the words of a row.
    extend
        A function that extends whole rows of first states to whole words, with the cells that kernels read beyond the
        ends of rows; None if these are 0.
    """

    cells: Field
    planes: tuple[Field, ...]
    row: tuple[Field, ...] = ()
    extend: Callable[[Array], Array] | None = None

    @property
    def words(self) -> Grid:
        """Grid of the words."""
        return self.planes[0].grid

    def box(self, words: Box) -> Box:
        """Return the cells of a box of words."""
        return cell_box(words, self.cells.grid.shape[-1])

    def pack(self, states: Array) -> list[Array]:
        """Return the words of each plane, given the cells of whole rows; `extend` gives the bits beyond their ends."""
        if self.extend is not None:
            states = self.extend(states)
        return [pack(states >> plane & 1) for plane in range(len(self.planes))]

    def unpack(self, words: Box, planes: Sequence[Array]) -> Array:
        """Return the states of the cells in a box of words, u1."""
        length = self.box(words).shape[-1]
        states = np.zeros((*words.shape[:-1], length), np.uint8)
        for plane, values in enumerate(planes):
            rows = values.any(axis=-1)  # rows without cells, which may be most, are passed over
            states[rows] |= unpack(values[rows], length) << plane
        return states


def word_grid(grid: Grid) -> Grid:
    """Return the grid of the words of a grid of cells.

    Raises
    ------
    LayoutError
        If the seam of a shifted torus would lie within words.
    """
    for axis, vector in enumerate(grid.shift):
        if vector[-1] % WORD or (any(vector) and grid.shape[-1] % WORD):
            raise LayoutError(
                f"crossing axis {grid.axes[axis]} shifts by {vector[-1]} cells along {grid.axes[-1]}, "
                f"which are not whole words of {WORD} cells"
            )
    return Grid(
        (*grid.shape[:-1], -(-grid.shape[-1] // WORD)),
        axes=grid.axes,
        periodic=grid.periodic,
        shift=[(*vector[:-1], vector[-1] // WORD) for vector in grid.shift],
        label=f"{grid.label} in words of {WORD} cells".strip(),
    )


def cell_box(words: Box, length: int) -> Box:
    """Return the cells of a box of words, in rows of `length` cells."""
    low, high = min(words.lo[-1] * WORD, length), min(words.hi[-1] * WORD, length)
    return Box((*words.lo[:-1], low), (*words.hi[:-1], high))


def cell_layout(words: Layout, grid: Grid) -> Layout:
    """Return the layout of the cells of `grid` that corresponds to a layout of its words."""
    lo, hi = words.lo.copy(), words.hi.copy()
    lo[:, -1] *= WORD
    hi[:, -1] = np.minimum(hi[:, -1] * WORD, grid.shape[-1])
    return Layout(grid.box, words.ranks, lo, hi, words.owner)


def pack(bits: Array) -> Array:
    """Return words of the bits along the last axis, u8; the last word is filled up with zeros."""
    packed = np.packbits(bits, axis=-1, bitorder="little")
    missing = -packed.shape[-1] % 8
    padded = np.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, missing)])
    return np.ascontiguousarray(padded).view("<u8").astype(np.uint64, copy=False)


def unpack(words: Array, length: int) -> Array:
    """Return the first `length` bits of the words along the last axis, u1."""
    octets = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=length, bitorder="little")
