"""Particle velocities in anisotropic media and where the density varies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import Comm
from minga.errors import CaseError
from minga.models.waves import (
    Attenuation,
    Cpml,
    Medium,
    PointSource,
    Receivers,
    Release,
    Ricker,
    Shot,
    Sponge,
    linearised_shots,
    prepare,
    shot_born,
    shot_gradient,
    shot_traces,
)
from minga.models.waves.elastic import ElasticMedium, Explosion, prepare_elastic
from minga.models.waves.stencils import first_weights, halfway_weights, second_weights
from minga.models.waves.velocity import _weights

RHO, SPEED, H = 1500.0, 2000.0, 10.0
ALL = ("p", "vz", "vx")
WAVELET = Ricker(20.0, 0.06)


def traces(
    shape: Any, medium: Medium, source: Any, places: Any, samples: int, *, h: float = H,
    wavelet: Ricker = WAVELET, **options: Any,
) -> np.ndarray:  # fmt: skip
    """Samples of p, vz and vx: shape (samples, quantity, receiver)."""
    given: dict[str, Any] = {"dt": 1e-3, "boundary": Sponge(20), "dtype": "f8"}
    waves = prepare(shape, h, medium=medium, **(given | options))
    shot = Shot([PointSource(source, wavelet)], Receivers(places), record=ALL)
    return shot_traces(waves, shot, samples).reshape(samples, 3, len(places))


@pytest.mark.parametrize("theta", [0.0, 0.4])
@pytest.mark.parametrize("sigma", [0.75, 2.0, math.inf])
def test_displacements_are_those_of_elastic_waves(sigma: float, theta: float) -> None:
    """Plane waves P and SV: frequencies and polarisations of Fletcher's equations are those of Christoffel's."""
    epsilon, delta = 0.24, 0.1
    medium = Medium(SPEED, epsilon, delta, theta)
    waves = prepare((20, 20), H, dt=1e-3, medium=medium, sigma=sigma)
    at = {"epsilon": epsilon, "delta": delta, "theta": theta}
    pz, s = 1.0, 0.0 if math.isinf(sigma) else (epsilon - delta) / sigma
    px, pn = 1 + 2 * epsilon, 1 + 2 * delta
    cross = math.sqrt((pz - s) * (pn - s))
    for angle in np.linspace(0.1, 1.4, 7):
        across, along = math.sin(angle), math.cos(angle)
        fletcher = np.array(
            [
                [px * across**2 + s * along**2, (pz - s) * along**2],
                [(pn - s) * across**2, pz * along**2 + s * across**2],
            ]
        )
        christoffel = np.array(
            [
                [px * across**2 + s * along**2, cross * across * along],
                [cross * across * along, s * across**2 + along**2],
            ]
        )
        values, vectors = np.linalg.eig(fletcher)
        exact = np.linalg.eigvalsh(christoffel)
        assert sorted(values) == pytest.approx(exact, abs=1e-12)
        k = {
            "z": along * math.cos(theta) - across * math.sin(theta),
            "x": along * math.sin(theta) + across * math.cos(theta),
        }
        for value, (p, q) in zip(values, vectors.T, strict=True):
            u = {}
            for axis, name in enumerate("zx"):
                for_p, for_q = _weights(waves, axis, at)
                u[name] = sum((for_p[j] * p + for_q[j] * q) * k[other] for j, other in enumerate("zx"))
            turned = np.array([u["x"] * math.cos(theta) - u["z"] * math.sin(theta),
                               u["x"] * math.sin(theta) + u["z"] * math.cos(theta)])  # fmt: skip
            assert christoffel @ turned == pytest.approx(value * turned, abs=1e-12)


@pytest.mark.parametrize("tilt", [0.0, 0.5])
def test_ellipses_have_the_gradient_of_p(tilt: float) -> None:
    """In a medium with epsilon = delta, q equals p, so that velocities follow from differences of p between cells."""
    delta, steps, (z, x) = 0.15, 160, (260.0, 300.0)
    weights = [float(w) for w in first_weights(8)]
    offsets = [k for k in range(-4, 5) if k]
    places = [(z, x), *((z + H * k, x) for k in offsets), *((z, x + H * k) for k in offsets)]
    medium = Medium(SPEED, delta, delta, tilt, rho=RHO)
    found = traces((50, 52), medium, (150.0, 200.0), places, steps)
    p, slopes = found[:, 0], []
    for part in (p[:, 1:9], p[:, 9:]):
        slopes.append(sum(w / H * (part[:, 4 + k] - part[:, 3 - k]) for k, w in enumerate(weights)))
    n = math.cos(tilt), math.sin(tilt)
    along = n[0] * slopes[0] + n[1] * slopes[1]
    for axis in range(2):
        force = slopes[axis] + n[axis] * along * (1 / math.sqrt(1 + 2 * delta) - 1)
        expected = np.concatenate([[0.0], np.cumsum(-1e-3 / RHO * force)[:-1]])
        size = np.abs(expected).max()
        assert found[:, 1 + axis, 0] == pytest.approx(expected, abs=1e-9 * size)


@pytest.mark.slow
def test_velocities_turn_with_the_axis() -> None:
    tilt, steps, middle = 0.6, 330, 500.0
    options: dict[str, Any] = {"dt": 8e-4, "order": 16, "time_order": 4, "boundary": Sponge(30)}
    records = []
    for angle in (0.0, tilt):
        cos, sin = math.cos(angle), math.sin(angle)
        places = [(middle + z * cos - x * sin, middle + z * sin + x * cos) for z, x in ((250.0, 120.0), (-80.0, 260.0))]
        found = traces((101, 101), Medium(SPEED, 0.2, 0.1, angle, rho=RHO), (middle, middle), places, steps, **options)
        vz, vx = found[:, 1], found[:, 2]
        records.append(np.stack([vz * cos + vx * sin, vx * cos - vz * sin]))
    assert records[1] == pytest.approx(records[0], abs=0.01 * np.abs(records[0]).max())


def test_a_medium_that_is_nearly_isotropic_has_the_velocities_of_an_isotropic_one() -> None:
    place = [(203.0, 307.0)]
    isotropic = traces((50, 52), Medium(SPEED, rho=RHO), (250.0, 260.0), place, 160)
    for theta in (0.0, 0.7):
        other = traces((50, 52), Medium(SPEED, 1e-9, 1e-9, theta, rho=RHO), (250.0, 260.0), place, 160)
        # Mixed derivatives have another stencil than straight ones.
        assert other == pytest.approx(isotropic, abs=(1e-6 if theta == 0.0 else 0.02) * np.abs(isotropic).max(0).max())


@pytest.mark.parametrize("interpolation", ["sinc", "linear"])
def test_velocities_between_cells_have_the_flux_of_the_operator(interpolation: Any) -> None:
    """Halfway between two cells, beside a jump of the density: dv/dt is the slope of p over the mean of both."""
    rho = 1200.0 + 1500.0 * (np.arange(40) > 21)[:, None] + 7.0 * np.arange(44)
    weights, steps = [float(w) for w in halfway_weights(4)], 140
    for axis, place in ((0, (215.0, 200.0)), (1, (230.0, 195.0))):
        away = [tuple(x + H * (k + 0.5) * (a == axis) for a, x in enumerate(place)) for k in range(-4, 4)]
        waves = prepare(rho.shape, H, dt=1e-3, medium=Medium(SPEED, rho=rho), boundary=Sponge(10), dtype="f8")
        shot = Shot(
            [PointSource((150.0, 130.0), Ricker(20.0, 0.06))],
            Receivers([place, *away], interpolation=interpolation), record=("p", ("vz", "vx")[axis]),
        )  # fmt: skip
        p, v = shot_traces(waves, shot, steps).reshape(steps, 2, 9).transpose(1, 0, 2)
        slope = sum(w / H * (p[:, 5 + k] - p[:, 4 - k]) for k, w in enumerate(weights))
        low, high = (tuple(round(x / H) for x in point) for point in away[3:5])
        expected = np.concatenate([[0.0], np.cumsum(-2e-3 / (rho[low] + rho[high]) * slope)[:-1]])
        assert np.abs(expected).max() > 0
        assert v[:, 0] == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())


@pytest.mark.slow
def test_velocities_where_the_density_varies_are_those_on_a_finer_grid() -> None:
    """Across a jump within a wavelength of receivers, and in a density that varies as fast as the waves."""
    places = [(400.0, 450.0), (395.0, 433.0), (430.0, 470.0), (333.0, 517.0), (402.0, 433.0)]

    def record(finer: int, smooth: bool) -> np.ndarray:
        h, shape, steps = H / finer, (70 * finer + 1, 80 * finer + 1), 350 * finer
        z, x = np.arange(shape[0])[:, None] * h, np.arange(shape[1]) * h
        deep = z + 0.0 * x > 405.0
        waved = 1500.0 + 700.0 * np.sin(2 * np.pi * z / 150.0) * np.cos(2 * np.pi * x / 170.0)
        medium = (
            Medium(2000.0, rho=waved) if smooth else Medium(np.where(deep, 2400.0, 1800.0), rho=1e3 + 1200.0 * deep)
        )
        found = traces(
            shape, medium, (200.0, 300.0), places, steps + 1, h=h, dt=1e-3 / finer, boundary=Sponge(20 * finer),
            wavelet=Ricker(15.0, 0.08),
        )  # fmt: skip
        return found[finer - 1 :: finer][:350]  # velocities are those half a step before

    for smooth in (True, False):
        coarse, fine = record(1, smooth)[1:], record(3, smooth)[:-1]
        errors = np.abs(coarse - fine)[:, 1:].max(0) / np.abs(fine)[:, 1:].max(0)
        assert (errors < 0.025).all() or not smooth  # the errors of p are as large
    # Beside a jump the normal velocity has a kink, between cells of which it is interpolated.
    assert errors[0, 0] < 0.08
    assert (errors[:, 1:4] < 0.015).all()
    assert errors[1, 0] < 0.01


def test_epsilon_may_vary_where_there_are_no_s_waves() -> None:
    """Fletcher's equations are then those of two stresses, which are solved here beside them, with velocities."""
    n, steps, dt, delta = 46, 120, 1e-3, 0.1
    z, x = np.meshgrid(np.arange(float(n)), np.arange(float(n)), indexing="ij")
    epsilon, vp = 0.25 + 0.1 * np.sin(0.4 * x) * np.sin(0.3 * z), SPEED + 150.0 * np.sin(0.35 * x + 0.2 * z)
    place = [(230.0, 260.0)]
    found = traces(
        (n, n), Medium(vp, epsilon, delta, rho=RHO), (150.0, 170.0), place, steps, sigma=math.inf, boundary=Release()
    )
    weights = [float(w) for w in first_weights(8)]
    p, q, v, expected = np.zeros((n, n)), np.zeros((n, n)), np.zeros(2), []
    before = p, q
    second = [float(w) for w in second_weights(8)]
    c = math.sqrt(1.0 + 2.0 * delta)

    def bent(u: np.ndarray, axis: int) -> np.ndarray:
        wide = np.pad(u, 4)
        views = {
            k: wide[
                (
                    slice(4 + k * (axis == 0), n + 4 + k * (axis == 0)),
                    slice(4 + k * (axis == 1), n + 4 + k * (axis == 1)),
                )
            ]
            for k in range(-4, 5)
        }
        return (second[0] * u + sum(w * (views[k + 1] + views[-k - 1]) for k, w in enumerate(second[1:]))) / H**2

    def slope(u: np.ndarray, axis: int) -> float:
        at = [23, 26]
        total = 0.0
        for k, w in enumerate(weights, 1):
            up, down = (tuple(a + s * k * (i == axis) for i, a in enumerate(at)) for s in (1, -1))
            total += w * (u[up] - u[down]) / H
        return total

    wavelet, source = Ricker(20.0, 0.06), (15, 17)
    for step in range(steps):
        expected.append((p[23, 26], *v))
        # p and q / c are the stresses across and along the axis, as pressures.
        v = v - dt / RHO * np.array([slope(q / c, 0), slope(p, 1)])
        across, along = bent(p, 1), bent(q / c, 0)
        p_tt, s_tt = vp**2 * ((1 + 2 * epsilon) * across + c * along), vp**2 * (c * across + along)
        drive = np.zeros((n, n))
        drive[source] = vp[source] ** 2 * float(np.asarray(wavelet.at(step * dt))) / H**2
        p, before_p = 2 * p - before[0] + dt**2 * (p_tt + drive), p
        q, before_q = 2 * q - before[1] + dt**2 * (c * s_tt + drive), q
        before = before_p, before_q
    for quantity, column in enumerate(np.array(expected).T):
        assert found[:, quantity, 0] == pytest.approx(column, abs=1e-9 * np.abs(column).max())
        assert np.abs(column).max() > 0


