"""Matched layers with attenuation: reflections, decay, gradients, and bits on ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.models.waves import (
    Attenuation,
    Cpml,
    Faces,
    Free,
    Medium,
    PlaneSource,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    linearised_shots,
    prepare,
    shot_gradient,
    shot_traces,
)

SHAPE = (14, 17)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")


def returned(cells: int, q: float | None, **medium: Any) -> float:
    """Return the largest reflection of the layer at the end of an axis, relative to the largest wave, dB."""

    def traces(length: int) -> Any:
        given = Medium(2000.0, **{name: np.full(length, value) for name, value in medium.items()})
        if medium:
            given.rho[:20] = 1000.0 + np.arange(20)  # above all of it, so that the density varies
        waves = prepare(
            (length,), 10.0, dt=2e-3, medium=given, boundary=Cpml(cells), dtype="f8",
            attenuation=None if q is None else Attenuation(q),
        )  # fmt: skip
        shot = Shot([PlaneSource("z", 600.0, Ricker(15.0))], Receivers([(800.0,)]))
        return shot_traces(waves, shot, 400)[:, 0]

    short, long = traces(100), traces(700)
    return 20 * math.log10(float(np.abs(short - long).max() / np.abs(long).max()))


@pytest.mark.parametrize("medium", [{}, pytest.param({"rho": 1020.0}, marks=pytest.mark.slow)])
def test_layers_return_as_little_as_without_attenuation(medium: Any) -> None:
    plain, attenuated = (returned(12, q, **medium) for q in (None, 30.0))
    assert plain < -70
    assert attenuated < plain + 6


def waves(boundary: Any, **options: Any) -> Any:
    given: dict[str, Any] = {"medium": Medium(2000 + 9 * Z, rho=1000 + 20 * X), "attenuation": Attenuation(20.0 + Z)}
    return prepare(SHAPE, 10.0, dt=6e-4, order=4, dtype="f8", boundary=boundary, **(given | options))


SHOT = Shot(
    [PointSource((30.0, 50.0), Ricker(25.0))], Receivers([(22.0, 71.0), (80.0, 120.0)], every=3), np.zeros((14, 2))
)
FACES = Faces(Cpml(4), z=(Free(), Cpml(4)))
VERTICAL = Medium(2000 + 9 * Z, 0.2 + 0.002 * Z, 0.1 + 0.002 * X)


@pytest.mark.slow
@pytest.mark.parametrize("medium", [Medium(2000 + 9 * Z, rho=1000 + 20 * X), VERTICAL], ids=["density", "vertical"])
def test_gradients_and_born_modelling(medium: Medium) -> None:
    jacobian = linearised_shots([waves(FACES, medium=medium)], [SHOT], ("vp", "inverse_q"))
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(jacobian.shape[1]), rng.standard_normal(jacobian.shape[0])
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    assert y @ there == pytest.approx(x @ back, rel=1e-11)


@pytest.mark.slow
def test_the_gradient_is_that_of_differences() -> None:
    change = np.random.default_rng(3).standard_normal(SHAPE)
    change[-1] = 0.0  # the damping of layers depends on the largest velocity, and counts as a constant

    def misfit(size: float) -> float:
        medium = Medium(2000 + 9 * Z + size * change, rho=1000 + 20 * X)
        return 0.5 * float(np.square(shot_traces(waves(FACES, medium=medium), SHOT, 14)).sum())

    slopes = shot_gradient(waves(FACES), SHOT)[1]
    assert slopes is not None
    numbers = (misfit(1e-3) - misfit(-1e-3)) / 2e-3
    assert (slopes["vp"] * change).sum() == pytest.approx(numbers, rel=1e-6)


def test_bits_do_not_depend_on_ranks() -> None:
    alone = shot_traces(waves(FACES), SHOT, 14)

    def body(comm: Comm) -> Any:
        return shot_traces(waves(FACES), SHOT, 14, comm=comm)

    assert np.abs(alone).max() > 0
    assert all(np.array_equal(each, alone) for each in mg.run_virtual(3, body))


@pytest.mark.slow
@pytest.mark.parametrize("medium", [Medium(2000 + 9 * Z, rho=1000 + 20 * X), VERTICAL], ids=["density", "vertical"])
def test_waves_decay(medium: Medium) -> None:
    """Near the longest stable step, and over a hundred crossings."""
    limit = waves(FACES, medium=medium).extremes.dt_limit
    near = prepare(
        SHAPE, 10.0, dt=0.85 * limit, medium=medium, order=4, boundary=FACES, attenuation=Attenuation(40.0), dtype="f8"
    )
    traces = np.abs(shot_traces(near, Shot(SHOT.sources, Receivers([(80.0, 120.0)])), 6000))
    assert traces[-1000:].max() < 1e-5 * traces.max()
