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
from minga.models.waves.stencils import first_weights
from minga.models.waves.velocity import _weights

RHO, SPEED, H = 1500.0, 2000.0, 10.0
ALL = ("p", "vz", "vx")


def traces(shape: Any, medium: Medium, source: Any, places: Any, samples: int, **options: Any) -> np.ndarray:
    """Samples of p, vz and vx: shape (samples, quantity, receiver)."""
    given: dict[str, Any] = {"dt": 1e-3, "boundary": Sponge(20), "dtype": "f8"}
    waves = prepare(shape, H, medium=medium, **(given | options))
    shot = Shot([PointSource(source, Ricker(20.0, 0.06))], Receivers(places), record=ALL)
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
    "density": {"rho": 1500.0 + 100.0 * AWAY},
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
    near = Receivers([(72.0, 165.0)])
    for kind, entry in (("vertical", "epsilon"), ("tilted", "epsilon"), ("density", "rho")):
        waves = prepared(kind, 2000 + 9 * Z)
        with pytest.raises(CaseError, match=f"receiver 0, where {entry} varies from .* within 8 cells"):
            waves.sensors(near, ("vx",))
        with pytest.raises(CaseError, match=f"derivatives by {entry} of the velocity vz"):
            shot_gradient(waves, SHOT, (entry,))
        with pytest.raises(CaseError, match=f"derivatives by {entry} of the velocity vz"):
            shot_born(waves, SHOT, {entry: np.ones(SHAPE)}, 4)
    steep = prepare((20, 20), H, dt=1e-3, medium=Medium(SPEED, 0.9, 0.0, 0.2), sigma=0.8, boundary=Release())
    with pytest.raises(CaseError, match="S waves would be as fast as P waves"):
        steep.sensors(Receivers([(100.0, 100.0)]), ("vz",))
