"""Units of quantities in an inversion: changes of velocities and of anisotropy count alike, whatever the start."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from minga.models.waves import Inversion, Medium, PointSource, Receivers, Ricker, Shot, Sponge, prepare, shot_traces
from minga.models.waves.inversion_units import units_of

SHAPE = (26, 30)
Z, X = np.meshgrid(*map(np.arange, SHAPE), indexing="ij")
BODY = np.exp(-((Z - 13) ** 2 + (X - 15) ** 2) / 20)
START = {"vp": np.full(SHAPE, 2000.0), "epsilon": np.full(SHAPE, 0.02), "delta": np.full(SHAPE, 0.01)}


def waves_of(values: Any, shot: Shot) -> Any:
    medium = Medium(values["vp"], values["epsilon"], values["delta"])
    return prepare(SHAPE, 10.0, dt=1.5e-3, medium=medium, boundary=Sponge(10))


@functools.cache
def shots() -> tuple[Shot, ...]:
    """Shots from one side to the other, through a body in which waves are faster along x alone."""
    spread = Receivers([(10.0 * k, 270.0) for k in range(1, 25)])
    true = START | {"epsilon": START["epsilon"] + 0.08 * BODY}
    found = []
    for depth in (40.0, 130.0, 220.0):
        shot = Shot([PointSource((depth, 20.0), Ricker(18.0))], spread)
        found.append(Shot(shot.sources, spread, shot_traces(waves_of(true, shot), shot, 160)))
    return tuple(found)


def test_units_of_anisotropy_do_not_depend_on_the_start() -> None:
    names = ("vp", "epsilon", "delta", "theta")
    given: dict[str, Any] = {"shots": [], "waves": waves_of, "wrt": names}
    search = Inversion(**(given | {"shots": [Shot([], Receivers([(0.0, 0.0)]), np.zeros((2, 1)))]}))
    for size in (0.0, 1e-9, 0.3):
        start = {name: np.full(SHAPE, size) for name in names} | {"vp": START["vp"]}
        assert units_of(search, start) == {"vp": 2000.0, "epsilon": 1.0, "delta": 1.0, "theta": 1.0}
    chosen = Inversion(search.shots, waves_of, names, units={"epsilon": 0.5, "vp": 100})
    assert units_of(chosen, START) == {"vp": 100.0, "epsilon": 0.5, "delta": 1.0}


@pytest.mark.slow
def test_anisotropy_is_found_beside_a_velocity() -> None:
    """With the largest epsilon as its unit, which is small here, the velocity takes all of the change."""
    small = {"epsilon": 0.02, "delta": 0.01}
    shares = []
    for units in ({}, small):
        found = Inversion(shots(), waves_of, ("vp", "epsilon", "delta"), units=units).run(START, 8)
        change = {name: found.values[name] - START[name] for name in START}
        middle = BODY > 0.5
        shares.append(
            (change["epsilon"][middle].mean(), change["vp"][middle].mean(), found.misfits[-1] / found.misfits[0])
        )
    (epsilon, velocity, misfit), (before, faster, rest) = shares
    assert epsilon > 500 * before
    assert velocity < 0.7 * faster  # it is 0 where the waves were computed
    assert misfit < 0.3 * rest
