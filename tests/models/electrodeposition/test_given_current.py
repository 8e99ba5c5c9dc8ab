"""A given current is what flows: the voltage is sought until nothing of the current is missing."""

from __future__ import annotations

import pytest

from minga.engine.begin import start as begin_with
from minga.engine.engine import Engine
from minga.engine.observables import observe
from minga.errors import RunError
from minga.models.electrodeposition import iteration
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Electrode, Problem, Reversible, Species, Steps
from minga.running.loop import drive
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


@pytest.mark.slow
@pytest.mark.parametrize("left", [1e-9, 10.0])
def test_a_step_without_the_given_current_is_rejected(left: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes end while the current differs by a millionth of a millionth; nothing else may be wrong."""
    monkeypatch.setattr(iteration, "LEFT", left)
    metal = Electrode({"Cu": Reversible(100.0)}, capacity=0.2)
    ions = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)
    problem = Problem(
        Grid((8, 4), spacing=(1e-3 / 8,) * 2, axes=("y", "x")), ions, Steps(4.0, 4.0, 0.2, tolerance=0.05),
        cathode=metal, anode=metal, current=40.0,
    )  # fmt: skip
    model = electrodeposition(problem)
    with Engine(model.layouts("slabs", 1)) as engine:
        if left < 1.0:
            with pytest.raises(RunError, match=r"did not converge at t = 0 s .* the current is not the given one"):
                drive(model, engine, 1)
            return
        begin_with(model, engine)
        assert engine.run(model.step).ok
        seen = observe(model, engine)
    assert seen["steps_rejected"] == 0
    assert seen["current"] == pytest.approx(40.0, rel=1e-6)
