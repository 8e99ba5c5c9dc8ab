"""A block that reaches ghosts of a partial field, but none of its points, stores nothing of it and fills nothing."""

from __future__ import annotations

import itertools

import pytest

import minga as mg
from minga.engine.reach import Ghosts, Reach
from minga.engine.regions import ghost_parts
from minga.engine.storage import Storage
from minga.space.boundary import fixed


@pytest.mark.parametrize("width", [4, 7, 8])
@pytest.mark.parametrize("cuts", [[9, 18], [13], [16, 20], [8, 12, 23]])
def test_every_ghost_that_is_filled_is_stored(cuts: list[int], width: int) -> None:
    grid = mg.Grid((27, 6, 8))
    field = mg.Field("layer", grid, "f4", on=mg.Box((19, 0, 0), (27, 6, 8)), boundary=fixed(0.0))
    edges = [0, *cuts, 27]
    blocks = [mg.Box((low, 0, 0), (high, 6, 8)) for low, high in itertools.pairwise(edges)]
    layout = mg.Layout.from_boxes(grid.box, blocks, list(range(len(blocks))), len(blocks))
    wide, layers = Reach((width,) * 3, (width,) * 3), Reach((4,) * 3, (4,) * 3)
    found = 0
    for rank, block in enumerate(blocks):
        array = Storage({grid: layout}, rank).allocate_field(field, wide).blocks[rank]
        for _, part, _ in ghost_parts(field, block, array.box, Ghosts(wide, layers)):
            found += 1
            assert array.box.contains(mg.Box(part.lo, part.hi))
    assert found
