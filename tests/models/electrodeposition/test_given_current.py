"""A given current is what flows: the voltage is sought until nothing of the current is missing."""

from __future__ import annotations

import pytest

from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Electrode, Problem, Reversible, Species, Steps
from minga.space.grid import Grid

from ...model_runs import run_model

SIDE = 1e-3 / 12


def test_a_voltage_at_which_nothing_can_change_is_no_answer() -> None:
    """After such a first step the voltage used to run away to where the anode dissolves no more; there every
    correction of the voltage is beyond sense, or none."""
    metal = Electrode({"Cu": Reversible(100.0)})
    ions = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)
    problem = Problem(
        Grid((12, 8), spacing=(SIDE, SIDE), axes=("y", "x"), periodic=(False, True)), ions,
        Steps(end=1.5, every=1.5, first=0.2, tolerance=3e-2), cathode=metal, anode=metal, current=100.0,
    )  # fmt: skip
    seen = run_model(electrodeposition(problem), 1).observables
    for where in ("current", "current_cathode", "current_middle"):
        assert seen[where] == pytest.approx(100.0, rel=1e-6)
    assert seen["voltage"] == pytest.approx(0.0433, rel=1e-2)
    assert seen["steps_rejected"] == 0
