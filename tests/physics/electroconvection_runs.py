"""Runs of the membrane in a scaled bath, alone and with a wave-like disturbance whose growth is measured."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Held, Problem, Species, Steps
from minga.running.loop import drive
from minga.space.grid import Grid

Floats = NDArray[np.float64]
IONS = (Species("cation", 1, 1.0, 1.0), Species("anion", -1, 1.0, 1.0))
SMALL = 1e-5
"""Relative size of the disturbance."""


def widths(cells: int, ratio: float) -> Floats:
    """Widths of cells that grow from the membrane by a factor."""
    found = ratio ** np.arange(cells)
    return found / found.sum()


def problem(grid: Grid, debye: float, voltage: float, steps: Steps, kappa: float = 0.5, **more: Any) -> Problem:
    """The membrane at y = 0 and the bath at y = 1; the Schmidt number is 1000."""
    viscosity = 2.0 * debye**2 / kappa
    return Problem(
        grid, IONS, steps, Constants(1.0, 1.0, 2.0 * debye**2, viscosity / 1000.0, viscosity),
        cathode=Electrode({"cation": Held(2.0)}), anode=Electrode({"cation": Held(1.0), "anion": Held(1.0)}),
        voltage=voltage, **more,
    )  # fmt: skip


@functools.cache
def base(cells: int, ratio: float, debye: float, voltage: float) -> tuple[dict[str, Floats], float]:
    """The steady state without flow, in one dimension, and its current over the limiting one."""
    grid = Grid((cells,), axes=("y",), spacing=[widths(cells, ratio)], units="m")
    model = electrodeposition(problem(grid, debye, voltage, Steps(10.0, 10.0, 1e-5)))
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        seen = drive(model, engine, 1).observables
        fields = {name: engine.gather(model.field(name).now) for name in ("cation", "anion", "potential")}
    return fields, float(seen["J_over_Jlim"])


def growth(
    cells: tuple[int, int], ratio: float, debye: float, voltage: float, wave: float, *, start: float, end: float,
    flow_tolerance: float = 3e-3, kappa: float = 0.5,
) -> float:  # fmt: skip
    """The rate at which a disturbance of a wavenumber grows between two times, in D / L2; `end` is a multiple of
    `start`."""
    ny, nx = cells
    width = 2.0 * math.pi / wave
    grid = Grid(
        cells, axes=("y", "x"), spacing=[widths(ny, ratio), np.full(nx, width / nx)], periodic=(False, True), units="m"
    )
    steady, _ = base(ny, ratio, debye, voltage)
    wavy = 1.0 + SMALL * np.cos(wave * grid.centres("x"))
    first = {name: steady[name][:, None] * wavy for name in ("cation", "anion")}
    first["potential"] = steady["potential"][:, None] * np.ones(nx)
    steps = Steps(end, start, 1e-4 * start, flow_tolerance=flow_tolerance)
    model = electrodeposition(problem(grid, debye, voltage, steps, kappa, flow=True, initial=first))
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        sizes = []
        for step in range(1, round(end / start) + 1):
            sizes.append(float(drive(model, engine, step).observables["largest_velocity"]))
    return math.log(sizes[-1] / sizes[0]) / (end - start)
