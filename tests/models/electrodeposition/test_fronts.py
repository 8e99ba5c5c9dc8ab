"""Places of concentration fronts: where a profile crosses 90 and 110 % of the bulk, and solids do not count."""

from __future__ import annotations

import numpy as np

from minga.engine.model import Model
from minga.engine.program import Program
from minga.models.electrodeposition.fronts import record_fronts
from minga.space.field import Field, Register
from minga.space.grid import Grid
from model_runs import run_model


def observed(profile: np.ndarray, kinds: np.ndarray) -> dict[str, float]:
    grid = Grid(profile.shape, axes=["y", "z"], spacing=[np.linspace(0.1, 0.3, profile.shape[0]), 0.1])
    kind, c, clock = Field("kind", grid, "u1"), Field("c", grid), Register("clock")
    step, observe = Program("step"), Program("observe")
    step.let(clock, clock + 1.0)
    fronts = record_fronts(observe, grid, kind, c, 2.0)
    model = Model("fronts", grid, (kind, c), step, {kind: kinds, c: profile}, observe=observe, observables=fronts)
    return run_model(model, 1, ranks=2).observables


def test_fronts() -> None:
    shape = (40, 3)
    y = Grid((40,), axes=["y"], spacing=[np.linspace(0.1, 0.3, 40)]).centres("y")
    profile = np.broadcast_to((2.0 * (0.5 + y / 8.0))[:, None], shape).copy()  # 90 % at 3.2, 110 % at 4.8
    kinds = np.zeros(shape, np.uint8)
    found = observed(profile, kinds)
    assert found["depleted_to"] == y[y < 3.2].max()
    assert found["enriched_to"] == y[y > 4.8].min()
    profile[y > 7.0, 0] = 0.0  # as in metal
    kinds[y > 7.0, 0] = 2
    assert observed(profile, kinds) == found
    even = observed(np.full(shape, 2.0), np.zeros(shape, np.uint8))
    assert (even["depleted_to"], even["enriched_to"]) == (0.0, 8.0)
