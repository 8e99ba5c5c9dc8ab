"""Concentrated solutions of one salt: conductivity, limiting currents and voltages against integrals of the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.comm import Comm, run_virtual
from minga.engine.engine import Engine
from minga.models.electrodeposition.concentrated import Rows, Solution, solution_of
from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.groups import Salt, conductivity
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import ButlerVolmer, Constants, Electrode, Problem, Reversible, Steps
from minga.models.electrodeposition.speciation import pairs_at, rows_of
from minga.running.loop import drive
from minga.schema import validate
from minga.space.grid import Grid

from .evidence import Evidence

COPPER = bath("CuSO4", 100.0, None, 0.0)
CONSTANTS = Constants()
SALT = Salt.of(COPPER)
assert SALT is not None
LENGTH = 1e-2
ONES = np.ones(2)
DILUTE = Rows(
    np.array([1.0, 1000.0]), SALT.diffusivity * ONES, conductivity(COPPER, CONSTANTS) / 100.0 * ONES,
    SALT.transference * ONES, ONES,
)  # fmt: skip


def with_pairs() -> Solution:
    """Copper sulphate with ion pairs."""
    rows = rows_of(COPPER, CONSTANTS)
    assert rows is not None
    return solution_of(rows, COPPER, CONSTANTS)


def cell(cells: int, solution: Solution | None, steps: Steps, **said: Any) -> Problem:
    """A centimetre of 0.1 M CuSO4 in even cells."""
    return Problem(
        Grid((cells,), axes=("y",), spacing=LENGTH / cells, units="m"), COPPER, steps, solution=solution,
        cathode=Electrode({"Cu": said.pop("cathode", Reversible(100.0))}), anode=Electrode({"Cu": Reversible(100.0)}),
        **said,
    )  # fmt: skip


def observed(problem: Problem, **options: Any) -> dict[str, Any]:
    """Observables after one step of the run."""
    model = electrodeposition(problem, **options)
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        return dict(drive(model, engine, 1).observables)


def steady(cells: int, solution: Solution | None, voltage: float, **said: Any) -> dict[str, Any]:
    """Observables once nothing changes."""
    exact = {"agreement": said.pop("agreement", 1e-4)}
    return observed(cell(cells, solution, Steps(1e6, 1e6, 10.0, tolerance=1e-2), voltage=voltage, **said), **exact)


@pytest.mark.slow
def test_the_conductivity_of_copper_sulphate(evidence: Evidence) -> None:
    """The drop across the bath before anything has moved; PHREEQC has 0.863 S/m, free ions would have 2.71."""
    steps = Steps(1e-6, 1e-6, 1e-6)
    found = 1.0 * LENGTH / observed(cell(200, with_pairs(), steps, current=1.0))["voltage"]
    evidence.relative("baths", "S/m, 0.1 M CuSO4 with pairs, by the drop across a cell (PHREEQC)", found, 0.8634, 5e-3)
    assert found == pytest.approx(with_pairs().conductivity((2, -2), CONSTANTS, 100.0), rel=5e-3)
    assert 1.0 * LENGTH / observed(cell(200, None, steps, current=1.0))["voltage"] == pytest.approx(2.708, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("voltage", [0.05, 0.4])
def test_constant_tables_are_a_dilute_solution(voltage: float) -> None:
    dilute, tables = (steady(16, s, voltage) for s in (None, solution_of(DILUTE, COPPER, CONSTANTS)))
    assert tables["current"] == pytest.approx(dilute["current"], rel=1e-6)


@pytest.mark.slow
def test_constant_tables_end_at_the_same_time() -> None:
    """Sand's time: the cathode runs out of ions after 289 s."""
    steps = Steps(310.0, 310.0, 0.05, tolerance=1e-4)
    found = [
        observed(cell(100, s, steps, current=50.0, cutoff=0.6))["time"]
        for s in (None, solution_of(DILUTE, COPPER, CONSTANTS))
    ]
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    assert SALT is not None
    assert found[1] == pytest.approx(SALT.sand(50.0, CONSTANTS.faraday), rel=2e-2)


