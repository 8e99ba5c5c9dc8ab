"""The coupled point relaxation: where it converges, to what, and in which orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm, run_virtual
from minga.errors import CaseError
from minga.models.electrodeposition.model import electrodeposition
from minga.models.electrodeposition.problem import (
    CATHODE,
    ButlerVolmer,
    Constants,
    Electrode,
    Flux,
    Held,
    Problem,
    Species,
    Steps,
)
from minga.models.electrodeposition.relaxation.options import RelaxationOptions
from minga.models.electrodeposition.relaxation.scheme import relaxation, relaxation_model
from minga.models.electrodeposition.soft import soft_cell
from minga.space.cuts import slabs

SALT = (Species("p", 1, 1.0, 1.0), Species("m", -1, 1.0, 1.0))


def scaled(grid: mg.Grid, debye: float, dt: float, **options: Any) -> Problem:
    """Both walls hold the cation; lengths in those of the cell, potentials in RT/F."""
    held = Electrode({"p": Held(1.0)})
    given: dict[str, Any] = {"voltage": 2.0, "cathode": held, "anode": held, **options}
    return Problem(
        grid=grid,
        species=SALT,
        steps=Steps(end=dt, every=dt, first=dt, adaptive=False, order=1),
        constants=Constants(faraday=1.0, thermal=1.0, permittivity=2.0 * debye**2),
        **given,
    )


def relaxed(
    problem: Problem, settings: RelaxationOptions, ranks: int = 1, steps: int = 1, *, look: bool = False
) -> tuple[dict[str, Any], Any]:
    """Counts after some steps (with `look`, all observables), and all fields."""
    model = relaxation(problem, settings)

    def body(comm: Comm) -> tuple[dict[str, Any], Any]:
        layouts = {grid: slabs(grid.box, ranks, 0, granule=1) for grid in model.grids}
        with mg.Engine(layouts, comm=comm, threads=1) as engine:
            for slot, value in model.start_values():
                engine.set(slot, value)
            for _ in range(steps):
                outcome = engine.run(model.step)
                assert outcome.reason == "converged", outcome
            if look:
                assert model.observe is not None
                engine.run(model.observe)
            names = list(model.observables) if look else ["time", "sweeps", "residual"]
            seen = {name: engine.read(model.observables[name]) for name in names}  # type: ignore[arg-type]
            return seen, {f.name: engine.gather(f) for f in model.fields}

    return run_virtual(ranks, body)[0]


def line(cells: int) -> mg.Grid:
    return mg.Grid((cells,), axes=("y",), spacing=1.0 / cells)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.25, 25.0])
def test_it_converges_however_wide_cells_are(ratio: float) -> None:
    """Cells of 0.25 and 25 Debye lengths, D dt/h2 of 1.6 and 16: as many sweeps, about, where relaxation of potential
    and ions in turn diverges from 2 on."""
    cells = 40
    for number, expected in ((1.6, 1000), (16.0, 2000)):
        problem = scaled(line(cells), 1.0 / (cells * ratio), number / cells**2)
        seen, _ = relaxed(problem, RelaxationOptions("lexicographic", criterion="update", tolerance=1e-8))
        assert 0.5 * expected < seen["sweeps"] < 1.6 * expected


def in_turn(cells: int, ratio: float, number: float, sweeps: int) -> float:
    """The largest change of the last sweep over potential and ions in turn, by NumPy: what the paper may have done."""
    h = 1.0 / cells
    dt, eps = number * h * h, 2.0 * (h / ratio) ** 2
    c, phi = np.ones((2, cells)), 2.0 * (np.arange(cells) + 0.5) * h
    change = 0.0
    for _ in range(sweeps):
        before = np.concatenate((c[0], c[1], phi))
        for j in range(cells):
            near = [(phi[j - 1], c[:, j - 1], h) if j else (0.0, np.ones(2), h / 2)]
            near.append((phi[j + 1], c[:, j + 1], h) if j + 1 < cells else (2.0, np.ones(2), h / 2))
            weights = sum(1.0 / d for _, _, d in near)
            phi[j] = (sum(p / d for p, _, d in near) + h * (c[0, j] - c[1, j]) / eps) / weights
            for i, charge in enumerate((1.0, -1.0)):
                leaving, entering = 1.0 / dt, 1.0 / dt
                for p, there, d in near:
                    if d < h and i:
                        continue
                    w = np.clip(charge * (p - phi[j]), -300, 300) or 1e-12
                    leaving += w / np.expm1(w) / (h * d)
                    entering += w / -np.expm1(-w) / (h * d) * there[i]
                c[i, j] = entering / leaving
        change = float(np.abs(np.concatenate((c[0], c[1], phi)) - before).max())
    return change


def test_in_turn_it_would_diverge() -> None:
    """The comparison that the coupling is for."""
    with np.errstate(all="ignore"):
        assert in_turn(12, 0.5, 1.6, 60) < 1e-2
        assert not in_turn(12, 4.0, 1.6, 60) < 1.0


@pytest.mark.slow
def test_orders_agree() -> None:
    """Three orders, one block and three: one discrete solution."""
    problem = scaled(line(16), 0.1, 0.01, voltage=4.0)
    cases = (("red-black", 1), ("lexicographic", 1), ("lexicographic", 3), ("boundary-first", 3))
    found = [relaxed(problem, RelaxationOptions(order, tolerance=1e-11), ranks)[1] for order, ranks in cases]  # type: ignore[arg-type]
    for fields in found:
        for name in ("p", "m", "potential"):
            np.testing.assert_allclose(fields[name], found[0][name], atol=1e-9)


@pytest.mark.slow
def test_the_steady_current() -> None:
    """J/J_lim at V = 4 and a Debye length of 0.1, within the error of the grid; blocked ions stay."""
    problem = scaled(line(16), 0.1, 0.2, voltage=4.0)
    seen, _ = relaxed(problem, RelaxationOptions("red-black", tolerance=1e-9), steps=8, look=True)
    assert seen["J_over_Jlim"] == pytest.approx(0.9235759, rel=2e-2)
    assert seen["current_cathode"] == pytest.approx(seen["current"], rel=1e-4)
    assert abs(seen["total_m"] - 1.0) < 1e-7


def plate(**options: Any) -> Problem:
    """A finger, another diffusivity, uneven cells."""
    grid = mg.Grid((10, 6), axes=("y", "z"), spacing=(np.linspace(0.05, 0.15, 10), 0.05))
    kinds = np.zeros(grid.shape, np.uint8)
    kinds[:3, 2:4] = CATHODE
    return scaled(grid, 0.1, 0.01, kinds=kinds, **options)


CONDITIONS: dict[str, dict[str, Any]] = {
    "held": {},
    "kinetics": {
        "cathode": Electrode({"p": ButlerVolmer(2.0, 1.0)}, stern=0.02),
        "anode": Electrode({"p": Flux(None)}),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CONDITIONS))
def test_the_same_discrete_solution_as_the_semi_implicit_scheme(name: str) -> None:
    """One implicit Euler step, to 1e-8, whatever passes at the electrodes."""
    problem = plate(**CONDITIONS[name])
    _, fields = relaxed(problem, RelaxationOptions("red-black", tolerance=1e-12, limit=200_000))
    model = electrodeposition(problem, "semi-implicit", tolerance=1e-12, agreement=1e-11, passes=200)
    with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
        for slot, value in model.start_values():
            engine.set(slot, value)
        for register, number in model.registers.items():
            engine.write(register, number)
        assert engine.run(model.step).ok
        fluid = problem.kinds == 0
        for item in ("p", "m", "potential"):
            np.testing.assert_allclose(engine.gather(model.field(item))[fluid], fields[item][fluid], atol=1e-8)


@pytest.mark.slow
def test_red_black_has_the_same_bits_on_all_layouts() -> None:
    """Ions, field, flow and the number of sweeps."""
    problem = soft_cell({"y": 14, "z": 6}, dt=0.01, steps=1, gravity=1e7)
    settings = RelaxationOptions("red-black", tolerance=1e-4)
    alone, one = relaxed(problem, settings)
    apart, three = relaxed(problem, settings, 3)
    assert alone == apart
    for name, values in one.items():
        np.testing.assert_array_equal(values, three[name], err_msg=name)
    assert np.abs(one["v_y"]).max() > 0.1


def test_what_it_does_not_solve_is_refused() -> None:
    with pytest.raises(CaseError, match="given current"):
        relaxation(scaled(line(8), 0.1, 0.1, voltage=None, current=1.0))
    with pytest.raises(CaseError, match="no option 'omega'"):
        relaxation_model(scaled(line(8), 0.1, 0.1), omega=1.0)
    with pytest.raises(CaseError, match="depend on how the grid is cut"):
        relaxation_model(scaled(line(8), 0.1, 0.1), order="boundary-first", across="exact")


@pytest.mark.slow
def test_what_does_not_settle_is_named_and_not_committed() -> None:
    model = relaxation(scaled(line(16), 0.1, 0.1), RelaxationOptions("lexicographic", limit=3))
    with mg.Engine(model.layouts("slabs", 1), threads=1) as engine:
        for slot, value in model.start_values():
            engine.set(slot, value)
        assert engine.run(model.step).reason == "limit"
        assert engine.read(model.observables["time"]) == 0.0  # type: ignore[arg-type]
        assert model.explain is not None
        error = model.explain(engine)
    assert error is not None
    assert "did not converge at t = 0 s: after 3 sweeps" in str(error)
    assert "cell (" in str(error)
    assert "limit" in str(error)


@pytest.mark.slow
def test_three_fingers_in_three_dimensions() -> None:
    """Ions stay out of the metal, the flow keeps out of it and has no divergence; the same bits on three blocks."""
    problem = soft_cell({"y": 12, "z": 6, "x": 12}, dt=0.002, steps=1, voltage=5.0, gravity=1e6, fingers=True)
    settings = RelaxationOptions("red-black", criterion="update", tolerance=1e-4)
    seen, one = relaxed(problem, settings, look=True)
    again, three = relaxed(problem, settings, 3, look=True)
    assert seen == again
    for name, values in one.items():
        np.testing.assert_array_equal(values, three[name], err_msg=name)
    assert problem.kinds is not None
    metal = problem.kinds == CATHODE
    assert metal.sum() > 20
    assert not one["C"][metal].any()
    assert not one["potential"][metal].any()
    assert seen["least_concentration"] > 0.0
    speeds, divergence = {"v_y": 0, "v_z": 1, "v_x": 2}, 0.0
    for name, axis in speeds.items():
        v = np.moveaxis(one[name], axis, 0)
        solid = np.moveaxis(metal, axis, 0)
        assert not v[1:-1][solid[1:] | solid[:-1]].any()
        divergence = divergence + np.diff(one[name], axis=axis) / problem.grid.widths(axis)[0]
    fastest = max(np.abs(one[name]).max() for name in speeds)
    assert fastest > 0.0
    assert np.abs(divergence).max() < 1e-11 * fastest / problem.grid.widths(1)[0]
    tip = 9 * 12 // 20
    assert one["C"][tip - 1][~metal[tip - 1]].min() < one["C"][-1].min()
