"""Sponges in which the kernel of a step damps: the bits, and the gradient, are those of a damping after the step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
    Sponge,
    prepare,
    shot_gradient,
    shot_traces,
)
from minga.models.waves import stepping as stepping_module
from minga.models.waves.sponge import damps_in_kernel

SHAPE = (14, 12, 16)
VP = 2000.0 + 10.0 * np.arange(SHAPE[0])[:, None, None] + np.zeros(SHAPE)
EPSILON = 0.1 + np.zeros(SHAPE)
SURFACE = Faces(Sponge(5, 0.5), z=(Free(), Sponge(5, 0.5)))
MIDDLE = (60.0, 60.0, 80.0)
RECEIVERS = Receivers([(60.0, 30.0, 40.0), (60.0, 30.0, 120.0), (113.0, 100.0, 77.0)])
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "isotropic": (Medium(VP), Sponge(5, 0.5), {}),
    "surface": (Medium(VP), SURFACE, {}),
    "uniform": (Medium(2000.0), SURFACE, {"time_order": 4}),
    "density": (Medium(VP, rho=VP), SURFACE, {"time_order": 4}),
    "tilted": (Medium(VP, EPSILON, 0.05, 0.4, 0.3), SURFACE, {}),
}


def waves_of(name: str, dtype: str = "f4", factor: float = 1.0) -> Any:
    medium, boundary, options = CASES[name]
    if not np.isscalar(medium.vp):
        medium = Medium(factor * medium.vp, medium.epsilon, medium.delta, medium.theta, medium.phi, rho=medium.rho)
    return prepare(SHAPE, 10.0, dt=1e-3, medium=medium, order=4, boundary=boundary, dtype=dtype, **options)


def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping_module, "damps_in_kernel", lambda waves, sources: False)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("injection", ["physical", "legacy"])
def test_bits_are_those_of_damping_after_the_step(name: str, injection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if injection == "legacy" and CASES[name][2]:
        injection = "physical"
    waves, shot = waves_of(name), Shot([PointSource(MIDDLE, Ricker(40.0), injection=injection)], RECEIVERS)
    assert damps_in_kernel(waves, shot.sources)
    fused = shot_traces(waves, shot, 60)
    apart(monkeypatch)
    other = shot_traces(waves, shot, 60)
    assert np.abs(fused[40:]).max() > 0
    assert np.array_equal(fused, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["surface", "density", "tilted"])
def test_gradients_are_those_of_damping_after_the_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shot = Shot([PointSource(MIDDLE, Ricker(40.0))], RECEIVERS)
    shot = Shot(shot.sources, RECEIVERS, shot_traces(waves_of(name, "f8", 1.05), shot, 40))
    number, fused = shot_gradient(waves_of(name, "f8"), shot)
    apart(monkeypatch)
    expected, other = shot_gradient(waves_of(name, "f8"), shot)
    assert fused is not None
    assert other is not None
    assert number == expected > 0
    assert np.linalg.norm(fused["vp"] - other["vp"]) < 1e-13 * np.linalg.norm(other["vp"])


def test_what_is_added_in_sponges_is_damped_after_the_step() -> None:
    """Sources near a sponge, planes, matched layers and attenuation."""
    waves = waves_of("isotropic")
    assert damps_in_kernel(waves, [PointSource((30.0, 60.0, 80.0))])
    assert not damps_in_kernel(waves, [PointSource((3.0, 60.0, 80.0))])  # interpolated from cells of the sponge
    assert damps_in_kernel(waves, [PointSource((3.0, 60.0, 80.0), injection="legacy")])
    assert not damps_in_kernel(waves, [PlaneSource("z", 60.0)])
    mixed = Faces(Sponge(5), z=(Cpml(4), Sponge(5)))
    relaxed = {"boundary": Sponge(5), "attenuation": Attenuation(50.0)}
    for options in ({"boundary": mixed}, relaxed, {"boundary": Free()}):
        made = prepare(SHAPE, 10.0, dt=1e-3, medium=Medium(2000.0), order=4, **options)  # type: ignore[arg-type]
        assert not damps_in_kernel(made, [])
