"""Currents at both electrodes of a growing deposit, in every record: what passes is what is there.

The surface of the cathode differs from step to step, so potentials of the step before do not give its charge then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minga.engine.begin import start as begin_with
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.observables import observe
from minga.errors import RunError
from minga.models.electrodeposition import iteration
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import CATHODE, FLUID, Electrode, Growth, Problem, Reversible, Steps
from minga.output.cells import gather_cells
from minga.running.loop import drive
from minga.space.grid import Grid

from .test_growth import COPPER

SIDE, WIDE = 1e-3 / 12, 8
PLANE = WIDE * SIDE
CAPACITY = 0.5


def growing(
    *, high: int = 12, capacity: float = CAPACITY, order: int = 2, every: float = 0.25, agreement: float = 1e-9,
    **drive: Any,
) -> Model:  # fmt: skip
    """A millimetre of copper sulphate between copper plates with a double layer, in which a deposit grows."""
    grid = Grid((high, WIDE), spacing=(SIDE, SIDE), axes=("y", "x"), periodic=(False, True))
    metal = Electrode({"Cu": Reversible(100.0)}, capacity=capacity)
    steps = Steps(end=20.0, every=every, first=min(0.05, every), adaptive=order == 2, tolerance=2e-2, order=order)
    growth = Growth("Cu", 7.1e-6, porosity=0.9994)
    problem = Problem(grid, COPPER, steps, cathode=metal, anode=metal, seed=3, growth=growth, **drive)
    return electrodeposition(problem, agreement=agreement)


def recorded(model: Model, steps: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Every observable after each step of the run until it ends, and the fields at its end."""
    seen = []
    with Engine(model.layouts("slabs", 1)) as engine:
        begin_with(model, engine)
        for _ in range(steps):
            assert engine.run(model.step).ok
            seen.append(observe(model, engine))
            if seen[-1]["time"] < len(seen) * model.clock.dt * (1.0 - 1e-9):  # type: ignore[union-attr,operator]
                break
        fields = {name: gather_cells(engine, model, name) for name in model.output}
    return {name: np.array([item[name] for item in seen]) for name in seen[0]}, fields


@pytest.mark.slow
@pytest.mark.parametrize(("capacity", "order"), [(0.0, 2), (CAPACITY, 1), (CAPACITY, 2)])
def test_both_electrodes_have_one_current_until_the_deposit_touches_the_anode(capacity: float, order: int) -> None:
    seen, fields = recorded(growing(voltage=0.5, capacity=capacity, order=order, every=0.05 * order), 400)
    assert (fields["kind"][-1] == CATHODE).any()
    assert seen["deposit_cells"][-1] > seen["deposit_cells"][-2]
    np.testing.assert_allclose(seen["current_cathode"], seen["current"], rtol=1e-5)


@pytest.mark.slow
def test_the_current_half_way_is_that_before_the_deposit_touched_the_anode() -> None:
    """Two rows of cells, between which all current passes until a cell of the second one is metal."""
    kinds = np.zeros((2, WIDE), np.uint8)
    kinds[0, 3] = CATHODE
    seen, fields = recorded(growing(voltage=0.1, high=2, capacity=0.0, order=1, every=0.05, kinds=kinds), 100)
    assert (fields["kind"][1] == CATHODE).any()
    assert seen["steps_taken"][-1] == seen["steps_taken"][-2]
    assert seen["deposit_cells"][-1] > seen["deposit_cells"][-2]
    np.testing.assert_allclose(seen["current_middle"], seen["current"], rtol=1e-6)


@pytest.mark.slow
def test_the_current_brings_the_deposit_and_the_charge_of_its_surface() -> None:
    """By the deposit and by the final potentials alone; each record is one step of Euler's method."""
    every, given, steps = 0.05, 300.0, 40
    seen, fields = recorded(growing(current=given, order=1, every=every), steps)
    assert seen["deposit_cells"][-1] >= 3
    assert (seen["steps_taken"] == np.arange(1, steps + 1)).all()
    np.testing.assert_allclose(seen["current"], given, rtol=1e-6)
    kind, phi = fields["kind"], fields["potential"]
    charge = CAPACITY * SIDE * float((0.0 - phi[0])[kind[0] == FLUID].sum())
    for axis, side in ((0, 1), (0, -1), (1, 1), (1, -1)):
        metal = np.roll(kind, side, axis) == CATHODE
        if axis == 0:
            metal[0 if side == 1 else -1] = False
        charge += CAPACITY * SIDE * float((0.0 - phi)[metal & (kind == FLUID)].sum())
    passed = every * float(seen["current_cathode"].sum()) * PLANE
    assert charge != pytest.approx(0.0, abs=1e-6 * passed)
    assert passed == pytest.approx(float(seen["deposit_charge"][-1]) - charge, rel=1e-9)
    assert passed == pytest.approx(steps * every * given * PLANE, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_a_loose_agreement_leaves_the_given_current(order: int) -> None:
    seen, _ = recorded(growing(current=400.0, order=order, agreement=1e-5), 60)
    assert seen["deposit_cells"][-1] > 20
    np.testing.assert_allclose(seen["current"], 400.0, rtol=5e-5)
    np.testing.assert_allclose(seen["current_cathode"], 400.0, rtol=5e-4)


@pytest.mark.slow
def test_a_step_without_the_given_current_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first estimate of the next change ends the passes, and nothing of the current may be missing."""
    monkeypatch.setattr(iteration.Iteration, "_extrapolate", lambda self, program: program.let(self.change, 0.0))
    monkeypatch.setattr(iteration, "LEFT", 0.0)
    model = growing(current=400.0)
    text = r"did not converge at t = 0 s .* the current is not the given one"
    with Engine(model.layouts("slabs", 1)) as engine, pytest.raises(RunError, match=text):
        drive(model, engine, 1)
