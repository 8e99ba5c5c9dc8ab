"""Variable density: the stable step, layers, attenuation; wrong inputs are refused."""

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
    PointSource,
    Random,
    Receivers,
    Release,
    Ricker,
    Rigid,
    Shot,
    Sponge,
    prepare,
    shot_traces,
)
from minga.models.waves.boundary import Face
from minga.models.waves.preflight import dispersion
from minga.space.box import Box
from wave_density import oracle, random_medium, traces


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


@pytest.mark.parametrize("boundary", [Sponge(3), Faces(Free(), x=Periodic()), Rigid(), Random(3)], ids=repr)
def test_the_limit_does_not_depend_on_the_parts_inspected(monkeypatch: pytest.MonkeyPatch, boundary: Any) -> None:
    vp, rho = random_medium((21, 19), 2.0)

    def limit(cells: int) -> float:
        monkeypatch.setattr("minga.models.waves.medium._SLAB", cells)
        medium = Medium(lambda box: vp[box.slices((0, 0))], rho=lambda box: rho[box.slices((0, 0))])
        return prepare((21, 19), 10.0, dt=1e-6, order=4, medium=medium, boundary=boundary).extremes.dt_limit

    assert limit(1) == pytest.approx(limit(1 << 20), rel=1e-14)
    assert limit(300) == pytest.approx(limit(1 << 20), rel=1e-14)


def test_wide_planes_are_not_read_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of two planes of cells yields parts that are neither thin nor large."""
    monkeypatch.setattr("minga.models.waves.medium._SLAB", 260)
    read: list[int] = []

    def rho(box: Box) -> np.ndarray:
        read.append(box.size)
        return np.full(box.shape, 1000.0)

    prepare((150, 130), 10.0, dt=1e-6, order=16, medium=Medium(2000.0, rho=rho), boundary=Rigid())
    assert max(read) <= (60 + 2 * 15) ** 2
    assert sum(read) < 4 * 150 * 130


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


@pytest.mark.parametrize("order", [4, 8, 12, 16])
def test_the_dispersion_is_that_of_the_operator(order: int) -> None:
    points, courant, turn = 6, 0.4, 2 * math.pi / 6
    wave = np.sin(turn * np.arange(48.0))
    square = -float(
        (oracle(wave, np.ones(48), np.full(48, 3.0), (1.0,), order, Periodic()) * wave).sum() / (wave @ wave)
    )
    expected = 2 * math.asin(courant * math.sqrt(square) / 2) / (courant * turn) - 1
    assert dispersion(points, courant, order, 2, staggered=True) == pytest.approx(expected, abs=1e-13)


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


@pytest.mark.parametrize("has_density", [True, False])
def test_matched_layers_reflect_little(has_density: bool) -> None:
    """Reflection of 12 cells at normal incidence, relative to a rigid wall, at 8 cells per wavelength.

    The waves are those of a larger model.
    """

    def waves(cells: int, end: Face) -> np.ndarray:
        rho: Any = np.full(cells, 1500.0) if has_density else 1500.0
        boundary = Faces(Rigid(), z=(Rigid(), end))
        medium = Medium(2000.0, rho=rho)
        source, options = PointSource((100.0,), Ricker(50.0)), {"dt": 5e-4, "boundary": boundary}
        return traces(medium, (cells,), source, [(150.0,)], 500, **options)

    whole = waves(600, Rigid())
    wall, layer = (np.abs(waves(60, end) - whole).max() for end in (Rigid(), Cpml(12)))
    assert layer < 10.0 ** (-74 / 20 if has_density else -100 / 20) * wall


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
        ({"rho": "heavy"}, {}, "rho is an array of <U5"),
        ({"rho": None}, {}, "rho is an array of object"),
        (
            {"rho": lambda box: np.ones((3, 3))},
            {},
            r"the function for rho returns an array of float64 and shape \(3, 3\)",
        ),
        ({"rho": lambda box: np.full(box.shape, "heavy")}, {}, "the function for rho returns an array of <U5"),
        ({"rho": lambda box: np.full(box.shape, 1j)}, {}, "the function for rho returns an array of complex128"),
        ({"rho": [[1000.0], [1000.0, 1200.0]]}, {}, "rho is an array of object"),
        ({"vp": [[1500.0], [1500.0, 1600.0]]}, {}, "vp is an array of object"),
        ({"rho": np.ma.masked_less(np.eye(24), 0.5)}, {}, "rho is an array of masked values"),
        ({"rho": np.full((24, 24), 1e-40)}, {}, "rho is 1e-40 at cell"),
        ({"rho": np.full((24, 24), 1e30)}, {}, "rho is 1e\\+30 at cell"),
        ({"rho": np.ones((24, 24)), "epsilon": 0.1}, {}, "a density that varies in an anisotropic medium"),
        ({"rho": np.ones((24, 24))}, {"boundary": Rigid(), "order": 16, "shape": (15, 24)}, "needs 16 or more"),
    ],
)
def test_what_cannot_be_is_refused(entries: dict[str, Any], options: dict[str, Any], said: str) -> None:
    shape = options.pop("shape", (24, 24))
    if shape != (24, 24):
        entries = {"rho": np.ones(shape)}
    with pytest.raises(CaseError, match=said):
        prepare(shape, 10.0, dt=1e-4, medium=Medium(**{"vp": 2000.0, **entries}), **options)
