"""Variable density: steps by a plain oracle, exact reflections, energy, reciprocity, stability, and gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import (
    Attenuation,
    Cpml,
    Faces,
    Free,
    Medium,
    Periodic,
    PlaneSource,
    PointSource,
    Random,
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
from minga.models.waves.stencils import halfway_weights
from minga.running.loop import drive
from minga.running.session import state_digest
from minga.space.cuts import parse_layout
from thinned import thinned


def mirrored(index: int, n: int, face: Face, sign: float) -> tuple[int, float]:
    """The cell whose value a cell beyond the low end has, and its factor for odd waves (`sign` -1) or densities (1)."""
    if isinstance(face, Periodic):
        return index % n, 1.0
    if isinstance(face, Free):
        return -index, sign
    if isinstance(face, Rigid):
        return -1 - index, 1.0
    return 0, 0.0 if sign < 0 else 1.0


def extended(values: np.ndarray, axis: int, pad: int, face: Face, sign: float) -> np.ndarray:
    n, moved = values.shape[axis], np.moveaxis(values, axis, 0)
    low = [mirrored(-k, n, face, sign) for k in range(pad, 0, -1)]
    high = [mirrored(-k, n, face, sign) for k in range(1, pad + 1)]
    before = [factor * moved[i] for i, factor in low]
    after = [factor * (moved[(k - 1) % n] if isinstance(face, Periodic) else moved[n - 1 - i])
             for k, (i, factor) in enumerate(high, 1)]  # fmt: skip
    return np.moveaxis(np.stack([*before, *moved, *after]), 0, axis)


def oracle(p: np.ndarray, vp: np.ndarray, rho: np.ndarray, h: tuple[float, ...], order: int, face: Face) -> np.ndarray:
    """rho vp2 div(1 / rho grad p) on the cells of a model whose faces are all alike."""
    m, weights = order // 2, [float(w) for w in halfway_weights(order // 2)]
    total = np.zeros_like(p)
    for axis, step in enumerate(h):
        n, pad = p.shape[axis], 2 * m
        wave = np.moveaxis(extended(p, axis, pad, face, -1.0), axis, 0)
        density = np.moveaxis(extended(rho, axis, pad, face, 1.0), axis, 0)
        flux = np.zeros((n + 2 * m, *wave.shape[1:]))  # entry j lies half a cell above cell j - m
        for j in range(n + 2 * m):
            cell = j - m + pad
            slope = sum(w * (wave[cell + k] - wave[cell + 1 - k]) for k, w in enumerate(weights, 1)) / step
            flux[j] = slope * 2.0 / (density[cell] + density[cell + 1])
        rows = [sum(w * (flux[i + m + k - 1] - flux[i + m - k]) for k, w in enumerate(weights, 1)) for i in range(n)]
        total = total + np.moveaxis(np.stack(rows), 0, axis) / step
    return rho * vp**2 * total


def random_medium(shape: tuple[int, ...], contrast: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.uniform(1500.0, 4000.0, shape), 2000.0 * np.exp(contrast * rng.uniform(-1.0, 1.0, shape))


def advanced(p: np.ndarray, steps: int, **options: Any) -> np.ndarray:
    """Waves after some steps from p at rest: the first step has p for both levels."""
    waves = prepare(p.shape, **({"boundary": Release(), "dtype": "f8"} | options))
    step = mg.Program("step")
    waves.record_kernel(step)
    step.rotate(*waves.fields)
    with mg.Engine({waves.grid: parse_layout("slabs", waves.grid.box, 1)}) as engine:
        for item in (*waves.fields, *waves.increments, *waves.medium):
            for slot in range(item.slots):
                start = p if item in waves.fields else waves.start().get(item.name, 0.0)
                engine.set(item.slot(slot), start)
        engine.run(step, steps)
        found = engine.gather(waves.fields[0])
    assert found is not None
    return np.asarray(found)


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
def traces(medium: Medium, shape: tuple[int, ...], source: Any, places: list[tuple[float, ...]], samples: int,
           **options: Any) -> np.ndarray:  # fmt: skip
    common: dict[str, Any] = {"dt": 1e-3, "boundary": Release(), "dtype": "f8", "medium": medium}
    waves = prepare(shape, 5.0, **(common | options))
    return shot_traces(waves, Shot([source], Receivers(places)), samples)


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
    """Where the density is uniform, errors fall with the order of the differences, and where it is smooth with two."""

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


@pytest.mark.slow
@pytest.mark.parametrize("time_order", thinned([2, 4], 4))
def test_bits_depend_neither_on_ranks_nor_on_threads(time_order: int) -> None:
    vp, rho = random_medium((20, 18, 16))
    model = mg.fletcher(
        (20, 18, 16), 10.0, dt=4e-4, time_order=time_order, medium=Medium(vp, rho=rho), order=8,
        boundary=Faces(Cpml(4) if time_order == 2 else Sponge(4), z=(Free(), Sponge(4)), y=Rigid()),
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


# Stability ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("contrast", "least"), [(0.0, 0.99), (1.0, 0.85), (3.0, 0.8)])
@pytest.mark.parametrize("order", [4, 16])
def test_the_limit_is_near_that_of_the_matrix(order: int, contrast: float, least: float) -> None:
    """Never above it, and near it even where density and velocity change at random from cell to cell."""
    shape = (60,)
    vp, rho = random_medium(shape, contrast)
    vp = vp if contrast else np.full(shape, 3000.0)
    matrix = np.stack([oracle(unit, vp, rho, (10.0,), order, Rigid()) for unit in np.eye(60)], axis=1)
    exact = 2.0 / math.sqrt(float(np.linalg.eigvals(-matrix).real.max()))
    waves = prepare(shape, 10.0, dt=1e-6, medium=Medium(vp, rho=rho), order=order, boundary=Rigid())
    assert least * exact < waves.extremes.dt_limit <= exact * (1 + 1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize("boundary", [Release(), Sponge(6), Random(6), Faces(Free(), x=Periodic())], ids=repr)
@pytest.mark.parametrize("time_order", [2, 4])
def test_steps_below_the_limit_do_not_grow(time_order: int, boundary: Any) -> None:
    shape = (24, 26)
    vp, rho = random_medium(shape, 2.0)
    common: dict[str, Any] = {"medium": Medium(vp, rho=rho), "boundary": boundary, "time_order": time_order}
    limit = mg.fletcher(shape, 10.0, dt=1e-6, **common).parameters["dt_limit"]
    waves = prepare(shape, 10.0, dt=0.9999 * limit, dtype="f8", **common)
    shot = Shot([PointSource((120.0, 130.0), Ricker(60.0))], Receivers([(70.0, 110.0)]))
    found = np.abs(shot_traces(waves, shot, 3000))
    assert 0 < found[-300:].max() < 10 * found[:300].max()
    with pytest.raises(CaseError, match="stability limit"):
        prepare(shape, 10.0, dt=1.0001 * limit, **common)


def test_attenuation_weakens_reflections_alike() -> None:
    """The reflection of a density alone has the spectrum of waves that ran as far without one, times R."""
    cells, last = 400, 199
    rho = np.where(np.arange(cells) <= last, 1000.0, 3000.0)
    options: dict[str, Any] = {"attenuation": Attenuation(30.0), "dt": 5e-4}
    source, places = PointSource((600.0,), Ricker(20.0)), [(800.0,), (5.0 * (2 * last + 1 - 160),)]
    found, alone = (
        traces(Medium(2000.0, rho=d), (cells,), source, places, 900, **options) for d in (rho, np.full(cells, 1000.0))
    )
    reflected = found[:, 0] - alone[:, 0]
    assert reflected == pytest.approx(0.5 * alone[:, 1], abs=0.005 * np.abs(alone[:, 1]).max())


@pytest.mark.parametrize("dense", [True, False])
def test_matched_layers_reflect_little(dense: bool) -> None:
    """What a layer returns along its axis, relative to a rigid wall; the waves are those of a larger model."""

    def waves(cells: int, end: Face) -> np.ndarray:
        rho: Any = np.full(cells, 1500.0) if dense else 1500.0
        boundary = Faces(Rigid(), z=(Rigid(), end))
        medium = Medium(2000.0, rho=rho)
        source, options = PointSource((100.0,), Ricker(50.0)), {"dt": 5e-4, "boundary": boundary}
        return traces(medium, (cells,), source, [(150.0,)], 500, **options)
            medium, (cells,), PointSource((100.0,), Ricker(50.0)), [(150.0,)], 500, dt=5e-4, boundary=boundary
        )

    whole = waves(600, Rigid())
    wall, layer = (np.abs(waves(60, end) - whole).max() for end in (Rigid(), Cpml(12)))
    assert layer < 10.0 ** (-74 / 20 if dense else -100 / 20) * wall


@pytest.mark.slow
def test_matched_layers_stay_stable() -> None:
    """Near the limit, over two hundred crossings of a model whose density jumps and fluctuates along the layers."""
    shape = (40, 44)
    deep = np.arange(40)[:, None] >= 20
    rho = np.where(deep, 2500.0, 1000.0) * np.exp(0.3 * np.random.default_rng(3).uniform(-1.0, 1.0, shape))
    common: dict[str, Any] = {"medium": Medium(np.where(deep, 3000.0, 1500.0) + 0 * rho, rho=rho), "boundary": Cpml(10)}
    limit = prepare(shape, 10.0, dt=1e-6, **common).extremes.dt_limit
    waves = prepare(shape, 10.0, dt=0.99 * limit, dtype="f8", **common)
    shot = Shot([PointSource((100.0, 200.0), Ricker(25.0))], Receivers([(200.0, 200.0), (350.0, 400.0)]))
    found = np.abs(shot_traces(waves, shot, 20000))
    ends = [found[k : k + 2000].max() for k in range(0, 20000, 4000)]
    assert ends == sorted(ends, reverse=True)
    assert ends[-1] < 1e-7 * ends[0]


# Errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("entries", "options", "said"),
    [
        ({"rho": np.full((24, 24), -1000.0)}, {}, "rho is -1000 at cell"),
        ({"rho": -3.0}, {}, "rho is -3 at cell"),
        ({"rho": 0.0}, {}, "rho is 0 at cell"),
        ({"rho": math.nan}, {}, "rho is nan at cell"),
        ({"rho": np.full((24, 24), np.inf)}, {}, "rho is inf at cell"),
        ({"rho": np.zeros((24, 23)) + 1.0}, {}, r"rho is an array of float64 and shape \(24, 23\)"),
        ({"rho": "dense"}, {}, "rho is an array of <U5"),
        ({"rho": None}, {}, "rho is an array of object"),
        ({"rho": lambda box: np.ones((3, 3))}, {}, "the function for rho returns an array of shape"),
        ({"rho": np.ones((24, 24)), "epsilon": 0.1}, {}, "a density that varies in an anisotropic medium"),
        ({"rho": np.ones((24, 24))}, {"boundary": Cpml(4), "time_order": 4}, "matched layers"),
        ({"rho": np.ones((24, 24))}, {"boundary": Rigid(), "order": 16, "shape": (15, 24)}, "needs 16 or more"),
    ],
)
def test_what_cannot_be_is_refused(entries: dict[str, Any], options: dict[str, Any], said: str) -> None:
    shape = options.pop("shape", (24, 24))
    if shape != (24, 24):
        entries = {"rho": np.ones(shape)}
    with pytest.raises(CaseError, match=said):
        prepare(shape, 10.0, dt=1e-4, medium=Medium(**{"vp": 2000.0, **entries}), **options)
