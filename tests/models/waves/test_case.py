"""Waves from a case: what the table says is what the model is, and what is wrong is told with its key."""

from __future__ import annotations

import copy
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from minga.case.examples import examples
from minga.case.load import load_model
from minga.case.settings import GridSettings
from minga.engine.model import Model
from minga.errors import CaseError
from minga.models.waves.boundary import Cpml, Faces, Free, Periodic, Rigid, Sponge
from minga.models.waves.media_write import write_medium
from minga.models.waves.medium import Medium
from minga.models.waves.model import fletcher
from minga.models.waves.source import PointSource, Ricker
from minga.models.waves.synthetic import synthetic
from minga.space.box import Box
from model_runs import assert_same, run_model

SHAPE = (14, 12, 16)
CASE: dict[str, Any] = {
    "spacing": 10.0,
    "order": 4,
    "medium": "tti",
    "boundary": {"sponge": 4},
    "sources": [{"position": [50.0, 50.0, 70.0], "wavelet": {"ricker": 25.0}}],
}


def load(folder: Path, shape: tuple[int, ...] | None = SHAPE, ends: object = None, **changes: Any) -> Model:
    section = copy.deepcopy(CASE) | changes
    section = {key: value for key, value in section.items() if value is not None}
    return load_model("fletcher", {"fletcher": section}, GridSettings(shape=shape, boundary=ends), folder)


def test_a_case_is_the_model_it_says(tmp_path: Path) -> None:
    model = load(tmp_path, time=0.02, receivers={"first": [0, 0, 0], "last": [0, 0, 150], "count": 4, "every": 3})
    dt = model.parameters["dt"]
    assert isinstance(dt, float)
    assert model.grid.shape == (22, 20, 24)
    assert model.window == Box((4, 4, 4), (18, 16, 20))
    assert model.steps == math.ceil(0.02 / dt)
    assert model.traces is not None
    assert model.traces.positions == ((0, 0, 0), (0, 0, 50), (0, 0, 100), (0, 0, 150))
    assert (model.traces.every, model.traces.dt, model.traces.sources) == (3, dt, ((50, 50, 70),))
    assert {what for what, _ in model.notes} == {
        "time step", "velocities", "P waves", "dispersion", "SV waves", "sponge"
    }  # fmt: skip
    limit = model.parameters["dt_limit"]
    assert isinstance(limit, float)
    assert 0.65 * limit < dt <= 0.75 * limit


def test_boundaries_of_faces(tmp_path: Path) -> None:
    """Faces have their own boundaries; the layer with a width is that of the others, and of those that name it."""
    boundary = {"cpml": 7, "z": ["free", "cpml"], "y": "periodic"}
    model = load(tmp_path, boundary=boundary, medium={"vp": 2000.0}, dt=5e-4)
    expected = Faces(Cpml(7), z=(Free(), Cpml(7)), y=Periodic())
    assert model.parameters["boundary"] == repr(expected)
    assert model.grid.shape == (SHAPE[0] + 7, SHAPE[1], SHAPE[2] + 14)
    assert model.window == Box((0, 0, 7), (SHAPE[0], SHAPE[1], SHAPE[2] + 7))
    assert load(tmp_path, boundary="rigid").parameters["boundary"] == repr(Rigid())
    soft = load(tmp_path, boundary={"sponge": 4, "strength": 0.25})
    assert soft.parameters["boundary"] == repr(Sponge(4, 0.25))
    with pytest.raises(CaseError, match="one end along x is periodic"):
        load(tmp_path, boundary={"sponge": 4, "x": ["periodic", "sponge"]})
    with pytest.raises(CaseError, match=r"boundary\.z"):
        load(tmp_path, boundary={"sponge": 4, "z": ["surface", "sponge"]})


def test_a_dipole_with_an_ormsby_wavelet(tmp_path: Path) -> None:
    def waves(scale: float, direction: list[float]) -> np.ndarray:
        wavelet = {"ormsby": [5, 10, 40, 60], "delay": 0.01, "scale": scale}
        source = {"position": [50.0, 50.0, 70.0], "wavelet": wavelet, "direction": direction}
        return np.asarray(run_model(load(tmp_path, dt=7e-4, sources=[source]), 5).fields["p"])

    assert np.abs(waves(2.0, [1, 0, 0])).max() > 0
    assert np.array_equal(waves(2.0, [1, 0, 0]), waves(1.0, [2, 0, 0]))


