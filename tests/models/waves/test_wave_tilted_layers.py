"""Experimental matched layers: what returns from them, their gradients and ranks, and the watchdog that ends a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError, RunError
from minga.models.waves import (
    Attenuation,
    Cpml,
    Faces,
    Free,
    Medium,
    PlaneSource,
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
from minga.models.waves.boundary import Face
from minga.running.loop import drive
from minga.running.session import state_digest
from wave_physics import ENTRIES, SHAPE, SHOT

TILTED = Medium(3000.0, 0.24, 0.1, theta=math.pi / 4)
BELOW = Medium(3000.0, 0.1, 0.2)
"""A medium with delta above epsilon, in whose matched layers waves grow."""
LOSSES = pytest.mark.parametrize("attenuation", [None, Attenuation(100.0)], ids=["lossless", "attenuation"])


def traces(boundary: Face, q: float | None = None, n: int = 80, more: int = 0) -> np.ndarray:
    """p at eight points four cells from the layers, with some more cells of model on each side."""
    places = [4, n // 2, n - 5]
    points = [(10.0 * (i + more), 10.0 * (j + more)) for i in places for j in places if (i, j) != (n // 2, n // 2)]
    model = mg.fletcher(
        (n + 2 * more,) * 2, 10.0, dt=1e-3, medium=TILTED, boundary=boundary, dtype="f8",
        sources=[PointSource(None, Ricker(15.0))], receivers=Receivers(points),
        attenuation=None if q is None else Attenuation(q),
    )  # fmt: skip
    return np.asarray(mg.run(model, 600, observe=1).receivers.values)


def returned(boundary: Face, reference: np.ndarray, q: float | None = None) -> float:
    """Largest wave that returns, relative to the direct wave there, in dB."""
    found = np.abs(traces(boundary, q) - reference).max(axis=0) / np.abs(reference).max(axis=0)
    return float(20 * np.log10(found.max()))


@pytest.mark.slow
def test_layers_return_as_little_with_attenuation() -> None:
    reference = traces(Release(), 30.0, more=115)
    assert returned(Cpml(12, experimental=True), reference, 30.0) == pytest.approx(-87, abs=2)
    assert returned(Cpml(6, experimental=True), reference, 30.0) == pytest.approx(-49, abs=2)


@pytest.mark.slow
@LOSSES
@pytest.mark.parametrize("angle", [math.pi / 4, 0.35])
def test_nothing_grows_in_forty_crossings(angle: float, attenuation: Attenuation | None) -> None:
    medium = Medium(3000.0, 0.24, 0.1, theta=angle)
    model = mg.fletcher((60, 60), 10.0, dt=1e-3, medium=medium, boundary=Cpml(experimental=True),
                        sources=[PointSource(None, Ricker(15.0))], attenuation=attenuation)  # fmt: skip
    largest = mg.run(model, 8000, observe=500).largest.values
    assert largest[-4:].max() < 0.2 * largest[2:6].max() < 0.1 * largest.max()


@pytest.mark.slow
def test_an_upright_axis_has_the_waves_of_vertical_media() -> None:
    def waves(theta: Any) -> np.ndarray:
        model = mg.fletcher((24, 28), 10.0, dt=1e-3, medium=Medium(3000.0, 0.24, 0.1, theta=theta), dtype="f8",
                            boundary=Cpml(6, experimental=True), sources=[PointSource(None, Ricker(25.0))])  # fmt: skip
        return np.asarray(mg.run(model, 160)["p"].values[-1])

    upright = waves(0.0)
    assert np.abs(waves(np.zeros((24, 28))) - upright).max() < 1e-11 * np.abs(upright).max() != 0


@pytest.mark.slow
def test_three_axes_are_absorbed() -> None:
    medium = Medium(3000.0, 0.24, 0.1, theta=0.6, phi=0.4)

    def largest(boundary: Face) -> float:
        model = mg.fletcher((24,) * 3, 10.0, dt=1e-3, medium=medium, boundary=boundary,
                            sources=[PointSource(None, Ricker(25.0))])  # fmt: skip
        found = mg.run(model, 500, observe=50).largest.values
        return float(found[-1] / found.max())

    assert largest(Cpml(8, experimental=True)) < 2e-3
    assert largest(Cpml(8, experimental=True)) < 0.2 * largest(Sponge(8))


@pytest.mark.slow
@LOSSES
def test_ranks_have_the_same_bits(attenuation: Attenuation | None) -> None:
    model = mg.fletcher(
        (20, 18, 16), 10.0, dt=1e-3, medium=Medium(3000.0, 0.24, 0.1, theta=0.6, phi=0.4), order=4,
        boundary=Cpml(4, experimental=True), attenuation=attenuation, sources=[PointSource(None, Ricker(30.0, 0.01))],
    )  # fmt: skip

    def run(ranks: int) -> str:
        def body(comm: mg.SerialComm) -> str:
            with mg.Engine(model.layouts("slabs", ranks), comm=comm) as engine:
                drive(model, engine, 24)
                return state_digest(engine, model, [f for f in model.fields if f.name in "pq"])

        return mg.run_virtual(ranks, body)[0]  # type: ignore[arg-type]

    alone = run(1)
    assert run(2) == alone
    assert run(3) == alone


@pytest.mark.slow
@pytest.mark.parametrize("time_order", [2, 4])
@pytest.mark.parametrize("q", [None, 30.0], ids=["lossless", "attenuation"])
def test_gradients_have_these_layers_too(q: float | None, time_order: int) -> None:
    wrt = ("vp", "epsilon", "delta", "theta")
    layers, medium = Cpml(4, experimental=True), Medium(**{name: ENTRIES[name] for name in wrt})
    waves = prepare(
        SHAPE, 10.0, dt=6e-4, order=4, dtype="f8", boundary=layers, medium=medium, time_order=time_order,
        attenuation=None if q is None else Attenuation(q, (5.0, 60.0)),
    )  # fmt: skip
    jacobian = linearised_shots([waves], [Shot(SHOT.sources[:1], SHOT.receivers, np.zeros((16, 3)))], wrt)
    random = np.random.default_rng(5)
    change, weights = random.standard_normal(jacobian.shape[1]), random.standard_normal(jacobian.shape[0])
    left, right = float(jacobian.matvec(change) @ weights), float(change @ jacobian.rmatvec(weights))
    assert left == pytest.approx(right, rel=1e-11) != 0


def test_plane_sources_are_refused_in_each_way_that_is_watched() -> None:
    """Their ends lie in the layers: gradients, changes of traces and images do not begin."""
    wrt = ("vp", "epsilon", "delta", "theta")
    medium = Medium(**{name: ENTRIES[name] for name in wrt})
    waves = prepare(SHAPE, 10.0, dt=6e-4, order=4, boundary=Cpml(4, experimental=True), medium=medium)
    shot = Shot(SHOT.sources, SHOT.receivers, np.zeros((16, 3)))
    ways: list[Callable[[], Any]] = [
        lambda: shot_gradient(waves, shot), lambda: shot_born(waves, shot, {"vp": np.ones(SHAPE)}, 16),
        lambda: shot_image(waves, shot),
    ]  # fmt: skip
    for way in ways:
        with pytest.raises(CaseError, match="plane sources with experimental matched layers"):
            way()


# The watchdog ------------------------------------------------------------------------------------------------------
def growing(boundary: Any, attenuation: Attenuation | None = None) -> mg.Model:
    return mg.fletcher((60, 60), 10.0, dt=1e-3, medium=BELOW, boundary=boundary, attenuation=attenuation,
                       sources=[PointSource(None, Ricker(15.0))])  # fmt: skip


@pytest.mark.slow
def test_a_run_ends_when_waves_grow_in_a_layer(tmp_path: Path) -> None:
    """The waves are below a hundredth of what they were, and the frames written before are kept."""
    model = growing(Cpml(experimental=True))
    peak = float(mg.run(model, 200, observe=20).largest.max())
    with pytest.raises(RunError, match=r"waves grow in the experimental matched layer at the \w+ end of") as caught:
        mg.run(model, 20_000, out=tmp_path / "run", every=500)
    assert caught.value.remedy is not None
    assert "sponge" in caught.value.remedy
    assert 1000 < int(str(caught.value.where).split()[-1]) < 6000
    kept = caught.value.dataset.p.values  # type: ignore[attr-defined]
    assert len(kept) >= 3
    assert 0 < np.abs(kept[-1]).max() < 0.01 * peak


@pytest.mark.slow
def test_a_run_with_attenuation_ends_unless_its_waves_decay() -> None:
    with pytest.raises(RunError, match="waves grow in the experimental matched layer"):
        mg.run(growing(Cpml(experimental=True), Attenuation(300.0)), 20_000)
    largest = mg.run(growing(Cpml(experimental=True), Attenuation(30.0)), 8000, observe=1000).largest.values
    assert largest[-1] < 0.05 * largest[1]


@pytest.mark.slow
def test_the_watch_has_the_same_step_on_all_ranks_and_is_not_disturbed_by_sponges() -> None:
    model = growing(Faces(Sponge(30), x=Cpml(experimental=True)))

    def body(comm: mg.SerialComm) -> str:
        with mg.Engine(model.layouts("slabs", comm.size), comm=comm) as engine:
            try:
                drive(model, engine, 12_000)
            except RunError as error:
                return str(error.where)
        return "none"

    alone = mg.run_virtual(1, body)
    assert alone[0] != "none"
    assert mg.run_virtual(2, body) == alone * 2  # type: ignore[comparison-overlap]


def test_matched_layers_that_are_no_experiment_are_refused() -> None:
    def model(boundary: Any, medium: Medium = TILTED, **options: Any) -> mg.Model:
        return mg.fletcher((24, 24), 10.0, dt=1e-3, medium=medium, boundary=boundary, **options)

    for medium, match in ((TILTED, "tilted axis"), (BELOW, "delta exceeds epsilon")):
        with pytest.raises(CaseError, match=match) as caught:
            model(Faces(Cpml(experimental=True), x=Cpml()), medium)
        assert caught.value.remedy is not None
        assert "experimental=True" in caught.value.remedy
    experiment = Cpml(6, experimental=True)
    with pytest.raises(CaseError, match="free surface"):
        model(Faces(experiment, z=(Free(), experiment)))
    with pytest.raises(CaseError, match="selfadjoint"):
        model(experiment, form="selfadjoint")
    with pytest.raises(CaseError, match="experimental"):
        Cpml(experimental=1)  # type: ignore[arg-type]
    assert model(experiment).parameters["experimental"] is True


def test_shots_are_watched_too() -> None:
    waves = prepare((60, 60), 10.0, dt=1e-3, medium=BELOW, boundary=Cpml(experimental=True))
    shot = Shot([PointSource(None, Ricker(15.0))], Receivers([(300.0, 500.0)]))
    with pytest.raises(RunError, match="waves grow in the experimental matched layer"):
        shot_traces(waves, shot, 20_000)


@pytest.mark.slow
def test_gradients_are_watched_too() -> None:
    medium = Medium(np.full((60, 60), 3000.0), 0.1, 0.2)
    waves = prepare((60, 60), 10.0, dt=1e-3, medium=medium, boundary=Cpml(experimental=True))
    shot = Shot([PointSource(None, Ricker(15.0))], Receivers([(300.0, 500.0)], every=20), np.zeros((400, 1)))
    with pytest.raises(RunError, match="waves grow in the experimental matched layer"):
        shot_gradient(waves, shot, memory=1 << 33)


def test_planes_in_experimental_layers_are_refused() -> None:
    boundary = Cpml(8, experimental=True)
    plane = PlaneSource("z", 100.0, Ricker(15.0))
    with pytest.raises(CaseError, match="plane sources with experimental matched layers"):
        mg.fletcher((40, 40), 10.0, dt=1e-3, medium=TILTED, boundary=boundary, sources=[plane])
    waves = prepare((40, 40), 10.0, dt=1e-3, medium=TILTED, boundary=boundary)
    with pytest.raises(CaseError, match="plane sources with experimental matched layers"):
        shot_traces(waves, Shot([plane], Receivers([(300.0, 300.0)])), 10)
