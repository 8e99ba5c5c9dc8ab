"""Waves on one and two axes: exact solutions, and the same waves on three axes along which nothing varies."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import (
    Faces,
    Medium,
    Periodic,
    PlaneSource,
    PointSource,
    Receivers,
    Release,
    Ricker,
    Sponge,
    migrate,
    prepare,
)
from minga.models.waves.media import named_medium
from minga.models.waves.medium import Sampler
from minga.models.waves.stability import extremes_of
from minga.models.waves.synthetic import synthetic
from minga.space.box import Box
from model_runs import assert_same, run_model

SPEED = 2000.0


def waves_at(shape: tuple[int, ...], steps: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times, and p at the receivers, a column for each."""
    settings: dict[str, Any] = {"medium": Medium(SPEED), "boundary": Release(), "dtype": "f8", "dt": 1e-3}
    run = mg.run(mg.fletcher(shape, 10.0, **(settings | options)), steps, observe=1)
    return run.receiver_time.values, run.receivers.values


# Values of the convolution of Ricker(10 Hz, .1 s) with the Green's function of p_tt / c2 - lap p = s delta on a plane,
# at the times .05, .1, .125, .15 and .2 s after r / c, c = 2000 m/s (two independent quadratures).
TABLE = {
    200: (-2.42802e-2, 5.87676e-2, 4.36600e-2, -1.50280e-2, -3.51700e-3),
    500: (-1.54776e-2, 3.67551e-2, 2.79856e-2, -9.12462e-3, -2.13628e-3),
    1000: (-1.09740e-2, 2.58713e-2, 1.98595e-2, -6.36684e-3, -1.48570e-3),
}


