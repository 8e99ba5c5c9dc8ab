"""Cells against manufactured and exact solutions, and what a thousand steps conserve."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from minga.engine.engine import Engine
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    ButlerVolmer,
    Constants,
    Electrode,
    Flux,
    Held,
    Problem,
    Species,
    Steps,
)
from minga.running.loop import drive
from minga.space.grid import Grid

from .evidence import Evidence
from .flows import extrapolated
from .manufactured import errors_of_flow, errors_of_ions

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("ndim", "cells"),
    [
        pytest.param(2, (8, 16), marks=SLOW),
        pytest.param(2, (16, 32, 64), marks=SLOW),
        pytest.param(3, (8, 16, 32), marks=SLOW),
    ],
)
def test_order_of_ions_and_their_field(ndim: int, cells: tuple[int, ...], evidence: Evidence) -> None:
    """Two ions in a flow, between electrodes; time steps are halved with the cells."""
    errors = [errors_of_ions(ndim, n, n * (ndim - 1) // 2) for n in cells]
    for name in errors[0]:
        orders = [np.log2(a[name] / b[name]) for a, b in itertools.pairwise(errors)]
        what = f"{name}, {ndim} dimensions, {cells[0]} to {cells[-1]} cells, manufactured"
        evidence.between("orders", what, orders[-1], 1.9, 2.1)


@pytest.mark.parametrize(
    ("ndim", "cells"), [pytest.param(2, (16, 32, 64), marks=SLOW), pytest.param(3, (8, 16, 32), marks=SLOW)]
)
def test_order_of_flow(ndim: int, cells: tuple[int, ...], evidence: Evidence) -> None:
    """In a closed box, driven by a force; time steps are halved with the cells."""
    errors = [errors_of_flow(ndim, n, 2 * n) for n in cells]
    for number, name in enumerate(("velocity", "pressure")):
        order = np.log2(errors[-2][number] / errors[-1][number])
        what = f"{name}, {ndim} dimensions, {cells[0]} to {cells[-1]} cells, manufactured"
        evidence.between("orders", what, order, 1.8, 2.2)


def spread_in_a_slot(cells: int, strength: float) -> tuple[float, float, np.ndarray, np.ndarray, float]:
    """Flux over that without flow, the same expected, and how concentrations differ across the middle, with its scale.

    A salt without charge in a flat cell of 6 gaps, heavier at the anode's end; lengths in gaps, D = 1.
    """
    length, viscosity, width = 6.0, 100.0, 2.0 / cells
    grid = Grid((3 * cells, cells), axes=("y", "z"), spacing=(width, 1.0 / cells))
    salt = Species("salt", 0, 1.0, 1.0, 0.1)
    weight = strength * viscosity * length / 0.1
    problem = Problem(
        grid, (salt,), Steps(2 * length**2, 2 * length**2, 0.01), Constants(1.0, 1.0, 1.0, 1.0, viscosity),
        cathode=Electrode({"salt": Held(0.5)}), anode=Electrode({"salt": Held(1.5)}), voltage=0.0,
        gravity=(0.0, -weight), flow=True,
    )  # fmt: skip
    model = electrodeposition(problem)
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        drive(model, engine, 1)
        c, v = engine.gather(model.field("salt").now), engine.gather(model.field("v_y").now)
    middle = grid.shape[0] // 2
    slope = float((c[middle + 1] - c[middle - 2]).mean() / (3.0 * width))
    flux = float(np.mean((c[middle] - c[middle - 1]) / width - v[middle] * 0.5 * (c[middle] + c[middle - 1])))
    g = -0.1 * weight * slope / viscosity
    differing = 0.5 * (c[middle] + c[middle - 1])
    return flux / slope, 1.0 + g**2 / 362880.0, grid.centres("z") - 0.5, differing - differing.mean(), slope * g


@SLOW
@pytest.mark.parametrize("strength", [400.0, 1000.0])
def test_flow_in_a_slot_spreads_salt(strength: float, evidence: Evidence) -> None:
    """D_eff / D = 1 + (G h^4 / D)^2 / 362880, and c' = C_y G z (15 h^4 - 40 h^2 z^2 + 48 z^4) / (5760 D)."""
    coarse, fine = spread_in_a_slot(8, strength), spread_in_a_slot(16, strength)
    found = fine[1] * extrapolated(coarse[0] / coarse[1], fine[0] / fine[1])
    evidence.relative("slot", f"D_eff / D, G h^4 / D about {strength:g}, from 8 and 16 cells", found, fine[1], 0.02)
    z, differing, scale = fine[2:]
    exact = z * (15.0 - 40.0 * z**2 + 48.0 * z**4) / 5760.0
    what = f"c' over C_y G, x 1000, at {strength:g}"
    evidence.curve("slot", what, z, 1e3 * differing / scale, z, 1e3 * exact)
    worst = np.abs(differing / scale - exact).max() / np.abs(exact).max()
    evidence.at_most("slot", f"largest error of c' across the gap, of its largest value, at {strength:g}", worst, 0.05)


