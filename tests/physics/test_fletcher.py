"""Waves against what is known of them: closed forms, travel times, limits of stability, reversal, absorbing layers.

Sizes are small enough for every day; those marked slow are the full ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.begin import start
from minga.models.waves import Cpml, Medium, Random, Release, Ricker
from minga.models.waves.boundary import domain_of, faces_of
from minga.models.waves.interpolation import place
from minga.models.waves.stability import Extremes

H = 12.5
DIP, AZIMUTH = math.pi / 4, 1.0
UNCHECKED = Extremes(dt_limit=1.0, slowest_p=3000.0, fastest_p=3650.0, largest_vp=3000.0, slowest_sv=None)
"""Passed where a test asks for what is refused otherwise."""


def run(model: mg.Model, steps: int) -> dict[str, np.ndarray]:
    """p and q after so many steps."""
    with mg.Engine(model.layouts("single", 1)) as engine:
        start(model, engine)
        assert engine.run(model.step, steps)
        fields = [model.field(name) for name in "pq" if name in {f.name for f in model.fields}]
        return {f.name: np.asarray(engine.gather(f), "f8") for f in fields}


def from_the_middle(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates z, y, x of the cells of a cube, in metres from its middle cell."""
    along = (np.arange(n) - n // 2) * H
    return along[:, None, None], along[:, None], along


def axis_part(z: np.ndarray, y: np.ndarray, x: np.ndarray, theta: float, phi: float) -> np.ndarray:
    """How far points lie along the axis of symmetry."""
    return x * np.sin(theta) * np.cos(phi) + y * np.sin(theta) * np.sin(phi) + z * np.cos(theta)


# The closed form -----------------------------------------------------------------------------------------------------
def exact(
    n: int, steps: int, dt: float, epsilon: float, theta: float, phi: float, spacing: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """A point source in an elliptic medium (epsilon = delta), and the distance from it, in metres."""
    z, y, x = (i / H * h for i, h in zip(from_the_middle(n), spacing, strict=True))
    vpx, vpz = 3000 * math.sqrt(1 + 2 * epsilon), 3000.0
    r2, along2 = x**2 + y**2 + z**2, axis_part(z, y, x, theta, phi) ** 2
    travel = np.sqrt((r2 - along2) / vpx**2 + along2 / vpz**2)
    travel[n // 2, n // 2, n // 2] = 1  # the source itself, where the wave is not known
    wave = Ricker().at(steps * dt - travel)
    return wave * vpz / (4 * math.pi * vpx**2 * travel), np.sqrt(r2)


def closed_form_error(
    medium: tuple[float, float, float],
    n: int,
    steps: int,
    dt: float,
    spacing: tuple[float, ...] = (H,) * 3,
    **more: Any,
) -> float:
    """Relative error (L2) between six cells from the source and where walls could be felt; p == q is asserted."""
    epsilon, theta, phi = medium
    rock = Medium(3000.0, epsilon, epsilon, theta, phi)
    found = run(mg.fletcher((n,) * 3, spacing, dt=dt, medium=rock, boundary=Release(), **more), steps)
    assert "q" not in found or (found["p"] == found["q"]).all()
    expected, distance = exact(n, steps, dt, epsilon, theta, phi, spacing)
    fastest = 3000 * math.sqrt(1 + 2 * epsilon)
    there = (distance > 6 * H) & (distance < n * min(spacing) - fastest * (steps * dt - 0.02))
    assert abs(expected[there]).max() > 1e-4
    return float(np.linalg.norm((found["p"] - expected)[there]) / np.linalg.norm(expected[there]))


ISO, VTI, TTI = (0.0, 0.0, 0.0), (0.2, 0.0, 0.0), (0.2, DIP, AZIMUTH)


@pytest.mark.slow
def test_a_point_source_has_its_closed_form() -> None:
    assert closed_form_error(TTI, 48, 110, 1e-3) < 0.01


def test_cells_may_be_longer_along_one_axis() -> None:
    assert closed_form_error(ISO, 48, 100, 1e-3, (11.0, 12.5, 15.0)) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"order": 12}, {"order": 16}, {"form": "selfadjoint"}, {"dtype": "f8"}])