@pytest.mark.slow
def test_a_change_of_density_is_that_of_elastic_waves_in_fluids() -> None:
    shape, dt, steps = (70, 80), 5e-4, 900
    deep = np.arange(70)[:, None] + 0 * np.arange(80) >= 40
    vp, rho = np.where(deep, 2400.0, 1800.0), np.where(deep, 2200.0, 1000.0)
    source, places = (250.0, 300.0), [(520.0, 450.0), (203.0, 477.0)]
    options: dict[str, Any] = {"dt": dt, "boundary": Cpml(14), "dtype": "f8"}
    found = traces(shape, Medium(vp, rho=rho), source, places, steps, **options)
    elastic = prepare_elastic(shape, H, medium=ElasticMedium(vp, 0.0, rho), order=8, **options)
    record = ("p", "vz", "vx")
    shot = Shot([Explosion(source, Ricker(20.0, 0.06))], Receivers(places), record=record)
    other = shot_traces(elastic, shot, steps).reshape(steps, 3, 2)
    # An explosion of moment M is a force -M_tt of p; traces are compared after the same scale and filter of p.
    for receiver in range(2):
        spectra = np.fft.rfft(np.stack([found[:, :, receiver], other[:, :, receiver]]), axis=1)
        band = slice(5, 16)
        ratios = spectra[:, band, 1:] / spectra[:, band, :1]
        assert ratios[0] == pytest.approx(ratios[1], abs=0.03 * np.abs(ratios[1]).max())


