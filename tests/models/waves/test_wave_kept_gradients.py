"""Gradients that are kept from one medium to the next have the bits of gradients prepared for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minga.errors import RunError
from minga.models.waves import (
    Attenuation,
    Cpml,
    Faces,
    Free,
    Inversion,
    Medium,
    PointSource,
    Receivers,
    Ricker,
    Shot,
    Sponge,
    prepare,
    shot_gradient,
)
from minga.models.waves import kept_gradients as kept_module
from minga.models.waves.elastic import ElasticMedium, Explosion, prepare_elastic
from minga.models.waves.kept_gradients import KeptGradients

SHAPE = (22, 24)
POINT = (50.0, 113.0)
VP = 2000.0 + 8.0 * np.arange(SHAPE[0])[:, None] + np.zeros(SHAPE)
RHO = 1000.0 + 10.0 * np.arange(SHAPE[1])[None, :] + np.zeros(SHAPE)
EPSILON = 0.1 + np.zeros(SHAPE)
FACES = Faces(Sponge(4), z=(Free(), Sponge(4)))
Make = Callable[[float, float], Any]


def acoustic(boundary: Any, **medium: Any) -> Make:
    def waves(factor: float, dt: float) -> Any:
        return prepare(SHAPE, 10.0, dt=dt, medium=Medium(factor * VP, **medium), order=4, boundary=boundary)

    return waves


def tilted(factor: float, dt: float) -> Any:
    medium = Medium(factor * VP, EPSILON, 0.05, 0.4 + np.zeros(SHAPE))
    return prepare(SHAPE, 10.0, dt=dt, medium=medium, order=4, boundary=Sponge(4), time_order=4)


def attenuated(factor: float, dt: float) -> Any:
    return prepare(
        SHAPE, 10.0, dt=dt, medium=Medium(factor * VP), order=4, boundary=FACES, attenuation=Attenuation(40.0)
    )


def matched_attenuated(factor: float, dt: float) -> Any:
    return prepare(
        SHAPE, 10.0, dt=dt, medium=Medium(factor * VP), order=4, boundary=Cpml(4), attenuation=Attenuation(40.0)
    )


def elastic(factor: float, dt: float) -> Any:
    medium = ElasticMedium(factor * VP, factor * VP / 2, 2000.0)
    return prepare_elastic(SHAPE, 10.0, dt=dt, medium=medium, order=4, boundary=Cpml(4))


MEDIA: dict[str, Make] = {
    "sponge": acoustic(FACES), "matched": acoustic(Cpml(4)), "density": acoustic(Cpml(4), rho=RHO),
    "tilted": tilted, "attenuated": attenuated, "matched_attenuated": matched_attenuated, "elastic": elastic,
}  # fmt: skip


def shot_of(name: str) -> Shot:
    source = (Explosion if name == "elastic" else PointSource)(POINT, Ricker(25.0))
    data = 1e-4 * np.random.default_rng(1).standard_normal((31, 3))
    return Shot([source], Receivers([(30.0, 40.0), (30.0, 95.0), (100.0, 200.0)], interpolation="linear"), data)


def equal(one: Any, other: Any) -> bool:
    return one[0] == other[0] and np.array_equal(one[1]["vp"], other[1]["vp"])


@pytest.mark.parametrize("name", ["sponge", *(pytest.param(n, marks=pytest.mark.slow) for n in MEDIA if n != "sponge")])
def test_bits_are_those_of_gradients_prepared_for_each_medium(name: str) -> None:
    waves, shot, kept = MEDIA[name], shot_of(name), KeptGradients()
    found, engines = [], []
    for factor in (1.0, 1.05, 0.9):
        found.append(kept.of(0, waves(factor, 1e-3), shot, ("vp",), "l2", 1 << 30, 1))
        engines.append(kept._known[0].engine)
        assert equal(found[-1], shot_gradient(waves(factor, 1e-3), shot))
    assert not equal(found[0], found[1])
    assert engines[0] is engines[1] is engines[2]
    # Other steps have an engine of their own.
    assert equal(kept.of(0, waves(1.0, 5e-4), shot, ("vp",), "l2", 1 << 30, 1), shot_gradient(waves(1.0, 5e-4), shot))
    assert kept._known[0].engine is not engines[0]


def test_data_are_those_of_the_call() -> None:
    """Data of another shot with the same number, and data that were changed in place, count."""
    waves, shot, kept = MEDIA["sponge"](1.0, 1e-3), shot_of("sponge"), KeptGradients()
    first = kept.of(0, waves, shot, ("vp",), "l2", 1 << 30, 1)
    assert shot.data is not None
    other = Shot(shot.sources, shot.receivers, np.array(2.0 * shot.data, np.float32))
    for data in (other.data, other.data):
        found = kept.of(0, waves, other, ("vp",), "l2", 1 << 30, 1)
        assert equal(found, shot_gradient(waves, other))
        assert not equal(found, first)
        first = found
        data[:, 0] = 0.0


def test_bits_are_those_of_computing_states_again() -> None:
    waves, shot, kept = MEDIA["sponge"], shot_of("sponge"), KeptGradients()
    known = [kept.of(0, waves(factor, 1e-3), shot, ("vp",), "l2", 1, 1) for factor in (1.0, 1.05)]
    assert equal(known[1], shot_gradient(waves(1.05, 1e-3), shot))


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waves, shot, kept = MEDIA["sponge"], shot_of("sponge"), KeptGradients()
    kept.of(0, waves(1.0, 1e-3), shot, ("vp",), "l2", 1 << 30, 1)
    monkeypatch.setattr(kept_module, "ROOM", 3 * kept._known[0].bytes // 2)
    other = kept.of(1, waves(1.0, 1e-3), shot, ("vp",), "l2", 1 << 30, 1)
    assert list(kept._known) == [0]
    assert equal(other, shot_gradient(waves(1.0, 1e-3), shot))


def test_nothing_is_kept_after_an_error() -> None:
    waves, shot, kept = MEDIA["sponge"], shot_of("sponge"), KeptGradients()

    def misfit(found: Any, data: Any) -> Any:
        raise RunError("no")

    with pytest.raises(RunError, match="no"):
        kept.of(0, waves(1.0, 1e-3), shot, ("vp",), misfit, 1 << 30, 1)
    assert not kept._known
    assert equal(kept.of(0, waves(1.0, 1e-3), shot, ("vp",), "l2", 1 << 30, 1), shot_gradient(waves(1.0, 1e-3), shot))


def test_an_inversion_keeps_the_gradients_of_its_shots() -> None:
    shot = shot_of("sponge")
    inversion = Inversion([shot, shot], lambda values, shot: acoustic(FACES)(1.0, 1e-3))
    inversion.gradient({"vp": VP})
    assert sorted(inversion.kept._known) == [0, 1]


def test_another_density_of_all_cells_is_another_structure() -> None:
    """Velocities at receivers depend on it, and the step of the waves does not."""
    one, other = (acoustic(FACES, rho=rho)(1.0, 1e-3) for rho in (1000.0, 1200.0))
    assert one.structure == acoustic(FACES, rho=1000.0)(1.1, 1e-3).structure != other.structure
