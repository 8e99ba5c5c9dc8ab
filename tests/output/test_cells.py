"""Cells of packed fields as files and digests see them: gathered, in boxes, with their layout."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.begin import start
from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import ProgramError
from minga.output import cells
from minga.output.cells import blocks_of_cells, gather_cells, layout_of_cells
from minga.output.digest import digest_of_arrays, digest_of_blocks

SHAPE = (9, 200)


def first_cells(storage: str) -> Model:
    return mg.automaton("B3/S23", SHAPE, init={"soup": 0.4, "seed": 2}, boundary="fixed", storage=storage)


WHOLE = mg.run(first_cells("bytes"), steps=0).cell.values[0]


@pytest.mark.parametrize("storage", ["bits", "bytes"])
@pytest.mark.parametrize("layout", ["cartesian:2x2", "slabs:1", "blocks:2"])
def test_blocks_make_up_the_whole(storage: str, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_SLAB", 5)  # so that blocks come in several pieces
    model = first_cells(storage)

    def on_rank(comm: Comm) -> None:
        with Engine(model.layouts(layout, comm.size), comm=comm) as engine:
            start(model, engine)
            gathered = gather_cells(engine, model, "cell")
            assert (gathered is not None) == (comm.rank == 0)
            if gathered is not None:
                assert gathered.dtype == np.uint8
                assert np.array_equal(gathered, WHOLE)
            owners = layout_of_cells(engine, model)
            owners.check()
            assert owners.domain == model.grid.box
            mine = list(blocks_of_cells(engine, model, "cell"))
            assert sum(box.size for box, _ in mine) == owners.cells_of(comm.rank)
            for box, values in mine:
                assert np.array_equal(values, WHOLE[box.slices((0, 0))])
            parts = comm.gather(digest_of_blocks([(model.grid.box, mine)]))
            if parts is not None:
                assert f"{sum(parts) % 2**64:016x}" == digest_of_arrays([WHOLE])

    mg.run_virtual(4, on_rank)


def test_what_a_model_shows_of_packed_fields() -> None:
    model = first_cells("bits")
    assert model.output == ("cell",)
    assert [item.name for item in model.visible] == ["cell"]
    assert model.field("cell").dtype == "u1"
    assert model.field("cell").grid == model.grid
    assert model.grid not in model.grids
    with pytest.raises(ProgramError, match="its fields are cell"):
        model.field("soul")


def test_an_engine_does_not_store_the_cells_of_packed_fields() -> None:
    model = first_cells("bits")
    with Engine(model.layouts("single", 1)) as engine, pytest.raises(ProgramError, match="no layout for Grid"):
        engine.gather(model.field("cell"))