def test_an_experimental_boundary(tmp_path: Path) -> None:
    model = load(tmp_path, boundary={"cpml": 5, "experimental": True, "z": ["sponge", "cpml"]})
    assert model.parameters["experimental"] is True
    assert model.parameters["boundary"] == repr(Faces(Cpml(5), z=(Sponge(), Cpml(5))))


def test_a_grid_of_receivers(tmp_path: Path) -> None:
    model = load(tmp_path, receivers={"first": [10, 0, 0], "last": [10, 100, 150], "count": [3, 4]})
    assert model.traces is not None
    assert model.traces.positions[:5] == ((10, 0, 0), (10, 0, 50), (10, 0, 100), (10, 0, 150), (10, 50, 0))
    assert model.traces.positions[-1] == (10, 100, 150)


@pytest.mark.slow
def test_media_of_files_and_numbers_give_the_same_waves(tmp_path: Path) -> None:
    """A homogeneous medium as numbers, as arrays in files with their own units, and as one store."""
    arrays = {"vp": 2.5, "epsilon": 0.2, "delta": 0.1, "theta": 30.0, "phi": 45.0}
    for name, value in arrays.items():
        np.save(tmp_path / f"{name}.npy", np.full(SHAPE, value))
    files: dict[str, Any] = {name: f"{name}.npy" for name in arrays} | {"angles": "degree"}
    files["vp"] = {"file": "vp.npy", "unit": "km/s"}
    numbers = {"vp": 2500.0, "epsilon": 0.2, "delta": 0.1, "theta": 30.0, "phi": 45.0, "angles": "degree"}
    first = run_model(load(tmp_path, medium=numbers, dt=5e-4), 30)
    second = run_model(load(tmp_path, shape=None, medium=files, dt=5e-4), 30)
    assert float(np.abs(first.fields["p"]).max()) > 1e-5
    assert np.allclose(first.fields["p"], second.fields["p"], atol=2e-6 * float(np.abs(first.fields["p"]).max()))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["rho.npy", "medium.zarr"])
