"""Shapes of deposits: the fractal dimension in the limit of diffusion, and pulses that keep a deposit smooth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.begin import start as begin_with
from minga.engine.observables import observe
from minga.models.electrodeposition import DepositHistory
from minga.models.electrodeposition.measures import gyration
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    ANODE,
    CATHODE,
    INSULATOR,
    Constants,
    Electrode,
    Growth,
    Held,
    Problem,
    Reversible,
    Species,
    Steps,
)
from minga.models.electrodeposition.protocols.segments import Part, Repeat, Segment
from minga.running.loop import drive
from minga.space.grid import Grid

from .evidence import Evidence

SIDE = 256
COPPER = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)


def cluster(
    seed: int, side: int = SIDE, every: float = 200.0, ndim: int = 2, first: float = 1.0
) -> tuple[list[int], list[float]]:
    """Numbers of cells and radii of gyration of a deposit that grows from one cell towards a ring or sphere, in cells.

    The only species has no charge, so that it diffuses; the deposit, where its concentration is 0, takes so much of it
    that the concentration is nearly that of Laplace's equation. The size of a step is limited by what cells grow in it
    alone.
    """
    grid = Grid((side,) * ndim, axes=("y", "x") if ndim == 2 else ("y", "z", "x"), spacing=1.0)
    off = np.indices(grid.shape) - side // 2
    distance = np.sqrt((off * off).sum(axis=0))
    kinds = np.zeros(grid.shape, np.uint8)
    kinds[distance > side / 2 - 3] = ANODE
    kinds[0] = INSULATOR
    kinds[(side // 2,) * ndim] = CATHODE
    problem = Problem(
        grid, (Species("ion", 0, 1.0, 1.0),), Steps(1e7, every, first, tolerance=50.0, order=1),
        Constants(1.0, 1.0, 1.0, 1.0, 1.0), kinds=kinds, cathode=Electrode({"ion": Held(0.0)}),
        anode=Electrode({"ion": Held(1.0)}), voltage=0.0, growth=Growth("ion", 0.1), seed=seed,
    )  # fmt: skip
    model = electrodeposition(problem)
    cells, radii = [], []
    with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
        begin_with(model, engine)
        while not observe(model, engine)["deposit_height"] > 0.95 * side:
            assert engine.run(model.step).ok
            solid = engine.gather(model.field("kind")) == CATHODE
            if cells and solid.sum() == cells[-1]:
                break
            cells.append(int(solid.sum()))
            radii.append(gyration(solid, [np.arange(side) + 0.5] * ndim))
    assert distance[solid].max() > 0.45 * side - 3, "the deposit did not come near the ring"
    return cells, radii


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_deposits_in_the_limit_of_diffusion_are_fractals(seed: int, evidence: Evidence) -> None:
    """1.71 +- 0.05 in two dimensions, as in diffusion-limited aggregation (Nicolas-Carlock and Carrillo-Estrada, 2019).

    The number of cells grows as this power of their radius of gyration, up to where the ring is near. How many cells
    there are when the first tip comes there is a matter of chance: on 64 x 64 cells 395 +- 79 (nine seeds).
    """
    cells, radii = cluster(seed)
    assert 0.7 * cells[-1] > 20 * 100
    nothing = np.zeros(len(cells))
    history = DepositHistory(
        nothing, np.array(cells), nothing, nothing, nothing, np.array(radii), np.ones(1, bool)
    )  # fmt: skip
    found = history.dimension(100, int(0.7 * cells[-1]))
    evidence.absolute("deposits", f"dimension of a deposit in the limit of diffusion, seed {seed}", found, 1.71, 0.05)


def deposited(program: tuple[Part, ...], end: float) -> tuple[dict[str, Any], float]:
    """Observables at the end of a program in half a millimetre of copper sulphate, and the roughness of the front: the
    standard deviation of the highest metal of each column, in cells."""
    width = 0.5e-3 / 24
    grid = Grid((24, 48), axes=("y", "x"), spacing=(width, width), periodic=(False, True))
    metal = Electrode({"Cu": Reversible(100.0)})
    problem = Problem(
        grid, COPPER, Steps(end, end / 4, 0.02, tolerance=3e-2), cathode=metal, anode=metal, protocol=program,
        growth=Growth("Cu", 7.1e-6, 0.998, onset=0.05), seed=1,
    )  # fmt: skip
    model = electrodeposition(problem)
    with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
        result = drive(model, engine, 4)
        solid = engine.gather(model.field("kind")) == CATHODE
    tops = np.where(solid.any(axis=0), 24 - np.argmax(solid[::-1], axis=0), 0)
    return dict(result.observables), float(tops.std())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_pulses_keep_a_deposit_smooth_that_branches_under_direct_current() -> None:
    """At equal current and charge: rests refill the cathode's layer, so that no branches begin there."""
    on, rest = Segment("current", 300.0, duration=1.0), Segment("current", 0.0, duration=3.0)
    direct, rough = deposited((replace(on, duration=12.0),), 12.0)
    pulsed, smooth = deposited((Repeat(12, (on, rest)),), 48.0)
    assert direct["charge"] == pytest.approx(3600.0, rel=1e-6)
    assert pulsed["charge"] == pytest.approx(3600.0, rel=1e-6)
    assert 1.0 < direct["onset_time"] < 12.0
    assert pulsed["onset_time"] == 0.0
    # The pulses leave 0.13 um of compact copper, less than a cell.
    assert (rough > 0.5, smooth) == (True, 0.0)
    assert pulsed["deposit_charge"] == pytest.approx(direct["deposit_charge"], rel=1e-6)


