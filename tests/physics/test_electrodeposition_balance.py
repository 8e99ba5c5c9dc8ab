"""What one electrode takes out the other one gives, whatever their areas."""

from __future__ import annotations

import numpy as np
import pytest

from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    ANODE,
    CATHODE,
    INSULATOR,
    Constants,
    Electrode,
    Flux,
    Held,
    Problem,
    Species,
    Steps,
)
from minga.space.grid import Grid

from ..model_runs import run_model


@pytest.mark.slow
def test_what_passes_balances_between_electrodes_of_different_areas() -> None:
    """Metal and glass on parts of both electrodes, so that neither has the area of the cell's section; one ion balances
    at the anode, one at the cathode."""
    grid = Grid((6, 5), axes=("y", "x"), spacing=[1 / 6, np.array([0.1, 0.2, 0.3, 0.15, 0.25])], units="m")
    kinds = np.zeros(grid.shape, np.uint8)
    kinds[:2, 1], kinds[0, 4], kinds[-1, 0], kinds[-1, 3] = CATHODE, INSULATOR, ANODE, INSULATOR
    problem = Problem(
        grid,
        (Species("one", 1, 1.0, 0.5), Species("other", 1, 2.0, 0.5), Species("anion", -1, 0.6, 1.0)),
        Steps(0.04, 0.04, 0.02, adaptive=False),
        Constants(1.0, 1.0, 0.02, 1.0, 1.0),
        kinds,
        cathode=Electrode({"one": Held(0.5), "other": Flux(None)}),
        anode=Electrode({"one": Flux(None), "other": Held(0.6)}),
        voltage=1.0,
    )
    seen = run_model(electrodeposition(problem, agreement=1e-10), 1).observables
    room = np.multiply.outer(grid.widths("y"), grid.widths("x"))[kinds == 0].sum()
    for ion in ("one", "other"):
        assert seen[f"total_{ion}"] == pytest.approx(0.5 * room, rel=1e-9)
    assert seen["current"] > 0.5