def test_a_density_from_files_is_that_of_python(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(2)
    vp, rho = rng.uniform(2000.0, 3000.0, (16, 20)), rng.uniform(1000.0, 2500.0, (16, 20))
    medium: Any = name
    if name == "rho.npy":
        np.save(tmp_path / "vp.npy", vp)
        np.save(tmp_path / "rho.npy", rho / 1000)
        medium = {"vp": "vp.npy", "rho": {"file": "rho.npy", "unit": "g/cm3"}}
        rho = rho / 1000 * 1000.0
    else:
        group = zarr.open_group(tmp_path / name, mode="w", zarr_format=3)
        for quantity, values, unit in (("vp", vp, "m/s"), ("rho", rho, "kg/m3")):
            array = group.create_array(
                quantity, shape=vp.shape, dtype="f8", dimension_names=("z", "x"), attributes={"units": unit}
            )
            array[:] = values
    case = load(tmp_path, shape=None, medium=medium, sources=[{"position": [50.0, 50.0], "wavelet": {"ricker": 25.0}}])
    model = fletcher(
        (16, 20), 10.0, dt=float(str(case.parameters["dt"])), medium=Medium(vp, rho=rho), order=4, boundary=Sponge(4),
        sources=[PointSource((50.0, 50.0), Ricker(25.0))],
    )  # fmt: skip
    assert {what for what, _ in case.notes} >= {"time step", "dispersion"}
    assert [field.name for field in case.fields][:3] == ["p", "vp2", "rho"]
    assert_same(run_model(case, 12), run_model(model, 12, ranks=2))


def test_a_density_that_is_the_same_everywhere_has_no_effect_beside_anisotropy(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "medium.zarr", mode="w", zarr_format=3)
    rho = np.full((16, 20), 2200.0)
    for name, values in (("vp", rho + 500.0), ("epsilon", rho / 11000.0), ("delta", rho / 22000.0), ("rho", rho)):
        array = group.create_array(name, shape=rho.shape, dtype="f8", dimension_names=("z", "x"))
        array[:] = values
    source = {"position": [50.0, 50.0], "wavelet": {"ricker": 25.0}}
    case = load(tmp_path, shape=None, medium="medium.zarr", sources=[source])
    assert [field.name for field in case.fields][:2] == ["p", "q"]
    group["rho"][3, 4] = 2201.0
    with pytest.raises(CaseError, match="a density that varies in an anisotropic medium"):
        load(tmp_path, shape=None, medium="medium.zarr", sources=[source])


@pytest.mark.slow
def test_a_store_says_shape_spacing_and_units(tmp_path: Path) -> None:
    formulas = synthetic("salt", SHAPE, (20.0,) * 3, seed=3)
    write_medium(formulas, tmp_path / "salt.zarr")
    stored = load(tmp_path, shape=None, spacing=None, medium="salt.zarr")
    made = load(tmp_path, spacing=20.0, medium={"synthetic": "salt", "seed": 3})
    assert stored.grid.shape == made.grid.shape
    assert_same(run_model(stored, 8), run_model(made, 8, ranks=2))


@pytest.mark.slow
def test_a_wavelet_from_a_file(tmp_path: Path) -> None:
    """Samples of a Ricker wavelet at another interval give the waves of that wavelet."""
    times = np.arange(0, 0.12, 2e-3)
    e = (math.pi * 25.0 * (times - 2 * math.sqrt(math.pi) / 75.0)) ** 2
    np.savetxt(tmp_path / "w.txt", np.stack([times, (1 - 2 * e) * np.exp(-e)], axis=1))
    np.save(tmp_path / "w.npy", (1 - 2 * e) * np.exp(-e))
    place = CASE["sources"][0]["position"]
    ricker = run_model(load(tmp_path, dt=7e-4), 60)
    for wavelet in ({"file": "w.txt"}, {"file": "w.npy", "dt": 2e-3}):
        sampled = run_model(load(tmp_path, dt=7e-4, sources=[{"position": place, "wavelet": wavelet}]), 60)
        assert np.abs(sampled.fields["p"] - ricker.fields["p"]).max() < 2e-3 * np.abs(ricker.fields["p"]).max()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["waves", pytest.param("waves-vti", marks=pytest.mark.slow)])