def test_other_forms_have_the_closed_form_too(more: dict[str, Any]) -> None:
    assert closed_form_error(TTI, 64, 130, 1e-3, **more) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("medium", [ISO, VTI, TTI])
def test_all_elliptic_media_have_their_closed_form(medium: tuple[float, float, float]) -> None:
    assert closed_form_error(medium, 100, 180, 1e-3) < 0.01
    assert closed_form_error(medium, 100, 360, 5e-4) < 0.002


# Stability -----------------------------------------------------------------------------------------------------------
def largest_of_noise(n: int, steps: int, epsilon: float, delta: float, sigma: float, dt: float = 1e-3) -> float:
    """The largest |p| that noise between ends of pressure release has become; looked at early enough to see no NaN."""
    model = mg.fletcher(
        (n,) * 3, H, dt=dt, medium=Medium(3000.0, epsilon, delta, DIP, AZIMUTH), sigma=sigma, boundary=Release(),
        sources=[], extremes=UNCHECKED,
    )  # fmt: skip
    noise = np.random.default_rng(1).standard_normal(model.grid.shape)
    with mg.Engine(model.layouts("single", 1)) as engine:
        start(model, engine)
        for field in model.fields[:2]:
            engine.set(field, noise)
            engine.set(field.previous, noise)
        largest = 0.0
        for _ in range(0, steps, 100):
            engine.run(model.step, 100)
            largest = float(abs(np.asarray(engine.gather(model.field("p")))).max())
            if not largest < 1e6:
                break
        return largest


GROWTH = [
    (0.24, 0.10, 0.75, False),
    (0.24, 0.10, math.inf, False),
    (0.10, 0.24, 0.75, False),
    (0.10, 0.24, math.inf, True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "sigma", "grows"), GROWTH[2:])
def test_only_a_medium_without_shear_and_epsilon_below_delta_grows(
    epsilon: float, delta: float, sigma: float, grows: bool
) -> None:
    largest = largest_of_noise(24, 300, epsilon, delta, sigma)
    assert (not largest < 1e6) if grows else largest < 10


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "sigma", "grows"), GROWTH)
def test_growth_at_full_size(epsilon: float, delta: float, sigma: float, grows: bool) -> None:
    largest = largest_of_noise(48, 1500, epsilon, delta, sigma)
    assert (not largest < 1e6) if grows else largest < 10


@pytest.mark.slow
@pytest.mark.parametrize(("dt", "grows"), [(1.66e-3, False), (1.70e-3, True)])
def test_the_limit_of_the_time_step_is_sharp(dt: float, grows: bool) -> None:
    largest = largest_of_noise(24, 400, 0.24, 0.10, 0.75, dt)
    assert (not largest < 1e6) if grows else largest < 20


# Travel times --------------------------------------------------------------------------------------------------------
def best_velocity(distance: np.ndarray, wave: np.ndarray, time: float, about: float) -> float:
    """The velocity at which a spherical Ricker wave fits samples of p best."""
    tried = about * np.linspace(0.95, 1.05, 401)
    shapes = [Ricker().at(time - distance / v) for v in tried]
    fits = [float((wave * distance * s).sum() / np.linalg.norm(s)) for s in shapes]
    return float(tried[int(np.argmax(fits))])


GROUP_VELOCITIES = {0: 3000.0, 15: 3018.0, 45: 3199.4, 75: 3560.3, 90: 3649.7}
"""Of P waves with epsilon 0.24, delta 0.1 and sigma 0.75, m/s, by the angle of the ray with the axis in degrees."""


