"""Opening runs, and what datasets say of their origin."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import xarray

import minga as mg
from command_line import SMALL, in_process
from minga.models.waves import Medium, Receivers, Release
from minga.output.provenance import recorded


def heat(**changes: object) -> mg.Model:
    grid = mg.Grid((8, 6), periodic=True, spacing=2.0, units="m")
    words = {"parameters": {"D": 0.5}, "initial": {"u": lambda y, x: y + 0.1 * x}, "integrator": "euler", "dt": 0.25}
    return mg.pde({"u": "D * laplace(u)"}, grid, units={"u": "K"}, seed=7, **{**words, **changes})  # type: ignore[arg-type]


def test_an_opened_run_is_the_dataset_of_the_run(tmp_path: Path) -> None:
    made = mg.run(heat(), until=2.0, every=0.5, observe=1, out=tmp_path / "run")
    assert made.time_observed.values.tolist() == [0.25 * n for n in range(9)]
    opened = mg.open(tmp_path / "run")
    assert opened.identical(made)
    assert mg.open(str(tmp_path / "run")).u.dims == ("time", "y", "x")


def test_a_dataset_says_where_it_comes_from(tmp_path: Path) -> None:
    memory = mg.run(heat(), until=2.0, every=0.5)
    disk = mg.run(heat(), until=2.0, every=0.5, out=tmp_path / "run")
    for found in (memory, disk, mg.open(tmp_path / "run")):
        about = found.attrs
        parameters = json.loads(about["parameters"])
        assert (parameters["D"], parameters["equations"]) == (0.5, {"u": "D * laplace(u)"})
        assert (parameters["parameters"], parameters["initial"]) == ({"D": 0.5}, {"u": "<lambda>"})
        assert (parameters["space"], parameters["units"], parameters["dt"]) == ("differences", {"u": "K"}, 0.25)
        assert parameters["grid"] == "Grid(8 y x 6 x; spacing 2; units m, m; periodic y, x)"
        assert about["seed"] == 7
        assert about["source"] == f"minga {version('minga')}"
        assert json.loads(about["versions"])["numpy"] == np.__version__
        assert json.loads(about["versions"])["scipy"] == version("scipy")
        assert about["command"].startswith("mg.run(model, until=2.0, every=0.5)")
        assert (found.u.attrs["units"], found.x.attrs["units"], found.largest_u.attrs["units"]) == ("K", "m", "K")
        assert found.attrs["digest"] == memory.attrs["digest"]


@pytest.mark.slow
def test_the_command_repeats_the_run(tmp_path: Path) -> None:
    first = mg.run(heat(), 9, every=2, region={"x": [1, 4]}, stop="largest_u < 0", initial=None, threads=1)
    again = eval(first.attrs["command"], {"mg": mg, "model": heat()})
    assert again.identical(first)
    called = mg.run(heat(), 2, callback=lambda frame: None, initial={"u": 1.0}).attrs["command"]
    assert called.startswith("mg.run(model, steps=2, initial=..., callback=...)")


def test_a_run_of_the_command_line_opens(in_tmp_path: Path) -> None:
    Path("small.toml").write_text(SMALL)
    assert in_process("run", "small.toml", "--out", "a run").status == 0
    found = mg.open("a run")
    assert found.cell.shape == (3, 40, 64)
    assert found.population.dims == ("observed",)
    assert found.population.attrs["units"] == "1"
    assert found.attrs["command"] == "minga run 'a run/case.toml'"
    assert found.attrs["ended"] == "all 10 steps done"
    assert json.loads(found.attrs["parameters"])["rule"] == "B3/S23"
    model = mg.automaton("B3/S23", (40, 64), init={"soup": 0.3, "seed": 1})
    assert found.attrs["digest"] == mg.run(model, 10).attrs["digest"]


def test_samples_of_receivers_are_opened(tmp_path: Path) -> None:
    receivers = Receivers([(20.0, 20.0, 40.0)], every=2)
    model = mg.fletcher(
        (8, 8, 8), 10.0, dt=1e-3, medium=Medium(1500.0), order=4, boundary=Release(), receivers=receivers
    )
    made = mg.run(model, 6, out=tmp_path / "run")
    assert mg.open(tmp_path / "run").identical(made)


def failing(simulation: mg.Simulation) -> None:
    raise RuntimeError("no more")


def interrupted(simulation: mg.Simulation) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("deed", "said"), [(failing, "failed: RuntimeError: no more"), (interrupted, "stopped: a user ended it at once")]
)
def test_an_interrupted_run_opens(tmp_path: Path, deed: Callable[[mg.Simulation], None], said: str) -> None:
    with pytest.raises((RuntimeError, KeyboardInterrupt)) as caught:
        mg.run(heat(), 8, every=1, out=tmp_path / "run", observers=[mg.observer(deed, steps=3)])
    found = mg.open(tmp_path / "run")
    assert found.step.values.tolist() == [0, 1, 2, 3]
    assert (found.attrs["steps"], found.attrs["ended"]) == (3, said)
    assert "digest" not in found.attrs
    assert found.u.identical(caught.value.dataset.u)  # type: ignore[attr-defined]


def test_a_run_without_series_opens(tmp_path: Path) -> None:
    made = mg.run(heat(), 2, out=tmp_path / "run")
    (tmp_path / "run" / "series.json").unlink()
    (tmp_path / "run" / "result.json").unlink()
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    found = mg.open(tmp_path / "copy")
    assert found.u.identical(made.u)
    assert "observed" not in found.dims


@pytest.mark.parametrize(
    ("path", "said"), [("nowhere", "does not exist"), ("file", "it is a file"), (3, "expected the path")]
)
def test_what_is_no_run_is_refused(tmp_path: Path, path: object, said: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(mg.CaseError, match=said):
        mg.open(tmp_path / path if isinstance(path, str) else path)  # type: ignore[arg-type]


@pytest.mark.slow
def test_all_fields_of_a_run_fit_one_netcdf_file(in_tmp_path: Path) -> None:
    """The file of `minga export` has the frames, coordinates and origin of the run."""
    model = mg.pde({"u": "laplace(u)", "v": "u - v"}, mg.Grid((6, 5)), initial={"u": 1.0}, dt=0.1, integrator="euler")
    made = mg.run(model, 4, every=2, out="run")
    assert in_process("export", "run", "--out", "all.nc", "--frame", "all").status == 0
    found = xarray.load_dataset("all.nc", engine="scipy")
    for name in ("u", "v", "y", "x", "time"):
        assert np.array_equal(found[name], made[name])
    for name in ("parameters", "versions", "seed", "command"):
        assert found.attrs[name] == made.attrs[name]


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_may_leave_one_netcdf_file(tmp_path: Path, ranks: int) -> None:
    path = tmp_path / "result.nc"
    model = mg.automaton("B3/S23", (8, 9), init={"soup": 0.4}, observe=["population", "histogram"])
    made = mg.run_virtual(ranks, lambda comm: mg.run(model, 4, every=2, observe=1, comm=comm, out=path))[0]
    found = xarray.load_dataset(path, engine="scipy")
    assert {"cell", "population", "histogram"} <= set(found.data_vars)
    assert list(found.coords) == list(made.coords)
    for name in made.variables:
        assert np.array_equal(found[name], made[name]), name
        assert found[name].dims == made[name].dims
    assert json.loads(found.attrs["histogram"]) == made.attrs["histogram"]
    assert found.attrs["digest"] == made.attrs["digest"]
    assert [file.name for file in tmp_path.iterdir()] == ["result.nc"]
    with pytest.raises(mg.CaseError, match="exists"):
        mg.run(model, 4, out=path)
    with pytest.raises(mg.CaseError, match="does not exist"):
        mg.run(model, 4, out=tmp_path / "none" / "result.nc")


def test_an_interrupted_run_leaves_its_netcdf_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no more"):
        mg.run(heat(), 8, every=1, out=tmp_path / "r.nc", observers=[mg.observer(failing, steps=3)])
    found = xarray.load_dataset(tmp_path / "r.nc", engine="scipy")
    assert found.step.values.tolist() == [0, 1, 2, 3]
    assert found.attrs["ended"] == "failed: RuntimeError: no more"


def test_parameters_of_all_kinds_are_recorded() -> None:
    values = {
        "a": np.float32(0.5),
        "f": heat,
        "many": np.zeros((9, 9)),
        "few": np.arange(2),
        "grid": (1, None),
        "z": 1j,
    }
    assert recorded(values) == {
        "a": 0.5, "f": "heat", "many": "array of shape (9, 9), float64", "few": [0, 1], "grid": [1, None], "z": "1j",
    }  # fmt: skip
