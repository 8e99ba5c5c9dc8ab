"""How far heavy salt gets that an electrode feeds into a thin horizontal cell: as the square root of time, many times
farther than by diffusion."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from minga.engine.begin import start
from minga.engine.engine import Engine
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Flux, Problem, Species, Steps
from minga.space.grid import Grid

from .evidence import Evidence

STRENGTH, LENGTH = 1500.0, 30.0
"""G h^4 / D of a gradient of 1; gaps."""
TIMES = 1.0, 2.0, 4.0, 8.0


def fed(gradient: Any) -> Any:
    """The flux that goes with a gradient: D_eff / D = 1 + (G h^4 / D)^2 / 362880."""
    return gradient * (1.0 + (STRENGTH * gradient) ** 2 / 362880.0)


def reached_by_slots() -> list[float]:
    """The mean distance of the salt that came in, by small steps of dc/dt = (D_eff(c_x) c_x)_x with a given flux."""
    cells = 300
    width = LENGTH / cells
    c, time, found = np.zeros(cells), 0.0, []
    places = width * (np.arange(cells) + 0.5)
    dt = 0.2 * width**2 / (1.0 + 3.0 * STRENGTH**2 / 362880.0)
    for end in TIMES:
        while time < end:
            slope = -np.diff(c) / width
            flux = np.concatenate([[fed(1.0)], fed(slope), [0.0]])
            c = c - dt / width * np.diff(flux)
            time += dt
        found.append(float(places @ c / c.sum()))
    return found


def reached(cells: int, dt: float) -> tuple[list[float], bool]:
    """The same of the whole model, in gaps and their times of diffusion, and whether the heavy fluid is below."""
    along, alpha, viscosity = int(4 * LENGTH), 0.1, 100.0
    grid = Grid((along, cells), axes=("y", "z"), spacing=(LENGTH / along, 1.0 / cells))
    problem = Problem(
        grid, (Species("salt", 0, 1.0, 1.0, alpha),), Steps(TIMES[-1], 1.0, dt, adaptive=False),
        Constants(1.0, 1.0, 1.0, 1.0, viscosity), anode=Electrode({"salt": Flux(fed(1.0))}), voltage=0.0,
        gravity=(0.0, -STRENGTH * viscosity / alpha), flow=True,
    )  # fmt: skip
    model, found, sinks = electrodeposition(problem, tolerance=1e-9), [], []
    far = LENGTH - grid.centres("y")
    with Engine(model.layouts("cartesian", 1)) as engine:
        start(model, engine)
        for step in range(1, int(TIMES[-1]) + 1):
            assert engine.run(model.step).ok
            if float(step) in TIMES:
                c = engine.gather(model.field("salt").now) - 1.0
                found.append(float(far @ c.sum(axis=1) / c.sum()))
                sinks.append(bool(c[:, 0].sum() > c[:, -1].sum()))
    return found, all(sinks)


@pytest.mark.slow
def test_fronts_of_salt_that_an_electrode_feeds(evidence: Evidence) -> None:
    found, sinks = reached(12, 0.008)
    assert sinks
    expected = reached_by_slots()
    evidence.curve("fronts", "mean distance from the anode, gaps, by time", TIMES, found, TIMES, expected)
    for time, seen, wanted in zip(TIMES, found, expected, strict=True):
        evidence.relative("fronts", f"mean distance at t = {time:g}, of slots that spread", seen, wanted, 0.05)
    exponents = [np.log2(b / a) for a, b in itertools.pairwise(found)]
    evidence.between("fronts", "power of time by which it grows, t = 4 to 8", exponents[-1], 0.47, 0.53)
    # By diffusion alone it would be 4/3 sqrt(t / pi).
    assert found[-1] > 1.9 * 4.0 / 3.0 * np.sqrt(TIMES[-1] / np.pi)
