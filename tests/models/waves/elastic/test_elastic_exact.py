"""Elastic waves against closed solutions: explosions in full and half space, plane waves at an interface."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.waves import Cpml, Faces, Free, Medium, Periodic, PointSource, Receivers, Release, Ricker
from minga.models.waves.elastic import ElasticMedium, Explosion, Force, Moment, elastic, prepare_elastic
from models.waves.elastic.elastic_runs import started

ALPHA, BETA, RHO = 3000.0, 1700.0, 2200.0
WITHIN = ElasticMedium(ALPHA, BETA, RHO)


def displacements(model: mg.Model, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Times, and displacements at the receivers then, from their velocities half a step before and after."""
    dt = model.parameters["dt"]
    velocities = mg.run(model, steps, observe=1).receivers.values
    return np.arange(steps + 1) * dt, np.cumsum(velocities, axis=0) * dt


def ricker(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R(10 Hz, 0.1 s) and its derivative, 0 before 0."""
    a, s = (math.pi * 10) ** 2, t - 0.1
    e = np.exp(-a * s * s) * (t >= 0)
    return (1 - 2 * a * s * s) * e, -2 * a * s * (3 - 2 * a * s * s) * e


@pytest.mark.slow
def test_an_explosion_in_full_space_is_the_closed_solution() -> None:
    """The error is that of steps in time, 0.3 % at 33 points a period; there are no S waves across the ray."""
    model = elastic(
        (61, 61, 61), 10.0, dt=1e-3, medium=WITHIN, dtype="f8", boundary=Cpml(12),
        sources=[Explosion((300.0,) * 3, Ricker(10.0, 0.1, 1e12))],
        receivers=Receivers([(300.0, 300.0, 500.0), (300.0, 460.0, 420.0), (500.0, 300.0, 300.0)]),
        record=("vz", "vy", "vx"),
    )  # fmt: skip
    t, u = displacements(model, 240)
    tau, r = t - 200.0 / ALPHA, 200.0
    value, slope = ricker(tau)
    exact = 1e12 / (4 * math.pi * RHO * ALPHA**2) * (value / r**2 + slope / (r * ALPHA))
    z, y, x = u[:, 0:3], u[:, 3:6], u[:, 6:9]
    along = (x[:, 0], 0.8 * y[:, 1] + 0.6 * x[:, 1], z[:, 2])
    for found in along:
        assert np.linalg.norm(found - exact) < 0.004 * np.linalg.norm(exact)
        published = np.interp(np.array([0.05, 0.08, 0.12]) + r / ALPHA, t, found)
        assert published == pytest.approx([-1.420035e-4, 4.081216e-4, -3.796276e-4], rel=5e-3)
    assert abs(0.6 * y[:, 1] - 0.8 * x[:, 1]).max() < 5e-3 * abs(exact).max()


def stokes(place: np.ndarray, along: int, t: np.ndarray) -> np.ndarray:
    """Displacements (time, component) by a point force R(12 Hz, 0.1 s) along an axis, at a place relative to it.

    Source: G. G. Stokes, 1849; K. Aki, P. G. Richards, Quantitative Seismology, 2nd ed., eq. 4.23.
    """
    wavelet = Ricker(12.0, 0.1)

    def force(times: np.ndarray) -> np.ndarray:
        return np.where(times < 0, 0.0, wavelet.at(times))

    r = float(np.linalg.norm(place))
    g, own = place / r, np.eye(3)[along]
    delays = np.linspace(r / ALPHA, r / BETA, 2001)
    near = np.trapezoid(delays * force(t[:, None] - delays), delays, axis=1) / r**3
    p, s = force(t - r / ALPHA) / (ALPHA**2 * r), force(t - r / BETA) / (BETA**2 * r)
    along_ray = g * g[along]
    found = np.outer(near, 3 * along_ray - own) + np.outer(p, along_ray) - np.outer(s, along_ray - own)
    return np.asarray(found / (4 * math.pi * RHO))


@pytest.mark.slow
@pytest.mark.parametrize("couple", [False, True])
def test_forces_and_couples_in_full_space_are_those_of_stokes(couple: bool) -> None:
    """A force along z, and the double couple of z and x, whose waves are derivatives of those of forces."""
    middle, away = 490.0, [(200.0, 0.0, 0.0), (0.0, 0.0, 200.0), (140.0, 0.0, 140.0), (90.0, 110.0, 130.0)]
    wavelet = Ricker(12.0, 0.1)
    source = Force((middle,) * 3, (1.0, 0.0, 0.0), wavelet)
    if couple:
        source = Moment((middle,) * 3, ((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)), wavelet)
    model = elastic(
        (100, 100, 100), 10.0, dt=1e-3, medium=WITHIN, dtype="f8", boundary=Release(), sources=[source],
        receivers=Receivers([tuple(middle + d for d in place) for place in away]), record=("vz", "vy", "vx"),
    )  # fmt: skip
    t, u = displacements(model, 230)
    for number, place in enumerate(away):
        x, step = np.array(place), 0.1
        exact = stokes(x, 0, t)
        if couple:
            pairs = [
                (stokes(x - step * np.eye(3)[k], j, t), stokes(x + step * np.eye(3)[k], j, t))
                for j, k in ((0, 2), (2, 0))
            ]
            exact = sum((low - high) / (2 * step) for low, high in pairs)
        found = u[:, [number, 4 + number, 8 + number]]
        assert np.linalg.norm(found - exact) < 0.01 * np.linalg.norm(exact)


GARVIN = np.array([
    [0.2114, -4.90604e-5, -1.65149e-5], [0.2514, 1.285864e-4, 5.74320e-5], [0.2914, -8.27146e-5, -3.56654e-5],
    [0.3643, 3.62244e-5, 6.1151e-6], [0.4043, -1.45527e-5, 2.43304e-5],
])  # fmt: skip
"""Time, and displacements away and up, 300 m from a line explosion 50 m below a free surface (Cagniard-de Hoop)."""


@pytest.mark.slow
@pytest.mark.parametrize("order", [4, 8])
def test_garvins_problem(order: int) -> None:
    """Errors at the surface fall with the square of the spacing: 2 and 6 % of the peaks at 10 m, 0.5 and 1.8 at 5 m."""
    errors = []
    for h in (10.0, 5.0):
        shape = (round(600 / h) + 1, round(1000 / h) + 1)
        model = elastic(
            shape, h, dt=1e-4 * h, medium=ElasticMedium(3000.0, 1500.0, 2200.0), order=order, dtype="f8",
            boundary=Faces(Cpml(20), z=(Free(), Cpml(20))),
            sources=[Explosion((50.0, 350.0), Ricker(10.0, 0.15, 1e9))],
            receivers=Receivers([(0.0, 650.0)]), record=("vx", "vz"),
        )  # fmt: skip
        t, u = displacements(model, round(0.45 / (1e-4 * h)))
        away, up = np.interp(GARVIN[:, 0], t, u[:, 0]), -np.interp(GARVIN[:, 0], t, u[:, 1])
        errors.append([
            abs(found - GARVIN[:, k]).max() / abs(GARVIN[:, k]).max() for k, found in ((1, away), (2, up))
        ])  # fmt: skip
    coarse, fine = np.array(errors)
    assert (coarse < [0.025, 0.07]).all()
    assert (fine < [0.007, 0.021]).all()
    assert (coarse / fine > 3.0).all()


def column(medium: ElasticMedium, state: dict[str, np.ndarray], steps: int, dt: float, names: tuple[str, ...]) -> Any:
    """Waves along z in a column that is periodic across."""
    length = next(iter(state.values())).shape[0]
    waves = prepare_elastic(
        (length, 8), 5.0, dt=dt, medium=medium, order=8, dtype="f8", boundary=Faces(Cpml(20), x=Periodic())
    )
    wide = {name: np.pad(values, ((20, 20), (0, 0))) for name, values in state.items()}
    with started(waves, wide) as (engine, stepping):
        engine.run(stepping.step, steps)
        return {name: np.asarray(engine.gather(waves.named[name]))[20:-20, 0] for name in names}


def pulse(length: int, middle: float, speed: float, rho: float, dt: float, shear: bool) -> dict[str, np.ndarray]:
    """A plane wave that travels down, of velocity 1; velocities lie half a step before the stresses."""
    z = np.arange(length) * 5.0

    def shape(place: np.ndarray) -> np.ndarray:
        return np.repeat(np.exp(-(((place - middle) / 60.0) ** 2))[:, None], 8, axis=1)

    early = -0.5 * speed * dt
    if shear:
        return {"vx": shape(z - early), "sxz": -rho * speed * shape(z + 2.5)}
    return {"vz": shape(z + 2.5 - early), "szz": -rho * speed * shape(z)}


@pytest.mark.parametrize("shear", [False, True], ids=["P", "S"])
def test_plane_waves_travel_at_their_speeds(shear: bool) -> None:
    dt, steps, length = 5e-4, 400, 300
    speed = BETA if shear else ALPHA
    state = pulse(length, 300.0, speed, RHO, dt, shear)
    name = "vx" if shear else "vz"
    found = column(WITHIN, state, steps, dt, (name,))[name]
    z = np.arange(length) * 5.0 + (0.0 if shear else 2.5)
    expected = np.exp(-(((z - 300.0 - speed * (steps - 0.5) * dt) / 60.0) ** 2))
    centre = (z * found).sum() / found.sum()
    assert centre == pytest.approx(300.0 + speed * (steps - 0.5) * dt, abs=0.3)
    assert abs(found - expected).max() < 5e-3


def test_zoeppritz_at_normal_incidence() -> None:
    """Displacements 0.204819 up and 0.795181 down of 3000 m/s, 2200 kg/m3 over 4000, 2500; here as velocities."""
    length, dt, middle = 400, 4e-4, 1000.0
    lower = np.arange(length)[:, None] * 5.0 >= middle
    medium = ElasticMedium(*(np.where(lower, b, a) * np.ones((length, 8)) for a, b in
                             ((3000.0, 4000.0), (1500.0, 2300.0), (2200.0, 2500.0))))  # fmt: skip
    found = column(medium, pulse(length, 600.0, 3000.0, 2200.0, dt, False), 625, dt, ("vz", "szz"))
    above, below = found["vz"][:200], found["vz"][200:]
    # The pulse of area 1 keeps its duration: its width in space is that of the speed.
    area = 60.0 * math.sqrt(math.pi)
    reflected, passed = above.sum() * 5.0 / area, below.sum() * 5.0 / area * 3000.0 / 4000.0
    assert reflected == pytest.approx(-0.204819, abs=2e-3)
    assert passed == pytest.approx(0.795181, abs=2e-3)


def test_fluid_over_solid_at_normal_incidence() -> None:
    """With impedances of 1.5e6 and 6.6e6 the velocity that passes is 2 Z1 / (Z1 + Z2), and no S wave arises."""
    length, dt, middle = 400, 4e-4, 1000.0
    lower = np.arange(length)[:, None] * 5.0 >= middle
    medium = ElasticMedium(*(np.where(lower, b, a) * np.ones((length, 8)) for a, b in
                             ((1500.0, 3000.0), (0.0, 1500.0), (1000.0, 2200.0))))  # fmt: skip
    found = column(medium, pulse(length, 700.0, 1500.0, 1000.0, dt, False), 900, dt, ("vz", "vx"))
    area = 60.0 * math.sqrt(math.pi)
    reflected, passed = found["vz"][:200].sum() * 5.0 / area, found["vz"][200:].sum() * 5.0 / area * 0.5
    assert reflected == pytest.approx(-(6.6 - 1.5) / 8.1, abs=3e-3)
    assert passed == pytest.approx(3.0 / 8.1, abs=3e-3)
    assert not found["vx"].any()


@pytest.mark.slow
def test_a_fluid_has_the_waves_of_the_acoustic_equation() -> None:
    """An explosion of moment M makes the pressure of a source M'' / c^2: p_tt / c^2 - lap p = M'' delta / c^2."""
    c, dt = 2000.0, 5e-4
    model = elastic(
        (101, 101), 10.0, dt=dt, medium=ElasticMedium(c, 0.0, 1000.0), dtype="f8", boundary=Cpml(12),
        sources=[Explosion((500.0, 500.0), Ricker(10.0, 0.1))], receivers=Receivers([(500.0, 700.0), (640.0, 641.4)]),
    )  # fmt: skip
    found = mg.run(model, 600, observe=1).receivers.values
    acoustic = mg.fletcher(
        (101, 101), 10.0, dt=dt, medium=Medium(c), dtype="f8", boundary=Cpml(12),
        sources=[PointSource((500.0, 500.0), Ricker(10.0, 0.1))],
        receivers=Receivers([(500.0, 700.0), (640.0, 641.4)]),
    )  # fmt: skip
    potential = mg.run(acoustic, 600, observe=1).receivers.values
    second = (potential[2:] - 2 * potential[1:-1] + potential[:-2]) / (dt * dt) / c**2
    assert np.linalg.norm(found[1:-1] - second) < 0.01 * np.linalg.norm(second)


def test_a_force_and_a_velocity_are_reciprocal() -> None:
    """In any medium, also at a free surface, for components in different directions at different places."""
    rng = np.random.default_rng(4)
    shape = (30, 34)
    vp = 2500.0 + 30.0 * rng.standard_normal(shape)
    medium = ElasticMedium(vp, 0.55 * vp, 0.7 * vp)

    def trace(place: tuple[float, float], direction: tuple[float, float], at: tuple[float, float], name: str) -> Any:
        model = elastic(
            shape, 10.0, dt=1e-3, medium=medium, dtype="f8", boundary=Cpml(8),
            sources=[Force(place, direction, Ricker(12.0))], receivers=Receivers([at]), record=(name,),
        )  # fmt: skip
        return mg.run(model, 200, observe=1).receivers.values[:, 0]

    one = trace((93.0, 101.0), (1.0, 0.0), (170.0, 222.0), "vx")
    other = trace((170.0, 222.0), (0.0, 1.0), (93.0, 101.0), "vz")
    assert abs(one).max() > 0
    assert np.linalg.norm(one - other) < 1e-9 * np.linalg.norm(one)


@pytest.mark.slow
def test_forces_on_a_free_surface_are_reciprocal_as_cells_shrink() -> None:
    """Derivatives beside the surface are of second order, and not each other's transpose."""

    def trace(h: float, place: tuple[float, float], at: tuple[float, float], name: str) -> np.ndarray:
        model = elastic(
            (round(400 / h), round(600 / h)), h, dt=1e-4 * h, medium=ElasticMedium(2500.0, 1400.0, 2000.0), order=4,
            dtype="f8", boundary=Faces(Cpml(10), z=(Free(), Cpml(10))), record=(name,), receivers=Receivers([at]),
            sources=[Force(place, (1.0, 0.0) if name == "vz" else (0.0, 1.0), Ricker(12.0))],
        )  # fmt: skip
        return np.asarray(mg.run(model, round(3500 / h), observe=1).receivers.values[:, 0])

    for name in ("vz", "vx"):
        errors = []
        for h in (10.0, 5.0):
            one = trace(h, (0.0, 101.0), (170.0, 422.0), name)
            other = trace(h, (170.0, 422.0), (0.0, 101.0), name)
            errors.append(np.linalg.norm(one - other) / np.linalg.norm(one))
        assert errors[0] < 0.03
        assert errors[1] < 0.5 * errors[0]


def test_a_couple_is_a_moment() -> None:
    """Two forces a cell apart in z, opposed along z, are a moment Mzz of F times their distance."""
    common: dict[str, Any] = {
        "dt": 1e-3, "medium": WITHIN, "dtype": "f8", "boundary": Cpml(8), "receivers": Receivers([(330.0, 420.0)]),
        "record": ("vz", "vx"),
    }  # fmt: skip
    h, wavelet = 10.0, Ricker(8.0)
    forces = [Force((200.0 + s * h / 2, 200.0), (s, 0.0), wavelet) for s in (1.0, -1.0)]
    pair = mg.run(elastic((50, 50), h, sources=forces, **common), 300, observe=1).receivers.values
    moment = Moment((200.0, 200.0), ((h, 0.0), (0.0, 0.0)), wavelet)
    single = mg.run(elastic((50, 50), h, sources=[moment], **common), 300, observe=1).receivers.values
    assert np.linalg.norm(pair - single) < 0.01 * np.linalg.norm(single)
