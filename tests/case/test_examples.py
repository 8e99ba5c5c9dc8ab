"""The examples that ship with minga: they are found, they run, and they give the known numbers."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import example, examples
from minga.case.load import load_model, python_case
from minga.case.settings import GridSettings
from minga.engine.model import Model
from model_runs import assert_same, run_model
from thinned import thinned

NAMES = [
    "apd", "billiard-balls", "brians-brain", "brusselator", "bugs", "couple", "critters", "cyclic", "day-and-night",
    "electroconvection", "fingers", "forest-fire", "ginzburg-landau", "gray-scott", "growth", "heat", "highlife",
    "ising", "land", "langtons-loop", "laplace", "life-3d", "life", "membrane", "msm", "phase-field", "pin-ac",
    "pin-inp", "planar", "pnp-1d", "recovery", "rtm", "sandpile", "si-1", "si-qe", "swift-hohenberg", "traffic",
    "voltammetry", "waves-vti", "waves", "wireworld", "zn-cell-cathode-above", "zn-cell-cathode-below", "zn-cell",
]  # fmt: skip
WAVES = {"land", "waves", "waves-vti", "rtm"}  # run in tests/models/waves
CELLS = {
    "couple", "electroconvection", "fingers", "growth", "membrane", "pnp-1d", "voltammetry", "zn-cell",
    "zn-cell-cathode-above", "zn-cell-cathode-below",
}  # fmt: skip
"""Read in tests/models/electrodeposition/test_case.py, where those of one dimension run."""
DEVICES = {"apd", "msm", "pin-ac", "pin-inp", "planar", "recovery", "si-1", "si-qe"}
"""Read in tests/models/photodiode/test_case.py, where one of them runs."""
EQUATIONS = {"brusselator", "ginzburg-landau", "phase-field", "swift-hohenberg"}  # run in tests/models/pde/test_pde.py
SMALL = {"traffic": (330,), "life-3d": (9, 12, 70), "wireworld": (40, 75), "langtons-loop": (34, 66)}


def load(path: Path, shape: tuple[int, ...] | None = None, **parameters: Any) -> Model:
    """The example's model, on a grid of another shape."""
    if path.suffix == ".py":
        return python_case(path).model(GridSettings(shape=shape), parameters)
    table = tomllib.loads(path.read_text())
    table["automaton"].setdefault("parameters", {}).update(parameters)
    grid = GridSettings(**table["grid"] | ({"shape": shape} if shape else {}))
    return load_model(table["model"], table, grid, path.parent)


def test_they_are_found() -> None:
    assert list(examples()) == NAMES
    assert example("forest_fire") == examples()["forest-fire"]
    assert example("nothing") is None


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name",
    thinned(
        [name for name in NAMES if name not in WAVES | CELLS | DEVICES | EQUATIONS],
        *("forest-fire", "gray-scott", "heat", "langtons-loop", "life-3d", "traffic"),
    ),
)
def test_each_runs_the_same_on_three_ranks(name: str) -> None:
    path = examples()[name]
    defaults = python_case(path).defaults if path.suffix == ".py" else tomllib.loads(path.read_text())
    assert defaults["run"]["steps"] % defaults["output"]["every"] in (0, 3)
    shape = SMALL.get(name, (34, 66))
    model = load(path, shape)
    assert_same(run_model(model, 6), run_model(load(path, shape), 6, ranks=3, halo_depth=2))
    assert load(path).grid.ndim == len(shape)


def table(name: str) -> dict[str, Any]:
    return tomllib.loads(examples()[name].read_text())


def test_life_ends_as_its_comment_says() -> None:
    assert run_model(load(examples()["life"]), 1103).observables["population"] == 116


@pytest.mark.slow
def test_replicators_count_in_binary() -> None:
    """After 12 k generations there are as many as row k of Pascal's triangle has odd numbers."""
    model = load(examples()["highlife"], (160, 160))
    for k in range(12):
        assert run_model(model, 12 * k).observables["population"] == 12 * 2 ** k.bit_count()


@pytest.mark.slow
def test_day_and_night_are_alike() -> None:
    path = examples()["day-and-night"]
    day = run_model(load(path, (64, 64)), 0).cell
    rule = table("day-and-night")["automaton"]["rule"]
    left = run_model(mg.automaton(rule, day.shape, init=day), 20).cell
    inverse = run_model(mg.automaton(rule, day.shape, init=1 - day), 20).cell
    assert np.array_equal(inverse, 1 - left)


@pytest.mark.slow
def test_electrons_pass_the_gates() -> None:
    """In 96 steps the clocks send four and three electrons. Two of them meet at the gates: the first one swallows both,
    the second one lets one through."""
    model = load(examples()["wireworld"])
    seen = np.asarray(mg.run(model, steps=288, every=1).cell)[192:288]
    assert [int((seen[:, row, 70] == 1).sum()) for row in (9, 26)] == [5, 6]
    assert (run_model(model, 288).cell == run_model(model, 192).cell).all()


def test_the_bug_goes_five_cells_in_six_steps() -> None:
    rule = table("bugs")["automaton"]["rule"]
    model = mg.automaton(rule, (40, 64), init="patterns/bug.rle")
    start, later = run_model(model, 0).cell, run_model(model, 60).cell
    assert np.array_equal(later, np.roll(start, 50, 1))


