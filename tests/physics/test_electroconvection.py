"""Electroconvection at a membrane: thresholds, growth rates, base states and steady vortices.

Rates and thresholds are those of linear stability theory: Chebyshev collocation of the disturbed equations on 90 to 150
points, whose base states agree with an independent table of currents to 6 digits.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Steps
from minga.space.grid import Grid

from ..model_runs import run_model
from .electroconvection_runs import base, growth, problem, widths
from .evidence import Evidence

BASES = {(1e-2, 40): 1.732593, (1e-3, 20): 1.053590, (1e-3, 25): 1.069617, (1e-3, 40): 1.110879}
"""J / J_lim of the base state, by Debye length and voltage."""


def extrapolated(coarse: float, fine: float) -> float:
    """The limit of an error of second order, from a grid and one of twice its cells."""
    return (4.0 * fine - coarse) / 3.0


def ratio(cells: int, debye: float) -> float:
    """Growth of the widths of cells: those of 128 cells grow by 1.03 or, for thin layers, 1.049."""
    return float((1.03 if debye > 5e-3 else 1.049) ** (128.0 / cells))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("debye", "voltage"), [pytest.param(*row, marks=[pytest.mark.slow] if row[1] == 40 else []) for row in BASES]
)
def test_currents_before_the_instability(debye: float, voltage: int, evidence: Evidence) -> None:
    coarse, fine = (base(cells, ratio(cells, debye), debye, float(voltage))[1] for cells in (128, 256))
    what = f"base J / J_lim, Debye length {debye:g}, V {voltage}, from 128 and 256 cells"
    evidence.relative("electroconvection", what, extrapolated(coarse, fine), BASES[debye, voltage], 1e-4)


def critical_voltage(cells: int, debye: float, kappa: float, wave: float, near: float) -> float:
    """The voltage between two others at which the fastest disturbance neither grows nor decays, by regula falsi."""
    low, high = near - 0.9, near + 0.9

    def rate(voltage: float) -> float:
        grid = (cells, 20), ratio(cells, debye)
        return growth(*grid, debye, voltage, wave, start=0.1, end=0.3, kappa=kappa)

    below, above = rate(low), rate(high)
    assert below < 0.0 < above
    middle = low - (high - low) * below / (above - below)
    between = rate(middle)
    slope = (above - between) / (high - middle) if between < 0.0 else (between - below) / (middle - low)
    return middle - between / slope


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("debye", "kappa", "wave", "critical"),
    [(1e-2, 0.5, 3.635, 22.358), (1e-2, 1.0, 3.676, 17.783)],
)
def test_the_critical_voltage(debye: float, kappa: float, wave: float, critical: float, evidence: Evidence) -> None:
    """On coarse grids it is lower."""
    coarse, fine = (
        critical_voltage(cells, debye, kappa, wave, critical - 0.2 * (64 / cells) ** 2) for cells in (64, 128)
    )
    found = extrapolated(coarse, fine)
    what = f"critical V, Debye length {debye:g}, kappa {kappa:g}, from 64 x 20 and 128 x 20 cells"
    evidence.relative("electroconvection", what, found, critical, 5e-3)


@pytest.mark.slow
def test_growth_near_the_threshold(evidence: Evidence) -> None:
    found = growth((128, 20), 1.03, 1e-2, 25.0, 3.7, start=0.1, end=0.3)
    evidence.relative("electroconvection", "growth rate, Debye length 0.01, V 25, k 3.7, 128 x 20", found, 9.3054, 0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("debye", "voltage", "wave", "rate"), [(1e-2, 25, 3.7, 9.3054), (1e-2, 40, 4.0, 79.309), (1e-3, 25, 8.0, 164.18)]
)
def test_growth_rates(debye: float, voltage: int, wave: float, rate: float, evidence: Evidence) -> None:
    interval = min(0.1, 1.6 / rate)
    coarse, fine = (
        growth((cells, 20), ratio(cells, debye), debye, float(voltage), wave, start=interval, end=3.0 * interval)
        for cells in (64, 128)
    )
    what = f"growth rate, Debye length {debye:g}, V {voltage}, k {wave:g}, from 64 x 20 and 128 x 20 cells"
    evidence.relative("electroconvection", what, extrapolated(coarse, fine), rate, 0.015)


@pytest.mark.slow
def test_steady_vortices(evidence: Evidence) -> None:
    """A pair of vortices carries a fifth more than the base state; finer grids, of 64 x 40 cells, give 1.716."""
    ny, nx, wave = 64, 20, 3.7
    width = 2.0 * math.pi / wave
    grid = Grid((ny, nx), axes=("y", "x"), spacing=[widths(ny, 1.06), np.full(nx, width / nx)], periodic=(False, True))
    wavy = np.broadcast_to(1.0 + 0.1 * np.cos(wave * grid.centres("x")), (ny, nx)).copy()
    steps = Steps(1.5, 0.5, 1e-5)
    model = electrodeposition(problem(grid, 1e-2, 25.0, steps, flow=True, initial={"cation": wavy, "anion": wavy}))
    seen = run_model(model, 3).observables
    evidence.between("electroconvection", "J / J_lim of steady vortices, V 25", seen["J_over_Jlim"], 1.71, 1.72)
    assert seen["current_cathode"] == pytest.approx(seen["current"], rel=1e-4)
    assert seen["steps_rejected"] <= 0.05 * seen["steps_taken"]


@pytest.mark.slow
def test_the_64_x_64_case_accepts_its_steps() -> None:
    """50 RT/F, kappa 1, into the merging of vortices: 4390 of 8263 attempts were rejected by the first version."""
    cells = 64, 64
    grid = Grid(cells, axes=("y", "x"), spacing=[widths(64, 1.05), np.full(64, 1.276 / 64)], periodic=(False, True))
    start = 1.0 + 1e-2 * np.random.default_rng(1).uniform(-1.0, 1.0, cells)
    first = {"cation": start, "anion": start}
    model = electrodeposition(
        problem(grid, 1e-2, 50.0, Steps(0.05, 0.05, 1e-5), kappa=1.0, flow=True, initial=first), agreement=5e-5
    )
    seen = run_model(model, 1).observables
    assert seen["steps_rejected"] <= 0.05 * seen["steps_taken"]
    reasons = [value for name, value in seen.items() if name.startswith("rejected_")]
    assert sum(reasons) == seen["steps_rejected"]
    assert seen["rejected_negative"] == 0
    assert 0.0 <= seen["least_concentration"] < 1e-12
