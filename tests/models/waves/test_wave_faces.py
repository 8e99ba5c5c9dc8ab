"""Boundaries of single faces: free surfaces and rigid walls by the method of images, layers beside them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.waves import (
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
    Sponge,
    migrate,
    prepare,
)
from minga.models.waves.boundary import Face
from model_runs import assert_same, run_model

SPEED, RICKER = 2000.0, Ricker(25.0)


def waves_at(shape: tuple[int, ...], steps: int, **options: Any) -> np.ndarray:
    """p at the receivers, a column for each."""
    settings: dict[str, Any] = {"medium": Medium(SPEED), "boundary": Release(), "dtype": "f8", "dt": 8e-4, "order": 8}
    return mg.run(mg.fletcher(shape, 10.0, **(settings | options)), steps, observe=1).receivers.values


def tilted(shape: tuple[int, ...], vertical: bool) -> dict[str, np.ndarray]:
    z, x = np.meshgrid(*map(np.arange, shape), indexing="ij")
    theta = np.zeros(shape) if vertical else 0.4 + 0.02 * x
    return {"vp": 2000.0 + 8.0 * z, "epsilon": 0.2 + 0.001 * x, "delta": 0.1 + 0.001 * z, "theta": theta}


def medium_of(values: dict[str, np.ndarray], kind: str) -> Medium:
    if kind == "isotropic":
        return Medium(values["vp"])
    return Medium(values["vp"], values["epsilon"], values["delta"], 0.0 if kind == "vertical" else values["theta"])


@pytest.mark.few(2)
@pytest.mark.parametrize("place", [30.0, 13.0], ids=["on a cell", "between cells"])
@pytest.mark.parametrize("time_order", [2, 4])
@pytest.mark.parametrize("kind", ["isotropic", "vertical", "tilted"])
@pytest.mark.parametrize("face", [Free(), Rigid()], ids=["free", "rigid"])
def test_a_face_is_the_middle_of_a_model_with_its_image(face: Face, kind: str, time_order: int, place: float) -> None:
    """With mirrored medium and source: the same waves but for roundings of the sources."""
    free = isinstance(face, Free)
    shape, steps = (20, 34), 70
    half = tilted(shape, kind == "vertical")
    if free:
        half["theta"][0] = 0.0  # the mirrored axis is another one: on the surface itself, it has to be vertical
    mirrored = {name: np.concatenate([a[::-1][: -1 if free else None], a]) for name, a in half.items()}
    above = slice(None, shape[0] - 1 if free else shape[0])
    mirrored["theta"][above] *= -1
    shift = (shape[0] - 1 if free else shape[0]) * 10.0
    places = [(20.0, 80.0), (47.0, 203.0), (11.0, 150.0)]
    common: dict[str, Any] = {"time_order": time_order, "dt": 6e-4}
    found = waves_at(
        shape, steps, medium=medium_of(half, kind), boundary=Faces(Sponge(6), z=(face, Sponge(6))),
        sources=[PointSource((place, 160.0), RICKER)], receivers=Receivers(places), **common,
    )  # fmt: skip
    image = shift - place if free else shift - 10.0 - place
    sources = [PointSource((place + shift, 160.0), RICKER),
               PointSource((image, 160.0), replace(RICKER, amplitude=-1.0 if free else 1.0))]  # fmt: skip
    whole = waves_at(
        mirrored["vp"].shape, steps, medium=medium_of(mirrored, kind), boundary=Sponge(6), sources=sources,
        receivers=Receivers([(z + shift, x) for z, x in places]), **common,
    )  # fmt: skip
    assert abs(found).max() > 0
    assert found == pytest.approx(whole, abs=1e-10 * abs(found).max())


@pytest.mark.slow
def test_a_shot_below_the_surface_of_the_sea() -> None:
    source, ricker = (100.0, 150.0, 150.0), Ricker(10.0, 0.1)
    model = mg.fletcher(
        (41, 31, 61), 10.0, dt=1e-3, medium=Medium(SPEED), dtype="f8", sources=[PointSource(source, ricker)],
        boundary=Faces(Cpml(16), z=(Free(), Cpml(16))),
        receivers=Receivers([(300.0, 150.0, 150.0), (50.0, 150.0, 550.0), (55.0, 163.0, 401.0)]),
    )  # fmt: skip
    run = mg.run(model, 420, observe=1)
    t = run.receiver_time.values
    points = np.stack([run.receiver_z, run.receiver_y, run.receiver_x], axis=1)
    for column, (z, y, x) in enumerate(points):
        direct, ghost = (math.dist((depth, 150.0, 150.0), (z, y, x)) for depth in (100.0, -100.0))
        expected = sum(
            sign * np.where(t > r / SPEED, ricker.at(t - r / SPEED), 0.0) / (4 * math.pi * r)
            for sign, r in ((1, direct), (-1, ghost))
        )
        found = run.receivers.values[:, column]
        assert np.linalg.norm(found - expected) < 0.01 * np.linalg.norm(expected)
    assert run.receivers.values[300, :2] == pytest.approx([-1.993293e-4, 9.746114e-5], rel=0.02)


def test_a_periodic_axis_closes() -> None:
    """A wave that leaves at one end comes in at the other: shifted waves are the waves of a shifted source."""
    first, second = (
        waves_at(
            (24, 28), 80, boundary=Faces(Sponge(8), x=Periodic()), sources=[PointSource((120.0, x), RICKER)],
            receivers=Receivers([(60.0, (x + 30.0) % 280.0), (150.0, (x + 170.0) % 280.0)]),
        )
        for x in (0.0, 190.0)
    )  # fmt: skip
    assert abs(first[:, 1]).max() > 0
    assert np.array_equal(first, second)


@pytest.mark.slow
def test_layers_of_single_faces_have_the_values_of_layers_everywhere() -> None:
    """Until waves reach the other faces, a layer at one face acts like a layer at all of them."""
    for layer in (Sponge(6), Cpml(6)):
        common: dict[str, Any] = {
            "sources": [PointSource((60.0, 250.0), RICKER)],
            "receivers": Receivers([(80.0, 280.0)]),
        }
        everywhere = waves_at((34, 34), 90, boundary=layer, **common)
        one = waves_at((34, 34), 90, boundary=Faces(Rigid(), z=(layer, Rigid()), x=(Rigid(), layer)), **common)
        assert np.array_equal(one, everywhere)


@pytest.mark.few(1)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("shape", [(26, 30), (14, 12, 16)])
def test_ranks_have_the_same_bits(shape: tuple[int, ...], ranks: int) -> None:
    medium = Medium(SPEED, 0.2, 0.1, 0.5)
    model = mg.fletcher(
        shape, 10.0, dt=8e-4, medium=medium, order=4, sources=[PointSource((23.0,) * len(shape), RICKER)],
        boundary=Faces(Sponge(4), z=(Free(), Rigid()), x=(Random(5), Sponge(3))),
        receivers=Receivers([(13.0,) * len(shape)]),
    )  # fmt: skip
    assert_same(run_model(model, 12), run_model(model, 12, ranks=ranks))


def test_planes_leave_surfaces_alone() -> None:
    model = mg.fletcher(
        (20, 20), 10.0, dt=8e-4, medium=Medium(SPEED), boundary=Faces(Free(), x=Periodic()), order=4,
        sources=[PlaneSource("x", 50.0, RICKER)],
    )  # fmt: skip
    p = run_model(model, 30).fields["p"]
    assert abs(p[1:-1]).max() > 0
    assert not p[[0, -1]].any()
    with pytest.raises(CaseError, match="on a free surface"):
        mg.fletcher((20, 20), 10.0, dt=8e-4, medium=Medium(SPEED), boundary=Free(), sources=[PlaneSource("z", 0.0)])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"boundary": Free(), "receivers": Receivers([(0.0, 50.0)])}, "receiver lies at .* on a free surface"),
        ({"boundary": Free(), "sources": [PointSource((190.0, 50.0))]}, "source lies at .* on a free surface"),
        ({"boundary": Faces(Sponge(4), x=(Periodic(), Free()))}, "one end along x is periodic"),
        ({"boundary": Faces(Random(4), x=Random(4, seed=2))}, "random layers have the seeds 0, 2"),
        ({"boundary": Faces(Sponge(4), x="free")}, "boundary along x is 'free'"),  # type: ignore[arg-type]
        ({"boundary": Free(), "shape": (4, 20)}, "4 cells along z, where the boundary Free"),
        (
            {"boundary": Faces(Sponge(4), z=Free()), "form": "selfadjoint", "medium": Medium(SPEED, 0.2, 0.1, 0.3)},
            'need the form "fletcher"',
        ),
        ({"boundary": Periodic(), "sources": [PointSource((12.0, 50.0))]}, "periodic ends of z"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CaseError, match=said):
        mg.fletcher(**({"shape": (20, 20), "spacing": 10.0, "dt": 8e-4, "medium": Medium(SPEED)} | options))


def test_migration_needs_faces_that_conserve_energy() -> None:
    waves = prepare((20, 20), 10.0, dt=8e-4, medium=Medium(SPEED), boundary=Faces(Random(8), z=(Free(), Random(8))))
    with pytest.raises(CaseError, match="Random\\(\\) or Release"):
        migrate(waves, [], Receivers([(50.0, 50.0)]), np.zeros((5, 1)))
