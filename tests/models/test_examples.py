"""The examples that ship with minga: they are found, they run, and they give the known numbers."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.model import Model
from minga.models.case import example, examples, load_model, python_case
from minga.models.settings import GridSettings
from model_runs import assert_same, run_model

NAMES = ["forest-fire", "gray-scott", "heat", "laplace", "life"]


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


@pytest.mark.parametrize("name", NAMES)
def test_each_runs_the_same_on_three_ranks(name: str) -> None:
    path = examples()[name]
    defaults = python_case(path).defaults if path.suffix == ".py" else tomllib.loads(path.read_text())
    assert defaults["run"]["steps"] % defaults["output"]["every"] in (0, 3)
    model = load(path, (33, 47))
    assert_same(run_model(model, 6), run_model(load(path, (33, 47)), 6, ranks=3, halo_depth=2))
    assert load(path).grid.ndim == 2


def test_life_ends_as_its_comment_says() -> None:
    assert run_model(load(examples()["life"]), 1103).observables["population"] == 116


def test_gray_scott_has_the_reference_sums() -> None:
    model = load(examples()["gray-scott"], (64, 64), feed=0.035, kill=0.065)
    for steps, u, v in [(1, 4063.12, 16.4), (10, 4055.094670618, 19.771846245), (100, 4017.191710345, 27.084669065)]:
        found = run_model(model, steps).observables
        assert found["u_sum"] == pytest.approx(u, rel=1e-9)
        assert found["v_sum"] == pytest.approx(v, rel=1e-9)


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
