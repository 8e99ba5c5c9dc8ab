"""Wavelets, points between cells, planes, and samples at receivers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.cli.export import export
from minga.engine.begin import start
from minga.errors import CaseError
from minga.models.waves import Medium, PlaneSource, PointSource, Receivers, Release, Ricker, Sponge, Wavelet
from minga.models.waves.boundary import domain_of, faces_of
from minga.models.waves.domain import Domain
from minga.models.waves.interpolation import place
from minga.models.waves.receivers import Taps
from minga.output.segy import SegyFile
from minga.running.loop import drive

SHAPE, H, DT = (20, 22, 24), 10.0, 1e-3
ROCK = Medium(2000.0)


def domain(cells: int) -> Domain:
    """The domain of a model with a layer of so many cells at each face."""
    return domain_of(SHAPE, (H,) * 3, faces_of(Sponge(cells) if cells else Release(), 3))


def first_wave(source: PointSource | PlaneSource, steps: int = 1, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """p just after so many additions of a legacy source: the previous slot has the wave that the last was added to."""
    source = replace(source, injection="legacy")
    model = mg.fletcher(shape, H, dt=DT, medium=ROCK, boundary=Release(), sources=[source], dtype="f8")
    with mg.Engine(model.layouts("single", 1)) as engine:
        start(model, engine)
        engine.run(model.step, steps)
        found = engine.gather(model.field("p").previous)
    assert found is not None
    return found


def test_the_ricker_wavelet_is_that_of_the_public_codes() -> None:
    # s(t) = (1 - 2 e) exp(-e), e = pi^3 fc^2 (t - tf)^2, fc = 40 / (3 sqrt(pi)), tf = 2 sqrt(pi) / 40
    fc, tf = 40 / (3 * np.sqrt(np.pi)), 2 * np.sqrt(np.pi) / 40
    t = np.linspace(0, 0.2, 50)
    e = np.pi**3 * fc**2 * (t - tf) ** 2
    assert Ricker().at(t) == pytest.approx((1 - 2 * e) * np.exp(-e), abs=1e-14)
    assert Ricker().starts == pytest.approx(0.08862, abs=1e-5)


def test_a_source_adds_the_wavelet_at_the_time_of_the_step() -> None:
    ricker = Ricker(20.0, delay=0.002)
    p = first_wave(PointSource((100.0, 110.0, 120.0), ricker))
    assert p[10, 11, 12] == pytest.approx(float(ricker.at(0.0)), rel=1e-14)
    assert np.count_nonzero(p) == 1


def test_samples_are_added_in_turn_and_end() -> None:
    wavelet = Wavelet([0.5, -2.0])
    middle = tuple(n // 2 for n in SHAPE)
    assert first_wave(PointSource(None, wavelet), 1)[middle] == 0.5
    alone, three = first_wave(PointSource(None, Wavelet([0.5])), 3), first_wave(PointSource(None, wavelet), 3)
    assert (three != alone).any()
    ends, longer = first_wave(PointSource(None, Wavelet([0.5, 0.0])), 3), alone
    assert (ends == longer).all()


@pytest.mark.parametrize("name", ["wavelet.npy", "wavelet.txt"])
def test_wavelets_come_from_files(name: str, tmp_path: Path) -> None:
    values = np.array([0.25, 1.0, -0.5])
    np.save(tmp_path / name, values) if name.endswith("npy") else np.savetxt(tmp_path / name, values)
    assert (Wavelet(tmp_path / name).values == values).all()


@pytest.mark.parametrize("samples", [[], [[1.0]], [np.nan], "nowhere.npy"])
def test_wavelets_that_are_none_are_refused(samples: object) -> None:
    with pytest.raises(CaseError, match="wavelet"):
        Wavelet(samples)  # type: ignore[arg-type]


def test_a_plane_source_is_equal_along_its_plane() -> None:
    p = first_wave(PlaneSource("y", 52.0, Wavelet([1.0])))
    assert (p[:, 5, :] == 1).all()
    assert np.count_nonzero(p) == p[:, 5, :].size


@pytest.mark.parametrize(("interpolation", "tolerance"), [("sinc", 2e-3), ("linear", 0.15)])
def test_points_between_cells_see_smooth_waves(interpolation: str, tolerance: float) -> None:
    z, y, x = np.indices(SHAPE)
    wave = np.sin(0.8 * z + 0.3) * np.cos(0.7 * y) * np.sin(0.9 * x)  # seven to nine cells a wave length
    point = (9.3, 10.71, 12.5)
    placed = place([H * c for c in point], domain(0), interpolation, "receiver")  # type: ignore[arg-type]
    weights = placed.weights[0][:, None, None] * placed.weights[1][:, None] * placed.weights[2]
    exact = np.sin(0.8 * point[0] + 0.3) * np.cos(0.7 * point[1]) * np.sin(0.9 * point[2])
    assert (weights * wave[placed.box.slices((0, 0, 0))]).sum() == pytest.approx(exact, abs=tolerance * abs(wave).max())


@pytest.mark.parametrize("interpolation", ["sinc", "linear"])
def test_a_point_on_a_cell_is_that_cell(interpolation: str) -> None:
    placed = place((50.0, 0.0, 230.0), domain(4), interpolation, "source")  # type: ignore[arg-type]
    assert placed.single
    assert placed.first == (9, 4, 27)


@pytest.mark.parametrize(
    ("point", "where"),
    [
        ((50.0, 0.0, -40.0), "outside the model, in a layer at its end"),
        ((50.0, 0.0, -41.0), "outside the model"),
        ((50.0, 0.0, 270.0), "outside the model, in a layer at its end"),
        ((50.0, 0.0, 271.0), "outside the model"),
        ((50.0, 0.0), "outside the model, which has the axes z, y, x"),
        ((50.0, np.nan, 0.0), "outside the model"),
    ],
)
def test_points_in_layers_are_told(point: tuple[float, ...], where: str) -> None:
    with pytest.raises(CaseError) as caught:
        place(point, domain(4), "sinc", "source")
    assert caught.value.message.endswith(where)


@pytest.mark.parametrize("point", [(-1.0, 0, 0), (0, 0, 231.0), (np.nan, 0, 0), (0, 0)])
def test_points_outside_are_refused(point: tuple[float, ...]) -> None:
    with pytest.raises(CaseError, match="outside the model"):
        mg.fletcher(SHAPE, H, dt=DT, medium=ROCK, sources=[PointSource(point)])  # type: ignore[arg-type]
    with pytest.raises(CaseError, match="outside the model"):
        mg.fletcher(SHAPE, H, dt=DT, medium=ROCK, receivers=Receivers([point]))  # type: ignore[list-item]
    with pytest.raises(CaseError, match="outside the model"):
        mg.fletcher(SHAPE, H, dt=DT, medium=ROCK, sources=[PlaneSource("x", 1000.0)])


def test_a_source_between_cells_is_the_transpose_of_a_receiver() -> None:
    point = (87.0, 111.0, 119.0)
    p = first_wave(PointSource(point, Wavelet([1.0])))
    taps = Taps.of([place(point, domain(0), "sinc", "receiver")])
    z, y, x = taps.cells[:, :, 0]
    expected = np.zeros(SHAPE)
    np.add.at(expected, (z, y, x), taps.weights[:, 0])
    assert p == pytest.approx(expected, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", [Release(), Sponge(6)])
def test_receivers_record_what_the_wave_is_there(boundary: Release | Sponge) -> None:
    points = [(50.0, 60.0, 70.0), (0.0, 0.0, 0.0), (190.0, 210.0, 230.0), (51.0, 66.0, 72.5)]
    model = mg.fletcher(
        SHAPE, H, dt=DT, medium=ROCK, boundary=boundary, sources=[PointSource(None, Ricker(30.0))],
        receivers=Receivers(points, every=10),
    )  # fmt: skip
    run = mg.run(model, 60, every=25)
    assert run.receivers.dims == ("receiver_time", "receiver")
    assert run.receiver_time.values == pytest.approx(np.arange(7) * 10 * DT)
    assert [(float(run.receiver_z[k]), float(run.receiver_y[k]), float(run.receiver_x[k])) for k in range(4)] == points
    assert run.time_observed.values == pytest.approx(run.observed.values * DT)
    layers = boundary.cells
    p = run.p.values[-1][tuple(slice(layers, n - layers) for n in run.p.shape[1:])]
    last = run.receivers.values[-1]
    assert abs(last).min() > 0
    assert last[:3] == pytest.approx([p[5, 6, 7], p[0, 0, 0], p[-1, -1, -1]], rel=1e-6)
    assert (run.z.values[layers], run.y.values[layers], run.x.values[layers]) == (0, 0, 0)


@pytest.mark.slow
def test_a_run_from_python_leaves_its_receivers(tmp_path: Path) -> None:
    """Also to a file for seismologists, with the default source in its headers."""
    model = mg.fletcher(
        SHAPE, H, dt=DT, medium=ROCK, boundary=Release(), receivers=Receivers([(50.0, 60.0, 70.0)], every=10),
    )  # fmt: skip
    with pytest.raises(CaseError, match="not a multiple"):
        mg.run(model, 60, observe=4)
    run = mg.run(model, 60, every=25, out=tmp_path / "run")
    export(tmp_path / "run", "receivers", "sgy", tmp_path / "shot.sgy", "-1")
    file = SegyFile.open(tmp_path / "shot.sgy")
    assert (len(file), file.samples, file.interval) == (1, 7, round(1e7 * DT))
    assert np.array_equal(file.traces(slice(0, 1)), run.receivers.values.T.astype("f4"))
    assert file.headers["source_x"].tolist() == [round(100 * H * (SHAPE[2] // 2))]


@pytest.mark.slow
def test_samples_do_not_depend_on_who_owns_the_cells() -> None:
    rng = np.random.default_rng(3)
    points = [tuple(rng.uniform(0, [(n - 1) * H for n in SHAPE])) for _ in range(9)]
    model = mg.fletcher(SHAPE, H, dt=DT, medium=ROCK, sources=[PointSource(None, Ricker(30.0))],
                        receivers=Receivers(points))  # type: ignore[arg-type]  # fmt: skip

    def run(ranks: int) -> list[list[float]]:
        seen: list[list[list[float]]] = [[] for _ in range(ranks)]

        def body(comm: mg.SerialComm) -> None:
            with mg.Engine(model.layouts("bisection", ranks), comm=comm) as engine:
                note = lambda simulation: seen[comm.rank].append(simulation.observe()["receivers"])  # noqa: E731
                drive(model, engine, 40, [mg.observer(note, 10, start=True)])

        mg.run_virtual(ranks, body)  # type: ignore[arg-type]
        assert all(s == seen[0] for s in seen)
        return seen[0]

    assert run(1) == run(3)