def rough(cells: int, grain: float) -> float:
    """Roughness of the front over six seeds, in m, of half a millimetre of copper sulphate in so many cells."""
    width = 0.5e-3 / cells
    grid = Grid((cells, cells), axes=("y", "x"), spacing=width, periodic=(False, True))
    metal, found = Electrode({"Cu": Reversible(100.0)}), []
    for seed in range(1, 7):
        problem = Problem(
            grid, COPPER, Steps(2.0, 2.0, 0.02, tolerance=1e-2), cathode=metal, anode=metal, voltage=0.3,
            growth=Growth("Cu", 7.1e-6, 0.998, radius=62.5e-6, grain=grain), seed=seed,
        )  # fmt: skip
        model = electrodeposition(problem)
        with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
            drive(model, engine, 1)
            solid = engine.gather(model.field("kind")) == CATHODE
        tops = np.where(solid.any(axis=0), cells - np.argmax(solid[::-1], axis=0), 0)
        found.append(float(tops.std()) * width)
    return float(np.mean(found))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_grain_keeps_the_roughness_that_falls_with_the_cells_without_it() -> None:
    assert rough(64, 0.0) < 0.75 * rough(32, 0.0)
    assert rough(64, 31.25e-6) == pytest.approx(rough(32, 31.25e-6), rel=0.2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_reverse_current_takes_porous_metal_and_then_the_compact_metal_below_it() -> None:
    """The metal that is left is what the charge has brought, within two cells; a porous cell has a fifth."""
    per_mol, porosity, side = 1e-3, 0.8, 0.5e-3 / 24
    grid = Grid((24, 8), axes=("y", "x"), spacing=(side, side), periodic=(False, True))
    metal = Electrode({"Cu": Reversible(100.0)})
    program = Segment("current", 300.0, duration=12.0), Segment("current", -300.0, duration=10.0)
    problem = Problem(
        grid, COPPER, Steps(22.0, 2.0, 0.02, tolerance=3e-2), cathode=metal, anode=metal, protocol=program,
        growth=Growth("Cu", per_mol, porosity, onset=0.05), seed=1,
    )  # fmt: skip
    model = electrodeposition(problem)
    with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
        begin_with(model, engine)
        seen = []
        for _ in range(11):
            assert engine.run(model.step).ok
            seen.append(observe(model, engine))
    moles = [item["deposit_charge"] / (2 * 96485.33212) for item in seen]
    assert seen[5]["onset_time"] > 0.0
    compact = seen[5]["onset_time"] * 300.0 / (2 * 96485.33212) * 8 * side
    assert moles[-1] < 0.8 * compact
    cell = side * side / per_mol
    assert seen[-1]["deposit_volume"] / per_mol == pytest.approx(moles[-1], abs=2 * cell)
    assert seen[-1]["deposit_volume"] < 0.7 * seen[5]["deposit_volume"]
    assert seen[-1]["total_SO4"] == pytest.approx(100.0 * 24 * 8 * side**2, rel=1e-12)
