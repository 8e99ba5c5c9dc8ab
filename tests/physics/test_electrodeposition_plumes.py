"""Convection of the whole model: a species without charge that makes the fluid lighter or heavier, in two and three
dimensions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Flux, Held, Problem, Species, Steps
from minga.running.loop import drive
from minga.space.grid import Grid

from .evidence import Evidence
from .flows import extrapolated

Floats = NDArray[np.float64]

# Tric, Labrosse and Betrouni (Int. J. Heat Mass Transfer 43, 2000): mean Nusselt number at the walls of a cube.
TRIC = {1e3: 1.0700, 1e4: 2.0542}


def heated_cube(cells: int, rayleigh: float, dt: float, end: float) -> float:
    """The mean Nusselt number at the hot wall of a cube of air between a hot and a cold side."""
    grid = Grid((cells,) * 3, axes=("y", "z", "x"), spacing=1.0 / cells)
    hot, cold = Electrode({"heat": Held(1.0)}), Electrode({"heat": Held(0.0)})
    rising = 1.0 - grid.centres("y")[:, None, None] + np.zeros(grid.shape)
    problem = Problem(
        grid, (Species("heat", 0, 1.0, 0.5, -0.01),), Steps(end, end, dt, adaptive=False),
        Constants(1.0, 1.0, 1.0, 1.0, 0.71), cathode=hot, anode=cold, voltage=0.0,
        gravity=(0.0, -100.0 * rayleigh * 0.71, 0.0), flow=True, initial={"heat": rising},
    )  # fmt: skip
    model = electrodeposition(problem, tolerance=1e-8)
    with Engine(model.layouts("cartesian", 1)) as engine:
        drive(model, engine, 1)
        heat = engine.gather(model.field("heat").now)
    return float(np.mean(1.0 - heat[0]) * 2.0 * cells)


@pytest.mark.slow
@pytest.mark.parametrize(("rayleigh", "dt", "end"), [(1e3, 0.01, 0.4), (1e4, 2e-3, 0.3)])
def test_a_cube_heated_from_the_side(rayleigh: float, dt: float, end: float, evidence: Evidence) -> None:
    coarse, fine = heated_cube(10, rayleigh, dt, end), heated_cube(20, rayleigh, 0.5 * dt, end)
    found = extrapolated(coarse, fine)
    evidence.relative(
        "heat", f"mean Nu in a cube, Ra {rayleigh:.0e}, from 10 and 20 cells", found, TRIC[rayleigh], 0.01
    )


def chebyshev(points: int) -> tuple[Floats, Floats]:
    """The points cos(pi i / n) and the matrix that differentiates what is given at them."""
    x = np.cos(np.pi * np.arange(points + 1) / points)
    c = np.array([2.0, *[1.0] * (points - 1), 2.0]) * (-1.0) ** np.arange(points + 1)
    apart = x[:, None] - x[None] + np.eye(points + 1)
    matrix = np.outer(c, 1.0 / c) / apart
    return x, matrix - np.diag(matrix.sum(axis=1))


def critical_rayleigh(wave: float, points: int = 24) -> float:
    """Of a layer between rigid plates that give and take a fixed flux: the least Ra at which rolls of a wavenumber
    neither grow nor decay, (D2 - k2)^2 w = Ra k2 c, (D2 - k2) c = -w."""
    _, d = chebyshev(points)
    d = 2.0 * d  # plates one unit apart
    n, unit = points + 1, np.eye(points + 1)
    laplace = d @ d - wave**2 * unit
    left, right = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, 2 * n))
    left[:n, :n], right[:n, n:] = laplace @ laplace, wave**2 * unit
    left[n:, n:], left[n:, :n] = laplace, unit
    for row, what in ((0, unit[0]), (n - 1, unit[-1]), (1, d[0]), (n - 2, d[-1])):
        left[row], right[row] = 0.0, 0.0
        left[row, :n] = what
    for row, what in ((n, d[0]), (2 * n - 1, d[-1])):
        left[row], right[row] = 0.0, 0.0
        left[row, n:] = what
    # Of the inverse: boundary conditions have no eigenvalue there.
    found = np.linalg.eigvals(np.linalg.solve(left, right))
    real = found.real[(np.abs(found.imag) < 1e-6 * np.abs(found.real)) & (found.real > 1e-12)]
    return float(1.0 / real.max())


def growth_of_rolls(cells: int, rayleigh: float, wave: float) -> float:
    """The rate at which a small disturbance grows in a layer whose upper end is fed and whose lower end is drained."""
    length = 2.0 * np.pi / wave
    grid = Grid(
        (cells, 3 * cells), axes=("y", "x"), spacing=(1.0 / cells, length / (3 * cells)), periodic=(False, True)
    )
    y, x = np.meshgrid(grid.centres("y"), grid.centres("x"), indexing="ij")
    first = 1.0 + 0.5 * (y - 0.5) + 1e-4 * np.cos(wave * x)
    dt, part = 0.05, 3.0
    problem = Problem(
        grid, (Species("salt", 0, 1.0, 1.0, 0.01),), Steps(2 * part, part, dt, adaptive=False),
        Constants(1.0, 1.0, 1.0, 1.0, 1.0),
        cathode=Electrode({"salt": Flux(-0.5)}), anode=Electrode({"salt": Flux(0.5)}),
        voltage=0.0, gravity=(-200.0 * rayleigh, 0.0), flow=True, initial={"salt": first},
    )  # fmt: skip
    model = electrodeposition(problem)
    sizes = []
    with Engine(model.layouts("cartesian", 1)) as engine:
        start(model, engine)
        for _ in range(2):
            assert engine.run(model.step).ok
            sizes.append(float(np.abs(engine.gather(model.field("v_y").now)).max()))
    return math.log(sizes[1] / sizes[0]) / part


def test_the_oracle_of_layers_with_a_fixed_flux() -> None:
    """720 for the longest waves (Sparrow, Goldstein and Jonsson, J. Fluid Mech. 18, 1964)."""
    assert critical_rayleigh(0.02) == pytest.approx(720.0, rel=1e-3)
    assert critical_rayleigh(1.0) == pytest.approx(747.78, rel=1e-4)  # 24 and 32 points agree to 11 digits


@pytest.mark.slow
def test_onset_between_plates_with_a_fixed_flux(evidence: Evidence) -> None:
    """What electrodes under a given current are to the salt: waves of six gaps grow above Ra 748."""
    wave, low, high = 1.0, 680.0, 780.0

    def onset(cells: int) -> float:
        slow, fast = growth_of_rolls(cells, low, wave), growth_of_rolls(cells, high, wave)
        return low - (high - low) * slow / (fast - slow)

    expected = critical_rayleigh(wave)
    found = extrapolated(onset(8), onset(16))
    evidence.relative(
        "heat", "Ra at which rolls of a fixed flux grow, k = 1, from 8 and 16 cells", found, expected, 0.01
    )
