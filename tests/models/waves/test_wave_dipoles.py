"""Ormsby wavelets and dipoles beside their definitions and exact solutions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import Faces, Free, Medium, Ormsby, PointSource, Receivers, Release, Ricker, Sponge
from minga.models.waves.elastic import ElasticMedium, Explosion, elastic
from minga.running.loop import drive
from minga.running.session import state_digest

SPEED, RICKER = 2000.0, Ricker(25.0)
CORNERS = (5.0, 10.0, 40.0, 60.0)


def test_the_spectrum_of_an_ormsby_wavelet_is_a_trapezoid() -> None:
    dt, n = 1e-3, 1 << 16
    wavelet = Ormsby(CORNERS, delay=n / 2 * dt, amplitude=3.0)
    samples = wavelet.at(np.arange(n) * dt)
    assert samples[n // 2] == samples.max() == pytest.approx(3.0, rel=1e-12)
    spectrum, f = np.abs(np.fft.rfft(samples)) * dt, np.fft.rfftfreq(n, dt)
    expected = np.interp(f, (0.0, *CORNERS, 500.0), (0.0, 0.0, 1.0, 1.0, 0.0, 0.0))
    expected *= 3.0 / (CORNERS[3] + CORNERS[2] - CORNERS[1] - CORNERS[0])  # the largest value is twice its integral
    assert np.abs(spectrum - expected).max() < 2e-3 * expected.max()


def test_an_ormsby_wavelet_is_small_before_the_start() -> None:
    wavelet = Ormsby(CORNERS)
    early = wavelet.at(np.linspace(-3.0, 0.0, 2000))
    assert 3e-4 < np.abs(early).max() < 1e-3
    assert wavelet.highest == 60.0
    assert wavelet.peak == 25.0


@pytest.mark.parametrize("delay", [0.012, 0.0125])
def test_a_step_adds_the_ormsby_wavelet(delay: float) -> None:
    """Waves so slow that p stays in its cell: the second difference is dt2 vp2 s / h, also where it is 0 / 0."""
    wavelet, dt, h = Ormsby(CORNERS, delay=delay), 1e-3, 10.0
    model = mg.fletcher((9,), h, dt=dt, medium=Medium(1e-3), sources=[PointSource(None, wavelet)], dtype="f8",
                        boundary=Release(), receivers=Receivers([(40.0,)]))  # fmt: skip
    samples = mg.run(model, 30, observe=1).receivers.values[:, 0]
    second = np.diff(samples, 2) / (dt * dt * 1e-6 / h)
    assert second == pytest.approx(wavelet.at(np.arange(1, 30) * dt), abs=1e-6)


@pytest.mark.parametrize(
    "corners", [(10, 5, 40, 60), (5, 10, 10, 60), (5, 10, 40), (-1, 10, 40, 60), (5, 10, 40, math.nan), "abcd", None]
)
def test_corners_that_are_none_are_refused(corners: Any) -> None:
    with pytest.raises(CaseError, match="corner frequencies"):
        Ormsby(corners)


def test_elastic_sources_have_ormsby_wavelets() -> None:
    def largest(wavelet: Any) -> float:
        model = elastic((24, 24), 10.0, dt=1e-3, medium=ElasticMedium(2000.0, 1000.0, 2000.0),
                        sources=[Explosion(None, wavelet)], boundary=Sponge(4))  # fmt: skip
        return float(np.abs(mg.run(model, 20)["vx"].values).max())

    first = largest(Ormsby(CORNERS, delay=0.01))
    assert first > 0
    assert largest(Ormsby(CORNERS, delay=0.01, amplitude=2.0)) == pytest.approx(2 * first, rel=1e-5)


# Dipoles -----------------------------------------------------------------------------------------------------------
DIRECTION = (0.6, -0.3, 0.5)
AWAY = ((120.0, 0.0, 0.0), (0.0, 0.0, 120.0), (80.0, 80.0, 80.0), (-90.0, 30.0, 70.0))


def slope(time: np.ndarray) -> np.ndarray:
    """Derivative of the wavelet."""
    a = math.pi * RICKER.frequency
    late = time - RICKER.starts
    e = np.square(a * late)
    return np.asarray(2 * a * a * late * (2 * e - 3) * np.exp(-e))


def of_dipole(times: np.ndarray, away: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """-d . grad of s(t - r / c) / (4 pi r): what a force s d sends, positive ahead of it."""
    r = float(np.linalg.norm(away))
    late = times - r / SPEED
    found = (RICKER.at(late) / r + slope(late) / SPEED) / (4 * math.pi * r)
    return np.asarray(found * float(direction @ away) / r)


def error(h: float, *, extent: float = 440.0, top: bool = False, between: float = 0.0, dt: float = 1e-3) -> float:
    """Relative error of p of a dipole on three axes, without boundaries or below a free surface."""
    n = round(extent / h) + 1
    source = np.array([(40.0 if top else extent / 2) + between, extent / 2, extent / 2 - between])
    points = [tuple(source + away) for away in np.array(AWAY) if not top or source[0] + away[0] > 0]
    model = mg.fletcher(
        (n,) * 3, h, dt=dt, time_order=4, medium=Medium(SPEED), dtype="f8", order=8,
        sources=[PointSource(tuple(source), RICKER, direction=DIRECTION)],
        boundary=Faces(Release(), z=(Free(), Release())) if top else Release(), receivers=Receivers(points),
    )  # fmt: skip
    run = mg.run(model, round(0.13 / dt), observe=1)
    times = run.receiver_time.values
    d, image = np.array(DIRECTION), source * (-1, 1, 1)
    expected = np.stack([
        of_dipole(times, point - source, d) - (of_dipole(times, point - image, d * (-1, 1, 1)) if top else 0.0)
        for point in np.array(points)
    ], axis=1)  # fmt: skip
    return float(np.linalg.norm(run.receivers.values - expected) / np.linalg.norm(expected))


@pytest.mark.slow
def test_dipoles_send_the_derivative_of_greens_function() -> None:
    coarse, fine = error(10.0), error(20 / 3)
    assert fine < 0.01
    assert fine < coarse / 4


@pytest.mark.slow
@pytest.mark.parametrize("top", [False, True])
def test_dipoles_between_cells_and_below_a_free_surface(top: bool) -> None:
    assert error(20 / 3, top=top, between=2.0) < 0.01


def test_on_one_axis_a_dipole_sends_its_wavelet_both_ways() -> None:
    """p = s(t - |z| / c) / 2 ahead of it, and minus that behind it."""
    n, h, dt = 161, 5.0, 5e-4
    model = mg.fletcher((n,), h, dt=dt, time_order=4, medium=Medium(SPEED), dtype="f8", boundary=Release(),
                        sources=[PointSource((402.0,), RICKER, direction=(1.0,))],
                        receivers=Receivers([(302.0,), (500.0,)]))  # fmt: skip
    run = mg.run(model, 360, observe=1)
    times = run.receiver_time.values
    expected = np.stack([-0.5 * RICKER.at(times - 100.0 / SPEED), 0.5 * RICKER.at(times - 98.0 / SPEED)], axis=1)
    assert np.linalg.norm(run.receivers.values - expected) < 0.01 * np.linalg.norm(expected)


def test_a_dipole_is_the_difference_of_points() -> None:
    """To first order p of a dipole is the derivative of that of a point source; here also by a vp that varies."""
    vp = np.linspace(1800.0, 2200.0, 30)
    h, at, off = 10.0, 147.0, 0.5

    def sent(z: float, direction: tuple[float, ...] | None = None) -> np.ndarray:
        model = mg.fletcher(
            (30,),
            h,
            dt=1e-3,
            medium=Medium(vp),
            dtype="f8",
            receivers=Receivers([(52.0,), (250.0,)]),
            sources=[PointSource((z,), Ricker(12.0), direction=direction)],
            boundary=Sponge(4),
        )
        return np.asarray(mg.run(model, 150, observe=1).receivers.values)

    dipole, difference = sent(at, (2.0,)), (sent(at + off) - sent(at - off)) * (2.0 / (2 * off))
    assert np.linalg.norm(dipole - difference) < 0.01 * np.linalg.norm(dipole)


def test_a_dipole_has_the_same_bits_on_all_ranks() -> None:
    model = mg.fletcher(
        (20, 24),
        10.0,
        dt=1e-3,
        medium=Medium(np.full((20, 24), 2000.0)),
        boundary=Sponge(4),
        order=4,
        sources=[PointSource((93.0, 117.0), Ormsby(CORNERS, delay=0.01), direction=(1.0, 2.0))],
    )

    def run(ranks: int) -> str:
        def body(comm: mg.SerialComm) -> str:
            with mg.Engine(model.layouts("slabs", ranks), comm=comm) as engine:
                drive(model, engine, 10)
                return state_digest(engine, model, [f for f in model.fields if f.name == "p"])

        return mg.run_virtual(ranks, body)[0]  # type: ignore[arg-type]

    assert run(3) == run(1)


def test_a_dipole_stands_on_a_free_surface_if_it_is_vertical() -> None:
    def model(direction: tuple[float, ...] | None) -> mg.Model:
        return mg.fletcher(
            (20, 24),
            10.0,
            dt=1e-3,
            medium=Medium(2000.0),
            boundary=Faces(Sponge(4), z=Free()),
            sources=[PointSource((0.0, 120.0), RICKER, direction=direction)],
        )

    assert np.abs(mg.run(model((1.0, 0.0)), 30)["p"].values).max() > 0
    for none in (None, (0.0, 1.0)):
        with pytest.raises(CaseError, match="on a free surface"):
            model(none)


@pytest.mark.parametrize("direction", [(0.0, 0.0), (1.0, math.nan), "down", ((1.0,),), (1.0, 0.0, 0.0), (1.0,)])
def test_directions_that_are_none_are_refused(direction: Any) -> None:
    with pytest.raises(CaseError, match="direction") as caught:
        mg.fletcher((20, 24), 10.0, dt=1e-3, medium=Medium(2000.0), sources=[PointSource(None, direction=direction)])
    assert caught.value.key == "fletcher.source.direction"
    with pytest.raises(CaseError, match="legacy"):
        PointSource(None, direction=(1.0, 0.0), injection="legacy")


# Velocities ----------------------------------------------------------------------------------------------------------
def test_velocities_are_those_of_a_point_source() -> None:
    """v = (S / r^2 + s / (r c)) / (4 pi rho) outwards, with S the integral of s, half a step before the time."""
    n, h, dt, rho = 46, 20 / 3, 1e-3, 1200.0
    middle = np.full(3, n // 2 * h)
    away = np.array([(90.0, 0.0, 0.0), (60.0, -52.0, 61.0)])
    points = [tuple(middle + each) for each in away]
    model = mg.fletcher(
        (n,) * 3, h, dt=dt, time_order=4, medium=Medium(SPEED, rho=rho), dtype="f8",
        sources=[PointSource(None, RICKER)],
        boundary=Release(), receivers=Receivers(points), record=("vz", "p", "vx"),
    )  # fmt: skip
    run = mg.run(model, 100, observe=1)
    found = run.receivers.values
    late = run.receiver_time.values[:, None] - 0.5 * dt - np.linalg.norm(away, axis=1) / SPEED
    e = np.square(math.pi * RICKER.frequency * (late - RICKER.starts))
    r = np.linalg.norm(away, axis=1)
    outwards = ((late - RICKER.starts) * np.exp(-e) / r**2 + RICKER.at(late) / (r * SPEED)) / (4 * math.pi * rho)
    for columns, axis in ((slice(0, 2), 0), (slice(4, 6), 2)):
        expected = outwards * away[:, axis] / r
        assert np.linalg.norm(found[:, columns] - expected) < 0.01 * np.linalg.norm(expected)
    assert model.traces is not None
    assert model.traces.quantities == ("vz", "vz", "p", "p", "vx", "vx")


def test_a_dipole_and_a_velocity_are_reciprocal() -> None:
    """A force at A and p at B, and a monopole at B and the acceleration at A, in a medium that varies: equal."""
    a, b, dt = (87.0, 112.0), (140.0, 71.0), 1e-3
    z, x = np.meshgrid(np.arange(22.0), np.arange(25.0), indexing="ij")
    wavelet = Ricker(20.0)

    def recorded(source: PointSource, point: tuple[float, ...], **options: Any) -> np.ndarray:
        model = mg.fletcher(
            (22, 25), 10.0, dt=dt, medium=Medium(1900.0 + 9 * z + 4 * x), dtype="f8", sources=[source],
            boundary=Faces(Release(), z=(Free(), Release())), receivers=Receivers([point]), **options,
        )  # fmt: skip
        return np.asarray(mg.run(model, 150, observe=1).receivers.values[:, 0])

    pressure = recorded(PointSource(a, wavelet, direction=(0.0, 1.0)), b)
    velocity = recorded(PointSource(b, wavelet), a, record=["vx"])
    acceleration = np.diff(velocity) / dt * 1000.0
    assert np.abs(pressure[:-1] + acceleration).max() < 1e-10 * np.abs(pressure).max() != 0


VARYING = np.linspace(0.1, 0.2, 480).reshape(20, 24)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"record": ["vy"]}, "record"),
        ({"record": "vz"}, "record"),
        ({"record": 5}, "record"),
        ({"record": ["vz"], "medium": Medium(2000.0, VARYING, 0.1)}, "where epsilon varies"),
    ],
)
def test_velocities_that_cannot_be_are_refused(wrong: dict[str, Any], match: str) -> None:
    with pytest.raises(CaseError, match=match):
        mg.fletcher(
            (20, 24), 10.0, dt=1e-3, **({"medium": Medium(2000.0), "receivers": Receivers([(50.0, 50.0)])} | wrong)
        )


def moving() -> mg.Model:
    return mg.fletcher(
        (20, 24), 10.0, dt=1e-3, medium=Medium(2000.0), boundary=Sponge(4), sources=[PointSource(None, RICKER)],
        receivers=Receivers([(93.0, 117.0), (50.0, 60.0)]), record=("vz", "vx"),
    )  # fmt: skip


def test_velocities_have_the_same_bits_on_all_ranks() -> None:
    def run(ranks: int) -> Any:
        def body(comm: mg.SerialComm) -> Any:
            model = moving()
            with mg.Engine(model.layouts("slabs", ranks), comm=comm) as engine:
                return drive(model, engine, 30).observables["receivers"]

        return mg.run_virtual(ranks, body)[0]  # type: ignore[arg-type]

    alone = run(1)
    assert np.abs(alone).max() > 0
    assert np.array_equal(run(3), alone)


def test_velocities_are_part_of_checkpoints(tmp_path: Path) -> None:
    whole = mg.run(moving(), 40, observe=1)
    mg.run(moving(), 21, out=tmp_path / "run", observe=1, checkpoint={"every": 7, "at_end": True})
    again = mg.run(moving(), 40, out=tmp_path / "run", observe=1, resume=True)
    assert np.abs(whole.receivers.values[-1]).max() > 0
    assert again.receivers.values[-19:].tobytes() == whole.receivers.values[-19:].tobytes()
