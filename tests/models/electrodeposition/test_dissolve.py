"""Deposits that a reverse current takes away: charge, ions, ranks and resumption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.engine.model import Model
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import CATHODE, Electrode, Growth, Problem, Reversible, Species, Steps
from minga.models.electrodeposition.protocols.segments import Part, Segment
from minga.space.grid import Grid

from ...model_runs import Left, assert_same, resume_model, run_model

SIDE = 1e-3 / 12
PER_CELL = 96485.33212 * 2 * SIDE**2 * 0.0002 / 7.1e-6
"""Charge of a cell of the deposit, C/m."""
COPPER = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)
AWAY = Segment("current", 300.0, duration=1.4), Segment("current", -300.0, duration=1.4)


def reversed_model(program: tuple[Part, ...], end: float, kinds: np.ndarray[Any, Any] | None = None) -> Model:
    """A millimetre of copper sulphate between copper plates, periodic along x, in which a deposit grows."""
    grid = Grid((12, 8), spacing=(SIDE, SIDE), axes=("y", "x"), periodic=(False, True))
    metal = Electrode({"Cu": Reversible(100.0)})
    return electrodeposition(
        Problem(
            grid, COPPER, Steps(end=end, every=0.7, first=0.05, tolerance=2e-2), kinds=kinds, cathode=metal,
            anode=metal, protocol=program, seed=3, growth=Growth("Cu", 7.1e-6, porosity=0.9998),
        )
    )  # fmt: skip


def finger() -> np.ndarray[Any, Any]:
    """A rod of three cells on the cathode."""
    kinds = np.zeros((12, 8), np.uint8)
    kinds[:3, 4] = CATHODE
    return kinds


@pytest.fixture(scope="module")
def dissolved() -> Left:
    """A deposit that grew on a rod and dissolved again, for longer than it lasted."""
    return run_model(reversed_model((*AWAY, Segment("current", -300.0, duration=0.7)), 3.5, finger()), 5)


@pytest.mark.slow
def test_a_reverse_current_takes_away_what_it_finds_but_not_the_electrode(dissolved: Left) -> None:
    grown = run_model(reversed_model(AWAY, 2.8, finger()), 2).observables
    assert grown["deposit_cells"] == pytest.approx(1.4 * 300.0 * 8 * SIDE / PER_CELL, abs=2.0)
    assert grown["deposit_cells"] >= 4
    seen = dissolved.observables
    assert seen["deposit_cells"] == 0
    assert np.array_equal(dissolved.fields["kind"] == CATHODE, finger() == CATHODE)
    assert seen["deposit_charge"] == pytest.approx(-0.7 * 300.0 * 8 * SIDE, rel=1e-6)


@pytest.mark.slow
def test_cells_that_dissolve_share_the_ions_beside_them_and_none_is_lost(dissolved: Left) -> None:
    assert dissolved.observables["total_SO4"] == pytest.approx(100.0 * (96 - 3) * SIDE**2, rel=1e-12)
    fluid = dissolved.fields["kind"] != CATHODE
    for name in ("Cu", "SO4"):
        assert dissolved.fields[name][fluid].min() > 0.0
        assert not dissolved.fields[name][~fluid].any()


@pytest.mark.slow
def test_ranks_and_resumption_change_no_bit_of_what_dissolves(dissolved: Left, tmp_path: Path) -> None:
    model = reversed_model((*AWAY, Segment("current", -300.0, duration=0.7)), 3.5, finger())
    assert_same(run_model(model, 5, ranks=2), dissolved)
    assert_same(resume_model(model, 5, 3, tmp_path), dissolved)
