"""Electroconvection in front of a membrane: depleted layers with 1e-15 of the bath do not stop time steps."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Program
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Held, Problem, Species, Steps
from minga.models.electrodeposition.systems import positive
from minga.space.boundary import fixed
from minga.space.cuts import slabs
from minga.space.field import Field, Register
from minga.space.grid import Grid

from ..model_runs import run_model
from .electroconvection_runs import problem, widths


def swept(given: np.ndarray, right: np.ndarray, slack: float) -> np.ndarray:
    """The result of `positive` for a solution, with rows whose diagonals are 0.25 * 3 + 4."""
    grid = Grid((4, 3), axes=("y", "x"), spacing=0.5)
    lengths = Lengths(grid)
    zero = fixed(0.0)
    kind = Field("kind", grid, "u1", boundary=fixed(1))
    x, b, result = (Field(name, grid, boundary=zero) for name in ("x", "b", "result"))
    up, down = ([Field(f"{word} {a}", grid, centre=a) for a in grid.axes] for word in ("up", "down"))
    rate, program = Register("rate", initial=3.0), Program("close")
    program.apply(positive(lengths, slack), x, b, kind, up, down, lengths.fields, result, rate=rate)
    with mg.Engine(slabs(grid.box, 1), grid=grid, threads=1) as engine:
        engine.set(x.now, given)
        engine.set(b.now, right)
        for item in (*up, *down):
            engine.set(item.now, 1.0)
        engine.write(rate, 3.0)
        engine.run(program)
        return engine.gather(result.now)


DIAGONAL = 0.25 * 3.0 + 4.0


def test_a_residual_leaves_no_negative_concentration() -> None:
    """A cell below 0 takes what its row says of its neighbours, none of them below 0; others keep their bits."""
    given = np.full((4, 3), 0.1)
    given[1, 1], given[1, 2] = -1e-12, -2e-12
    found = swept(given, np.full((4, 3), 0.01), 0.0)
    assert found[1, 1] == pytest.approx(0.01 + 3 * 0.1 / DIAGONAL, rel=1e-14)
    assert found[1, 2] == pytest.approx(0.01 + 2 * 0.1 / DIAGONAL, rel=1e-14)
    kept = given > 0
    assert (found[kept] == given[kept]).all()


def test_what_a_formula_leaves_below_0_is_clipped_if_it_is_small() -> None:
    """Right-hand sides of BDF2 may be negative: -1e-7 counts as 0 with a slack of 1e-6, -1e-5 does not."""
    given, right = np.zeros((4, 3)), np.zeros((4, 3))
    given[0, 0] = right[0, 0] = -1e-7
    given[2, 1] = right[2, 1] = -1e-5
    found = swept(given, right, 1e-6)
    assert found[0, 0] == 0.0
    assert found[2, 1] == -1e-5


def cell(end: float, **more: Any) -> Problem:
    """A membrane cell of 16 x 6 cells under 30 RT/F, whose disturbance is a wave along x."""
    grid = Grid(
        (16, 6), axes=("y", "x"), spacing=[widths(16, 1.2), np.full(6, 0.25)], periodic=(False, True), units="m"
    )
    wave = np.broadcast_to(1.0 + 1e-6 * np.cos(2.0 * np.pi * grid.centres("x") / 1.5), (16, 6)).copy()
    return problem(grid, 0.02, 30.0, Steps(end, end, 1e-5, **more), flow=True, initial={"cation": wave, "anion": wave})


@pytest.mark.slow
def test_errors_of_the_flow_shorten_steps() -> None:
    """The disturbance is a millionth of the bath, so that only the tolerance of the flow sees it."""
    loose, strict = (
        run_model(electrodeposition(cell(0.1, flow_tolerance=tolerance)), 1).observables for tolerance in (None, 1e-2)
    )
    assert 0.0 < strict["largest_velocity"] < 1e-2
    assert strict["dt"] < 0.75 * loose["dt"]
    assert strict["steps_taken"] > loose["steps_taken"]


def test_rejections_are_counted_by_their_reason() -> None:
    """In one dimension, from a step that six passes cannot take."""
    grid = Grid((24,), axes=("y",), spacing=[widths(24, 1.15)], units="m")
    model = electrodeposition(problem(grid, 0.02, 30.0, Steps(0.02, 0.02, 0.02)), passes=6)
    seen = run_model(model, 1).observables
    counts = {name: value for name, value in seen.items() if name.startswith("rejected_")}
    assert set(counts) == {f"rejected_{word}" for word in ("unsolved", "unconverged", "negative", "error")}
    assert sum(counts.values()) == seen["steps_rejected"] > 0
    assert counts["rejected_unconverged"] > 0


@pytest.mark.slow
def test_a_blocked_ion_keeps_its_amount() -> None:
    """Anions pass neither end; at 120 RT/F vortices empty the layer in front of the membrane."""
    grid = Grid(
        (32, 12), axes=("y", "x"), spacing=[widths(32, 1.1), np.full(12, 1.0 / 12)], periodic=(False, True), units="m"
    )
    wave = np.broadcast_to(1.0 + 0.1 * np.cos(2.0 * np.pi * grid.centres("x")), (32, 12)).copy()
    first = {"cation": wave, "anion": wave}
    open_bath = problem(grid, 0.01, 120.0, Steps(0.008, 0.002, 1e-5), kappa=1.0, flow=True, initial=first)
    closed = dataclasses.replace(open_bath, anode=Electrode({"cation": Held(1.0)}))
    seen = run_model(electrodeposition(closed), 4).observables
    assert seen["total_anion"] == pytest.approx(1.0, rel=1e-13)
    assert 0.0 <= seen["least_concentration"] < 1e-15
    assert seen["rejected_negative"] == 0
    assert seen["steps_rejected"] <= 0.05 * seen["steps_taken"]


@pytest.mark.slow
def test_hardly_a_step_is_rejected() -> None:
    """48 x 24 cells, a Debye length of 0.01, 50 RT/F: a sixth of the steps were refused for negative concentrations."""
    cells = 48, 24
    widths = 1.06 ** np.arange(cells[0])
    width = 2.0 * np.pi / 5.0 / cells[1]
    grid = Grid(
        cells, axes=("y", "x"), spacing=[widths / widths.sum(), np.full(cells[1], width)], periodic=(False, True)
    )
    start = 1.0 + 1e-2 * np.random.default_rng(0).uniform(-1.0, 1.0, cells)
    problem = Problem(
        grid, (Species("cation", 1, 1.0, 1.0), Species("anion", -1, 1.0, 1.0)), Steps(0.04, 0.04, 1e-5),
        Constants(1.0, 1.0, 2e-4, 2e-7, 2e-4), cathode=Electrode({"cation": Held(2.0)}),
        anode=Electrode({"cation": Held(1.0), "anion": Held(1.0)}), voltage=50.0, flow=True,
        initial={"cation": start, "anion": start},
    )  # fmt: skip
    seen = run_model(electrodeposition(problem), 1).observables
    assert seen["steps_rejected"] <= 0.05 * seen["steps_taken"]
    assert 0.0 < seen["least_concentration"] < 1e-12
