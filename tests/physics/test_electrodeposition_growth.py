"""What deposits look like, and how fast their fronts are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import CATHODE, Electrode, Growth, Problem, Reversible, Species, Steps
from minga.running.loop import Result, drive
from minga.space.grid import Grid

from ..model_runs import assert_same, run_model
from .evidence import Evidence

LENGTH, CELLS = 1e-3, 48
COPPER = Species("Cu", 2, 7.33e-10, 100.0), Species("SO4", -2, 1.07e-9, 100.0)
FARADAY, GAS = 96485.33212, 8.314462618
MOBILITY = 2 * 1.07e-9 * FARADAY / (GAS * 298.15)
"""Of the anion, m2/s/V."""


def deposit(
    exponent: float, voltage: float, porosity: float, end: float, seed: int = 2
) -> tuple[Result, np.ndarray[Any, Any]]:
    """A deposit in a square millimetre of copper sulphate, and where it is."""
    size = LENGTH / CELLS
    grid = Grid((CELLS, CELLS), spacing=(size, size), axes=("y", "x"), periodic=(False, True))
    metal = Electrode({"Cu": Reversible(100.0)})
    problem = Problem(
        grid, COPPER, Steps(end, end / 20, end / 2000, tolerance=1e-2), cathode=metal, anode=metal, voltage=voltage,
        growth=Growth("Cu", 7.1e-6, porosity, exponent), seed=seed,
    )  # fmt: skip
    model = electrodeposition(problem)
    with mg.Engine(model.layouts("slabs", 1), threads=2) as engine:
        result = drive(model, engine, 20)
        return result, engine.gather(model.field("kind")) == CATHODE


def dimension(solid: np.ndarray[Any, Any]) -> float:
    """Of the part of a deposit between a sixth and the whole of its height, by counting boxes of 1 to 6 cells."""
    top = int(np.flatnonzero(solid.any(axis=1)).max()) + 1
    there = solid[top // 6 : top]
    sizes = np.array([1, 2, 3, 4, 6])
    counts = []
    for size in sizes:
        rows, columns = (n - n % size for n in there.shape)
        boxes = there[:rows, :columns].reshape(rows // size, size, columns // size, size)
        counts.append(boxes.any(axis=(1, 3)).sum() / (rows * columns))
    return 2.0 - float(np.polyfit(np.log(sizes), np.log(np.array(counts) * sizes**2), 1)[0])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_tips_that_the_field_favours_outrun_the_rest() -> None:
    """With weights that know no flux deposits stay compact; with the flux they branch, and reach farther."""
    branched, tree = deposit(1.0, 0.3, 0.998, 8.0)
    compact, lump = deposit(0.0, 0.3, 0.998, 8.0)
    for result, solid in ((branched, tree), (compact, lump)):
        assert result.observables["deposit_cells"] == solid.sum()
        assert result.observables["total_SO4"] == pytest.approx(100.0 * LENGTH**2, rel=1e-12)
        # Multigrid preconditions the potential as well around a deposit as without one.
        assert result.observables["potential_iterations"] <= 15 * result.observables["passes"]
    filled = [solid.sum() / (solid.any(axis=1).sum() * CELLS) for solid in (tree, lump)]
    assert filled[0] < 0.9 * filled[1]
    reached = [r.observables["deposit_height"] / r.observables["deposit_cells"] for r in (branched, compact)]
    assert reached[0] > 1.1 * reached[1]
    # Small deposits lie below the dimensions of large ones, 1.71 and 2.
    assert 1.2 < dimension(tree) < dimension(lump) <= 2.0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("voltage", [0.2, 0.4])
def test_fronts_move_as_far_as_anions_drift(voltage: float, evidence: Evidence) -> None:
    """The field grows as the front nears the anode, and the anions drift by mobility * charge / (area * conductivity)
    (J.-N. Chazalviel, Phys. Rev. A 42, 1990): to within a third, the mean front of three deposits. The tallest finger
    runs ahead of it, by chance up to the anode."""
    end = 0.2 * LENGTH / (MOBILITY * voltage / LENGTH)
    conductivity = sum(ion.charge**2 * ion.diffusivity * ion.bulk for ion in COPPER) * FARADAY**2 / (GAS * 298.15)
    ratios = []
    for seed in (1, 2, 3):
        result, solid = deposit(1.0, voltage, 0.998, end, seed)
        assert result.observables["deposit_height"] < 0.8 * LENGTH
        fronts = np.where(solid.any(axis=0), CELLS - np.argmax(solid[::-1], axis=0), 0) * (LENGTH / CELLS)
        ratios.append(fronts.mean() / (MOBILITY * result.observables["deposit_charge"] / (LENGTH * conductivity)))
    what = f"mean front over the drift of the anions, {voltage:g} V, three seeds"
    evidence.relative("deposits", what, np.mean(ratios), 1.0, 1 / 3)
    assert np.std(ratios) < 0.3


def stirred() -> Problem:
    """Copper between plates half a millimetre apart, heavier where it dissolves: a deposit grows in a roll."""
    grid = Grid((20, 10), spacing=(5e-5, 5e-5), axes=("y", "z"))
    kinds = np.zeros(grid.shape, np.uint8)
    kinds[:2, 4:6] = CATHODE
    heavy = tuple(replace(ion, expansion=0.8e-4) for ion in COPPER)
    metal = Electrode({"Cu": Reversible(100.0)})
    return Problem(
        grid, heavy, Steps(4.0, 1.0, 0.05, tolerance=1e-2), kinds=kinds, cathode=metal, anode=metal, current=60.0,
        gravity=(0.0, -9.81), flow=True, growth=Growth("Cu", 7.1e-6, 0.9995), seed=1,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_deposits_grow_in_a_fluid_that_moves() -> None:
    """Nothing flows through what has turned solid, no ion is lost, and the ranks change no bit."""
    problem = stirred()
    model = replace(electrodeposition(problem), output=("kind", "Cu", "SO4", "v_y", "v_z", "potential"))
    left = run_model(model, 4)
    solid, seen = left.fields["kind"] == CATHODE, left.observables
    assert solid.sum() == 4 + seen["deposit_cells"] >= 7
    cell = 5e-5**2
    assert seen["total_SO4"] == pytest.approx(100.0 * cell * (200 - 4), rel=1e-12)
    assert seen["deposit_charge"] == pytest.approx(60.0 * 5e-4 * seen["time"], rel=1e-6)
    along, across = left.fields["v_y"], left.fields["v_z"]
    assert np.abs(along).max() > 1e-7
    for low, high in ((along[:-1], along[1:]), (across[:, :-1], across[:, 1:])):
        assert not low[solid].any()
        assert not high[solid].any()
    inflow = -np.diff(along, axis=0) - np.diff(across, axis=1)
    assert np.abs(inflow).max() < 1e-12 * np.abs(along).max()
    assert_same(run_model(model, 4, ranks=2), left)
