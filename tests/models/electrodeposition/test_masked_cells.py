"""Solid cells cost nothing, are counted as nothing, and nobody can tell from the results that they were left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minga.engine import engine, masks
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    CATHODE,
    FLUID,
    INSULATOR,
    ButlerVolmer,
    Electrode,
    Problem,
    Species,
    Steps,
)
from minga.plan.work.weights import weights_of
from minga.space.grid import Grid

from ...model_runs import assert_same, run_model
from .test_growth import STEPS, cell

COPPER = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)


def half_solid(**options: Any) -> Problem:
    """A deposit that fills half of a cell, with a finger on it, and a piece of glass."""
    kinds = np.full((16, 4, 70), FLUID, np.uint8)
    kinds[:8] = CATHODE
    kinds[8:11, :, :64] = CATHODE
    kinds[12:14, 1:3, 66:] = INSULATOR
    return filled(Grid(kinds.shape, spacing=(1e-4, 5e-5, 5e-5), axes=("y", "z", "x")), kinds, **options)


def filled(grid: Grid, kinds: np.ndarray, **options: Any) -> Problem:
    metal = Electrode({"Cu": ButlerVolmer(30.0, 100.0)})
    steps = Steps(end=0.2, every=0.2, first=0.05, tolerance=1e-2)
    return Problem(grid, COPPER, steps, kinds=kinds, cathode=metal, anode=metal, voltage=0.05, **options)


@pytest.mark.slow
def test_a_plan_counts_what_is_left_out_as_nothing() -> None:
    kinds = np.array([CATHODE] * 70 + [FLUID] * 30, np.uint8)
    weights = weights_of(electrodeposition(filled(Grid((100,), spacing=1e-5, axes=("y",)), kinds)))
    assert weights is not None
    np.testing.assert_array_equal(weights.along(0), [0.0] * 64 + [1.0] * 36)
    assert cell().solids
    assert not filled(Grid((100,), axes=("y",)), 0 * kinds).solids


@pytest.mark.slow
@pytest.mark.parametrize("name", ["half solid", "flow", "growth"])
def test_leaving_solid_cells_out_changes_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = cell() if name == "growth" else half_solid(flow=name == "flow", gravity=(-9.81, 0.0, 0.0))
    model, steps = electrodeposition(problem), STEPS if name == "growth" else 1
    monkeypatch.setattr(masks, "PRICE", 0)
    # Virtual ranks take their time over the many operations of a flow.
    found = run_model(model, steps, ranks=1 if name == "flow" else 2, layout="slabs", threads=2)
    monkeypatch.setattr(
        engine, "settle_masks", lambda operations, possible: masks.settle_masks(operations, possible=False)
    )
    assert_same(run_model(model, steps), found)
