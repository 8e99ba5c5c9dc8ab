"""Attenuation: exact plane waves, published values of Q, stability, gradients, ranks; wrong inputs are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.settings import GridSettings
from minga.errors import CaseError, RunError
from minga.models.waves import (
    Attenuation,
    Faces,
    Free,
    Medium,
    PointSource,
    Receivers,
    Release,
    Ricker,
    Shot,
    Sponge,
    linearised_shots,
    migrate,
    prepare,
    shot_gradient,
    shot_traces,
)
from minga.models.waves.case import make
from minga.models.waves.medium import Floats
from minga.models.waves.settings import FletcherSettings


def test_mechanisms_have_the_published_q_and_velocities() -> None:
    """One mechanism at 15 Hz with tau = 0.1, and 2000 m/s at 15 Hz."""
    one = Attenuation(20.0, frequencies=(15.0,), reference=15.0)
    tau = np.array(0.1)
    assert [float(one.quality(tau, f)) for f in (5, 10, 15, 30)] == pytest.approx(
        [33.667, 22.333, 21.0, 27.0], abs=1e-3
    )
    assert 2000 * float(one.relaxed(tau)) ** 0.5 == pytest.approx(1950.143, abs=1e-3)
    assert 2000 * float(one.relaxed(tau) * 1.1) ** 0.5 == pytest.approx(2045.327, abs=1e-3)


def test_q_is_nearly_constant_in_the_band() -> None:
    q = np.array([20.0, 50.0, 200.0])
    found = Attenuation(50.0)
    tau = found.strength(q)
    assert tau[1] == pytest.approx(0.032928, rel=1e-3)  # a fit by others, of frequencies and strength
    for f in np.geomspace(5.0, 50.0, 20):
        assert found.quality(tau, float(f)) == pytest.approx(q, rel=0.09)
        assert found.quality(tau, float(f))[1] == pytest.approx(50.0, rel=0.04)


def run_1d(dt: float, attenuation: Attenuation, h: float = 5.0) -> tuple[Floats, Floats]:
    """Return the trace 1000 m from a source on one axis, and the exact one by a Fourier integral."""
    cells, wavelet, every = round(6000 / h) + 1, Ricker(10.0, 0.15), round(2e-3 / dt)
    waves = prepare(
        (cells,), h, dt=dt, medium=Medium(2000.0), order=12, boundary=Release(), dtype="f8", attenuation=attenuation
    )
    found = shot_traces(waves, Shot([PointSource((3000.0,), wavelet)], Receivers([(4000.0,)], every=every)), 450)
    times = np.arange(1 << 15) * 2e-3
    spectrum = np.fft.rfft(wavelet.at(times))
    omega = 2 * np.pi * np.fft.rfftfreq(len(times), 2e-3)
    tau = attenuation.strength(np.array(attenuation.q))
    modulus = np.ones(len(omega), complex)
    for f in attenuation.mechanisms:
        x = 1j * omega / (2 * np.pi * f)
        modulus += tau * x / (1 + x)
    k = omega / (2000.0 * np.sqrt(attenuation.relaxed(tau) * modulus))
    k[0] = 1.0
    exact = np.fft.irfft(spectrum * np.exp(-1j * k * 1000.0) / (2j * k) * (omega > 0))
    return found[:, 0], exact[:450]


def error(found: Floats, exact: Floats) -> float:
    rest = found - exact
    rest -= rest[:100].mean()  # the frequency 0 has no finite amplitude on one axis
    return float(np.linalg.norm(rest) / np.linalg.norm(exact - exact[:100].mean()))


@pytest.mark.parametrize("frequencies", [(15.0,), None])
def test_a_plane_wave_is_exact(frequencies: Any) -> None:
    found, exact = run_1d(2.5e-4, Attenuation(30.0, frequencies=frequencies, reference=12.0))
    assert error(found, exact) < 4e-4
    without, _ = run_1d(2.5e-4, Attenuation(1e9))
    assert abs(found).max() < 0.85 * abs(without).max()


@pytest.mark.slow
def test_steps_are_of_second_order() -> None:
    errors = [error(*run_1d(dt, Attenuation(30.0))) for dt in (1e-3, 5e-4)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.slow
def test_the_limit_of_the_step_is_sharp() -> None:
    """It is that of the unrelaxed velocity: at 0.999 of it waves decay, and at 1.005 they grow."""
    options: Any = {"medium": Medium(3000.0), "boundary": Release(), "attenuation": Attenuation(5.0)}
    shape = (40, 40)
    limit = mg.fletcher(shape, 10.0, dt=1e-4, **options).parameters["dt_limit"]
    with pytest.raises(CaseError, match="dt"):
        prepare(shape, 10.0, dt=1.001 * limit, **options)
    unchecked = replace(prepare(shape, 10.0, dt=1e-4, **options).extremes, dt_limit=1.0)
    shot = Shot([PointSource((190.0, 200.0), Ricker(15.0))], Receivers([(100.0, 100.0)], every=3000))

    def last(ratio: float) -> float:
        waves = prepare(shape, 10.0, dt=ratio * limit, extremes=unchecked, **options)
        return float(abs(shot_traces(waves, shot, 2)).max())

    assert last(0.999) < 1e-6
    with pytest.raises(RunError, match="grown without limit"):
        last(1.005)


SHAPE = (14, 17)
Z, X = np.meshgrid(*(np.arange(float(n)) for n in SHAPE), indexing="ij")
SHOT = Shot(
    [PointSource((33.0, 52.0), Ricker(25.0))], Receivers([(22.0, 71.0), (80.0, 120.0)], every=3), np.zeros((14, 2))
)


def tilted(q: Any) -> Any:
    medium = Medium(2000 + 9 * Z, 0.2 + 0.002 * Z, 0.1 + 0.002 * X, 0.3 + 0.02 * X)
    return prepare(
        SHAPE, 10.0, dt=6e-4, order=4, dtype="f8", medium=medium, attenuation=Attenuation(q),
        boundary=Faces(Sponge(4), z=(Free(), Sponge(4))),
    )  # fmt: skip


@pytest.mark.slow
def test_gradients_and_born_modelling_include_attenuation() -> None:
    wrt = ("vp", "epsilon")
    jacobian = linearised_shots([tilted(20.0 + Z)], [SHOT], wrt)
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(jacobian.shape[1]), rng.standard_normal(jacobian.shape[0])
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    assert np.linalg.norm(there) > 0
    assert abs(there @ y - x @ back) < 1e-12 * np.linalg.norm(there) * np.linalg.norm(y)


def test_tau_and_the_relaxed_velocity_change_with_q_as_their_slopes_say() -> None:
    attenuation, q, step = Attenuation(50.0), np.array([8.0, 50.0, 300.0]), 1e-7
    tau = attenuation.strength(q)
    around = [attenuation.strength(1.0 / (1.0 / q + sign * step)) for sign in (1, -1)]
    slope, ratio = attenuation.slopes(tau, q)
    assert slope == pytest.approx((around[0] - around[1]) / (2 * step), rel=1e-6)
    relaxed = [attenuation.relaxed(each) for each in around]
    assert ratio == pytest.approx((relaxed[0] - relaxed[1]) / (2 * step), rel=1e-6)


@pytest.mark.slow
def test_the_gradient_by_1_over_q_is_that_of_the_misfit() -> None:
    """Central differences, and the transpose of Born modelling."""
    inverse = 1.0 / (20.0 + Z)
    data = shot_traces(tilted(1.0 / (inverse + 0.02)), SHOT, 14)
    shot = Shot(SHOT.sources, SHOT.receivers, data)
    direction = np.random.default_rng(6).standard_normal(SHAPE)
    _, slopes = shot_gradient(tilted(1.0 / inverse), shot, ("vp", "inverse_q"))
    assert slopes is not None
    step = 1e-5
    above, below = (
        shot_gradient(tilted(1.0 / (inverse + sign * step * direction)), shot, ("inverse_q",))[0] for sign in (1, -1)
    )
    expected = (above - below) / (2 * step)
    assert float((slopes["inverse_q"] * direction).sum()) == pytest.approx(expected, rel=1e-6) != 0
    wrt = ("inverse_q", "vp")
    jacobian = linearised_shots([tilted(1.0 / inverse)], [SHOT], wrt)
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(jacobian.shape[1]), rng.standard_normal(jacobian.shape[0])
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    assert abs(there @ y - x @ back) < 1e-12 * np.linalg.norm(there) * np.linalg.norm(y)
    with pytest.raises(CaseError, match="q of the attenuation"):
        shot_gradient(tilted(30.0), shot, ("inverse_q",))


def test_an_array_of_one_value_is_a_number_and_ranks_change_no_bit() -> None:
    number, array = (shot_traces(tilted(q), SHOT, 14) for q in (30.0, np.full(SHAPE, 30.0)))
    assert array == pytest.approx(number, rel=1e-11, abs=1e-13 * abs(number).max())
    assert abs(number - shot_traces(tilted(1e9), SHOT, 14)).max() > 1e-3 * abs(number).max()
    shared = mg.run_virtual(2, lambda comm: shot_traces(tilted(20.0 + Z), SHOT, 14, comm=comm))
    assert all(each.tobytes() == shot_traces(tilted(20.0 + Z), SHOT, 14).tobytes() for each in shared)


def test_wrong_attenuation_is_refused() -> None:
    for q, said in ((0.0, "the least Q is 0"), (np.full(SHAPE, np.nan), "the least Q is nan"), (np.ones(3), "shape")):
        with pytest.raises(CaseError, match=said):
            tilted(q)
    with pytest.raises(CaseError, match="band"):
        Attenuation(30.0, band=(50.0, 5.0))
    options: Any = {"medium": Medium(2000.0), "dt": 6e-4, "attenuation": Attenuation(30.0)}
    with pytest.raises(CaseError, match="migration is without attenuation only"):
        migrate(prepare(SHAPE, 10.0, boundary=Release(), **options), SHOT.sources, SHOT.receivers, np.ones((4, 2)))


def test_a_case_has_attenuation() -> None:
    settings = FletcherSettings.model_validate(
        {
            "medium": {"vp": 2000.0},
            "spacing": 10.0,
            "boundary": "release",
            "attenuation": {"q": 20.0, "reference": 12.0},
        }
    )
    model = make(settings, GridSettings(shape=(20, 20)), Path())
    without = make(settings.model_copy(update={"attenuation": None}), GridSettings(shape=(20, 20)), Path())
    assert model.parameters["dt"] < without.parameters["dt"]
    assert {"p_memory_0", "p_memory_1"} <= {field.name for field in model.fields}
