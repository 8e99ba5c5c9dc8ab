"""Copper sulphate with sulphuric acid in local equilibrium, against mass action and fluxes in plain NumPy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.equilibrium import equilibrium_of
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Growth, Problem, Reversible, Steps
from minga.space.grid import Grid

from ..acid_baths import CHARGES, TOTALS, forms, mobilities, steady
from ..model_runs import Left, assert_same, run_model

F, RT = Constants().faraday, Constants().thermal
LENGTH = 2e-4
"""Distance of the plates, m."""


def cell(cells: int, length: float, acid: float, **options: Any) -> Problem:
    """A cell of 0.1 M copper sulphate with acid (mol/m3) between copper plates."""
    species = bath("CuSO4", 100.0, "H2SO4", acid)
    metal = Electrode({"Cu": Reversible(100.0)})
    grid = Grid((cells,), spacing=(length / cells,), axes=("y",), periodic=(False,))
    return Problem(
        grid, species, cathode=metal, anode=metal, solution=equilibrium_of(species, Constants()), metal="Cu", **options
    )


def half(left: Left, name: str, cells: int) -> float:
    """The sum of an ion over the half at the cathode."""
    return float(left.fields[name][: cells // 2].sum())


@pytest.mark.slow
@pytest.mark.parametrize("acid", [20.0, 500.0])
def test_drop_and_transport_numbers_of_a_bath(acid: float) -> None:
    """While the middle is that of the bath: its field, and what the current carries through it."""
    cells, length, current, end = 40, 1e-2, 2.0, 20.0
    model = electrodeposition(cell(cells, length, acid, current=current, steps=Steps(end, end, 0.2)))
    left = run_model(model, 1)
    c, strength = forms(0.1, 2e-3 * acid, 0.1 + 1e-3 * acid)
    carried = F * F / RT * 1e3 * CHARGES**2 * mobilities(strength) * c
    sigma = float(carried.sum())
    h = length / cells
    field = (left.fields["potential"][25] - left.fields["potential"][15]) / (10 * h)
    assert field == pytest.approx(current / sigma, rel=1e-6)
    bulk = {"Cu": 100.0, "H": 2 * acid, "SO4": 100.0 + acid}
    for row, (name, start) in enumerate(bulk.items()):
        # What a current of ions with the charge z carries of each mole of charge is 1/z; pairs do not migrate.
        share = float((TOTALS[row, :4] * carried[:4] / CHARGES[:4]).sum()) / sigma
        gained = (half(left, name, cells) - start * cells / 2) * h
        lost = current * end / (2 * F) if name == "Cu" else 0.0
        assert gained == pytest.approx(share * current * end / F - lost, rel=1e-5)
    for name, start in (("H", 2 * acid), ("SO4", 100.0 + acid)):
        assert left.observables[f"total_{name}"] == pytest.approx(start * length, rel=1e-14)


def between_plates(cells: int, acid: float, voltage: float) -> float:
    """The current of the steady state in 0.2 mm between copper plates, A/m2."""
    steps = Steps(1e5, 1e5, 1e-2, tolerance=1e-2)
    model = electrodeposition(cell(cells, LENGTH, acid, voltage=voltage, steps=steps), agreement=1e-9)
    left = run_model(model, 1).observables
    assert left["current_cathode"] == pytest.approx(left["current"], rel=1e-6)
    return float(left["current"])


@pytest.mark.slow
@pytest.mark.parametrize("bottom", [0.07, 0.03])
def test_steady_states_are_of_second_order(bottom: float) -> None:
    """At the voltage of an integration over the concentration of copper, with all forms and their activities."""
    exact = steady(bottom, 0.02, LENGTH)
    first, last = (abs(between_plates(cells, 20.0, exact.voltage) / exact.current - 1.0) for cells in (8, 32))
    assert last < 2e-5
    assert 0.5 * math.log2(first / last) > 1.8


@pytest.mark.slow
@pytest.mark.parametrize(("acid", "bottom", "error"), [(20.0, 0.005, 2e-4), (500.0, 0.03, 4e-5), (500.0, 0.005, 2e-4)])
def test_steady_states_of_few_cells(acid: float, bottom: float, error: float) -> None:
    """Down to 5 % of the copper at the cathode."""
    exact = steady(bottom, 1e-3 * acid, LENGTH)
    assert between_plates(16, acid, exact.voltage) == pytest.approx(exact.current, rel=error)


@pytest.mark.slow
@pytest.mark.parametrize("acid", [20.0, 500.0])
def test_limiting_current(acid: float) -> None:
    exact = steady(1e-6, 1e-3 * acid, LENGTH)
    steps = Steps(400.0, 400.0, 1e-3, tolerance=1e-2)
    left = run_model(electrodeposition(cell(32, LENGTH, acid, voltage=0.6, steps=steps)), 1).observables
    assert left["steps_rejected"] < 10
    assert left["current"] == pytest.approx(exact.current, rel=3e-4)


@pytest.mark.slow
def test_a_deposit_grows_in_acid_with_the_same_bits_on_any_ranks() -> None:
    grid = Grid((12, 8), spacing=(8e-5, 8e-5), axes=("y", "x"), periodic=(False, True))
    steps = Steps(end=2.0, every=0.5, first=0.05, tolerance=2e-2)
    growth = Growth("Cu", 7.1e-6, porosity=0.9994)
    model = electrodeposition(
        replace(cell(8, 1e-3, 20.0, current=300.0, steps=steps), grid=grid, growth=growth, seed=3)
    )
    whole = run_model(model, 4)
    assert whole.observables["deposit_cells"] > 2
    for name, start in (("H", 40.0), ("SO4", 120.0)):
        assert whole.observables[f"total_{name}"] == pytest.approx(start * 96 * 8e-5**2, rel=1e-13)
    assert_same(run_model(model, 4, ranks=3), whole)
