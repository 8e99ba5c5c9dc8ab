"""Images of elastic waves: reflectors where they are, the same from both sides, and what theory has vanish."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import minga as mg
from elastic_physics import BOUNDARIES, RECORD, SEA, SHAPE, SHOT, SOLID, SOURCES, waves_in
from minga.errors import CaseError
from minga.models.waves import Attenuation, Image, Receivers, Ricker, Shot, Sponge, shot_image, shot_traces
from minga.models.waves.elastic import ElasticImage, ElasticMedium, Explosion, Force, prepare_elastic
from minga.models.waves.shot import ShotRun
from minga.solve.adjoint.adjoint import adjoint

ROCK, HARDER = (2500.0, 1400.0, 2100.0), (3000.0, 1700.0, 2300.0)
DEPTH = 35
"""First row below the interface, which lies half a cell above it."""
MIDDLE = slice(40, 60)


def data_of() -> Shot:
    return Shot(SOURCES, SHOT.receivers, np.random.default_rng(3).standard_normal((16, 18)), RECORD)


@functools.cache
def image(below: tuple[float, ...], place: float, q: float | None = None) -> ElasticImage:
    """Image by an explosion of an interface between rock and what is below; migrated in the rock above."""
    shape, traces = (60, 100), []
    z = np.arange(shape[0])[:, None] * np.ones(shape)
    spread, record = Receivers([(20.0, 10.0 * k) for k in range(100)]), ("vz", "vx")
    shot = Shot([Explosion((20.0, place), Ricker(15.0, amplitude=1e6))], spread, record=record)
    attenuation = None if q is None else Attenuation(q=q, qs=0.7 * q, band=(5.0, 40.0))
    for other in (below, ROCK):
        medium = ElasticMedium(*(np.where(z < DEPTH, a, b) for a, b in zip(ROCK, other, strict=True)))
        waves = prepare_elastic(
            shape, 10.0, dt=1e-3, medium=medium, boundary=Sponge(20), order=4, attenuation=attenuation
        )
        traces.append(shot_traces(waves, shot, 700))
    found = shot_image(waves, Shot(shot.sources, spread, traces[0] - traces[1], record))
    assert found is not None
    return found.normalised()


def profile(values: Any) -> Any:
    return values[15:52, MIDDLE].mean(axis=1)


def at_interface(values: Any) -> float:
    """Largest value within two rows of the interface."""
    return float(abs(values[DEPTH - 2 : DEPTH + 2, MIDDLE].mean(axis=1)).max())


@pytest.mark.slow
@pytest.mark.parametrize("q", [None, 60.0])
def test_an_interface_is_seen_where_it_is_from_both_sides(q: float | None) -> None:
    """P and S waves are faster below, and the density is larger: both images are positive on it."""
    shots = image(HARDER, 200.0, q), image(HARDER, 790.0, q)
    for found in (*shots, shots[0] + shots[1]):
        for each in (found.pp, found.ps):
            peak = 15 + int(np.argmax(profile(each.values)))
            assert abs(peak - (DEPTH - 0.5)) <= 1  # a row is a sixteenth of the wavelength of P, a ninth of that of S
    left, right = (profile(found.ps.values) for found in shots)
    assert left @ right > 0.9 * np.sqrt((left @ left) * (right @ right))


@functools.cache
def tilted(dip: float) -> tuple[Any, Any]:
    """Images PP and PS of an interface of some dip by a shot from either side, and how well both PS images agree on it.

    The model is turned with its sources and receivers about its middle, through which the interface goes. Images are
    means along the interface by the distance behind it, as seen from the sources, every half cell.
    """
    cells, spacing = 84, 10.0
    middle, turn = 0.5 * spacing * (cells - 1), np.deg2rad(dip)
    behind, along = np.array([np.cos(turn), -np.sin(turn)]), np.array([np.sin(turn), np.cos(turn)])

    def place(there: float, depth: float) -> Any:
        return middle + there * along + depth * behind

    def waves(below: tuple[float, ...]) -> Any:
        z, x = np.meshgrid(*[spacing * np.arange(cells) - middle] * 2, indexing="ij")
        part = np.clip((behind[0] * z + behind[1] * x) / spacing + 0.5, 0.0, 1.0)
        medium = ElasticMedium(*(a + (b - a) * part for a, b in zip(ROCK, below, strict=True)))
        return prepare_elastic((cells, cells), spacing, dt=1e-3, medium=medium, boundary=Sponge(20), order=4)

    def seen(values: Any) -> Any:
        """Values on the interface and beside it, by linear interpolation: along it, and behind it."""
        points = np.array([[place(s, d) / spacing for d in 5.0 * np.arange(-16, 17)] for s in range(-100, 101, 5)])
        low, found = np.floor(points).astype(int), 0.0
        for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
            weight = np.abs(1 - np.array(corner) - (points - low)).prod(axis=-1)
            found = found + weight * values[tuple(np.moveaxis(low + corner, -1, 0))]
        return found

    spread, record = Receivers([tuple(place(10.0 * k, -150.0)) for k in range(-35, 36)]), ("vz", "vx")
    images = []
    for there in (-170.0, 170.0):
        shot = Shot([Explosion(tuple(place(there, -150.0)), Ricker(15.0, amplitude=1e6))], spread, record=record)
        traces = [shot_traces(waves(below), shot, 550) for below in (HARDER, ROCK)]
        image = shot_image(waves(ROCK), Shot(shot.sources, spread, traces[0] - traces[1], record))
        assert image is not None
        images.append([seen(each.values).mean(axis=0) for each in (image.pp, image.ps)])
    return images[0], images[1]


@pytest.mark.slow
@pytest.mark.parametrize("dip", [0.0, 45.0, 80.0, 170.0])
def test_shots_from_both_sides_add_up_at_any_dip(dip: float) -> None:
    """Images are those of a flat interface, turned; at 170 degrees it is seen from below."""
    for number, (left, right) in enumerate(zip(*tilted(dip), strict=True)):
        assert left @ right > 0.95 * np.sqrt((left @ left) * (right @ right))
        stack, flat = left + right, sum(shot[number] for shot in tilted(0.0))
        assert stack @ flat > 0.97 * np.sqrt((stack @ stack) * (flat @ flat))
        assert np.sqrt((stack @ stack) / (flat @ flat)) == pytest.approx(1.0, abs=0.2)
        assert abs(5.0 * (int(np.argmax(stack)) - 16)) <= 10.0


@pytest.mark.slow
def test_p_waves_are_converted_by_s_velocity_and_density_alone() -> None:
    """To first order: K. Aki, P. G. Richards, "Quantitative Seismology", section 5.2."""
    by_p, by_s = (image(below, 200.0) for below in ((3000.0, 1400.0, 2100.0), (2500.0, 1700.0, 2100.0)))
    assert at_interface(by_p.ps.values) < 0.1 * at_interface(by_s.ps.values)
    assert at_interface(by_p.pp.values) > at_interface(by_s.pp.values)
    by_density = image((2500.0, 1400.0, 2400.0), 200.0)
    assert at_interface(by_density.ps.values) > 0.3 * at_interface(by_s.ps.values)
    for each in (by_s, by_density):
        assert abs(15 + int(np.argmax(profile(each.ps.values))) - (DEPTH - 0.5)) <= 1


@pytest.mark.slow
def test_a_fluid_has_no_converted_waves() -> None:
    z = np.arange(40)[:, None] * np.ones((40, 50))
    sea = prepare_elastic((40, 50), 10.0, dt=1e-3, medium=ElasticMedium(1500.0, 0.0 * z, 1000.0), order=4)
    rock = prepare_elastic((40, 50), 10.0, dt=1e-3, medium=ElasticMedium(1500.0, 700.0 + 0.0 * z, 1000.0), order=4)
    spread = Receivers([(20.0, 10.0 * k) for k in range(0, 50, 5)])
    data = np.random.default_rng(3).standard_normal((200, 20)).cumsum(axis=0)
    shot = Shot([Explosion((20.0, 150.0), Ricker(15.0))], spread, data, ("vz", "vx"))
    fluid, solid = (shot_image(waves, shot) for waves in (sea, rock))
    assert fluid is not None
    assert solid is not None
    deep = (slice(14, 38), slice(0, 50))
    assert abs(fluid.pp.values[deep]).max() > 0
    ratios = [abs(each.ps.values[deep]).max() / abs(each.pp.values[deep]).max() for each in (fluid, solid)]
    assert ratios[0] < 1e-2 * ratios[1]


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_recorded_velocities_and_their_injection_are_transposes(boundary: str) -> None:
    """The traces are those of random initial waves, without sources."""
    rng, waves = np.random.default_rng(5), waves_in(boundary, SEA)
    run = ShotRun(waves, Shot([], SHOT.receivers, record=("vz", "vx")))
    reverse = adjoint(run.stepping.step, waves.fields)
    data, table = rng.standard_normal((12, 6)), run.table(12)
    table.store(data)
    seed = table.injection(reverse.of)
    start = {item: rng.standard_normal(item.points.shape) for item in waves.fields}
    with run.engine(1, None, "slabs") as engine:
        for item, values in start.items():
            engine.set(item, values)
        reverse.run(engine, table.steps, seed=seed)
        other = sum(float((values * engine.gather(reverse.of[item])).sum()) for item, values in start.items())
    with run.engine(1, None, "slabs") as engine:
        for item, values in start.items():
            engine.set(item, values)
        traces = run.record(engine, run.watched(), 12)
    assert abs((traces * data).sum() - other) < 1e-12 * np.sqrt((traces**2).sum() * (data**2).sum())
    assert abs(other) > 0


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_bits_depend_neither_on_ranks_nor_on_memory(boundary: str) -> None:
    waves, shot = waves_in(boundary, SEA, "f4"), data_of()
    alone, frugal = shot_image(waves, shot), shot_image(waves, shot, memory=1)
    first, second = mg.run_virtual(2, lambda comm: shot_image(waves, shot, comm=comm))
    assert alone is not None
    assert frugal is not None
    assert first is not None
    assert second is None
    for found in (frugal, first):
        for one, other in ((found.pp, alone.pp), (found.ps, alone.ps)):
            assert np.array_equal(one.values, other.values)
            assert np.array_equal(one.illumination, other.illumination)
    assert alone.pp.values.shape == SHAPE
    for each in (alone.pp, alone.ps):
        assert np.isfinite(each.values).all()
        assert abs(each.values).max() > 0


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 2, 1), (1, 2, 0)])
def test_all_axes_are_alike(order: tuple[int, int, int]) -> None:
    """Sources, receivers and data with axes exchanged make the image with these exchanged: none of them is a normal."""
    data = np.random.default_rng(3).standard_normal((40, 9)).cumsum(axis=0)
    places, found = [(40.0, 60.0, 70.0), (50.0, 90.0, 40.0), (30.0, 50.0, 110.0)], []
    for axes in ((0, 1, 2), order):

        def turned(values: tuple[float, ...], axes: tuple[int, ...] = axes) -> Any:
            return tuple(values[axis] for axis in axes)

        source = Force(turned((60.0, 80.0, 60.0)), turned((1.0, 0.5, 0.2)), Ricker(30.0))
        waves = prepare_elastic(
            (16, 16, 16), 10.0, dt=1e-3, medium=ElasticMedium(2500.0, 1300.0, 2000.0), boundary=Sponge(4), order=4,
            dtype="f8",
        )  # fmt: skip
        record = tuple(f"v{'zyx'[axes.index(axis)]}" for axis in range(3))
        each = shot_image(waves, Shot([source], Receivers([turned(place) for place in places]), data, record))
        assert each is not None
        found.append(each)
    for one, other in ((found[0].pp, found[1].pp), (found[0].ps, found[1].ps)):
        assert abs(one.values).max() > 0
        assert abs(one.values.transpose(order) - other.values).max() < 1e-10 * abs(one.values).max()


def test_images_are_stacked_and_filtered() -> None:
    values = np.random.default_rng(3).standard_normal((5, *SHAPE))
    one, other = (ElasticImage(*(Image(v, values[4] ** 2, (10.0, 10.0)) for v in values[k : k + 2])) for k in (0, 2))
    stack = one + other
    assert np.array_equal(stack.pp.values, values[0] + values[2])
    assert np.array_equal(stack.ps.values, values[1] + values[3])
    assert np.array_equal(stack.ps.illumination, 2 * values[4] ** 2)
    assert np.array_equal(stack.filtered().ps.values, stack.ps.filtered().values)
    assert np.array_equal(stack.normalised(0.1).pp.values, stack.pp.normalised(0.1).values)


def test_what_has_no_image_is_refused() -> None:
    waves = waves_in("free", SOLID)
    with pytest.raises(CaseError, match="the data have shape"):
        shot_image(waves, Shot(SOURCES, SHOT.receivers, record=("vz",)))
    with pytest.raises(CaseError, match="receivers record"):
        shot_image(waves, Shot(SOURCES, SHOT.receivers, np.zeros((4, 3)), ("vy",)))
