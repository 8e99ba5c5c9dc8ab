"""Elastic waves: energy, stability, orders of accuracy, boundaries, ranks, adjoints, and wrong inputs."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.settings import GridSettings
from minga.errors import CaseError
from minga.models.waves import (
    Cpml,
    Faces,
    Free,
    Periodic,
    PointSource,
    Random,
    Receivers,
    Release,
    Ricker,
    Rigid,
    Sponge,
    Wavelet,
)
from minga.models.waves.boundary import Boundary
from minga.models.waves.elastic import (
    ElasticMedium,
    ElasticWaves,
    Explosion,
    Force,
    Moment,
    elastic,
    elastic_stepping,
    prepare_elastic,
)
from minga.models.waves.elastic.case import notes_before
from minga.models.waves.elastic.medium import Speeds
from minga.models.waves.elastic.spec import SPEC
from minga.models.waves.elastic.stencils import staggered_weights
from minga.models.waves.preflight import dispersion
from minga.output.segy import SegyFile
from minga.output.series import Series
from minga.output.traces import read_traces, traces_to_segy, write_traces
from minga.schema import validate
from model_runs import assert_same, run_model
from models.waves.elastic.elastic_runs import gathered, random_state, restart, started
from thinned import thinned

SHAPE = (18, 20)
RNG = np.random.default_rng(3)
VP = RNG.uniform(2000, 4000, SHAPE)
SOLID = ElasticMedium(VP, VP * RNG.uniform(0.3, 0.6, SHAPE), RNG.uniform(1500, 2500, SHAPE))
VS = np.where(np.arange(18)[:, None] < 6, 0.0, SOLID.vs)
SEA = ElasticMedium(VP, VS, SOLID.rho)
CLOSED = {"release": Release(), "periodic": Periodic(), "both": Faces(Release(), x=Periodic())}


def prepared(medium: ElasticMedium = SOLID, boundary: Boundary | None = None, **options: Any) -> ElasticWaves:
    settings: dict[str, Any] = {"dt": 5e-4, "order": 4, "dtype": "f8", "boundary": boundary or Release()}
    return prepare_elastic(SHAPE, 10.0, medium=medium, **(settings | options))


def energy(waves: ElasticWaves, before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> float:
    """The energy that steps conserve: stresses before a step, and velocities half a step before and after them."""
    c = {name: waves.coefficients.values(name, waves.grid.box) for name in waves.coefficients.names}
    kinetic = sum((before[f"v{a}"] * after[f"v{a}"] / c[f"buoyancy_{a}"]).sum() for a in "zx")
    trace = (before["szz"] + before["sxx"]) / (2 * (c["lambda"] + c["mu"]))
    strains = {a: (before[f"s{a}{a}"] - c["lambda"] * trace) / (2 * c["mu"]) for a in "zx"}
    elastic_energy = sum((before[f"s{a}{a}"] * strains[a]).sum() for a in "zx")
    return float(0.5 * (kinetic + elastic_energy + (before["sxz"] ** 2 / c["mu_xz"]).sum()))


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("order", [4, 8])
def test_closed_models_conserve_energy(name: str, order: int) -> None:
    """But for roundings, from a random state that excites all waves, in a medium that differs from cell to cell."""
    waves = prepared(boundary=CLOSED[name], order=order)
    found = []
    with started(waves, random_state(waves)) as (engine, stepping):
        for steps in (1, 500):
            engine.run(stepping.step, steps - 1)
            before = gathered(engine, waves)
            engine.run(stepping.step)
            found.append(energy(waves, before, gathered(engine, waves)))
    assert found[0] > 0
    assert found[1] == pytest.approx(found[0], rel=1e-12)


@pytest.mark.parametrize("ndim", thinned([2, 3], 2))
@pytest.mark.parametrize(("order", "expected"), [(4, (0.6061, 0.4949)), (8, (0.5497, 0.4488))])
def test_the_stable_step_of_a_uniform_medium(order: int, expected: tuple[float, float], ndim: int) -> None:
    """99.9 % of the published limit stays bounded and 100.1 % grows."""
    shape = (12,) * ndim
    uniform = ElasticMedium(3000.0, 1500.0, 2000.0)

    def of(dt: float, limit: float | None = None) -> ElasticWaves:
        return prepare_elastic(
            shape, 10.0, dt=dt, medium=uniform, order=order, boundary=Periodic(), dtype="f8", limit=limit
        )

    limit = of(1e-5).limit
    assert limit * 300.0 == pytest.approx(expected[ndim - 2], abs=6e-5)
    largest = []
    for share in (0.999, 1.001):
        waves = of(share * limit, 1.0)
        with started(waves, random_state(waves)) as (engine, stepping):
            engine.run(stepping.step, 400)
            largest.append(max(abs(v).max() for v in gathered(engine, waves).values()))
    assert largest[0] < 1e9
    assert largest[1] > 1e12
    with pytest.raises(CaseError, match="stability limit") as caught:
        of(1.001 * limit)
    assert caught.value.key == "elastic.dt"


@pytest.mark.parametrize("boundary", [Release(), Faces(Release(), z=(Free(), Release()))], ids=["closed", "free"])
@pytest.mark.parametrize("order", [2, 4, 8, 12])
def test_the_limit_holds_in_rough_media(order: int, boundary: Boundary) -> None:
    """Random cells of fluids and solids with contrasts of 4 in velocity and 3 in density, from any state."""
    vp = RNG.uniform(1500, 6000, (26, 28))
    vs = vp * RNG.uniform(0, 0.85, vp.shape) * (RNG.random(vp.shape) < 0.7)
    rough = ElasticMedium(vp, vs, RNG.uniform(1000, 3000, vp.shape))
    options: dict[str, Any] = {"medium": rough, "order": order, "boundary": boundary, "dtype": "f8"}
    limit = prepare_elastic(vp.shape, 10.0, dt=1e-5, **options).limit
    waves = prepare_elastic(vp.shape, 10.0, dt=0.999 * limit, **options)
    state = {name: values for name, values in random_state(waves).items() if name[0] == "v"}
    with started(waves, state) as (engine, stepping):
        engine.run(stepping.step, 3000)
        found = gathered(engine, waves, ("vz", "vx"))
    assert 1.0 < max(abs(v).max() for v in found.values()) < 10.0


def travelled(cells: int, order: int, dt: float, steps: int) -> float:
    """Error of a plane P wave of one length of a periodic model of 100 m, after some steps."""
    h, speed, rho = 100.0 / cells, 2000.0, 1000.0
    waves = prepare_elastic(
        (cells, 2), h, dt=dt, medium=ElasticMedium(speed, 1000.0, rho), order=order, boundary=Periodic(), dtype="f8"
    )
    z, k = np.arange(cells)[:, None] * h + np.zeros((1, 2)), 2 * math.pi / 100.0

    def velocity(n: float) -> np.ndarray:
        return np.sin(k * (z + h / 2 - speed * (n - 0.5) * dt))

    with started(waves, {"vz": velocity(0), "szz": -rho * speed * np.sin(k * z), "sxx": -1e6 * np.sin(k * z)}) as (
        e,
        s,
    ):
        e.run(s.step, steps)
        return float(abs(np.asarray(e.gather(waves.named["vz"])) - velocity(steps)).max())


@pytest.mark.parametrize("order", [2, 4, 8])
def test_orders_in_space(order: int) -> None:
    """Errors fall by 2 to the order for cells half as wide; steps are so short that those in time do not matter."""
    coarse, fine = (travelled(cells, order, 2e-7, 2000) for cells in (10, 20))
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.35)


def test_order_in_time() -> None:
    coarse, fine = (travelled(40, 12, dt, round(0.04 / dt)) for dt in (4e-4, 2e-4))
    assert math.log2(coarse / fine) == pytest.approx(2, abs=0.05)


def test_weights_differentiate_polynomials() -> None:
    for order in (2, 4, 8, 12):
        for power in range(1, order + 1, 2):
            at = [(k - 0.5) for k in range(1, order // 2 + 1)]
            slope = sum(2 * float(w) * x**power for w, x in zip(staggered_weights(order), at, strict=True))
            assert slope == pytest.approx(float(power == 1), abs=1e-12)


def test_the_limit_holds_where_lambda_is_negative() -> None:
    """Solid rows of fast S waves between rows of a slow fluid, whose shear moduli between rows are 0."""
    solid = (np.arange(24) % 2 == 0)[:, None] * np.ones((1, 24))
    medium = ElasticMedium(np.where(solid, 3000.0, 300.0), np.where(solid, 2580.0, 0.0), 2000.0)
    options: dict[str, Any] = {"medium": medium, "order": 4, "boundary": Periodic(), "dtype": "f8"}
    limit = prepare_elastic((24, 24), 10.0, dt=1e-6, **options).limit
    waves = prepare_elastic((24, 24), 10.0, dt=0.999 * limit, **options)
    with started(waves, random_state(waves)) as (engine, stepping):
        engine.run(stepping.step, 600)
        assert max(abs(v).max() for v in gathered(engine, waves, ("vz", "vx")).values()) < 1e5


@pytest.mark.few(2)
@pytest.mark.parametrize("depth", [0.0, 10.0, 23.0])
@pytest.mark.parametrize(("kind", "sign"), [("force", 1), ("moment", -1)])
def test_both_ends_of_an_axis_are_the_same_wall(depth: float, kind: str, sign: int) -> None:
    """Sources near a wall, and their mirror images near the other one."""
    tensor, direction = ((0.0, 1.0), (1.0, 0.0)), (1.0, 0.0)

    def trace(z: float, at: float) -> np.ndarray:
        wavelet = Ricker(25.0, amplitude=1e9)
        source = Force((z, 90.0), direction, wavelet) if kind == "force" else Moment((z, 90.0), tensor, wavelet)
        model = elastic(
            (24, 20), 10.0, dt=1e-3, medium=ElasticMedium(3000.0, 1700.0, 2200.0), order=8, dtype="f8",
            boundary=Faces(Sponge(6), z=Rigid()), sources=[source], receivers=Receivers([(at, 60.0)]),
            record=("vz" if kind == "force" else "vx",),
        )  # fmt: skip
        return np.asarray(mg.run(model, 90, observe=1).receivers.values)

    low, high = trace(depth, 80.0), trace(230.0 - depth, 150.0)
    assert abs(low).max() > 0
    assert high == pytest.approx(sign * low, abs=1e-12 * abs(low).max())


def test_a_moment_keeps_its_last_value_and_a_force_ends() -> None:
    ramp = np.linspace(0.0, 1e9, 20)

    def last(source: type[Force] | type[Moment], more: int, **options: Any) -> np.ndarray:
        wavelet = Wavelet(np.concatenate([ramp, np.full(more, ramp[-1])]))
        model = elastic(
            (20, 20), 10.0, dt=1e-3, medium=ElasticMedium(3000.0, 1700.0, 2200.0), dtype="f8", order=4,
            sources=[source((90.0, 90.0), wavelet=wavelet, **options)],
        )  # fmt: skip
        return run_model(model, 40).fields["vz"]

    moment = {"tensor": ((0.0, 1.0), (1.0, 0.0))}
    assert np.array_equal(last(Moment, 0, **moment), last(Moment, 60, **moment))
    assert not np.array_equal(last(Force, 0, direction=(1.0, 0.0)), last(Force, 60, direction=(1.0, 0.0)))


def test_files_of_samples_name_quantities(tmp_path: Path) -> None:
    model = elastic(
        (20, 20), 10.0, dt=1e-3, medium=ElasticMedium(3000.0, 1700.0, 2200.0), order=4,
        receivers=Receivers([(50.0, 60.0), (50.0, 80.0), (50.0, 100.0)]), record=("p", "vz"),
    )  # fmt: skip
    found = mg.run(model, 20, observe=1)
    assert model.traces is not None
    series = Series()
    for step, row in enumerate(found.receivers.values):
        series.add(step, step * 1e-3, {"receivers": row})
    write_traces(tmp_path / "receivers.zarr", model.traces, series)
    recorded = read_traces(tmp_path / "receivers.zarr")
    assert recorded.quantities == ("p",) * 3 + ("vz",) * 3
    traces_to_segy(tmp_path / "a.sgy", recorded)
    assert SegyFile.open(tmp_path / "a.sgy").headers["kind"].tolist() == [11] * 3 + [12] * 3
    text = (tmp_path / "a.sgy").read_bytes()[:3200].decode("cp037")
    assert "TRACES 1 TO 3: P" in text
    assert "TRACES 4 TO 6: VZ" in text
    assert "HALF A STEP, 0.5 MS, BEFORE" in text


def test_sources_of_other_models_are_refused() -> None:
    with pytest.raises(CaseError, match="source 0 is a PointSource") as caught:
        elastic(
            (20, 20), 10.0, dt=1e-3, medium=ElasticMedium(3000.0, 1700.0, 2200.0), sources=[PointSource((50.0, 50.0))]
        )  # type: ignore[list-item]
    assert caught.value.key == "elastic.sources[0]"


def test_a_rigid_wall_is_the_middle_of_a_symmetric_model() -> None:
    """A model between walls, and one of twice the size with its mirror images."""
    medium = {name: np.asarray(getattr(SEA, name)) for name in ("vp", "vs", "rho")}

    def twice(values: np.ndarray) -> np.ndarray:
        for axis in (0, 1):
            values = np.concatenate([np.flip(values, axis), values], axis)
        return values

    def velocities(medium: dict[str, np.ndarray], boundary: Boundary, places: list[tuple[float, float]]) -> Any:
        model = elastic(
            medium["vp"].shape, 10.0, dt=6e-4, medium=ElasticMedium(**medium), order=4, dtype="f8", boundary=boundary,
            sources=[Explosion(p, Ricker(25.0)) for p in places],
        )  # fmt: skip
        return run_model(model, 150).fields

    small = velocities(medium, Faces(Rigid()), [(83.0, 61.0)])
    doubled = {name: twice(values) for name, values in medium.items()}
    z, x = ([s * (p + 5.0) + n * 10.0 - 5.0 for s in (1, -1)] for p, n in ((83.0, 18), (61.0, 20)))
    large = velocities(doubled, Faces(Rigid()), [(a, b) for a in z for b in x])
    for name, values in small.items():
        assert abs(values).max() > 0
        assert values == pytest.approx(large[name][18:, 20:], abs=1e-9 * abs(values).max())


SOURCES = {
    2: (Explosion((83.0, 61.0), Ricker(25.0, 0.01)), Force((120.0, 133.0), (1.0, -2.0), Ricker(30.0, 0.01)),
        Moment((66.0, 104.0), ((0.0, 1.0), (1.0, 2.0)), Ricker(20.0, 0.01))),
    3: (Moment((64.0, 61.0, 74.0), ((0.0, 1.0, 2.0), (1.0, 2.0, 0.0), (2.0, 0.0, 1.0)), Ricker(25.0, 0.01)),
        Force((40.0, 50.0, 71.0), (1.0, 1.0, 0.5), Ricker(25.0, 0.01))),
}  # fmt: skip


def shot(ndim: int, boundary: Boundary, dtype: str = "f4") -> mg.Model:
    shape = SHAPE if ndim == 2 else (14, 12, 16)
    medium = SEA if ndim == 2 else ElasticMedium(*(np.resize(np.asarray(a), shape) for a in (VP, VP / 2, VP / 1.5)))
    places = [(31.0, 72.0), (100.0, 40.0)] if ndim == 2 else [(31.0, 72.0, 90.0), (100.0, 40.0, 45.0)]
    return elastic(
        shape, 10.0, dt=5e-4, medium=medium, order=4, boundary=boundary, dtype=dtype, sources=SOURCES[ndim],
        receivers=Receivers(places), record=("p", "vx", "szz", "sxz"),
    )  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize(
    ("ndim", "boundary"),
    [
        (2, Faces(Sponge(6), z=(Free(), Sponge(6)))),
        (2, Faces(Cpml(6), z=(Free(), Cpml(5)), x=(Rigid(), Cpml(6)))),
        (3, Faces(Cpml(4), z=(Free(), Cpml(4)))),
        (3, Faces(Release(), x=Rigid())),
    ],
)
def test_the_same_bits_on_any_ranks(ndim: int, boundary: Boundary, ranks: int) -> None:
    model = shot(ndim, boundary)
    alone = run_model(model, 25)
    assert all(abs(values).max() > 0 for values in alone.fields.values())
    assert_same(alone, run_model(model, 25, ranks=ranks))


@pytest.mark.slow
def test_a_restart_changes_no_bit(tmp_path: Path) -> None:
    boundary = Faces(Cpml(6), z=(Free(), Cpml(6)))
    whole = mg.run(shot(2, boundary), 30, out=tmp_path / "whole")
    mg.run(shot(2, boundary), 14, out=tmp_path / "parts", checkpoint={"every": 7, "at_end": True})
    parts = mg.run(shot(2, boundary), 30, out=tmp_path / "parts", resume=True)
    assert parts.attrs["digest"] == whole.attrs["digest"]
    assert np.array_equal(parts.vz.values[-1], whole.vz.values[-1])


ADJOINT = {
    "sponge": (SEA, Sponge(5)),
    "free, sponge": (SEA, Faces(Sponge(4), z=(Free(), Sponge(4)))),
    "free, matched": (SEA, Faces(Cpml(4), z=(Free(), Cpml(4)))),
    "rigid, periodic": (SEA, Faces(Rigid(), x=Periodic())),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ADJOINT)
def test_the_adjoint_of_a_step_is_exact(name: str) -> None:
    """The dot product by the initial state, and difference quotients by every field of coefficients."""
    medium, boundary = ADJOINT[name]
    waves = prepared(medium, boundary)
    step = elastic_stepping(waves, []).step
    adjoint = mg.adjoint(step, wrt=[*waves.fields, *waves.medium])
    state, weights = random_state(waves, 5), random_state(waves, 6)
    weights = {key: values / (1.0 if key[0] == "v" else 1e14) for key, values in weights.items()}
    steps = 6

    def seed(engine: mg.Engine, n: int) -> None:
        if n == steps:
            for field in waves.fields:
                for box, values in engine.blocks(adjoint.of[field], write=True):
                    values += weights[field.name][box.slices((0, 0))]

    with started(waves, state) as (engine, stepping):

        def number(changed: Mapping[str, np.ndarray]) -> float:
            restart(engine, stepping, {**state, **changed})
            engine.run(step, steps)
            return float(sum((values * weights[key]).sum() for key, values in gathered(engine, waves).items()))

        exact = number({})
        restart(engine, stepping, state)
        adjoint.run(engine, steps, seed=seed)
        slopes = {f.name: np.array(engine.gather(adjoint.of[f])) for f in (*waves.fields, *waves.medium)}
        products = [float((slopes[f.name] * state[f.name]).sum()) for f in waves.fields]
        assert abs(sum(products) - exact) < 1e-12 * sum(map(abs, products))
        for field in waves.medium:
            base = waves.coefficients.values(field.name, waves.grid.box)
            direction = base * np.random.default_rng(7).uniform(-1, 1, base.shape)
            h = 1e-3
            at = {k: number({field.name: base + k * h * direction}) for k in (-2, -1, 1, 2)}
            quotient = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
            assert float((slopes[field.name] * direction).sum()) == pytest.approx(quotient, rel=1e-8)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"medium": ElasticMedium(-1.0, 0.0, 1000.0)}, "elastic.medium.vp"),
        ({"medium": ElasticMedium(np.where(VP > 3000, np.nan, VP), 0.0, 1000.0)}, "elastic.medium.vp"),
        ({"medium": ElasticMedium(2000.0, 0.0, -5.0)}, "elastic.medium.rho"),
        ({"medium": ElasticMedium(2000.0, 1800.0, 1000.0)}, "elastic.medium.vs"),
        ({"medium": ElasticMedium(2000.0, -3.0, 1000.0)}, "elastic.medium.vs"),
        ({"medium": ElasticMedium(2000.0, np.zeros((3, 3)), 1000.0)}, "elastic.medium.vs"),
        ({"medium": ElasticMedium(lambda box: np.ones(3), 0.0, 1000.0)}, "elastic.medium.vp"),
        ({"dt": 1.0}, "elastic.dt"),
        ({"dt": -1.0}, "elastic.dt"),
        ({"order": 6}, "elastic.order"),
        ({"spacing": -1.0}, "elastic.spacing"),
        ({"shape": (18,)}, "grid.shape"),
        ({"shape": (5, 20), "boundary": Faces(Sponge(4), z=(Free(), Sponge(4))), "medium": "plain"}, "grid.shape"),
        ({"boundary": Random()}, "elastic.boundary"),
        ({"boundary": Free()}, "elastic.boundary.z"),
        ({"boundary": Faces(Sponge(4), x=Free())}, "elastic.boundary.x"),
        ({"boundary": Faces(Sponge(4), y=Free())}, "elastic.boundary.y"),
        ({"sources": [Explosion((999.0, 0.0))]}, "elastic.sources[0].position"),
        ({"sources": [Force((50.0, 50.0), (1.0, 0.0, 0.0))]}, "elastic.sources[0].force"),
        ({"sources": [Force((50.0, 50.0), (0.0, 0.0))]}, "elastic.sources[0].force"),
        ({"sources": [Moment((50.0, 50.0), ((0.0, 1.0), (0.0, 0.0)))]}, "elastic.sources[0].moment"),
        ({"sources": [Moment((50.0, 50.0))]}, "elastic.sources[0].moment"),
        ({"sources": [Explosion((2.0, 50.0))], "boundary": Faces(Sponge(4), z=(Free(), Sponge(4)))},
         "elastic.sources[0].position"),
        ({"sources": [Explosion((13.0, 50.0))], "boundary": Periodic()}, "elastic.boundary"),
        ({"record": ("vy",)}, "elastic.record"),
        ({"record": "p"}, "elastic.record"),
        ({"receivers": Receivers([(9.0, 5.0), (-1.0, 5.0)])}, "elastic.receivers[1].position"),
        ({"receivers": Receivers([(9.0, 5.0), 3.0])}, "elastic.receivers[1].position"),
        ({"receivers": [(9.0, 5.0)]}, "elastic.receivers"),
        ({"receivers": Receivers([(9.0, 5.0)]), "record": [3]}, "elastic.record"),
        ({"receivers": Receivers([(9.0, 5.0)]), "record": ["vz", "p", "vz"]}, "elastic.record"),
        ({"medium": 3000.0}, "elastic.medium"),
        ({"medium": [3000.0, 1700.0, 2200.0]}, "elastic.medium"),
        ({"medium": ElasticMedium("vp.npy", 0.0, 1000.0)}, "elastic.medium.vp"),
        ({"medium": ElasticMedium([[2000.0], [2000.0, 2100.0]], 0.0, 1000.0)}, "elastic.medium.vp"),
        ({"dt": "auto"}, "elastic.dt"),
        ({"spacing": "10"}, "elastic.spacing"),
        ({"spacing": None}, "elastic.spacing"),
        ({"order": "4"}, "elastic.order"),
        ({"dtype": "f2"}, "elastic.dtype"),
        ({"speeds": 3000.0}, "elastic.speeds"),
        ({"limit": "1"}, "elastic.limit"),
        ({"boundary": "sponge"}, "elastic.boundary.z"),
        ({"sources": Explosion()}, "elastic.sources"),
        ({"sources": [Explosion(), "force"]}, "elastic.sources[1]"),
        ({"sources": [Explosion(), Explosion((50.0, 50.0), 15.0)]}, "elastic.sources[1].wavelet"),
        ({"sources": [Explosion(), Explosion(50.0)]}, "elastic.sources[1].position"),
        ({"sources": [Explosion(), Explosion((50.0, "50"))]}, "elastic.sources[1].position"),
        ({"sources": [Explosion((50.0, 50.0), interpolation=4)]}, "elastic.sources[0].interpolation"),
        ({"sources": [Force((50.0, 50.0), "down")]}, "elastic.sources[0].force"),
    ],
)  # fmt: skip
def test_wrong_inputs_are_refused(changes: dict[str, Any], key: str) -> None:
    arguments = {"shape": SHAPE, "spacing": 10.0, "dt": 5e-4, "medium": SOLID, "boundary": Sponge(4)} | changes
    if arguments["medium"] == "plain":
        arguments["medium"] = ElasticMedium(2000.0, 1000.0, 2000.0)
    with pytest.raises(CaseError) as caught:
        elastic(**arguments)
    assert caught.value.key == key
    assert caught.value.remedy


def test_entries_may_be_nested_lists() -> None:
    """Lists are arrays."""
    some = {"shape": SHAPE, "spacing": 10.0, "dt": 5e-4, "boundary": Sponge(4), "order": 4}
    rows = np.full(SHAPE, 2000.0)
    listed, array = (elastic(medium=ElasticMedium(each, 0.0, 1000.0), **some) for each in (rows.tolist(), rows))
    assert np.array_equal(*(model.initial["lambda"](model.grid.box) for model in (listed, array)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ricker("15"), lambda: Ricker(15.0, [0.1]), lambda: Ricker(15.0, amplitude=None),
        lambda: Ricker(15.0, math.nan), lambda: Wavelet([[1.0], [2.0, 3.0]]), lambda: Receivers(3.0),
    ],
)  # fmt: skip
def test_wavelets_and_receivers_of_other_types_are_refused(make: Any) -> None:
    with pytest.raises(CaseError):
        make()


# Cases ---------------------------------------------------------------------------------------------------------------
CASE: dict[str, Any] = {
    "spacing": 10.0,
    "order": 4,
    "boundary": {"sponge": 4, "z": ["free", "sponge"]},
    "medium": {"vp": "vp.npy", "vs": {"file": "vs.npy", "unit": "km/s"}, "rho": 2000},
    "sources": [
        {"position": [50.0, 50.0], "wavelet": {"ricker": 25.0, "scale": 1e9}},
        {"position": [60.0, 70.0], "force": [1e9, 0.0]},
        {"position": [60.0, 90.0], "moment": [[0.0, 1e9], [1e9, 0.0]]},
    ],
    "receivers": {"first": [0.0, 20.0], "last": [0.0, 180.0], "count": 5},
    "record": ["vz", "vx"],
}


def of_case(folder: Path, shape: tuple[int, ...] | None = None, **changes: Any) -> mg.Model:
    settings = validate(SPEC.settings, {k: v for k, v in (CASE | changes).items() if v is not None}, "elastic")
    return SPEC.make(settings, GridSettings(shape=shape), folder)


def test_a_case_is_the_model_that_it_says(tmp_path: Path) -> None:
    np.save(tmp_path / "vp.npy", VP)
    np.save(tmp_path / "vs.npy", VS / 1000)
    found = of_case(tmp_path)
    ricker = Ricker(15.0)
    same = elastic(
        SHAPE, 10.0, dt=found.parameters["dt"], medium=ElasticMedium(VP, VS / 1000 * 1e3, 2000.0), order=4,
        boundary=Faces(Sponge(4), z=(Free(), Sponge(4))),
        sources=[Explosion((50.0, 50.0), Ricker(25.0, amplitude=1e9)), Force((60.0, 70.0), (1e9, 0.0), ricker),
                 Moment((60.0, 90.0), ((0.0, 1e9), (1e9, 0.0)), ricker)],
        receivers=Receivers([(0.0, 20.0 + 40.0 * k) for k in range(5)]), record=("vz", "vx"),
    )  # fmt: skip
    assert found.parameters["dt"] == pytest.approx(0.75 * found.parameters["dt_limit"], rel=0.1)
    assert_same(run_model(found, 30), run_model(same, 30))
    assert {label for label, _ in found.notes} == {"time step", "velocities", "slowest waves", "dispersion", "sponge"}


@pytest.mark.parametrize(
    ("points", "expected"), [(4, -1.586), (5, -0.482), (6, -0.119), (8, 0.060), (10, 0.077), (20, 0.033)]
)
def test_dispersion_is_told(points: int, expected: float) -> None:
    """Errors in per cent that were computed by another program, for order 4 and a Courant number of 0.3."""
    assert 100 * dispersion(points, 0.3, 4, 2, staggered=True) == pytest.approx(expected, abs=6e-4)
    slow = Explosion((50.0, 50.0), Ricker(150.0 / points))
    said = dict(notes_before(Speeds(1500.0, 3000.0, None), 9.0, (10.0, 5.0), 2e-3, [slow], 4))
    assert f"at {150.0 / points:.3g} Hz the slowest waves are {abs(expected):.2g} % too" in said["dispersion"]
    assert ("(coarse" in said["slowest waves"]) is (points < 4)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"boundary": "shiny"}, "elastic.boundary"),
        ({"boundary": "random"}, "elastic.boundary"),
        ({"spacing": None}, "elastic.spacing"),
        ({"sources": [{"position": [500.0, 0.0]}]}, "elastic.sources[0].position"),
        ({"sources": [{"position": [50.0, 50.0], "force": [1.0, 0.0], "moment": [[1, 0], [0, 1]]}]},
         "elastic.sources[0]"),
        ({"sources": [{"position": [50.0, 50.0], "wavelet": {"delay": 1.0}}]}, "elastic.sources[0].wavelet"),
        ({"medium": {"vp": 2000, "vs": 1000, "rho": {"file": "vp.npy", "unit": "m/s"}}}, "elastic.medium.rho"),
        ({"medium": {"vp": 2000, "vs": 1000}}, "elastic.medium.rho"),
        ({"dt": 1.0}, "elastic.dt"),
        ({"receivers": {"first": [0.0, 0.0]}}, "elastic.receivers"),
    ],
)  # fmt: skip
def test_wrong_cases_are_refused(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    np.save(tmp_path / "vp.npy", VP)
    np.save(tmp_path / "vs.npy", VS / 1000)
    with pytest.raises(CaseError) as caught:
        of_case(tmp_path, SHAPE, **changes)
    assert caught.value.key == key


# The example ---------------------------------------------------------------------------------------------------------
def land(**changes: Any) -> mg.Model:
    table = tomllib.loads(examples()["land"].read_text())
    grid = GridSettings(shape=changes.pop("shape", table["grid"]["shape"]))
    return SPEC.make(validate(SPEC.settings, table["elastic"] | changes, "elastic"), grid, Path())


def test_the_example_runs_the_same_on_several_ranks() -> None:
    ends = {"sponge": 3, "z": ["free", "sponge"]}
    small: dict[str, Any] = {"shape": (24, 40), "spacing": 10.0, "boundary": ends, "receivers": None}
    assert_same(run_model(land(**small), 6), run_model(land(**small), 6, ranks=3, halo_depth=2))


@pytest.mark.slow
def test_the_example_shows_a_rayleigh_wave() -> None:
    """By the root of Rayleigh's equation it runs at 923.74 m/s."""
    model = land()
    assert model.steps is not None
    values = np.asarray(mg.run(model, model.steps, observe=2).receivers.values)
    times = [2 * model.parameters["dt"] * place_of_peak(values[:, k]) for k in (13, 21)]  # 160 m and 320 m away
    assert 160.0 / (times[1] - times[0]) == pytest.approx(923.74, rel=0.01)


def place_of_peak(trace: np.ndarray) -> float:
    """The place of the largest value, by a parabola through its neighbours."""
    k = int(np.argmax(trace))
    a, b, c = trace[k - 1 : k + 2]
    return float(k + 0.5 * (a - c) / (a - 2 * b + c))
