"""Blocks of cells that share their random numbers: the same on any grid, any ranks, and after resumption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import INSULATOR, Growth
from minga.models.electrodeposition.race import Race
from minga.space.boundary import fixed
from minga.space.cuts import slabs
from minga.space.field import Field
from minga.space.grid import Grid

from ...model_runs import assert_same, resume_model, run_model
from .test_growth import SIDE, cell
from .test_programs import model_of

Array = np.ndarray[Any, Any]


def arrivals(side: int) -> Array:
    """Logarithms of arrival times in a square of so many cells of solution with one flux for each area."""
    grid = Grid((side, side), spacing=1.0 / side, axes=("y", "x"), periodic=(False, True))
    kind, flux = Field("kind", grid, "u1", boundary=fixed(INSULATOR)), Field("flux", grid)
    race, program = Race(Lengths(grid), 1.0, grain=0.25), Program("arrive")
    race.start(program, kind, flux)
    with mg.Engine({grid: slabs(grid.box, 1)}) as engine:
        engine.set(kind, np.zeros(grid.shape, np.uint8))
        engine.set(flux, np.full(grid.shape, 1.0 / side**2))
        engine.run(program)
        return np.asarray(engine.gather(race.arrival))


@pytest.mark.slow
def test_cells_of_a_block_arrive_together_on_any_grid() -> None:
    coarse = arrivals(4)
    assert np.unique(coarse).size == 16
    for factor in (2, 3):
        expected = np.kron(coarse, np.ones((factor, factor)))
        np.testing.assert_allclose(arrivals(4 * factor), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_ranks_and_resumption_change_no_bit(tmp_path: Path) -> None:
    model = electrodeposition(cell(growth=Growth("Cu", 7.1e-6, porosity=0.9994, grain=2.0 * SIDE)))
    left = run_model(model, 4)
    assert left.observables["deposit_cells"] > 4
    assert_same(run_model(model, 4, ranks=3), left)
    assert_same(resume_model(model, 4, 2, tmp_path), left)


def test_grains_narrower_than_a_cell_are_refused() -> None:
    with pytest.raises(CaseError, match="narrower than a cell") as caught:
        model_of((12, 6), growth={"grain": "20 um"}, width="1 mm", voltage=0.1, time={"end": "1 s"})
    assert caught.value.key == "electrodeposition.growth.grain"


@pytest.mark.parametrize("name", ["grain", "radius"])
def test_grains_and_radii_wider_than_the_bath_are_refused(name: str) -> None:
    with pytest.raises(CaseError, match="wider than the whole bath") as caught:
        model_of((12, 6), growth={name: "1.1 mm"}, width="1 mm", voltage=0.1, time={"end": "1 s"})
    assert caught.value.key == f"electrodeposition.growth.{name}"
