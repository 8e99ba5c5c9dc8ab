"""Cells in words: which bit is which cell, boxes, layouts, and the grid of the words."""

from __future__ import annotations

import numpy as np
import pytest

from minga.errors import LayoutError
from minga.space.bit_words import Packed, cell_box, cell_layout, pack, unpack, word_grid
from minga.space.box import Box
from minga.space.cuts import cartesian
from minga.space.field import Field
from minga.space.grid import Grid


def test_bit_k_of_word_j_is_cell_64_j_plus_k() -> None:
    cells = np.zeros((2, 130), np.uint8)
    cells[1, [0, 5, 63, 64, 129]] = 1
    words = pack(cells)
    assert words.dtype == np.uint64
    assert words.tolist() == [[0, 0, 0], [1 | 1 << 5 | 1 << 63, 1, 1 << 1]]


@pytest.mark.parametrize("length", [1, 63, 64, 65, 200])
def test_unpacked_cells_are_those_that_were_packed(length: int) -> None:
    cells = np.random.default_rng(length).integers(0, 2, (3, 2, length)).astype(np.uint8)
    assert np.array_equal(unpack(pack(cells), length), cells)


@pytest.mark.parametrize("states", [2, 3, 7, 16])
def test_states_in_planes(states: int) -> None:
    grid = Grid((4, 150))
    planes = tuple(Field(f"p{p}", word_grid(grid), "u8") for p in range((states - 1).bit_length()))
    packed = Packed(Field("cell", grid, "u1"), planes)
    cells = np.random.default_rng(states).integers(0, states, grid.shape).astype(np.uint8)
    words = packed.pack(cells)
    assert np.array_equal(packed.unpack(packed.words.box, words), cells)
    part = Box((1, 1), (3, 3))
    assert packed.box(part) == Box((1, 64), (3, 150))
    assert np.array_equal(packed.unpack(part, [plane[1:3, 1:3] for plane in words]), cells[1:3, 64:150])


def test_the_grid_of_the_words() -> None:
    words = word_grid(Grid((6, 5, 128), periodic=True, shift={"z": {"y": 2, "x": -64}}))
    assert words.shape == (6, 5, 2)
    assert words.periodic == (True, True, True)
    assert words.shift[0] == (0, 2, -1)
    assert word_grid(Grid((6, 130))).shape == (6, 3)


@pytest.mark.parametrize(("length", "shift"), [(128, 5), (130, 64)])
def test_words_cannot_be_joined_within(length: int, shift: int) -> None:
    with pytest.raises(LayoutError, match="not whole words of 64 cells"):
        word_grid(Grid((6, length), periodic=True, shift={"y": {"x": shift}}))


def test_the_cells_of_a_layout_of_words() -> None:
    grid = Grid((6, 300))
    words = word_grid(grid)
    cells = cell_layout(cartesian(words.box, (2, 3), granule=1), grid)
    cells.check()
    assert cells.domain == grid.box
    assert [cells.box(block).lo[1] for block in range(3)] == [0, 128, 192]
    assert cells.box(2).shape == (3, 108)
    assert cell_box(Box((0, 4), (6, 5)), 300) == Box((0, 256), (6, 300))
