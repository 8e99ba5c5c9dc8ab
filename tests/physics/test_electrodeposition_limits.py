"""The limiting current of a neutral bath, and what lies below it: of second order down to a cathode without ions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from minga.engine.engine import Engine
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    ButlerVolmer,
    Electrode,
    Held,
    Problem,
    Reversible,
    Species,
    Steps,
    Surface,
)
from minga.running.loop import drive
from minga.space.grid import Grid

from .evidence import Evidence

FARADAY, RT = 96485.33212, 8.314462618 * 298.15
COPPER = (Species("Cu", 2, 0.733e-9, 100.0), Species("SO4", -2, 1.07e-9, 100.0))
LENGTH = 1e-2
METAL = Reversible(100.0)
KINETICS = ButlerVolmer(30.0, 100.0)


def steady(
    cells: int, cathode: Surface, voltage: float, anode: Surface = METAL, species: tuple[Species, ...] = COPPER
) -> dict[str, Any]:
    """Observables of a centimetre of solution, in even cells, once nothing changes."""
    problem = Problem(
        Grid((cells,), axes=("y",), spacing=LENGTH / cells, units="m"), species, Steps(1e6, 1e6, 10.0, tolerance=1e-2),
        cathode=Electrode({"Cu": cathode}), anode=Electrode({"Cu": anode}), voltage=voltage,
    )  # fmt: skip
    model = electrodeposition(problem)
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        return dict(drive(model, engine, 1).observables)


@pytest.mark.parametrize(
    ("name", "cathode", "voltage", "cells"),
    [
        ("reversible, 0.4 V", METAL, 0.4, 8),
        pytest.param("sink, 0.4 V", Held(0.0), 0.4, 8, marks=pytest.mark.slow),
        pytest.param("sink, 2 V", Held(0.0), 2.0, 8, marks=pytest.mark.slow),
        *(
            pytest.param(name, surface, 0.4, cells, marks=pytest.mark.slow)
            for name, surface in (("reversible, 0.4 V", METAL), ("sink, 0.4 V", Held(0.0)))
            for cells in (50, 100, 200, 400)
        ),
    ],
)
def test_the_limiting_current(name: str, cathode: Surface, voltage: float, cells: int, evidence: Evidence) -> None:
    """J_lim = 8 F D c0 / L of a 2:2 salt; in one dimension fluxes and walls are exact, so that few cells do."""
    seen = steady(cells, cathode, voltage)
    evidence.relative("neutral", f"J / J_lim, CuSO4, {name}, {cells} even cells", seen["J_over_Jlim"], 1.0, 1e-4)
    assert seen["current_cathode"] == pytest.approx(seen["current"], rel=1e-4)


@pytest.mark.slow
def test_the_current_below_the_limit(evidence: Evidence) -> None:
    """J / J_lim = tanh(z V / 4) between reversible electrodes."""
    voltage = 0.05
    found = steady(16, METAL, voltage)["J_over_Jlim"]
    exact = math.tanh(2.0 * voltage * FARADAY / RT / 4.0)
    evidence.relative("neutral", "J / J_lim = tanh(z V / 4), CuSO4, 0.05 V, 16 even cells", found, exact, 1e-3)


@pytest.mark.slow
def test_salts_of_unequal_charges_settle_in_narrow_cells() -> None:
    """J / J_lim = tanh(V / (2/z+ + 2/|z-|)), and no more steps than a salt of equal charges takes."""
    salt = (COPPER[0], Species("Cl", -1, 2.03e-9, 200.0))
    widths = 1.5 ** (-np.arange(20) / 2)
    grid = Grid((20,), axes=("y",), spacing=(widths * (LENGTH / widths.sum()),), units="m")
    metal = Electrode({"Cu": METAL})
    model = electrodeposition(
        Problem(grid, salt, Steps(1e6, 1e6, 10.0, tolerance=1e-2), cathode=metal, anode=metal, voltage=0.02)
    )
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        seen = drive(model, engine, 1).observables
    assert seen["J_over_Jlim"] == pytest.approx(math.tanh(0.02 * FARADAY / RT / 3.0), rel=1e-4)
    assert seen["current_cathode"] == pytest.approx(seen["current"], rel=1e-4)
    assert seen["steps_taken"] + seen["steps_rejected"] < 80


@pytest.mark.slow
def test_kinetics_reach_the_limiting_current(evidence: Evidence) -> None:
    """What of Butler-Volmer kinetics at 0.6 V is missing of it falls with exp(-F V/2RT)."""
    for cells in (25, 100):
        found = steady(cells, KINETICS, 0.6, anode=KINETICS)["J_over_Jlim"]
        evidence.relative("neutral", f"J / J_lim, CuSO4, kinetics, 0.6 V, {cells} even cells", found, 1.0, 1e-3)


def supported(cells: int) -> float:
    """The limiting current of copper sulphate with a third as much acid, over that of diffusion alone."""
    acid = 100.0 / 3.0
    species = (COPPER[0], Species("SO4", -2, 1.07e-9, 100.0 + acid), Species("H", 1, 9.31e-9, 2.0 * acid))
    current = steady(cells, Held(0.0), 0.4, species=species)["current"]
    return float(current / (4.0 * FARADAY * 0.733e-9 * 100.0 / LENGTH))


def exact_supported(acid: float) -> float:
    """Of copper with acid, both other ions in equilibrium: S = the sum of all concentrations is linear in y, and the
    flux is D dS/dy. With p = exp(-phi): H = a p, SO4 = s / p^2, 2 Cu = 2 SO4 - H; Cu = 0 at y = 0."""

    def profile(first: float, second: float, n: int = 200_001) -> tuple[float, float, float]:
        # p from 1 at the cathode to `second` at the anode; H = first * p, and 2 s = first where Cu is none.
        p = np.linspace(1.0, second, n)
        sulphate, hydrogen = 0.5 * first / p**2, first * p
        copper = sulphate - 0.5 * hydrogen
        total = copper + sulphate + hydrogen
        y = (total - total[0]) / (total[-1] - total[0])
        parts = (float(np.sum(0.5 * (ion[1:] + ion[:-1]) * np.diff(y))) for ion in (sulphate, hydrogen))
        return *parts, float(total[-1] - total[0])

    def solve(second: float) -> tuple[float, float]:
        first = 1.0
        sulphate, hydrogen, rise = profile(first, second)
        first = 2.0 * acid / hydrogen  # linear in it
        return first * sulphate - (1.0 + acid), first * rise

    low, high = 1e-3, 1.0 - 1e-9
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if solve(middle)[0] > 0 else (low, middle)
    return solve(low)[1] / 2.0


@pytest.mark.slow
def test_the_limiting_current_with_an_acid(evidence: Evidence) -> None:
    """Three ions: exact no more, the ratio at the wall being that of what is in the cell beside it."""
    exact = exact_supported(1.0 / 3.0)
    for cells, within in ((16, 1e-3), (64, 2e-4)):
        what = f"limiting current of CuSO4 with a third of acid, over that of diffusion alone, {cells} even cells"
        evidence.relative("neutral", what, supported(cells), exact, within)