def wet_cell(steps: int, flow: bool) -> Problem:
    """A small scaled cell: a salt of which the cation passes, and a species without charge that one electrode gives."""
    grid = Grid((10, 8), axes=("y", "z"), spacing=(0.1, 0.05)) if flow else Grid((24,), axes=("y",), spacing=1.0 / 24)
    species = (
        Species("cation", 1, 1.0, 1.0, 0.02), Species("anion", -1, 0.6, 1.0, 0.02), Species("gas", 0, 1.5, 0.5, -0.01),
    )  # fmt: skip
    kinetics = ButlerVolmer(2.0, 1.0)
    return Problem(
        grid, species, Steps(1e-3 * steps, 1e-3 * steps, 1e-3, adaptive=False), Constants(1.0, 1.0, 0.02, 1.0, 1.0),
        cathode=Electrode({"cation": kinetics, "gas": Flux(0.1)}), anode=Electrode({"cation": kinetics}), voltage=3.0,
        gravity=(0.0, -2e4) if flow else (), flow=flow,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("flow", [False, pytest.param(True, marks=SLOW)])
def test_a_thousand_steps_conserve(flow: bool, evidence: Evidence) -> None:
    problem = wet_cell(1000, flow)
    model = electrodeposition(problem)
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        result = drive(model, engine, 1)
        moved = [np.abs(engine.gather(model.field(f"v_{a}").now)).max() for a in problem.grid.axes if flow]
    seen = result.observables
    place = "2-D with flow" if flow else "1-D"
    assert seen["steps_taken"] == 1000
    assert not flow or min(moved) > 0.05
    volume = float(np.prod([np.sum(problem.grid.widths(a)) for a in range(problem.grid.ndim)]))
    section = volume / float(np.sum(problem.grid.widths("y")))
    evidence.at_most(
        "conserved", f"an ion that passes nowhere, {place}", abs(seen["total_anion"] / volume - 1.0), 1e-12
    )
    given = 0.5 * volume + 0.1 * section * problem.steps.end
    evidence.at_most(
        "conserved", f"a species that one electrode gives, {place}", abs(seen["total_gas"] / given - 1.0), 1e-12
    )
    for where in ("cathode", "middle"):
        off = abs(seen[f"current_{where}"] / seen["current"] - 1.0)
        evidence.at_most("conserved", f"current at the {where} against that at the anode, {place}", off, 1e-9)
    assert seen["least_concentration"] > 0.0


@pytest.mark.slow
def test_the_current_is_the_same_everywhere_while_the_flow_still_changes() -> None:
    """What the fluid carries is what the step took it for: with velocities continued from the steps before."""
    problem = dataclasses.replace(wet_cell(10, True), gravity=(0.0, -2e6))
    model = electrodeposition(problem, agreement=1e-10)
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        seen = drive(model, engine, 1).observables
        now, before = (engine.gather(getattr(model.field("v_y"), slot)) for slot in ("now", "previous"))
    assert np.abs(now - before).max() > 0.05 * np.abs(now).max() > 0.0
    for where in ("cathode", "middle"):
        assert seen[f"current_{where}"] == pytest.approx(seen["current"], rel=1e-9)


@pytest.mark.slow
def test_what_enters_stays() -> None:
    """Euler's steps: the change of the cations is what the electrodes pass, without displacement."""
    problem = dataclasses.replace(wet_cell(4, False), steps=Steps(4e-3, 1e-3, 1e-3, adaptive=False, order=1))
    still = dataclasses.replace(
        problem, cathode=Electrode({"cation": Flux(-0.3)}), anode=Electrode({"cation": Flux(0.1)})
    )
    model = electrodeposition(still)
    with Engine(model.layouts("cartesian", 1), threads=1) as engine:
        seen = drive(model, engine, 4).observables
    assert seen["total_cation"] == pytest.approx(1.0 - 0.2 * 4e-3, rel=1e-12)
