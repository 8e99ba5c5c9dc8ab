"""A given current is what flows: the voltage is sought until nothing of the current is missing."""

from __future__ import annotations

import pytest

from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Electrode, Problem, Reversible, Species, Steps
from minga.space.grid import Grid

from ...model_runs import run_model


@pytest.mark.slow
@pytest.mark.parametrize(("current", "first"), [(100.0, 0.2), (140.0, 0.1)])
def test_a_voltage_at_which_nothing_can_change_is_no_answer(current: float, first: float) -> None:
    """After such first steps the voltage used to run away to where the anode dissolves no more; there every correction
    of the voltage is beyond sense, or none."""
    metal = Electrode({"Cu": Reversible(100.0)})
    ions = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)
    end = 6.0 * first
    problem = Problem(
        Grid((8,), spacing=1e-3 / 8, axes=("y",)), ions, Steps(end, end, first, tolerance=0.5), cathode=metal,
        anode=metal, current=current,
    )  # fmt: skip
    seen = run_model(electrodeposition(problem), 1).observables
    for where in ("current", "current_cathode", "current_middle"):
        assert seen[where] == pytest.approx(current, rel=1e-6)
    assert 0.03 < seen["voltage"] < 0.1
    assert seen["steps_rejected"] <= 1