@pytest.mark.slow
def test_waves_in_a_tilted_medium_travel_at_the_group_velocity() -> None:
    n, steps, dt = 128, 200, 1e-3
    model = mg.fletcher((n,) * 3, H, dt=dt, medium=Medium(3000.0, 0.24, 0.10, DIP, AZIMUTH), boundary=Release())
    p = run(model, steps)["p"]
    axis = np.array([math.cos(DIP), math.sin(DIP) * math.sin(AZIMUTH), math.sin(DIP) * math.cos(AZIMUTH)])
    aside = np.cross(axis, [0.0, 0.0, 1.0])
    aside /= np.linalg.norm(aside)
    radii = np.arange(18, 58, 0.5) * H
    for angle, velocity in GROUP_VELOCITIES.items():
        gate = 0.01 if angle < 20 else 0.003  # near the axis SV waves are not far enough behind
        ray = math.cos(math.radians(angle)) * axis + math.sin(math.radians(angle)) * aside
        points = [tuple(ray * r + (n // 2) * H) for r in radii]
        samples = np.array([_at(p, point) for point in points])
        assert best_velocity(radii, samples, steps * dt, velocity) == pytest.approx(velocity, rel=gate), angle


def _at(p: np.ndarray, point: tuple[float, ...]) -> float:
    """p at a point in metres."""
    placed = place(point, domain_of(p.shape, (H,) * 3, faces_of(Release(), 3)), "sinc", "receiver")
    z, y, x = placed.weights
    return float((z[:, None, None] * y[:, None] * x * p[placed.box.slices((0, 0, 0))]).sum())


# Reversal ------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "gate"), [("f4", 1e-5), pytest.param("f8", 1e-12, marks=pytest.mark.slow)])
def test_random_layers_let_time_run_backwards(dtype: str, gate: float) -> None:
    model = mg.fletcher(
        (16,) * 3,
        H,
        dt=1e-3,
        medium=Medium(3000.0, 0.24, 0.10, DIP, AZIMUTH),
        boundary=Random(6),
        sources=[],
        dtype=dtype,
    )
    p, q = model.field("p"), model.field("q")
    z, y, x = from_the_middle(model.grid.shape[0])
    pulse = np.exp(-(x**2 + y**2 + z**2) / (2 * (3 * H) ** 2))
    turn = mg.Program("turn")
    turn.rotate(p, q)
    with mg.Engine(model.layouts("single", 1)) as engine:
        start(model, engine)
        for field in (p, q):
            engine.set(field, pulse)
            engine.set(field.previous, pulse)
        engine.run(model.step, 200)
        scattered = np.asarray(engine.gather(p), "f8")
        engine.run(turn)
        engine.run(model.step, 200)
        found = np.asarray(engine.gather(p), "f8")
    assert np.linalg.norm(scattered - pulse) > 0.5 * np.linalg.norm(pulse)
    assert np.linalg.norm(found - pulse) < gate * np.linalg.norm(pulse)


# Absorbing layers ----------------------------------------------------------------------------------------------------
def energy(model: mg.Model, steps: int, looks: int) -> list[float]:
    """The norm of p after each of so many equal parts of a run."""
    found = []
    with mg.Engine(model.layouts("single", 1)) as engine:
        start(model, engine)
        for _ in range(looks):
            engine.run(model.step, steps // looks)
            found.append(float(np.linalg.norm(np.asarray(engine.gather(model.field("p")), "f8"))))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma", "calm"),
    [
        (0.0, 0.0, 0.75, True),
        (0.24, 0.1, 0.75, True),
        (0.4, 0.0, 0.75, True),
        (0.2, 0.2, 0.75, True),
        (0.1, 0.2, 0.75, False),
    ],
)
def test_matched_layers_stay_calm_where_epsilon_is_not_below_delta(
    epsilon: float, delta: float, sigma: float, calm: bool
) -> None:
    n, steps = 20, 5000  # sixty crossings of a P wave
    model = mg.fletcher(
        (n,) * 3, H, dt=1e-3, medium=Medium(3000.0, epsilon, delta), sigma=sigma, order=4, boundary=Cpml(8),
        extremes=None if calm else UNCHECKED,
    )  # fmt: skip
    found = energy(model, steps, 20)
    assert (max(found[10:]) < 0.1 * max(found[:4])) if calm else found[-1] > 10 * min(found)
