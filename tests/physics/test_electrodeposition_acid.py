"""Copper sulphate with sulphuric acid in local equilibrium, against mass action and fluxes in plain NumPy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, fsolve

from minga.models.electrodeposition.electrolytes import bath
from minga.models.electrodeposition.equilibrium import equilibrium_of
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Growth, Problem, Reversible, Steps
from minga.space.grid import Grid

from ..model_runs import Left, assert_same, run_model

F, RT = Constants().faraday, Constants().thermal
Floats = NDArray[np.float64]
CHARGES = np.array([2, 1, -2, -1, 0])
"""Charges of Cu, H+, SO4, HSO4- and the pair."""
MOBILE = np.array([0.733e-9, 9.31e-9, 1.07e-9, 1.33e-9, 4.45e-10])
TOTALS = np.array([[1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 1, 1]])
"""Rows: Cu, H and SO4 in each form."""


def log_g(strength: float) -> Floats:
    """Natural logarithms of the activity coefficients of the five forms."""
    root = math.sqrt(strength)
    extended = [-0.509 * z * z * root / (1 + 0.328 * r * root) for z, r in ((2, 6.0), (1, 9.0), (2, 5.0))]
    davies = -0.509 * (root / (1 + root) - 0.3 * strength)
    return math.log(10) * np.array([extended[0], extended[1], extended[2] - 0.04 * strength, davies, 0.0])


def forms(metal: float, hydrogen: float, sulphate: float) -> tuple[Floats, float]:
    """Concentrations of the five forms, and the ionic strength, mol/l, by two nested searches."""

    def at(strength: float) -> Floats:
        g = np.exp(log_g(strength))
        pair, acid = 10**2.31 * g[0] * g[2], 10**1.988 * g[1] * g[2] / g[3]

        def off(s: float) -> float:
            return s + metal * pair * s / (1 + pair * s) + hydrogen * acid * s / (1 + acid * s) - sulphate

        s = brentq(off, 0.0, sulphate, xtol=1e-16, rtol=1e-14)
        m, h = metal / (1 + pair * s), hydrogen / (1 + acid * s)
        return np.array([m, h, s, hydrogen - h, metal - m])

    def missing(strength: float) -> float:
        return float(0.5 * (CHARGES**2 * at(strength)).sum()) - strength

    found = brentq(missing, 1e-9, 10.0, xtol=1e-15, rtol=1e-13)
    return at(found), found


def mobilities(strength: float) -> Floats:
    """Mobilities of the forms, m2/s."""
    z = np.abs(CHARGES[:4])
    power = np.where(strength < 0.36 * z, 0.6 / np.sqrt(z), math.sqrt(strength) / z)
    return np.append(MOBILE[:4] * np.exp(power * log_g(strength)[:4]), 0.0)


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


def limit(length: float, acid: float) -> float:
    """Limiting current, A/m2: the steady profile from an empty cathode, with H and SO4 at rest."""

    def gradients(totals: Floats, flux: float) -> Floats:
        """d(Cu, H)/dy, mol/l per length, where copper flows to the cathode with this flux over its diffusivity."""
        base, strength = forms(*totals)
        step = 1e-6
        ways = np.array([[1, 0, 1.0], [0, 1, 0.5]])
        slopes = []
        for way in ways:
            sizes = step * max(float(np.abs(way @ totals)), 1e-6)
            (up, i_up), (low, i_low) = forms(*(totals + sizes * way)), forms(*(totals - sizes * way))
            slopes.append((up - low) / (2 * sizes) + base * (log_g(i_up) - log_g(i_low)) / (2 * sizes))
        moved = CHARGES * mobilities(strength) * base
        system = np.array([[float((TOTALS[r] * MOBILE * s).sum()) for s in slopes] + [float((TOTALS[r] * moved).sum())]
                           for r in range(3)])  # fmt: skip
        return np.linalg.solve(system, np.array([flux, 0.0, 0.0]))[:2]

    def profile(unknown: Floats) -> Floats:
        flux, hydrogen = unknown[0] * 1e-9, unknown[1]

        def slope(_: float, y: Floats) -> Floats:
            totals = np.array([max(y[0], 1e-9), y[1], max(y[0], 1e-9) + 0.5 * y[1]])
            return np.array([*gradients(totals, flux), y[0], y[1]])

        found = solve_ivp(slope, (0.0, 1.0), [1e-7, hydrogen, 0.0, 0.0], rtol=1e-7, atol=1e-10)
        return np.array([found.y[2, -1] - 0.1, found.y[3, -1] - 2e-3 * acid])

    unknown = fsolve(profile, np.array([0.15, 2.2e-3 * acid]), xtol=1e-8)
    assert np.abs(profile(unknown)).max() < 1e-7
    return float(2 * F * unknown[0] * 1e-9 * 1e3 / length)


@pytest.mark.slow
@pytest.mark.parametrize("acid", [20.0, 500.0])
def test_limiting_current(acid: float) -> None:
    """The error falls in first order with the width of the cells, as that of the activities at the metal does."""
    length, end = 2e-4, 400.0
    exact, found = limit(length, acid), []
    for cells in (32, 64):
        steps = Steps(end, end, 1e-3, tolerance=1e-3)
        model = electrodeposition(cell(cells, length, acid, voltage=0.6, steps=steps))
        left = run_model(model, 1).observables
        assert left["steps_rejected"] < 10
        found.append(left["current"])
    assert found[1] == pytest.approx(exact, rel=5e-3)
    assert 2 * found[1] - found[0] == pytest.approx(exact, rel=2e-3)


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
