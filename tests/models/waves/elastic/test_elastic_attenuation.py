"""Attenuation of elastic waves: exact by the correspondence principle, stability, gradients, ranks, wrong inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from elastic_physics import DATA, SEA, SHAPE, SHOT, WRT, X, Z, waves_in
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.errors import CaseError, RunError
from minga.models.waves import (
    Attenuation,
    Faces,
    Free,
    Medium,
    Periodic,
    Receivers,
    Release,
    Ricker,
    Shot,
    Sponge,
    Survey,
    linearised_shots,
    prepare,
    shot_born,
    shot_gradient,
    shot_traces,
)
from minga.models.waves.elastic import ElasticMedium, ElasticWaves, Explosion, Force, prepare_elastic
from minga.models.waves.medium import Floats

Q = Attenuation(25.0 + Z, qs=15.0 + 0.3 * X)


def attenuated(traces: Floats, shot: Shot, interval: float, attenuation: Attenuation, q: float, late: float) -> Floats:
    """Return traces with attenuation from those without it.

    With one complex factor m of all moduli, -rho (omega2 / m) u = L u + f / m: displacements are those of elastic waves
    of the complex frequency omega / sqrt(m), divided by m, pressures and moments likewise.
    """
    wavelet, count = shot.sources[0].wavelet, len(traces)
    fade = np.minimum(1.0, np.arange(count)[::-1] / (0.2 * count))[:, None]
    times = np.arange(count) * interval
    omega = 2 * np.pi * np.fft.rfftfreq(4 * count, interval)
    tau = attenuation.strength(np.array(q))
    modulus = np.ones(len(omega), complex)
    for f in attenuation.mechanisms:
        x = 1j * omega / (2 * np.pi * f)
        modulus += tau * x / (1 + x)
    root = np.sqrt(attenuation.relaxed(tau) * modulus)
    pulse = wavelet.at(times)
    here = np.exp(-1j * np.outer(omega, times)) @ pulse
    there = np.exp(-1j * np.outer(omega / root, times)) @ pulse
    known = abs(here) > 1e-6 * abs(here).max()
    factor = np.where(known, here / there, 0.0)
    found = []
    for name in shot.record:
        part = fade * traces[:, len(found) * len(shot.receivers.positions) :][:, : len(shot.receivers.positions)]
        shift = late if name.startswith("v") else 0.0  # velocities are those half a step before
        spectrum = np.exp(-1j * np.outer(omega / root, times - shift)) @ part
        scale = factor * np.exp(-1j * omega * shift) / (root if shift else 1.0)
        found.append(np.fft.irfft(scale[:, None] * spectrum, axis=0)[:count])
    return np.hstack(found)


def both(waves: Any, shot: Shot, samples: int, attenuation: Attenuation, q: float) -> tuple[Floats, Floats, Floats]:
    """Return traces with attenuation, what they ought to be, and those without it, until reflections are cut off."""
    without, found = (shot_traces(waves(each), shot, samples) for each in (None, attenuation))
    dt = waves(None).dt
    exact = attenuated(without, shot, dt * shot.receivers.every, attenuation, q, dt / 2)
    first = slice(0, samples // 2)
    return found[first], exact[first], without[first]


def worst(found: Floats, exact: Floats) -> float:
    return float((np.linalg.norm(found - exact, axis=0) / np.linalg.norm(exact, axis=0)).max())


@pytest.mark.parametrize("medium", [pytest.param("ground", marks=pytest.mark.slow), "sea"])
def test_one_q_is_a_complex_frequency(medium: str) -> None:
    """Varying rock below a free surface, with its Rayleigh wave, and below a sea: all traces, to round-off in space."""
    z, x = np.meshgrid(np.arange(60.0), np.arange(90.0), indexing="ij")
    vp = 2000 + 10 * z + 200 * (x > 50)
    sea = z < (15 if medium == "sea" else 0)
    rock = ElasticMedium(np.where(sea, 1500, vp), np.where(sea, 0.0, vp / 1.8), np.where(sea, 1000, 1900 + 3 * z))
    attenuation, wavelet = Attenuation(30.0), Ricker(8.0, 0.2)
    ends = Faces(Release(), z=(Free(), Release()))
    source: Any = Explosion((60.0, 300.0), wavelet)
    shot = Shot(
        [source if medium == "sea" else Force((30.0, 300.0), (1.0, 0.3), wavelet)],
        Receivers([(10.0, 500.0), (10.0, 700.0), (250.0, 600.0)], every=2), record=("vz", "vx", "p"),
    )  # fmt: skip

    def waves(each: Attenuation | None) -> ElasticWaves:
        return prepare_elastic(
            (60, 90), 10.0, dt=1e-3, medium=rock, order=4, boundary=ends, dtype="f8", attenuation=each
        )

    found, exact, without = both(waves, shot, 701, attenuation, 30.0)
    assert worst(found, exact) < 4e-3
    assert worst(without, exact) > 0.4


@pytest.mark.parametrize(("record", "q"), [("vz", 40.0), ("vx", 20.0)])
def test_p_and_s_waves_have_their_own_q(record: str, q: float) -> None:
    """Plane waves along z, of a force along z or along x."""
    shot = Shot(
        [Force((300.0, 15.0), (1.0, 0.0) if record == "vz" else (0.0, 1.0), Ricker(12.0, 0.12))],
        Receivers([(600.0, 15.0)], every=4), record=(record,),
    )  # fmt: skip

    def waves(each: Attenuation | None) -> ElasticWaves:
        rock = ElasticMedium(2000.0, 1200.0, 2000.0)
        ends = Faces(Release(), x=Periodic())
        return prepare_elastic(
            (360, 12), 2.5, dt=5e-4, medium=rock, order=8, boundary=ends, dtype="f8", attenuation=each
        )

    found, exact, without = both(waves, shot, 601, Attenuation(40.0, qs=20.0), q)
    assert worst(found, exact) < 2e-3
    assert worst(without, exact) > 0.15


@pytest.mark.slow
def test_an_explosion_has_the_q_of_p_waves() -> None:
    """In a uniform medium there are no S waves, whatever the direction."""
    shot = Shot(
        [Explosion((500.0, 500.0), Ricker(10.0, 0.12))], Receivers([(400.0, 300.0), (490.0, 800.0)], every=2),
        record=("vz", "vx"),
    )  # fmt: skip

    def waves(each: Attenuation | None) -> ElasticWaves:
        rock = ElasticMedium(2500.0, 1200.0, 2000.0)
        return prepare_elastic(
            (100, 100), 10.0, dt=1e-3, medium=rock, boundary=Sponge(40), dtype="f8", attenuation=each
        )

    found, exact, without = both(waves, shot, 601, Attenuation(40.0, qs=15.0), 40.0)
    assert worst(found, exact) < 1e-2
    assert worst(without, exact) > 0.06


@pytest.mark.slow
def test_numbers_are_arrays_of_one_value_and_ranks_change_no_bit() -> None:
    number = shot_traces(lossy("free", Attenuation(30.0)), SHOT, 16)
    several = shot_traces(lossy("free", Attenuation(30.0, qs=30.0)), SHOT, 16)
    array = shot_traces(lossy("free", Attenuation(np.full(SHAPE, 30.0), qs=np.full(SHAPE, 30.0))), SHOT, 16)
    sizes = np.abs(number).max(axis=0)
    assert (np.abs(several - number) < 1e-11 * sizes).all()
    assert (np.abs(array - number) < 1e-11 * sizes).all()
    assert (np.abs(shot_traces(waves_in("free", SEA), SHOT, 16) - number).max(axis=0) > 1e-3 * sizes).all()
    alone = shot_traces(lossy("matched", Q), SHOT, 16)
    shared = mg.run_virtual(3, lambda comm: shot_traces(lossy("matched", Q), SHOT, 16, comm=comm, threads=2))
    assert all(each.tobytes() == alone.tobytes() for each in shared)


def lossy(boundary: str, attenuation: Attenuation, entries: Any = SEA, dtype: str = "f8") -> ElasticWaves:
    return waves_in(boundary, entries, dtype, attenuation=attenuation)


def test_the_stress_across_a_free_surface_stays_0() -> None:
    waves = prepare_elastic(
        (20, 24), 10.0, dt=1e-3, medium=ElasticMedium(2000.0, 1100.0, 2000.0), order=4, dtype="f8",
        boundary=Faces(Release(), z=(Free(), Release())), attenuation=Attenuation(20.0, qs=10.0),
    )  # fmt: skip
    shot = Shot([Force((20.0, 100.0), (1.0, 0.4), Ricker(20.0))], Receivers([(0.0, 120.0)]), record=("szz", "sxx"))
    traces = shot_traces(waves, shot, 120)
    assert abs(traces[:, 1]).max() > 0
    assert not traces[:, 0].any()


@pytest.mark.slow
def test_the_limit_of_the_step_is_that_of_unrelaxed_moduli() -> None:
    """At 0.999 of it waves decay, and at 1.005 they grow."""
    options: Any = {"medium": ElasticMedium(3000.0, 1600.0, 2000.0), "boundary": Release(), "order": 4}
    options["attenuation"] = Attenuation(5.0)
    limit = prepare_elastic((40, 40), 10.0, dt=1e-4, **options).limit
    assert limit < 0.95 * prepare_elastic((40, 40), 10.0, dt=1e-4, **options | {"attenuation": None}).limit
    with pytest.raises(CaseError, match="dt"):
        prepare_elastic((40, 40), 10.0, dt=1.001 * limit, **options)
    source = Force((190.0, 200.0), (1.0, 0.0), Ricker(15.0))
    shot = Shot([source], Receivers([(100.0, 100.0)], every=30), record=("vz",))

    def last(ratio: float) -> float:
        waves = prepare_elastic((40, 40), 10.0, dt=ratio * limit, limit=1.0, **options)
        traces = abs(shot_traces(waves, shot, 101))
        return float(traces[-1, 0] / traces.max())

    assert last(0.999) < 1e-3
    with pytest.raises(RunError):
        last(1.005)


# Gradients -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("boundary", ["free", "matched", "periodic", "rigid"])
def test_born_modelling_and_gradients_are_transposes(boundary: str, dtype: str) -> None:
    jacobian = linearised_shots([lossy(boundary, Q, dtype=dtype)], [DATA], WRT)
    rng = np.random.default_rng(3)
    x = 30.0 * rng.standard_normal(3 * SHAPE[0] * SHAPE[1])
    sizes = np.repeat([1.0, 1e6, 1e6, 1.0, 1.0, 1.0], 3)
    y = (rng.standard_normal((16, 18)) * sizes).ravel()
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    size = np.linalg.norm(there * np.tile(sizes, 16)) * np.linalg.norm(y / np.tile(sizes, 16))
    assert abs(there @ y - x @ back) < (1e-12 if dtype == "f8" else 1e-5) * size


@pytest.mark.few(1)
@pytest.mark.parametrize("boundary", ["free", "matched"])
def test_born_modelling_is_the_limit_of_differences(boundary: str) -> None:
    rng = np.random.default_rng(5)
    change = {name: 30.0 * rng.standard_normal(SHAPE) * (SEA[name] > 0) for name in WRT}
    waves = lossy(boundary, Q)
    born, before = shot_born(waves, SHOT, change, 16), shot_traces(waves, SHOT, 16)
    scales = np.abs(born).max(axis=0)

    def rest(h: float) -> float:
        changed = lossy(boundary, Q, {name: SEA[name] + h * change[name] for name in WRT})
        return float(np.linalg.norm((shot_traces(changed, SHOT, 16) - before - h * born) / scales))

    sizes = [0.1 / 2**k for k in range(5)]
    assert np.polyfit(np.log(sizes), np.log([rest(h) for h in sizes]), 1)[0] == pytest.approx(2.0, abs=0.02)


# Use -----------------------------------------------------------------------------------------------------------------
def test_cases_and_surveys_have_attenuation(tmp_path: Path) -> None:
    section = {
        "medium": {"vp": 2000.0, "vs": 1000.0, "rho": 2000.0}, "spacing": 10.0, "boundary": {"sponge": 4},
        "dtype": "f8", "attenuation": {"q": 50, "qs": 25}, "sources": [{"position": [50.0, 50.0]}],
    }  # fmt: skip
    model = load_model("elastic", {"elastic": section}, GridSettings(shape=(12, 14)), tmp_path)
    without = load_model(
        "elastic", {"elastic": section | {"attenuation": None}}, GridSettings(shape=(12, 14)), tmp_path
    )
    assert model.parameters["attenuation"]["q"] == 50.0  # type: ignore[index]
    assert float(str(model.parameters["dt_limit"])) < float(str(without.parameters["dt_limit"]))
    q = 30.0 + np.arange(40.0) * np.ones((12, 1))
    shots = [Shot([Explosion((50.0, 250.0), Ricker(20.0))], Receivers([(30.0, 300.0)]), record=("vz",))]
    entries: Any = (12, 40), 10.0, 1e-3, ElasticMedium(2000.0, 1000.0, 2000.0), shots, Sponge(4)
    survey = Survey(*entries, aperture=60.0, attenuation=Attenuation(q, qs=q / 2), dtype="f8")
    waves, shot = survey.of(0)
    assert waves.domain.shape == (12, 18)
    cut = Attenuation(q[:, 19:37], qs=q[:, 19:37] / 2)
    expected = prepare_elastic(
        (12, 18), 10.0, dt=1e-3, medium=entries[3], boundary=Sponge(4), dtype="f8", attenuation=cut
    )
    assert shot_traces(waves, shot, 40).tobytes() == shot_traces(expected, shot, 40).tobytes()


def test_wrong_attenuation_is_refused() -> None:
    for q, qs, said in (
        (0.5, None, "the least Q is 0.5"), (np.full(SHAPE, np.nan), None, "the least Q is nan"),
        (np.ones(3), None, "q is an array"), (50.0, np.ones(3), "qs is an array"), (50.0, -4.0, "the least Q is -4"),
        (400.0, 10.0, "changes of volume would gain energy"),
    ):  # fmt: skip
        with pytest.raises(CaseError, match=said):
            prepare_elastic(SHAPE, 10.0, dt=1e-4, medium=ElasticMedium(**SEA), attenuation=Attenuation(q, qs=qs))
    with pytest.raises(CaseError, match="attenuation is 50"):
        prepare_elastic(SHAPE, 10.0, dt=1e-4, medium=ElasticMedium(**SEA), attenuation=50.0)  # type: ignore[arg-type]
    with pytest.raises(CaseError, match="qs is the Q of S waves"):
        prepare(SHAPE, 10.0, dt=1e-4, medium=Medium(2000.0), boundary=Release(), attenuation=Attenuation(50.0, qs=20.0))
    with pytest.raises(CaseError, match="no quantity 'inverse_q' of elastic waves"):
        shot_gradient(lossy("free", Q), DATA, ("inverse_q",))
