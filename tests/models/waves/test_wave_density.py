"""Variable density: steps by a plain oracle, exact reflections, energy, reciprocity, and bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.waves import (
    Cpml,
    Faces,
    Free,
    Medium,
    Periodic,
    PlaneSource,
    PointSource,
    Receivers,
    Release,
    Ricker,
    Rigid,
    Shot,
    Sponge,
    Wavelet,
    prepare,
    shot_traces,
)
from minga.models.waves.boundary import Face
from minga.models.waves.elastic import ElasticMedium, Explosion, elastic
from minga.running.loop import drive
from minga.running.session import state_digest
from thinned import thinned
from wave_density import advanced, oracle, random_medium, traces


@pytest.mark.few(2)
@pytest.mark.parametrize("face", [Release(), Free(), Rigid(), Periodic()], ids=repr)
@pytest.mark.parametrize("order", [4, 8, 12, 16])
@pytest.mark.parametrize("shape", [(34,), (17, 19), (17, 18, 19)])
def test_steps_are_those_of_a_plain_oracle(shape: tuple[int, ...], order: int, face: Face) -> None:
    vp, rho = random_medium(shape)
    h = (10.0, 12.0, 9.0)[: len(shape)]
    p, dt = np.random.default_rng(3).standard_normal(shape), 2e-4
    if isinstance(face, Free):
        for axis in range(len(shape)):
            np.moveaxis(p, axis, 0)[[0, -1]] = 0.0
    common: dict[str, Any] = {"spacing": h, "dt": dt, "medium": Medium(vp, rho=rho), "order": order, "boundary": face}
    second = dt * dt * oracle(p, vp, rho, h, order, face)
    size = np.abs(second).max()
    assert advanced(p, 1, **common) == pytest.approx(p + second, abs=1e-12 * size)
    fourth = second + dt * dt * oracle(second, vp, rho, h, order, face) / 12.0
    assert advanced(p, 1, time_order=4, **common) == pytest.approx(p + fourth, abs=1e-12 * size)


def test_a_number_has_no_effect() -> None:
    """The bits are those of a medium without a density, with anisotropy as well."""
    for entries in ({"vp": random_medium((24, 24))[0]}, {"vp": 2000.0, "epsilon": 0.2, "delta": 0.1}):
        first, second = (
            mg.run(mg.fletcher((24, 24), 10.0, dt=5e-4, order=4, medium=Medium(**entries, **more)), 30).p.values  # type: ignore[arg-type]
            for more in ({}, {"rho": 2345.6})
        )
        assert np.abs(first).max() > 0
        assert np.array_equal(first, second)


# Exact solutions ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("vp", "rho"),
    [((2000.0, 2000.0), (1000.0, 3000.0)), ((2000.0, 2000.0), (2600.0, 1000.0)), ((1500.0, 2500.0), (1000.0, 2200.0)),
     ((1500.0, 3000.0), (2000.0, 1000.0))],
    ids=["denser", "lighter", "both", "matched"],
)  # fmt: skip
def test_reflection_and_transmission_at_normal_incidence(vp: tuple[float, float], rho: tuple[float, float]) -> None:
    """R = (Z2 - Z1) / (Z2 + Z1) and 1 + R on one axis; the interface lies halfway between two cells."""
    cells, last, start, above, below = 700, 349, 310, 330, 365  # the last cell above the interface
    first = np.arange(cells) <= last
    z1, z2 = (v * d for v, d in zip(vp, rho, strict=True))
    exact = (z2 - z1) / (z2 + z1)
    wavelet = Ricker(12.0)

    def run(vps: tuple[float, float], rhos: tuple[float, float], places: list[int]) -> np.ndarray:
        medium = Medium(np.where(first, *vps), rho=np.where(first, *rhos))
        points = [(5.0 * cell,) for cell in places]
        return traces(medium, (cells,), PointSource((5.0 * start,), wavelet), points, 900, dt=4e-4)

    image = 2 * last + 1 - above
    found, alone = run(vp, rho, [above, below]), run((vp[0],) * 2, (rho[0],) * 2, [above, image, last + 1])
    reflected = found[:, 0] - alone[:, 0]
    assert reflected == pytest.approx(exact * alone[:, 1], abs=0.01 * max(abs(exact), 0.5) * np.abs(alone[:, 1]).max())
    times = 4e-4 * np.arange(900)
    late = (last + 0.5 - (last + 1)) * 5.0 / vp[0] + (below - last - 0.5) * 5.0 / vp[1]
    passed = (1.0 + exact) * np.interp(times - late, times, alone[:, 2])
    assert found[:, 1] == pytest.approx(passed, abs=0.01 * np.abs(passed).max())


def test_reflections_of_a_density_alone_do_not_depend_on_the_angle() -> None:
    """On two axes the waves that come back are those of an image of the source, times R, up to 70 degrees."""
    shape, last = (70, 150), 34
    rho = np.where(np.arange(70)[:, None] <= last, 1000.0, 2500.0) + np.zeros(shape)
    exact = 1.5 / 3.5
    places = [(5.0 * 20, 5.0 * (60 + k)) for k in (0, 10, 20, 40, 55)]
    options: dict[str, Any] = {"dt": 5e-4, "boundary": Sponge(20)}
    depth, image = 5.0 * 22, 5.0 * (2 * last + 1 - 22)
    medium, plain = Medium(2000.0, rho=rho), Medium(2000.0, rho=np.full(shape, 1000.0))
    found, direct, ghost = (
        traces(m, shape, PointSource((z, 300.0), Ricker(25.0)), places, 560, **options)
        for m, z in ((medium, depth), (plain, depth), (plain, image))
    )
    reflected = found - direct
    for column in range(len(places)):
        size = np.abs(exact * ghost[:, column]).max()
        assert reflected[:, column] == pytest.approx(exact * ghost[:, column], abs=0.02 * size)


@pytest.mark.slow
def test_waves_are_those_of_the_elastic_model_without_shear() -> None:
    """Both use the same differences: with the second difference of the moment as source they differ by roundings."""
    shape, steps, dt, h = (30, 34), 120, 5e-4, 10.0
    vp, rho = random_medium(shape, 0.3)
    rho[10:20, 10:20], vp[10:20, 10:20] = 2000.0, 2200.0
    place, places = (15, 14), [(40.0, 70.0), (230.0, 290.0), (150.0, 140.0)]
    ricker = Ricker(40.0, 0.06)
    samples = np.array([float(ricker.at(np.array(n * dt))) for n in range(-2, steps + 3)])
    moment = Wavelet(samples[2:])
    pressure = mg.run(
        elastic(
            shape, h, dt=dt, medium=ElasticMedium(vp, 0.0, rho), order=8, boundary=Rigid(), dtype="f8",
            sources=[Explosion((150.0, 140.0), moment)], receivers=Receivers(places),
        ), steps, observe=1,
    ).receivers.values  # fmt: skip
    second = np.diff(samples, 2)[1:] / (dt * dt * vp[place] ** 2)
    waves = prepare(shape, h, dt=dt, medium=Medium(vp, rho=rho), boundary=Rigid(), dtype="f8")
    found = shot_traces(
        waves, Shot([PointSource((150.0, 140.0), Wavelet(second))], Receivers(places)), steps + 1
    )  # fmt: skip
    assert found == pytest.approx(pressure, abs=1e-12 * np.abs(pressure).max())


@pytest.mark.parametrize("order", [4, 8])
def test_orders_in_space(order: int) -> None:
    """Uniform densities converge with the order of the differences, smooth densities with second order."""

    def error(cells: int, contrast: float) -> float:
        """The operator of a wave on a periodic axis of length 1, with a density of exp(contrast sin)."""
        x = np.arange(cells) / cells
        turn = 2 * math.pi * x
        p, slope, bend = np.sin(turn), 2 * math.pi * np.cos(turn), -((2 * math.pi) ** 2) * np.sin(turn)
        rho, growth = np.exp(contrast * np.sin(turn + 0.7)), contrast * 2 * math.pi * np.cos(turn + 0.7)
        dt = 1e-3
        found = (advanced(p, 1, spacing=1.0 / cells, dt=dt, medium=Medium(np.ones(cells), rho=rho), order=order,
                          boundary=Periodic()) - p) / dt**2  # fmt: skip
        return float(np.abs(found - (bend - growth * slope)).max())

    uniform = math.log2(error(16, 0.0) / error(32, 0.0))
    smooth = math.log2(error(32, 0.5) / error(64, 0.5))
    assert uniform == pytest.approx(order, abs=0.3)
    assert smooth == pytest.approx(2.0, abs=0.1)


@pytest.mark.few(1)
@pytest.mark.parametrize("time_order", [2, 4])
def test_orders_in_time(time_order: int) -> None:
    """With a source where the density varies; errors are differences from steps four times as short."""
    cells = 120
    vp, rho = np.linspace(1800.0, 2600.0, cells), np.exp(0.5 * np.sin(np.arange(cells) / 7.0))

    def waves(divisor: int) -> np.ndarray:
        source, options = PointSource((300.0,), Ricker(20.0, 0.08)), {"dt": 1.2e-3 / divisor, "time_order": time_order}
        found = traces(Medium(vp, rho=rho), (cells,), source, [(450.0,)], 160 * divisor + 1, order=4, **options)
        return found[::divisor, 0]

    first, second, third = (waves(divisor) for divisor in (1, 2, 4))
    ratio = np.linalg.norm(first - second) / np.linalg.norm(second - third)
    assert math.log2(float(ratio)) == pytest.approx(time_order, abs=0.15)


# Invariants --------------------------------------------------------------------------------------------------------
@pytest.mark.few(1)
@pytest.mark.parametrize("face", [Release(), Free(), Rigid(), Periodic()], ids=repr)
def test_energy_is_conserved(face: Face) -> None:
    """E = |p1 - p0|^2 / dt2 - p1 . A p0, weighted by 1 / (rho vp2), is constant for leapfrog with a symmetric A."""
    shape, h = (17, 19), (10.0, 10.0)
    vp, rho = random_medium(shape)
    p = np.random.default_rng(3).standard_normal(shape)
    if isinstance(face, Free):
        p[[0, -1]] = p[:, [0, -1]] = 0.0
    common: dict[str, Any] = {"spacing": h, "medium": Medium(vp, rho=rho), "order": 8, "boundary": face}
    dt = 0.9 * prepare(shape, dt=1e-5, **common).extremes.dt_limit

    def energy(steps: int) -> float:
        before, after = (advanced(p, n, dt=dt, **common) for n in (steps, steps + 1))
        rest = np.square((after - before) / dt) - after * oracle(before, vp, rho, h, 8, face)
        return float((rest / (rho * vp**2)).sum())

    if isinstance(face, Free):
        assert not advanced(p, 50, dt=dt, **common)[[0, -1]].any()
    start = energy(0)
    assert start > 0
    assert energy(400) == pytest.approx(start, rel=1e-11)


@pytest.mark.parametrize("options", [{"boundary": Release()}, {"boundary": Rigid(), "time_order": 4}], ids=str)
def test_sources_and_receivers_can_be_exchanged(options: dict[str, Any]) -> None:
    """The density at the source times p: sources are those of mass, whose p near them does not depend on it."""
    shape = (20, 24)
    vp, rho = random_medium(shape)
    a, b = (4, 7), (15, 18)
    points = [tuple(5.0 * cell for cell in place) for place in (a, b)]
    there, back = (
        traces(Medium(vp, rho=rho), shape, PointSource(source, Ricker(40.0)), [receiver], 200, dt=3e-4, **options)
        for source, receiver in (points, points[::-1])
    )
    assert np.abs(there).max() > 0
    assert rho[a] * there == pytest.approx(rho[b] * back, abs=1e-11 * np.abs(rho[a] * there).max())


@pytest.mark.parametrize("place", [95.0, 100.0, 77.4, 118.7])
def test_sources_near_an_interface_can_be_exchanged(place: float) -> None:
    """On cells on either side of it at 97.5 m, and between cells four cells from it; sources have eight cells."""
    rho = np.where(np.arange(60) < 20, 1000.0, 3000.0)
    places, known = (place, 203.0), Medium(2000.0, rho=rho)
    there, back = (
        traces(known, (60,), PointSource((a,), Ricker(25.0)), [(b,)], 400, dt=5e-4, boundary=Rigid())
        for a, b in (places, places[::-1])
    )
    near, far = (rho[round(at / 5.0)] for at in places)
    assert near * there == pytest.approx(far * back, abs=1e-11 * np.abs(near * there).max())


@pytest.mark.slow
@pytest.mark.parametrize("time_order", thinned([2, 4], 4))
def test_bits_depend_neither_on_ranks_nor_on_threads(time_order: int) -> None:
    vp, rho = random_medium((20, 18, 16))
    model = mg.fletcher(
        (20, 18, 16), 10.0, dt=4e-4, time_order=time_order, medium=Medium(vp, rho=rho), order=8,
        boundary=Faces(Cpml(4), z=(Free(), Sponge(4)), y=Rigid()),
        sources=[PointSource((93.0, 81.0, 77.0), Ricker(30.0, delay=0.01)), PlaneSource("x", 50.0)],
    )  # fmt: skip

    def run(ranks: int, depth: int, threads: int = 1, layout: str = "slabs") -> str:
        def body(comm: mg.SerialComm) -> str:
            with mg.Engine(model.layouts(layout, ranks), comm=comm, halo_depth=depth, threads=threads) as engine:
                drive(model, engine, 12)
                return state_digest(engine, model, [f for f in model.fields if f.name == "p"])

        return mg.run_virtual(ranks, body)[0]  # type: ignore[arg-type]

    alone = run(1, 1)
    assert run(2, 1) == alone
    assert run(3, 2) == alone
    assert run(1, 1, threads=3) == alone
    assert run(4, 1, layout="cartesian:2x2x1") == alone
