"""Electroconvection in front of a membrane: depleted layers with 1e-15 of the bath do not stop time steps."""

from __future__ import annotations

import numpy as np
import pytest

import minga as mg
from minga.engine.program import Program
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import Constants, Electrode, Held, Problem, Species, Steps
from minga.models.electrodeposition.transport import positive
from minga.space.boundary import fixed
from minga.space.cuts import slabs
from minga.space.field import Field, Register
from minga.space.grid import Grid

from ..model_runs import run_model


def test_a_residual_leaves_no_negative_concentration() -> None:
    """A cell below 0 takes what its row says of its neighbours, none of them below 0; others keep their bits."""
    grid = Grid((4, 3), axes=("y", "x"), spacing=0.5)
    lengths = Lengths(grid)
    zero = fixed(0.0)
    kind = Field("kind", grid, "u1", boundary=fixed(1))
    x, b, result = (Field(name, grid, boundary=zero) for name in ("x", "b", "result"))
    up, down = ([Field(f"{word} {a}", grid, centre=a) for a in grid.axes] for word in ("up", "down"))
    rate, program = Register("rate", initial=3.0), Program("close")
    program.apply(positive(lengths, 0.0), x, b, kind, up, down, lengths.fields, result, rate=rate)
    given = np.full(grid.shape, 0.1)
    given[1, 1], given[1, 2] = -1e-12, -2e-12
    with mg.Engine(slabs(grid.box, 1), grid=grid, threads=1) as engine:
        engine.set(x.now, given)
        engine.set(b.now, np.full(grid.shape, 0.01))
        for item in (*up, *down):
            engine.set(item.now, 1.0)
        engine.write(rate, 3.0)
        engine.run(program)
        found = engine.gather(result.now)
    diagonal = 0.25 * 3.0 + 4.0
    assert found[1, 1] == pytest.approx(0.01 + 3 * 0.1 / diagonal, rel=1e-14)
    assert found[1, 2] == pytest.approx(0.01 + 2 * 0.1 / diagonal, rel=1e-14)
    kept = given > 0
    assert (found[kept] == given[kept]).all()


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