def test_the_examples_run_the_same_on_several_ranks(name: str) -> None:
    path = examples()[name]
    table = tomllib.loads(path.read_text())
    model = load_model("fletcher", table, GridSettings(**table["grid"]), path.parent)
    assert model.steps is not None
    table["fletcher"]["boundary"] = {"waves": {"sponge": 3}, "waves-vti": {"cpml": 4}}[name]
    table["fletcher"]["spacing"] = 60.0
    table["fletcher"]["dt"] = 2e-3
    table["fletcher"]["order"] = 4
    del table["fletcher"]["receivers"]
    small = [load_model("fletcher", table, GridSettings(shape=(16, 13, 24)), path.parent) for _ in range(2)]
    assert_same(run_model(small[0], 6), run_model(small[1], 6, ranks=3, halo_depth=2))


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"medium": None}, "fletcher.medium", "missing"),
    ({"medium": "ttj"}, "fletcher.medium", "did you mean 'tti'"),
    ({"medium": 3}, "fletcher.medium", "expected a name or a table"),
    ({"medium": "no.zarr"}, "fletcher.medium", "there is no file"),
    ({"medium": {"vp": "fast"}}, "fletcher.medium.vp", "give a number, or a file that ends in .zarr"),
    ({"medium": "no.txt"}, "fletcher.medium", "kind of file"),
    ({"medium": {"vp": -3000.0}}, "fletcher.medium.vp", "above 0"),
    ({"medium": {"vp": 3.0}}, "fletcher.medium.vp", "m/s"),
    ({"medium": {"vp": math.nan}}, "fletcher.medium.vp", "nan"),
    ({"medium": {"vp": 3000.0, "epsilon": 24.0}}, "fletcher.medium.epsilon", "not per cent"),
    ({"medium": {"vp": 3000.0, "epsilon": -0.6}}, "fletcher.medium.epsilon", "-0.5"),
    ({"medium": {"vp": 3000.0, "theta": 30.0}}, "fletcher.medium.theta", "angles"),
    ({"medium": {"vp": 3000.0, "rho": -1.0}}, "fletcher.medium.rho", "above 0"),
    ({"medium": {"vp": 3000.0, "rho": "zero.npy"}, "boundary": "rigid"}, "fletcher.medium.rho", "(3, 2, 1)"),
    ({"medium": {"vp": 3000.0, "rho": "varied.npy", "epsilon": 0.1}}, "fletcher.medium.rho", "anisotropic"),
    ({"medium": {"vp": 3000.0, "rho": {"file": "present.npy", "unit": "t"}}}, "fletcher.medium.rho", "g/cm3"),
    ({"medium": {"vp": 3000.0, "thet": 30.0}}, "fletcher.medium.thet", "did you mean 'theta'"),
    ({"medium": {"epsilon": 0.1}}, "fletcher.medium.vp", "missing"),
    ({"medium": {"vp": {"fil": "a.npy"}}}, "fletcher.medium.vp", "unknown key"),
    ({"medium": {"vp": "absent.npy"}}, "fletcher.medium.vp", "did you mean"),
    ({"medium": {"vp": "nan.npy"}}, "fletcher.medium.vp", "(1, 2, 3)"),
    ({"medium": {"vp": "zero.npy"}}, "fletcher.medium.vp", "(3, 2, 1)"),
    ({"medium": {"vp": "small.npy"}}, "fletcher.medium.vp", "leave grid.shape out"),
    ({"medium": {"vp": "turned.npy"}}, "fletcher.medium.vp", "axes"),
    ({"medium": {"vp": {"file": "present.npy", "axes": "zzx"}}}, "fletcher.medium.vp", "letters"),
    ({"medium": {"vp": {"file": "present.npy", "unit": "furlongs"}}}, "fletcher.medium.vp", "furlongs"),
    ({"medium": {"vp": 3000.0, "density": "rho.npy"}}, "fletcher.medium.density", "did you mean 'rho'"),
    ({"medium": {"vp": 3000.0, "rho": [1000.0, 2000.0]}}, "fletcher.medium.rho", "or a table, found [1000.0"),
    ({"medium": {"synthetic": "salt", "density": True}}, "fletcher.medium.density", "anisotropy = 0.0"),
    ({"medium": {"vp": 3000.0, "rho": 2.2}}, "fletcher.medium.rho", "rho = 2000"),
    ({"medium": {"vp": "present.npy", "rho": "light.npy"}}, "fletcher.medium.rho", 'unit = "g/cm3"'),
    ({"medium": {"synthetic": "slat"}}, "fletcher.medium.synthetic", "did you mean 'salt'"),
    ({"medium": {"synthetic": "salt", "dip": 3.0}}, "fletcher.medium.dip", "salt has no dip"),
    ({"medium": {"synthetic": "layered", "depths": [0.0]}}, "fletcher.medium.velocities", "1 depths"),
    ({"spacing": None}, "fletcher.spacing", "missing"),
    ({"spacing": 0}, "fletcher.spacing", "above 0"),
    ({"spacing": [1.0, 2.0]}, "fletcher.spacing", "2 distances"),
    ({"dt": 0.01}, "fletcher.dt", "above the stability limit"),
    ({"dt": "fast"}, "fletcher.dt", "'auto'"),
    ({"dt": -1.0}, "fletcher.dt", "above 0"),
    ({"order": 6}, "fletcher.order", "4, 8, 12 or 16"),
    ({"form": "other"}, "fletcher.form", "selfadjoint"),
    ({"sigma": 0}, "fletcher.sigma", "above 0"),
    (
        {"sigma": "infinite", "medium": {"vp": 3000.0, "epsilon": 0.1, "delta": 0.2}},
        "fletcher.sigma",
        "delta is larger",
    ),
    ({"boundary": "sponges"}, "fletcher.boundary", "sponge"),
    ({"boundary": "cpml"}, "fletcher.boundary", "experimental = true"),
    ({"record": ["w"]}, "fletcher.record", "p, vz, vy, vx"),
    ({"boundary": {"sponge": 4, "experimental": True}}, "boundary.experimental", "cpml"),
    ({"boundary": {"cpml": 4, "experimental": 2}}, "boundary.experimental", "true"),
    ({"sources": [{"position": [5, 5, 5], "wavelet": {"ormsby": [5, 10, 9, 60]}}]}, "wavelet.ormsby", "rising"),
    ({"sources": [{"position": [5, 5, 5], "wavelet": {"ormsby": [5, 10, 20, 60], "ricker": 3}}]}, "wavelet", "one of"),
    ({"sources": [{"position": [5, 5, 5], "wavelet": {"ormsby": [5, 10, 20, 60], "dt": 3}}]}, "wavelet.dt", "no dt"),
    ({"sources": [{"position": [5, 5, 5], "direction": [1, 0]}]}, "sources[0].direction", "z, y, x"),
    ({"sources": [{"plane": {"z": 5}, "direction": [1, 0, 0]}]}, "sources[0].direction", "plane"),
    ({"boundary": {"sponge": 4, "random": 3}}, "fletcher.boundary", "one of"),
    ({"boundary": {"sponge": 0}}, "fletcher.boundary.sponge", "at least 1"),
    ({"boundary": {"sponge": 4, "seed": 3}}, "fletcher.boundary.seed", "no seed"),
    ({"boundary": {"cpml": 4, "strength": 0.2}}, "fletcher.boundary.strength", "no strength"),
    ({"boundary": {"sponge": 4, "strength": 0}}, "fletcher.boundary.strength", "above 0"),
    ({"boundary": "cpml"}, "fletcher.boundary", "tilted"),
    ({"sources": [{"position": [500.0, 5.0, 5.0]}]}, "fletcher.sources[0].position", "z = 500"),
    ({"sources": [{"position": [5.0, 5.0]}]}, "fletcher.sources[0].position", "the axes z, y, x"),
    ({"sources": [{}]}, "fletcher.sources[0]", "position or a plane"),
    ({"sources": [{"plane": {"w": 3.0}}]}, "fletcher.sources[0].plane", "'z'"),
    ({"sources": [{"plane": {"z": -3.0}}]}, "fletcher.sources[0].plane.z", "outside"),
    (
        {"sources": [{"position": [5, 5, 5], "wavelet": {}}]},
        "fletcher.sources[0].wavelet",
        "ricker, ormsby, file",
    ),
    ({"sources": [{"position": [5, 5, 5], "wavelet": {"file": "x.txt"}}]}, "wavelet.file", "there is no file"),
    (
        {"sources": [{"position": [5, 5, 5], "wavelet": {"file": "one.txt"}}]},
        "wavelet.file",
        "interval between its samples",
    ),
    ({"sources": [{"position": [5, 5, 5], "wavelet": {"file": "uneven.txt"}}]}, "wavelet.file", "evenly"),
    ({"sources": [{"position": [5, 5, 5], "wavelet": {"file": "words.txt"}}]}, "wavelet.file", "as numbers"),
    ({"sources": [{"position": [5, 5, 5], "wavelet": {"ricker": -3}}]}, "wavelet.ricker", "above 0"),
    ({"receivers": {}}, "fletcher.receivers", "positions, or first"),
    ({"receivers": {"first": [0, 0, 0]}}, "fletcher.receivers", "last and count missing"),
    ({"receivers": {"positions": [[0, 0, 9999]]}}, "fletcher.receivers", "outside"),
    ({"receivers": {"positions": [[0, 0, 0]], "every": 0}}, "fletcher.receivers.every", "at least 1"),
    ({"receivers": {"first": [0, 0, 0], "last": [5, 5, 5], "count": [2, 2]}}, "fletcher.receivers.last", "same depth"),
    (
        {"sources": [{"position": [5, 5, 5]}, {"position": [0, 5, 5]}], "boundary": "free"},
        "sources[1].position",
        "surface",
    ),
    ({"sources": [{"position": [5, 5, 5]}, {"plane": {"z": 0}}], "boundary": "free"}, "sources[1].position", "surface"),
    ({"time": 0}, "fletcher.time", "above 0"),
    ({"time": "3 m"}, "fletcher.time", 'or a time such as "20 ms"'),
    ({"recievers": {}}, "fletcher.recievers", "did you mean 'receivers'"),
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files that wrong cases name."""
    vp = np.full(SHAPE, 3000.0)
    np.save(tmp_path / "present.npy", vp)
    for name, cell, value in (("nan", (1, 2, 3), np.nan), ("zero", (3, 2, 1), 0.0)):
        wrong = vp.copy()
        wrong[cell] = value
        np.save(tmp_path / f"{name}.npy", wrong)
    np.save(tmp_path / "varied.npy", vp + np.arange(SHAPE[2]))
    np.save(tmp_path / "light.npy", vp / 1500.0)
    np.save(tmp_path / "small.npy", vp[:5])
    np.save(tmp_path / "turned.npy", vp.T)
    (tmp_path / "one.txt").write_text("0\n1\n0\n")
    (tmp_path / "uneven.txt").write_text("0 0\n1 1\n5 0\n")
    (tmp_path / "words.txt").write_text("zero\none\n")
    return tmp_path


def test_wrong_cases_are_told_with_their_key(files: Path) -> None:
    for changes, key, text in WRONG:
        with pytest.raises(CaseError) as caught:
            load(files, **changes)
        assert key in str(caught.value.key), (changes, caught.value.key)
        assert text in str(caught.value), (changes, str(caught.value))


def test_lengths_and_times_have_units(tmp_path: Path) -> None:
    plain, written = (
        load(tmp_path, spacing=spacing, dt=dt, time=time)
        for spacing, dt, time in ((10.0, 0.001, 0.02), (["10 m", "0.01 km", 10.0], "1 ms", "20 ms"))
    )
    assert plain.grid == written.grid
    assert plain.steps == written.steps == 20


def test_cells_that_are_too_coarse_are_a_warning(tmp_path: Path) -> None:
    assert load(tmp_path, medium={"vp": 3000.0}).warnings == ()
    fast = [{"position": [50.0, 50.0, 70.0], "wavelet": {"ricker": 250.0}}]
    (text,) = load(tmp_path, medium={"vp": 3000.0}, sources=fast).warnings
    assert "1.2 points per wavelength are fewer than 2" in text
    assert "3.3 times smaller" in text


@pytest.mark.parametrize("shape", [None, (20, 20, 20, 20), (1, 9, 9)])
def test_waves_need_a_shape(tmp_path: Path, shape: tuple[int, ...] | None) -> None:
    with pytest.raises(CaseError) as caught:
        load(tmp_path, shape=shape)
    assert caught.value.key == "grid.shape"


def test_a_case_on_two_axes(tmp_path: Path) -> None:
    """Files, positions and spacing have the axes z, x."""
    vp = 2000.0 + np.arange(14.0)[:, None] * np.ones(16)
    np.save(tmp_path / "vp.npy", vp.T)
    model = load(
        tmp_path, shape=None, spacing=[5.0, 10.0], medium={"vp": {"file": "vp.npy", "axes": "xz"}},
        boundary={"sponge": 4, "z": ["free", "sponge"]}, receivers={"first": [5, 0], "last": [5, 150], "count": 4},
        sources=[{"position": [30.0, 70.0]}, {"plane": {"z": 5.0}}],
    )  # fmt: skip
    assert model.grid.axes == ("z", "x")
    assert model.grid.shape == (18, 24)
    assert model.traces is not None
    assert model.traces.positions == ((5, 0, 0), (5, 0, 50), (5, 0, 100), (5, 0, 150))
    start = model.initial["vp2"]
    assert callable(start)
    assert np.array_equal(start(model.window), np.square(vp))
    assert run_model(model, 3).observables["largest"] > 0
    for changes, said in [
        ({"sources": [{"position": [30.0, 20.0, 70.0]}]}, "the model has the axes z, x"),
        ({"sources": [{"plane": {"y": 20.0}}]}, "the model has the axes z, x"),
        ({"receivers": {"first": [5, 0, 0], "last": [5, 0, 50], "count": 4}}, "is no point of the model"),
        ({"receivers": {"first": [5, 0], "last": [5, 50], "count": [2, 4]}}, "needs the axes z, y, x"),
        ({"receivers": {"positions": [[0, 50]]}, "boundary": "free"}, "on a free surface"),
        ({"spacing": [5.0, 10.0, 10.0]}, "3 distances between cells for the axes z, x"),
    ]:
        with pytest.raises(CaseError, match=said):
            load(tmp_path, **({"shape": (14, 16), "medium": "tti", "sources": []} | changes))


def test_the_boundary_is_that_of_waves(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"\[fletcher\]"):
        load(tmp_path, ends="periodic")
