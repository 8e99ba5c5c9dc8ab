"""Gradients and Born modelling of elastic waves by vp, vs and rho: exact for all boundaries and sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import minga as mg
from elastic_physics import BOUNDARIES, DATA, RECORD, SEA, SHAPE, SHOT, SOLID, SOURCES, WRT, X, Z, waves_in
from minga.errors import CaseError
from minga.models.waves import (
    Faces,
    Free,
    Inversion,
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
    shot_image,
    shot_traces,
)
from minga.models.waves.elastic import (
    ElasticMedium,
    ElasticWaves,
    Explosion,
    Force,
    elastic,
    prepare_elastic,
)
from minga.models.waves.elastic.sensitivity import ElasticSensitivity
from minga.models.waves.gradient import sensitivity_of

CASES = [(name, medium) for name in BOUNDARIES for medium in ("solid", "sea")]


def entries_of(medium: str) -> dict[str, np.ndarray]:
    return {"solid": SOLID, "sea": SEA}[medium]


def directions(seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: 30.0 * rng.standard_normal(SHAPE) for name in WRT}


# Exactness -----------------------------------------------------------------------------------------------------------
@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("boundary", "medium"), CASES)
def test_born_modelling_and_gradients_are_transposes(boundary: str, medium: str, dtype: str) -> None:
    jacobian = linearised_shots([waves_in(boundary, entries_of(medium), dtype)], [DATA], WRT)
    x = np.concatenate([each.ravel() for each in directions().values()])
    # Stresses are about 1e6 times as large as velocities: both are to matter in the sum.
    sizes = np.repeat([1.0, 1e6, 1e6, 1.0, 1.0, 1.0], 3)
    y = (np.random.default_rng(4).standard_normal((16, 18)) * sizes).ravel()
    there, back = jacobian.matvec(x), jacobian.rmatvec(y)
    size = np.linalg.norm(there * np.tile(sizes, 16)) * np.linalg.norm(y / np.tile(sizes, 16))
    assert size > 0
    assert abs(there @ y - x @ back) < (1e-12 if dtype == "f8" else 1e-5) * size


@pytest.mark.few(1)
@pytest.mark.parametrize(("boundary", "medium"), CASES)
def test_born_modelling_is_the_limit_of_differences(boundary: str, medium: str) -> None:
    """The remainder of a Taylor polynomial of degree 1 is of second order, for each quantity at each receiver."""
    entries = entries_of(medium)
    change = directions()
    change["vs"] = np.where(entries["vs"] > 0, change["vs"], 0.0)
    waves = waves_in(boundary, entries)
    born, before = shot_born(waves, SHOT, change, 16), shot_traces(waves, SHOT, 16)
    scales = np.abs(born).max(axis=0)
    assert (scales > 0).all()

    def rest(h: float) -> float:
        changed = {name: entries[name] + h * change[name] for name in WRT}
        return float(np.linalg.norm((shot_traces(waves_in(boundary, changed), SHOT, 16) - before - h * born) / scales))

    sizes = [0.1 / 2**k for k in range(5)]
    assert np.polyfit(np.log(sizes), np.log([rest(h) for h in sizes]), 1)[0] == pytest.approx(2.0, abs=0.02)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", WRT)
def test_gradients_are_difference_quotients(name: str) -> None:
    """Half the energy of the traces of velocities, below a sea with a free surface."""
    shot = Shot(SOURCES, SHOT.receivers, np.zeros((16, 6)), ("vz", "vx"))
    _, found = shot_gradient(waves_in("free", SEA), shot, (name,))
    assert found is not None
    direction = directions()[name] * (SEA[name] > 0)

    def at(s: float) -> float:
        changed = SEA | {name: SEA[name] + s * direction}
        return 0.5 * float(np.square(shot_traces(waves_in("free", changed), shot, 16)).sum())

    h = 1e-2
    quotient = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    assert float((found[name] * direction).sum()) == pytest.approx(quotient, rel=1e-7)


@pytest.mark.slow
def test_three_axes() -> None:
    """Forces along all axes: the derivative of each component of the velocity is the transpose of Born modelling."""
    shape = (9, 10, 11)
    rng = np.random.default_rng(1)
    medium = ElasticMedium(*(mean + 100 * rng.standard_normal(shape) for mean in (2500.0, 1300.0, 2000.0)))
    waves = prepare_elastic(
        shape, 10.0, dt=8e-4, medium=medium, order=2, boundary=Faces(Release(), z=(Free(), Sponge(3))), dtype="f8"
    )
    source = Force((41.0, 52.0, 55.0), (1.0, 2.0, 3.0), Ricker(40.0, 0.0))
    shot = Shot([source], Receivers([(30.0, 50.0, 50.0)]), np.zeros((10, 4)), ("vz", "vy", "vx", "sxy"))
    jacobian = linearised_shots([waves], [shot], WRT)
    x, y = rng.standard_normal(jacobian.shape[1]), rng.standard_normal(jacobian.shape[0])
    there = jacobian.matvec(x)
    assert abs(there @ y - x @ jacobian.rmatvec(y)) < 1e-12 * np.linalg.norm(there) * np.linalg.norm(y)


# The chain rule ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("medium", ["solid", "sea"])
@pytest.mark.parametrize("boundary", ["free", "periodic"])
def test_derivatives_of_coefficients_are_those_of_the_averages(boundary: str, medium: str) -> None:
    """Differences of the averages that the waves themselves use, on the grid with its layers."""
    entries, change = entries_of(medium), directions()
    h = 1e-4
    change["vs"] = np.where(entries["vs"] > 0, change["vs"], 0.0)

    def values(s: float) -> dict[str, np.ndarray]:
        waves = waves_in(boundary, {name: entries[name] + s * change[name] for name in WRT})
        return {item.name: waves.coefficients.values(item.name, waves.grid.box) for item in waves.medium}

    before, after = values(-h), values(h)
    found = ElasticSensitivity(waves_in(boundary, entries)).changes(change)
    assert set(found) == {"lambda", "mu", "mu_xz", "buoyancy_z", "buoyancy_x"} == set(before)
    for name, slope in found.items():
        expected = (after[name] - before[name]) / (2 * h)
        assert np.abs(slope - expected).max() < 1e-6 * np.abs(expected).max()


def test_fluids_stay_fluids() -> None:
    """Derivatives by the S velocity are 0 in fluids and finite beside them, as one-sided differences are."""
    _, found = shot_gradient(waves_in("free", SEA), DATA, WRT)
    assert found is not None
    assert all(np.isfinite(values).all() for values in found.values())
    assert not found["vs"][:5].any()
    assert (found["vs"][6:] != 0).any()
    assert (found["vp"][1:5, 6:10] != 0).all()

    def misfit(slow: float) -> float:
        changed = SEA | {"vs": np.where((Z == 4) & (X == 8), slow, SEA["vs"])}
        return 0.5 * float(np.square(shot_traces(waves_in("free", changed), SHOT, 16)).sum())

    none = misfit(0.0)
    far, near = misfit(2.0) - none, misfit(1.0) - none
    assert far == pytest.approx(4 * near, rel=1e-3)


@pytest.mark.slow
def test_no_derivative_needs_the_others() -> None:
    """Each quantity alone has the gradient that it has among all of them, with uniform density as well."""
    _, together = shot_gradient(waves_in("matched", SEA), DATA, WRT)
    assert together is not None
    for name in WRT:
        _, alone = shot_gradient(waves_in("matched", SEA), DATA, (name,))
        assert alone is not None
        assert alone[name] == pytest.approx(together[name], rel=1e-9, abs=1e-12 * np.abs(together[name]).max())
    even = SEA | {"rho": np.full(SHAPE, 2100.0)}
    _, some = shot_gradient(waves_in("matched", even), DATA, ("vp", "vs"))
    _, uniform = shot_gradient(waves_in("matched", even | {"rho": 2100.0}), DATA, ("vp", "vs"))
    assert some is not None
    assert uniform is not None
    assert all(
        uniform[name] == pytest.approx(some[name], rel=1e-9, abs=1e-12 * np.abs(some[name]).max()) for name in some
    )


# Bits ----------------------------------------------------------------------------------------------------------------
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("ranks", "options"), [(1, {"memory": 1}), (2, {"threads": 2}), (3, {"memory": 40_000}), (4, {})]
)
def test_bits_depend_neither_on_ranks_nor_on_threads_nor_on_memory(ranks: int, options: Any) -> None:
    number, found = shot_gradient(waves_in("free", SEA), DATA, WRT)
    assert found is not None
    born = shot_born(waves_in("free", SEA), SHOT, directions(), 8)

    def body(comm: Any) -> Any:
        waves = waves_in("free", SEA)
        layout = "slabs" if ranks < 4 else "cartesian:2x2"
        changed = shot_born(waves, SHOT, directions(), 8, comm=comm, layout=layout)
        return changed, *shot_gradient(waves, DATA, WRT, comm=comm, layout=layout, **options)

    results = mg.run_virtual(ranks, body)
    assert all(each[0].tobytes() == born.tobytes() and each[1] == number for each in results)
    assert all(np.array_equal(results[0][2][name], values) for name, values in found.items())


def test_traces_are_those_of_the_model() -> None:
    model = elastic(
        SHAPE, 10.0, dt=8e-4, medium=ElasticMedium(**SEA), order=4, boundary=BOUNDARIES["free"], sources=SOURCES,
        receivers=SHOT.receivers, record=RECORD, dtype="f8",
    )  # fmt: skip
    values = mg.run(model, 30, observe=3).receivers.values
    assert np.array_equal(np.asarray(values), shot_traces(waves_in("free", SEA), SHOT, 11))


# Use -----------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_an_inversion_finds_an_anomaly() -> None:
    """An anomaly of S velocity and P velocity in an elastic medium, from velocities of the ground."""
    anomaly = np.exp(-((Z - 7) ** 2 + (X - 8) ** 2) / 8)
    start = {"vp": np.full(SHAPE, 2600.0), "vs": np.full(SHAPE, 1400.0)}
    true = {"vp": start["vp"] + 150 * anomaly, "vs": start["vs"] - 100 * anomaly}

    def waves(values: Mapping[str, np.ndarray], _: Shot) -> ElasticWaves:
        return waves_in("free", {**values, "rho": 2000.0}, limit=1.2e-3)

    spread = Receivers([(20.0, 10.0 * k) for k in range(1, 16, 2)], every=2)
    shots = []
    for x in (20.0, 140.0):
        bare = Shot([Force((20.0, x), (1.0, 0.0), Ricker(30.0, amplitude=1e6))], spread, record=("vz", "vx"))
        shots.append(Shot(bare.sources, spread, shot_traces(waves(true, bare), bare, 60), bare.record))
    inversion = Inversion(shots, waves, ("vp", "vs"), bounds={"vp": (2300.0, 3000.0), "vs": (1100.0, 1600.0)})
    progress = inversion.run(start, 12)
    assert progress.misfits[-1] < 0.2 * progress.misfits[0]
    assert all(np.vdot(progress.values[name] - start[name], true[name] - start[name]) > 0 for name in start)


def test_what_cannot_be_is_refused() -> None:
    waves = waves_in("free", SEA | {"rho": 2000.0})
    with pytest.raises(CaseError, match="rho is one number"):
        shot_gradient(waves, DATA, ("rho",))
    with pytest.raises(CaseError, match="no quantity 'delta' of elastic waves"):
        shot_gradient(waves, DATA, ("delta",))
    with pytest.raises(CaseError, match="3 receivers of 6 quantities"):
        shot_gradient(waves, Shot(SOURCES, SHOT.receivers, np.zeros((16, 3)), RECORD))
    with pytest.raises(CaseError, match="receivers record") as error:
        shot_traces(waves, Shot(SOURCES, SHOT.receivers, record=("vy",)), 4)
    assert error.value.key == "elastic.record"
    with pytest.raises(CaseError, match="source 0 is a PointSource"):
        shot_traces(waves, Shot([PointSource()], SHOT.receivers), 4)
    with pytest.raises(CaseError, match="waves are a str"):
        sensitivity_of("waves")  # type: ignore[arg-type]
    with pytest.raises(CaseError, match="waves are a str"):
        shot_image("waves", DATA)  # type: ignore[call-overload]
    acoustic = prepare(SHAPE, 10.0, dt=8e-4, medium=Medium(2000.0))
    with pytest.raises(CaseError, match="source 0 is a Explosion"):
        shot_traces(acoustic, Shot([Explosion()], SHOT.receivers), 4)
    with pytest.raises(CaseError, match="the receivers of a shot are a list"):
        shot_gradient(waves, Shot(SOURCES, [(10.0, 10.0)], np.zeros((16, 1))))  # type: ignore[arg-type]
    for each, source in ((waves, Explosion()), (acoustic, PointSource())):
        with pytest.raises(CaseError, match="the sources of a shot are"):
            shot_traces(each, Shot(source, SHOT.receivers), 4)  # type: ignore[arg-type]
    with pytest.raises(CaseError, match="receivers record"):
        shot_traces(acoustic, Shot([PointSource()], SHOT.receivers, record=("szz",)), 4)
