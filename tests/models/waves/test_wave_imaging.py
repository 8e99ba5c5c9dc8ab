"""Images with absorbing layers: the sums that migration has with others, a reflector where it is, and filters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.waves import (
    Cpml,
    Faces,
    Free,
    Image,
    Medium,
    PointSource,
    Random,
    Receivers,
    Release,
    Ricker,
    Shot,
    Sponge,
    Wavelet,
    migrate,
    prepare,
    shot_image,
    shot_snapshots,
    shot_traces,
)

SHAPE, H = (24, 30), 10.0
SPREAD = Receivers([(20.0, 10.0 * k) for k in range(30)])


@pytest.mark.few(2)
@pytest.mark.parametrize("boundary", [Release(), Random(6)], ids=repr)
@pytest.mark.parametrize("medium", [Medium(2000.0, 0.2, 0.1, 0.4), Medium(2000.0, 0.2, 0.1), Medium(2000.0)])
def test_an_image_is_that_of_migration(medium: Medium, boundary: Any) -> None:
    """Between ends that conserve energy, where migration runs backwards in time with its hand-written adjoint."""
    waves = prepare(SHAPE, H, dt=1e-3, medium=medium, boundary=boundary, order=4, dtype="f8")
    data = np.random.default_rng(3).standard_normal((40, 30))
    sources = [PointSource((30.0, 140.0), Ricker(25.0))]
    expected = migrate(waves, sources, SPREAD, data)
    found = shot_image(waves, Shot(sources, SPREAD, data))
    assert expected is not None
    assert found is not None
    assert found.values == pytest.approx(expected, abs=1e-12 * abs(expected).max())
    again = shot_image(waves, Shot(sources, SPREAD, data), memory=1)
    assert again is not None
    assert np.array_equal(again.values, found.values)


def shot(place: float, boundary: Any) -> Image:
    z = np.arange(SHAPE[0])[:, None] * np.ones(SHAPE)
    source, traces = PointSource((20.0, place), Ricker(25.0)), []
    for vp in (np.where(z < 15, 2000.0, 2600.0), np.full(SHAPE, 2000.0)):
        waves = prepare(SHAPE, H, dt=1e-3, medium=Medium(vp), boundary=boundary, order=4)
        traces.append(shot_traces(waves, Shot([source], SPREAD), 260))
    found = shot_image(waves, Shot([source], SPREAD, traces[0] - traces[1]))
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("boundary", [Cpml(10), Faces(Sponge(12), z=(Free(), Sponge(12)))])
def test_a_reflector_is_seen_where_it_is(boundary: Any) -> None:
    stack = shot(80.0, boundary) + shot(210.0, boundary)
    profile = abs(stack.filtered().normalised().values[8:22, 10:20]).mean(axis=1)
    assert abs(8 + int(np.argmax(profile)) - 15) <= 1


@pytest.mark.slow
def test_the_filter_is_the_condition_of_inverse_scattering() -> None:
    """By waves of the source, and waves of the reversed data that run back from the receiver, at each step."""
    speed, h, dt, samples = 1800.0, 5.0, 1e-3, 450
    smooth, true = (
        prepare((110,), h, dt=dt, medium=Medium(vp), boundary=Cpml(12), dtype="f8")
        for vp in (np.full(110, speed), np.where(np.arange(110) < 70, speed, 2000.0))
    )
    forth = Shot([PointSource((150.0,), Ricker(15.0))], Receivers([(200.0,)]))
    data = shot_traces(true, forth, samples) - shot_traces(smooth, forth, samples)
    found = shot_image(smooth, Shot(forth.sources, forth.receivers, data))
    assert found is not None
    back = Shot([PointSource((200.0,), Wavelet(data[::-1, 0]))], forth.receivers)
    p, a = (np.array(shot_snapshots(smooth, each, range(1, samples))) for each in (forth, back))
    (p_t, p_x), (a_t, a_x) = (np.gradient(each, dt, h) for each in (p, a[::-1]))
    condition = (p_t * a_t / speed**2 - p_x * a_x).sum(axis=0)
    between = slice(50, 100)  # beyond the receiver
    assert np.corrcoef(found.filtered().values[between], condition[between])[0, 1] > 0.9999
    assert np.corrcoef(found.values[between], condition[between])[0, 1] < 0.9


def test_ranks_have_the_same_bits() -> None:
    waves = prepare(SHAPE, H, dt=1e-3, medium=Medium(2000.0), boundary=Sponge(4), order=4)
    data = np.random.default_rng(3).standard_normal((8, 30))
    given = Shot([PointSource((30.0, 140.0), Ricker(25.0))], Receivers(SPREAD.positions, every=2), data)
    alone, (first, second) = (
        shot_image(waves, given),
        mg.run_virtual(2, lambda comm: shot_image(waves, given, comm=comm)),
    )
    assert alone is not None
    assert first is not None
    assert second is None
    assert np.array_equal(first.values, alone.values)
    assert np.array_equal(first.illumination, alone.illumination)
    assert abs(alone.illumination).max() > 0


def test_filters() -> None:
    z, x = np.meshgrid(np.arange(6.0), np.arange(7.0), indexing="ij")
    plane = Image(3.0 * z + 2.0 * x, np.ones((6, 7)), (10.0, 10.0))
    assert plane.filtered().values[1:-1, 1:-1] == pytest.approx(0.0)
    bowl = Image(z * z, np.ones((6, 7)), (10.0, 10.0))
    assert bowl.filtered().values[1:-1] == pytest.approx(-0.02)
    dark = Image(np.ones((2, 2)), np.array([[0.0, 1.0], [2.0, 4.0]]), (1.0, 1.0))
    assert dark.normalised(0.25).values == pytest.approx(np.array([[1.0, 0.5], [1 / 3, 0.2]]))
    assert np.array_equal(Image(np.ones((2, 2)), np.zeros((2, 2)), (1.0, 1.0)).normalised().values, np.ones((2, 2)))
