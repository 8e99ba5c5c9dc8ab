"""Sources as forces of a given amplitude, and steps of fourth order in time, beside the exact solution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import (
    Medium,
    PlaneSource,
    PointSource,
    Random,
    Receivers,
    Release,
    Ricker,
    Sponge,
    Wavelet,
    add_sources,
    adjoint_fields,
    migrate,
    prepare,
    record_adjoint_step,
    record_advance,
)
from minga.models.waves.preflight import dispersion
from minga.models.waves.stability import Extremes
from minga.running.loop import drive
from minga.running.session import state_digest
from thinned import thinned

SPEED, RICKER = 2000.0, Ricker(25.0)
AWAY = ((0, 0, 12), (0, 10, 10), (8, 8, 8))
"""Receivers, in cells from the source."""


def recorded(
    dt: float,
    time_order: int,
    *,
    h: float = 10.0,
    n: int = 70,
    end: float = 0.2,
    medium: Medium | None = None,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Times, and p at the receivers, a column for each."""
    middle = tuple(n // 2 * h for _ in range(3))
    points = [tuple(m + c * h for m, c in zip(middle, away, strict=True)) for away in AWAY]
    settings: dict[str, Any] = {"sources": [PointSource(middle, RICKER)], "boundary": Release(), "order": 16}  # type: ignore[arg-type]
    model = mg.fletcher(
        (n,) * 3, h, dt=dt, time_order=time_order, medium=medium or Medium(SPEED), dtype="f8",
        receivers=Receivers(points), **(settings | options),  # type: ignore[arg-type]
    )  # fmt: skip
    run = mg.run(model, round(end / dt), observe=1)
    return run.receiver_time.values, run.receivers.values


def exact(times: np.ndarray, h: float = 10.0) -> np.ndarray:
    """s(t - r / c) / (4 pi r), the solution of p_tt / c2 - laplacian p = s delta."""
    away = [h * math.dist((0, 0, 0), cells) for cells in AWAY]
    return np.stack([RICKER.at(times - r / SPEED) / (4 * math.pi * r) for r in away], axis=1)


def error(dt: float, time_order: int, **options: Any) -> float:
    times, found = recorded(dt, time_order, **options)
    expected = exact(times, options.get("h", 10.0))
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def test_amplitudes_are_those_of_the_equation() -> None:
    assert error(1e-3, 4, n=44, end=0.11) < 0.01


@pytest.mark.slow
def test_orders_in_time() -> None:
    second, fourth = ([error(dt, order) for dt in (2e-3, 1e-3)] for order in (2, 4))
    assert 3.5 < second[0] / second[1] < 4.5
    assert second[0] > 0.02
    assert fourth[0] < 2e-3
    assert fourth[1] < second[1] / 20


@pytest.mark.slow
def test_orders_in_time_of_a_tilted_medium() -> None:
    """Differences between steps of three lengths fall by 4 with leapfrog, and by 16 with the fourth order."""
    medium = Medium(SPEED, 0.24, 0.1, theta=0.7, phi=0.4)
    for order, falls in ((2, 4.0), (4, 16.0)):
        long, half, quarter = (recorded(dt, order, medium=medium, n=48, end=0.12)[1] for dt in (1.6e-3, 8e-4, 4e-4))
        first, second = np.std(long - half[::2]), np.std(half - quarter[::2])
        assert first / second == pytest.approx(falls, rel=0.15)


@pytest.mark.slow
def test_amplitudes_do_not_depend_on_cells_or_places_between_them() -> None:
    assert error(1e-3, 4, h=8.0, n=86) < 0.01
    between = (355.0, 352.5, 347.5)  # in cells 35.5, 35.25 and 34.75 of the grid
    times, found = recorded(1e-3, 4, sources=[PointSource(between, RICKER)])
    away = [math.dist(between, [350.0 + 10.0 * c for c in cells]) for cells in AWAY]
    expected = np.stack([RICKER.at(times - r / SPEED) / (4 * math.pi * r) for r in away], axis=1)
    assert np.linalg.norm(found - expected) < 0.01 * np.linalg.norm(expected)


def test_a_medium_of_a_field_has_the_waves_of_its_number() -> None:
    uniform = recorded(1e-3, 2, n=30, end=0.04, order=4)[1]
    field = recorded(1e-3, 2, n=30, end=0.04, order=4, medium=Medium(np.full((30,) * 3, SPEED)))[1]
    assert np.abs(uniform).max() > 0
    assert np.allclose(field, uniform, rtol=1e-12, atol=1e-18)


def test_a_plane_sends_the_integral_of_its_wavelet() -> None:
    """p = c / 2 times the integral of s up to t - z / c, from a plane s(t) delta(z), long before the sides are felt."""
    n, h, dt, steps, below = 40, 10.0, 1e-3, 70, 4
    wavelet = Ricker(25.0, delay=0.045)
    model = mg.fletcher(
        (n,) * 3, h, dt=dt, time_order=4, medium=Medium(SPEED), dtype="f8", boundary=Release(), order=16,
        sources=[PlaneSource("z", 200.0, wavelet)], receivers=Receivers([(200.0 + below * h, 200.0, 200.0)]),
    )  # fmt: skip
    found = mg.run(model, steps, observe=1).receivers.values[-1, 0]
    times = np.linspace(0.0, steps * dt - below * h / SPEED, 4001)
    integral = np.trapezoid(wavelet.at(times), times)
    assert found == pytest.approx(SPEED / 2 * integral, rel=2e-3)


def test_legacy_amplitudes_are_those_of_a_force_one_step_later() -> None:
    """s added before a step is the force s(t + dt) V / (dt2 c2)."""
    h, dt, n = 10.0, 1e-3, 30
    middle = (n // 2 * h,) * 3
    samples = RICKER.at(dt * np.arange(130))
    scale = h**3 / (dt * SPEED) ** 2
    force = PointSource(middle, Wavelet(np.append(samples[1:], 0.0) * scale))
    forced = recorded(dt, 2, n=n, end=0.12, order=4, sources=[force])[1]
    legacy = PointSource(middle, Wavelet(samples), injection="legacy")
    added = recorded(dt, 2, n=n, end=0.12, order=4, sources=[legacy])[1]
    assert np.abs(added).max() > 0
    assert np.allclose(forced, added, rtol=0, atol=1e-4 * np.abs(added).max())


@pytest.mark.parametrize("source", [PointSource((93.0, 81.0, 77.0), RICKER), PlaneSource("y", 60.0, RICKER)])
def test_physical_sources_are_taken_away_again_when_time_runs_backwards(source: PointSource | PlaneSource) -> None:
    """Layers of random velocities around a uniform medium: the velocity is a field."""
    steps = 60
    waves = prepare((20, 18, 16), 10.0, dt=1e-3, medium=Medium(SPEED), boundary=Random(4), order=4, dtype="f8")
    there, turn, back = (mg.Program(name) for name in ("there", "turn", "back"))
    for program, following in ((there, mg.STEP + 1), (back, mg.STEP - 1)):
        record_advance(program, waves, [source])
        program.rotate(*waves.fields)
        program.let(mg.STEP, following)
    turn.rotate(*waves.fields)
    with mg.Engine({waves.grid: mg.Layout.single(waves.grid.box, 1)}) as engine:
        for field in waves.medium:
            engine.set(field, waves.start()[field.name])
        engine.run(there, steps)
        largest = np.abs(engine.gather(waves.fields[0])).max()
        engine.run(turn)
        engine.write(mg.STEP, steps - 1)
        engine.run(back, steps)
        left = np.abs(engine.gather(waves.fields[0])).max()
    assert largest > 1e-5
    assert left < 1e-10 * largest


@pytest.mark.slow
def test_the_limit_of_steps_of_fourth_order_is_sharp() -> None:
    limit = mg.fletcher((24,) * 3, 10.0, dt=1e-4, time_order=4, medium=Medium(SPEED), boundary=Sponge(4)).parameters[
        "dt_limit"
    ]
    short = mg.fletcher((24,) * 3, 10.0, dt=1e-4, medium=Medium(SPEED), boundary=Sponge(4)).parameters["dt_limit"]
    assert limit == pytest.approx(math.sqrt(3) * short)
    calm = recorded(0.99 * limit, 4, n=30, end=1.0, order=8)[1]
    assert np.abs(calm).max() < 1.0
    unchecked = Extremes(math.inf, SPEED, SPEED, SPEED, None)
    grown = recorded(1.01 * limit, 4, n=30, end=1.0, order=8, extremes=unchecked)[1]
    assert not np.abs(grown).max() < 1e10
    with pytest.raises(CaseError, match="stability limit"):
        mg.fletcher((24,) * 3, 10.0, dt=1.01 * limit, time_order=4, medium=Medium(SPEED))


@pytest.mark.slow
@pytest.mark.parametrize("kind", thinned(["isotropic", "tilted"], "isotropic"))
def test_ranks_have_the_same_bits(kind: str) -> None:
    speed = np.linspace(1800.0, 2600.0, 20)[:, None, None] + np.zeros((20, 18, 16))
    medium = Medium(speed) if kind == "isotropic" else Medium(speed, 0.2, 0.1, theta=0.5, phi=0.2)
    model = mg.fletcher(
        (20, 18, 16), 10.0, dt=8e-4, time_order=4, medium=medium, boundary=Sponge(4), order=4,
        sources=[PointSource((93.0, 81.0, 77.0), Ricker(30.0, delay=0.01))],
    )  # fmt: skip

    def run(ranks: int, depth: int) -> str:
        def body(comm: mg.SerialComm) -> str:
            with mg.Engine(model.layouts("slabs", ranks), comm=comm, halo_depth=depth) as engine:
                drive(model, engine, 12)
                return state_digest(engine, model, [f for f in model.fields if f.name in "pq"])

        return mg.run_virtual(ranks, body)[0]  # type: ignore[arg-type]

    alone = run(1, 1)
    assert run(2, 1) == alone
    assert run(3, 2) == alone


def test_what_cannot_be() -> None:
    waves = prepare((24,) * 3, 10.0, dt=1e-3, time_order=4, medium=Medium(SPEED), boundary=Release())
    step = mg.Program("step")
    with pytest.raises(CaseError, match="second order in time only"):
        record_adjoint_step(step, waves, adjoint_fields(waves))
    with pytest.raises(CaseError, match="second order"):
        migrate(waves, [PointSource()], Receivers([(0.0, 0.0, 0.0)]), np.ones((9, 1)))
    with pytest.raises(CaseError, match="record_advance"):
        add_sources(step, [PointSource()], waves.fields, waves.domain, waves.dt)
    with pytest.raises(CaseError, match="order 3"):
        mg.fletcher((24,) * 3, 10.0, dt=1e-4, time_order=3, medium=Medium(SPEED))
    with pytest.raises(CaseError, match="injection"):
        PointSource(injection="forced")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("points", "order", "time_order", "expected"),
    [(4, 4, 2, -1.883), (8, 4, 2, 0.031), (5, 8, 2, 0.532), (20, 8, 2, 0.037), (4, 8, 4, -0.344), (8, 8, 4, -0.0024)],
)
def test_dispersion_along_an_axis(points: int, order: int, time_order: int, expected: float) -> None:
    """Values in per cent that were computed by another program, at a Courant number of 0.3."""
    assert 100 * dispersion(points, 0.3, order, time_order) == pytest.approx(expected, abs=6e-4)