def test_a_point_on_two_axes_is_the_exact_solution() -> None:
    shape, source = (91, 91), (450.0, 450.0)
    times, found = waves_at(
        shape, 301, time_order=4, sources=[PointSource(source, Ricker(10.0, 0.1))],
        receivers=Receivers([(450.0, 650.0)]), dt=1e-3,
    )  # fmt: skip
    after = [round(1000 * (0.1 + later)) for later in (0.05, 0.1, 0.125, 0.15, 0.2)]
    assert times[after] == pytest.approx([0.15, 0.2, 0.225, 0.25, 0.3])
    assert found[after, 0] == pytest.approx(TABLE[200], abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("away", [200, 500, 1000])
def test_points_on_two_axes_are_the_exact_solution(away: int) -> None:
    n = 2 * (away // 10 + 75) + 1
    middle = n // 2 * 10.0
    _, found = waves_at(
        (n, n), 1000 * away // 2000 + 201, time_order=4, sources=[PointSource((middle, middle), Ricker(10.0, 0.1))],
        receivers=Receivers([(middle, middle + away), (middle - 0.6 * away, middle + 0.8 * away)]),
    )  # fmt: skip
    after = [round(away / 2 + 1000 * later) for later in (0.05, 0.1, 0.125, 0.15, 0.2)]
    assert found[after, 0] == pytest.approx(TABLE[away], abs=1e-5)
    assert found[after, 1] == pytest.approx(TABLE[away], abs=1e-5)


@pytest.mark.slow
def test_an_elliptic_medium_is_a_stretched_isotropic_one() -> None:
    """epsilon = delta: unit speed at the distance sqrt(x C^-1 x), and amplitudes over sqrt(det C)."""
    tilt, wide = 0.6, 1 + 2 * 0.2
    n = np.array([math.cos(tilt), math.sin(tilt)])  # along z, x
    c = SPEED**2 * (np.outer(n, n) + wide * (np.eye(2) - np.outer(n, n)))
    away = np.array([150.0, 170.0])
    distance = float(np.sqrt(away @ np.linalg.inv(c) @ away))  # s, for unit speed
    ricker = Ricker(10.0, 0.1)
    times, found = waves_at(
        (101, 101), 320, time_order=4, medium=Medium(SPEED, 0.2, 0.2, tilt), sigma=math.inf,
        sources=[PointSource((500.0, 500.0), ricker)], receivers=Receivers([(650.0, 670.0)]),
    )  # fmt: skip
    u = np.linspace(0, 5, 5001)
    late = times[:, None] - distance * np.cosh(u)
    expected = np.trapezoid(np.where(late > 0, ricker.at(late), 0.0), u, axis=1) / (2 * math.pi)
    expected *= SPEED**2 / math.sqrt(float(np.linalg.det(c)))  # the source is vp2 s
    assert np.linalg.norm(found[:, 0] - expected) < 2e-3 * np.linalg.norm(expected)


def test_a_point_on_one_axis_is_the_exact_solution() -> None:
    """p = c / 2 times the integral of s up to t - r / c."""
    ricker = Ricker(10.0, 0.1)
    times, found = waves_at(
        (161,), 400, time_order=4, sources=[PointSource((800.0,), ricker)], receivers=Receivers([(1200.0,), (655.0,)])
    )
    for column, away in enumerate((400.0, 145.0)):
        late = times - away / SPEED - ricker.starts
        expected = np.where(
            late > -ricker.starts,
            SPEED / 2 * late * np.exp(-np.square(math.pi * ricker.frequency * late)), 0.0
        )  # fmt: skip
        assert np.linalg.norm(found[:, column] - expected) < 2e-3 * np.linalg.norm(expected)


MEDIA = {
    "isotropic": Medium(SPEED),
    "vertical": Medium(lambda box: 2000.0 + 5.0 * grid_of(box)[0], 0.2, 0.1),
    "tilted": Medium(2000.0, 0.2, lambda box: 0.1 + 0.001 * grid_of(box)[-1], lambda box: 0.3 + 0.02 * grid_of(box)[0]),
}


def grid_of(box: Box) -> list[np.ndarray]:
    return list(np.meshgrid(*(np.arange(a, b, dtype="f8") for a, b in zip(box.lo, box.hi, strict=True)), indexing="ij"))


@pytest.mark.few(1)
@pytest.mark.parametrize("time_order", [2, 4])
@pytest.mark.parametrize("form", ["fletcher", "selfadjoint"])
@pytest.mark.parametrize("kind", MEDIA)
def test_two_axes_are_three_along_one_of_which_nothing_varies(kind: str, form: str, time_order: int) -> None:
    """A line of sources on a periodic axis y. The sums of the differences have other terms, so other roundings."""
    ricker, places = Ricker(25.0), [(60.0, 130.0), (100.0, 95.0)]
    common: dict[str, Any] = {"medium": MEDIA[kind], "form": form, "time_order": time_order, "order": 4, "dt": 8e-4}
    _, flat = waves_at(
        (19, 23), 60, boundary=Faces(Sponge(5), z=(Release(), Sponge(4))),
        sources=[PointSource((70.0, 110.0), ricker)], receivers=Receivers(places), **common,
    )  # fmt: skip
    line = [PointSource((70.0, y, 110.0), replace(ricker, amplitude=10.0)) for y in (0.0, 10.0, 20.0, 30.0)]
    _, deep = waves_at(
        (19, 4, 23), 60, boundary=Faces(Sponge(5), z=(Release(), Sponge(4)), y=Periodic()), sources=line,
        receivers=Receivers([(z, 20.0, x) for z, x in places]), **common,
    )  # fmt: skip
    assert abs(flat).max() > 0
    assert deep == pytest.approx(flat, abs=1e-11 * abs(flat).max())


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_have_the_same_bits(ranks: int) -> None:
    model = mg.fletcher(
        (24, 30), 10.0, dt=8e-4, medium=MEDIA["tilted"], boundary=Faces(Sponge(5), x=Periodic()), order=4,
        sources=[PointSource((62.5, 118.0), Ricker(25.0))], receivers=Receivers([(33.3, 77.0)]),
    )  # fmt: skip
    assert_same(run_model(model, 12), run_model(model, 12, ranks=ranks))


def test_the_stability_limit_on_two_axes_is_sharp() -> None:
    """2.1249 ms: the medium and cells of Fletcher's codes; ../fletcher.md has the same limit from long runs."""
    medium = Medium(3000.0, 0.24, 0.1, math.pi / 4)
    found = extremes_of(Sampler(medium, (40, 40), (0, 0)), (12.5, 12.5), 8, 0.75)
    assert found.dt_limit == pytest.approx(2.1249e-3, rel=0.01)
    noise = np.random.default_rng(1).standard_normal((40, 40))
    for factor, grows in ((0.99, False), (1.04, True)):
        waves = prepare((40, 40), 12.5, dt=min(factor, 1.0) * found.dt_limit, medium=medium, boundary=Periodic())
        scale = (factor / min(factor, 1.0)) ** 2
        waves = replace(waves, equations=replace(waves.equations, scale=waves.equations.scale * scale))
        step = mg.Program("step")
        waves.record_kernel(step)
        step.rotate(*waves.fields)
        with mg.Engine({waves.grid: mg.Layout.single(waves.grid.box, 1)}) as engine:
            for field in waves.fields:
                engine.set(field, noise)
                engine.set(field.previous, noise)
            engine.run(step, 1500)
            p = engine.gather(waves.fields[0])
        assert p is not None
        assert (not np.isfinite(p).all() or abs(p).max() > 1e3) == grows


@pytest.mark.slow
def test_migration_on_two_axes() -> None:
    """A point that scatters is seen where it is."""
    shape, scatterer = (50, 60), (300.0, 320.0)
    spread, source = Receivers([(20.0, 10.0 * k) for k in range(60)]), PointSource((20.0, 250.0), Ricker(20.0))
    background = np.full(shape, SPEED)
    other = background.copy()
    other[tuple(round(x / 10) for x in scatterer)] *= 1.2
    data = [
        waves_at(shape, 420, medium=Medium(vp), boundary=Sponge(20), sources=[source], receivers=spread)[1]
        for vp in (other, background)
    ]
    waves = prepare(shape, 10.0, dt=1e-3, medium=Medium(background), boundary=Release())
    image = migrate(waves, [source], spread, data[0] - data[1])
    assert image is not None
    assert image.shape == shape
    below = abs(image[12:])
    found = np.unravel_index(int(np.argmax(below)), below.shape)
    assert math.dist((10.0 * (found[0] + 12), 10.0 * found[1]), scatterer) < 60.0


def test_synthetic_media_on_two_axes_are_a_section() -> None:
    deep = synthetic("salt", (20, 2, 30), (50.0, 1e-9, 50.0), seed=3).values(Box((0, 0, 0), (20, 1, 30)))
    flat = synthetic("salt", (20, 30), (50.0, 50.0), seed=3).values(Box((0, 0), (20, 30)))
    for name in ("vp", "epsilon", "delta"):
        np.testing.assert_allclose(flat[name], deep[name][:, 0], rtol=1e-5)
    slope = np.tan(deep["theta"]) * np.cos(deep["phi"])
    np.testing.assert_allclose(np.tan(flat["theta"]), slope[:, 0], atol=1e-5)
    assert not flat["phi"].any()


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [
        ((20, 20), {"medium": named_medium("tti")}, "phi turns the axis"),
        ((20,), {"medium": Medium(SPEED, 0.1)}, "one axis are isotropic"),
        ((20, 20), {"sources": [PointSource((10.0, 10.0, 10.0))]}, "outside the model"),
        ((20, 20), {"sources": [PlaneSource("y", 10.0)]}, "normal to y; the model has the axes z, x"),
        ((20, 20), {"boundary": Faces(Sponge(4), y=Release())}, "names the axis y"),
    ],
)
def test_what_cannot_be_is_refused(shape: tuple[int, ...], options: dict[str, Any], said: str) -> None:
    with pytest.raises(CaseError, match=said):
        mg.fletcher(shape, 10.0, **({"dt": 1e-3, "medium": Medium(SPEED), "order": 4} | options))