def test_cars_do_what_nagel_and_schreckenberg_say() -> None:
    """Every step of the shipped rule against cars that are moved one by one, given which of them dawdle."""
    n = 120
    model = load(examples()["traffic"], (n,), p=0.4)
    history = mg.run(model, steps=60, every=1)
    cars, dawdles = history.car.values, history.dawdles.values
    assert 5 < (cars[0] > 0).sum() < 40
    assert cars.max() == 6
    for now, slow, later in zip(cars[:-1], dawdles[:-1], cars[1:], strict=True):
        expected = np.zeros_like(now)
        places = np.flatnonzero(now)
        for place, ahead in zip(places, np.roll(places, -1), strict=True):
            gap = (ahead - place) % n - 1
            speed = min(int(now[place]) - 1 + 1, 5, gap)
            speed -= speed > 0 and slow[place]
            expected[(place + speed) % n] = speed + 1
        assert np.array_equal(later, expected)
    assert dawdles[1:].mean() == pytest.approx(0.4, abs=0.03)


@pytest.mark.slow
def test_the_sandpile_comes_to_rest() -> None:
    model = load(examples()["sandpile"])
    steps = table("sandpile")["run"]["steps"]
    left = run_model(model, steps)
    assert left.observables["residual"] == 0
    assert (left.cell.sum(), left.cell.max()) == (60_000, 3)
    assert not left.cell[[0, -1]].any()
    for turned in (left.cell.T, left.cell[::-1], left.cell[:, ::-1]):
        assert np.array_equal(turned, left.cell)


def test_the_cyclic_automaton_against_numpy() -> None:
    model = load(examples()["cyclic"], (40, 66))
    expected = run_model(model, 0).cell
    assert len(np.unique(expected)) == 14
    for _ in range(25):
        eater = (expected + 1) % 14
        around = [np.roll(expected, shift, axis) for axis in (0, 1) for shift in (-1, 1)]
        expected = np.where(np.logical_or.reduce([near == eater for near in around]), eater, expected)
    assert np.array_equal(run_model(model, 25).cell, expected)


def test_gray_scott_has_the_reference_sums() -> None:
    model = load(examples()["gray-scott"], (64, 64), feed=0.035, kill=0.065)
    for steps, u, v in [(1, 4063.12, 16.4), (10, 4055.094670618, 19.771846245), (100, 4017.191710345, 27.084669065)]:
        found = run_model(model, steps).observables
        assert found["u_sum"] == pytest.approx(u, rel=1e-9)
        assert found["v_sum"] == pytest.approx(v, rel=1e-9)


@pytest.mark.slow
def test_forest_fires_burn_what_grows() -> None:
    """In the stationary state the mean number of fires is growth times that of empty cells, and trees cover 0.351."""
    model = load(examples()["forest-fire"], (200, 200), growth=0.02, lightning=0.001)
    with mg.Engine({model.grid: mg.Layout.single(model.grid.box, 1)}) as engine:
        engine.write(mg.SEED, model.seed)
        engine.set(model.fields[0], model.initial["cell"])
        engine.run(model.step, 1000)
        counts = []
        for _ in range(300):
            engine.run(model.step, 5)
            engine.run(model.observe)
            counts.append([engine.read(register) for register in model.observables["histogram"]])
    empty, trees, fire = np.mean(counts, axis=0) / 200**2
    assert fire == pytest.approx(0.02 * empty, rel=0.02)
    assert trees == pytest.approx(0.351, abs=0.01)


# Laplace: the exact discrete solution on (N + 1)^2 nodes
def laplace_solution(n: int) -> np.ndarray:
    nodes = np.arange(1, n)
    alpha = math.acosh(2 - math.cos(math.pi / n))
    return np.outer(np.sinh(alpha * nodes) / math.sinh(alpha * n), np.sin(math.pi * nodes / n))


@pytest.mark.slow
def test_laplace_goes_to_the_exact_solution_at_the_known_rate() -> None:
    exact = laplace_solution(64)
    assert exact[31, 31] == pytest.approx(0.19932604163761847, rel=1e-13)
    known = {1: 0.90613999, 10: 0.75495809, 100: 0.46598301, 1000: 0.09803447}
    model = load(examples()["laplace"], (63, 63))
    for steps, error in known.items():
        u = run_model(model, steps).fields["u"]
        assert np.abs(u - exact).max() == pytest.approx(error, abs=1e-8)
    assert u[31, 31] == pytest.approx(0.1044335012367408, rel=1e-12)
    late = run_model(model, 10_513)
    assert np.abs(late.fields["u"] - exact).max() < 1e-6
    assert np.abs(run_model(model, 10_512).fields["u"] - exact).max() >= 1e-6
    assert 0 < late.observables["residual"] < 2e-9


# Heat: the lowest mode decays by a known factor a step
def test_heat_decays_as_its_mode_does() -> None:
    n, r, steps = 24, 0.2, 150
    left = run_model(load(examples()["heat"], (n - 1, 2 * n - 1), r=r), steps)
    y, x = np.sin(math.pi * np.arange(1, n) / n), np.sin(math.pi * np.arange(1, 2 * n) / (2 * n))
    factor = 1 + 2 * r * (math.cos(math.pi / n) - 1) + 2 * r * (math.cos(math.pi / (2 * n)) - 1)
    assert np.allclose(left.fields["u"], factor**steps * np.outer(y, x), rtol=1e-12, atol=0)
    assert left.observables["warmest"] == left.fields["u"].max()
