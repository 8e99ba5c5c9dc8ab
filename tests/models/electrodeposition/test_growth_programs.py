"""Deposits that grow while a program of currents and voltages runs: levels, charges, and the same bits anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from minga.engine.begin import start as begin_with
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.observables import observe
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Electrode, Growth, Problem, Reversible, Species, Steps
from minga.models.electrodeposition.protocols.segments import Part, Repeat, Segment
from minga.space.grid import Grid

from ...model_runs import assert_same, resume_model, run_model

SIDE = 1e-3 / 12
COPPER = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)
RAMP = Segment("voltage", 0.02, slope=0.05, duration=5.6)
PULSES = Repeat(3, (Segment("current", 300.0, duration=0.6), Segment("current", 0.0, duration=0.4)))


def growing(program: tuple[Part, ...], *, end: float, order: int = 2) -> Model:
    """A millimetre of copper sulphate between copper plates, periodic along x, in which a deposit grows."""
    grid = Grid((12, 8), spacing=(SIDE, SIDE), axes=("y", "x"), periodic=(False, True))
    metal = Electrode({"Cu": Reversible(100.0)})
    steps = Steps(end=end, every=0.7, first=0.05, tolerance=2e-2, order=order)
    return electrodeposition(
        Problem(
            grid, COPPER, steps, cathode=metal, anode=metal, protocol=program, seed=3,
            growth=Growth("Cu", 7.1e-6, porosity=0.9994),
        )
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_a_ramp_keeps_its_voltage_and_all_charge_is_in_the_deposit(order: int) -> None:
    model, seen = growing((RAMP,), end=5.6, order=order), []
    with Engine(model.layouts("slabs", 1)) as engine:
        begin_with(model, engine)
        for _ in range(8):
            assert engine.run(model.step).ok
            seen.append(observe(model, engine))
    for item in seen:
        assert item["voltage"] == pytest.approx(0.02 + 0.05 * item["time"], rel=1e-12)
        assert item["deposit_charge"] == pytest.approx(item["charge"] * 8 * SIDE, rel=1e-12)
        assert item["total_SO4"] == pytest.approx(100.0 * 96 * SIDE**2, rel=1e-12)
    assert seen[-1]["deposit_cells"] > 8
    assert seen[-1]["steps_taken"] > seen[-1]["deposit_cells"] / 2


@pytest.mark.slow
def test_pulses_bring_their_charge_to_the_deposit() -> None:
    left = run_model(growing((PULSES,), end=3.0), 5)
    assert left.observables["charge"] == pytest.approx(3 * 0.6 * 300.0, rel=1e-6)
    assert left.observables["deposit_charge"] == pytest.approx(left.observables["charge"] * 8 * SIDE, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("done", [3, 7])
def test_a_program_with_growth_resumes_with_the_same_bits(done: int, tmp_path: Path) -> None:
    """In the ramp and between pulses, on another number of ranks too."""
    model = growing((RAMP, PULSES), end=8.4)
    whole = run_model(model, 12)
    assert whole.observables["deposit_cells"] > 8
    assert_same(run_model(model, 12, ranks=3), whole)
    assert_same(resume_model(model, 12, done, tmp_path), whole)