ROOTS = np.linspace(0.01, np.sqrt(300.0), 80)
AT = [pairs_at(SALT, float(root * root), CONSTANTS) for root in ROOTS]
PAIRS = [np.array([getattr(p, n) for p in AT]) for n in ("diffusivity", "transference", "factor")]
PAIRS.append(np.array([p.conductivity for p in AT]) / ROOTS**2)
"""Diffusivity, transference, factor and conductivity over concentration by the root of the concentration."""


def profile(top: float, bottom: float) -> tuple[float, float, float]:
    """Current, mean concentration and voltage of a steady state between two concentrations, by quadrature.

    Anions rest: d_- dc/c = 2 m_- F/RT dphi, and the copper carries i = 2 F D/(1 - t) dc/dx.
    """
    c = np.linspace(bottom, top, 2001)
    d, t, q, k = (np.interp(np.sqrt(c), ROOTS, values) for values in PAIRS)
    per_mol = CONSTANTS.faraday**2 / CONSTANTS.thermal
    m = k / (4.0 * per_mol)
    anion = d - (1.0 - t) * q * m * (2.0 * t - 1.0)

    def integral(values: np.ndarray) -> float:
        return float(np.trapezoid(values, c))

    flux = d / (1.0 - t)
    whole = integral(flux)
    beta = CONSTANTS.faraday / CONSTANTS.thermal
    across = integral(anion / ((1.0 - t) * m * c)) / (2.0 * beta) + integral(q / c) / (2.0 * beta)
    return 2.0 * CONSTANTS.faraday * whole / LENGTH, integral(c * flux) / whole, across


def between(bottom: float) -> tuple[float, float]:
    """Current and voltage of the steady state with this concentration at the cathode and a mean of 100 mol/m3."""
    low, high = 100.0, 300.0
    for _ in range(40):
        top = 0.5 * (low + high)
        low, high = (top, high) if profile(top, bottom)[1] < 100.0 else (low, top)
    current, _, voltage = profile(low, bottom)
    return current, voltage


@pytest.mark.slow
def test_the_limiting_current_with_ion_pairs(evidence: Evidence) -> None:
    """It is 2 F/L times the integral of D/(1 - t) up to the concentration at the anode."""
    exact, _ = between(1e-2)
    for cells, error in ((16, 8e-3), (64, 1e-3)):
        seen = steady(cells, with_pairs(), 0.4)
        what = f"A/m2, limiting current of 0.1 M CuSO4 with pairs across 1 cm, {cells} cells"
        evidence.relative("baths", what, seen["current_cathode"], exact, error)
        assert seen["total_SO4"] == pytest.approx(100.0 * LENGTH, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("bottom", [70.0, 30.0])
def test_the_voltage_below_the_limit_with_ion_pairs(bottom: float, evidence: Evidence) -> None:
    """It is that of the activities, and of the potential in the solution."""
    exact, voltage = between(bottom)
    for cells in (16, 32):
        found = steady(cells, with_pairs(), voltage, agreement=1e-8)["current_cathode"]
        what = f"A/m2 below it, {1e3 * voltage:.3g} mV, {cells} cells"
        evidence.relative("baths", what, found, exact, 6e-4)


@pytest.mark.slow
def test_fast_kinetics_are_in_equilibrium_with_the_activity() -> None:
    current = steady(16, with_pairs(), 0.05, agreement=1e-6)["current"]
    fast = steady(16, with_pairs(), 0.05, agreement=1e-6, cathode=ButlerVolmer(3e6, 100.0))["current"]
    assert fast == pytest.approx(current, rel=1e-4)


@pytest.mark.slow
def test_ranks_have_the_same_bits() -> None:
    grid = validate(GridSettings, {"shape": [12, 6]}, "grid")
    said = {
        "electrolyte": "CuSO4", "concentration": "0.1 M", "solution": "pairs", "length": "1 mm", "width": "0.5 mm",
        "voltage": 0.2, "noise": 0.1, "time": {"end": 0.5, "every": 0.5},
    }  # fmt: skip
    model = load_model("electrodeposition", {"electrodeposition": said}, grid, Path())

    def final(ranks: int) -> dict[str, Any]:
        def body(comm: Comm) -> dict[str, Any]:
            with Engine(model.layouts("cartesian", ranks), comm=comm, threads=1) as engine:
                return dict(drive(model, engine, 1).observables)

        return run_virtual(ranks, body)[0]

    one, two = final(1), final(2)
    assert one["steps_taken"] > 0
    assert one == two