# Adjoints and bits -------------------------------------------------------------------------------------------------
SHAPE = (16, 28)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
AWAY = np.where(X > 17, 1.0, 0.0)  # the receivers lie in a uniform part
MEDIA: dict[str, dict[str, Any]] = {
    "vertical": {"epsilon": 0.2 + 0.02 * AWAY, "delta": 0.1 + 0.02 * AWAY},
    "tilted": {"epsilon": 0.2 + 0.02 * AWAY, "delta": 0.1 + 0.02 * AWAY, "theta": 0.3 + 0.1 * AWAY},
    "density": {"rho": 1500.0 + 800.0 * (X + Z > 16) + 5.0 * X},
}
SHOT = Shot(
    [PointSource((83.0, 122.0), Ricker(30.0, 0.01))], Receivers([(72.0, 81.0), (90.0, 78.0)], every=3),
    np.zeros((10, 6)), ALL,
)  # fmt: skip


def prepared(kind: str, vp: Any, *, lossy: bool = False, time_order: int = 4) -> Any:
    boundary = Cpml(4, experimental=kind == "tilted")
    return prepare(
        SHAPE, H, dt=8e-4, order=4, time_order=time_order, dtype="f8", boundary=boundary,
        medium=Medium(vp, **MEDIA[kind]), attenuation=Attenuation(20.0) if lossy else None,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "lossy", "time_order"),
    [("vertical", False, 2), ("vertical", True, 4), ("tilted", False, 4), ("density", True, 2), ("density", False, 4)],
)
def test_gradients_and_bits(kind: str, lossy: bool, time_order: int) -> None:
    vp = 2000 + 9 * Z + 4 * X
    waves = prepared(kind, vp, lossy=lossy, time_order=time_order)
    jacobian, rng = linearised_shots([waves], [SHOT], ("vp",)), np.random.default_rng(1)
    x, y = rng.standard_normal(jacobian.shape[1]), rng.standard_normal(jacobian.shape[0])
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    assert abs(there @ y - x @ back) < 1e-12 * np.linalg.norm(there) * np.linalg.norm(y) != 0
    change = 30.0 * rng.standard_normal(SHAPE)
    before, born = (shot_traces(waves, SHOT, 10), shot_born(waves, SHOT, {"vp": change}, 10))
    scale = np.repeat(np.abs(before).reshape(10, 3, 2).max((0, 2)), 2)  # of each quantity
    assert (scale > 0).all()

    def rest(h: float) -> float:
        moved = shot_traces(prepared(kind, vp + h * change, lossy=lossy, time_order=time_order), SHOT, 10)
        return float(np.linalg.norm((moved - before - h * born) / scale))

    sizes = [0.1 / 2**k for k in range(4)]
    assert np.polyfit(np.log(sizes), np.log([rest(h) for h in sizes]), 1)[0] == pytest.approx(2.0, abs=0.02)

    def ranks(comm: Comm | None = None) -> bytes:
        return shot_traces(waves, SHOT, 10, comm=comm).tobytes()

    for count in (2, 3, 4):
        assert set(mg.run_virtual(count, ranks)) == {before.tobytes()}
    model = mg.fletcher(
        SHAPE, H, dt=8e-4, order=4, time_order=time_order, dtype="f8", boundary=waves.boundary,
        medium=Medium(vp, **MEDIA[kind]), attenuation=Attenuation(20.0) if lossy else None, sources=SHOT.sources,
        receivers=SHOT.receivers, record=ALL,
    )  # fmt: skip
    assert mg.run(model, 27).receivers.values.tobytes() == before.tobytes()


# Refusals ----------------------------------------------------------------------------------------------------------
def test_what_cannot_be_is_refused() -> None:
    near = [(72.0, 165.0)]
    for kind, entry in (("vertical", "epsilon"), ("tilted", "epsilon"), ("density", "rho")):
        waves = prepared(kind, 2000 + 9 * Z)
        cells: dict[Any, int] = {"sinc": 8, "linear": 5} if kind != "density" else {}
        for interpolation, number in cells.items():
            with pytest.raises(CaseError, match=f"receiver 0, where {entry} varies from .* within {number} cells"):
                waves.sensors(Receivers(near, interpolation=interpolation), ("vx",))
        with pytest.raises(CaseError, match=f"derivatives by {entry} of the velocity vz"):
            shot_gradient(waves, SHOT, (entry,))
        with pytest.raises(CaseError, match=f"derivatives by {entry} of the velocity vz"):
            shot_born(waves, SHOT, {entry: np.ones(SHAPE)}, 4)
    steep = prepare((20, 20), H, dt=1e-3, medium=Medium(SPEED, 0.9, 0.0, 0.2), sigma=0.8, boundary=Release())
    with pytest.raises(CaseError, match="S waves would be as fast as P waves"):
        steep.sensors(Receivers([(100.0, 100.0)]), ("vz",))
