"""Stores of frames: what xarray finds in them, and that frames are there whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import xarray
import zarr

from minga.errors import CaseError, RunError
from minga.output.directory import RunDirectory, write_whole
from minga.output.snapshots.files import Disk
from minga.output.store import FrameReader, FrameStore
from minga.output.variables import Coordinate, Variable, variables_of
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid

GRID = Grid((4, 6), spacing=(0.5, 2.0), origin=(1.0, 0.0), units="m")
CELL = Field("cell", GRID, "u1", description="alive or dead")
FLUX = Field("flux", GRID, "f4", centre="x", unit="m s-1")


def frame(k: int) -> dict[str, np.ndarray]:
    return {
        "cell": (np.arange(24).reshape(4, 6) + k).astype("u1"),
        "flux": np.full((4, 7), k, "f4"),
    }


@pytest.fixture
def store(tmp_path: Path) -> FrameStore:
    store = FrameStore(tmp_path / "fields.zarr", variables_of([CELL, FLUX]), {"title": "a test"})
    for k in range(3):
        store.append(10 * k, frame(k))
    return store


def test_xarray_opens_it_with_coordinates(store: FrameStore) -> None:
    with xarray.open_zarr(store.path) as dataset:
        assert dataset.cell.dims == ("time", "y", "x")
        assert dataset.flux.dims == ("time", "y", "x_face")
        assert dataset.time.values.tolist() == [0, 10, 20]
        assert dataset.y.values.tolist() == [1.25, 1.75, 2.25, 2.75]
        assert dataset.x_face.values.tolist() == [0, 2, 4, 6, 8, 10, 12]
        assert dataset.cell.dtype == np.uint8
        assert (dataset.cell.sel(time=20).values == frame(2)["cell"]).all()
        assert dataset.flux.attrs == {"units": "m s-1", "long_name": "flux"}
        assert dataset.cell.attrs == {"units": "1", "long_name": "alive or dead"}
        assert dataset.x.attrs["units"] == "m"
        assert dataset.x.attrs["axis"] == "X"
        assert dataset.attrs == {"Conventions": "CF-1.11", "title": "a test"}


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (2, 1, 3, 2)])
def test_all_types_and_dimensions_survive(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    field = Field("u", Grid(shape), dtype)
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    FrameStore(tmp_path / "s", variables_of([field]), {}).append(0, {"u": values})
    with xarray.open_zarr(tmp_path / "s") as dataset:
        assert dataset.u.dtype == np.dtype(dtype)
        assert (dataset.u[0].values == values).all()


def test_a_field_on_part_of_the_grid_has_coordinates_of_its_own(tmp_path: Path) -> None:
    part = Field("wall", GRID, on=Box((0, 0), (1, 6)))
    store = FrameStore(tmp_path / "s", variables_of([CELL, part]), {})
    store.append(0, {"cell": frame(0)["cell"], "wall": np.ones((1, 6))})
    with xarray.open_zarr(store.path) as dataset:
        assert dataset.wall.dims == ("time", "y_wall", "x_wall")
        assert dataset.sizes["y_wall"] == 1


def test_the_reader_names_what_there_is(store: FrameStore) -> None:
    reader = FrameReader.open(store.path)
    assert reader.fields == ("cell", "flux")
    assert reader.steps == (0, 10, 20)
    assert (reader.frame("cell") == frame(2)["cell"]).all()
    assert (reader.frame("cell", 1) == frame(1)["cell"]).all()
    assert (reader.frame("cell", -3) == frame(0)["cell"]).all()
    assert [c.name for c in reader.coordinates("flux")] == ["y", "x_face"]
    with pytest.raises(CaseError, match="no field 'cel'") as caught:
        reader.frame("cel")
    assert caught.value.suggestion == "cell"
    for index in (3, -4):
        with pytest.raises(CaseError, match=f"no frame {index}"):
            reader.frame("cell", index)


def test_a_frame_that_fails_halfway_stays_invisible(store: FrameStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Disk, "_put", full)
    with pytest.raises(RunError, match="No space left on device"):
        store.append(30, frame(3))
    monkeypatch.undo()
    assert FrameReader.open(store.path).steps == (0, 10, 20)
    with xarray.open_zarr(store.path) as dataset:
        assert dataset.sizes["time"] == 3
    # Also without the consolidated metadata nothing of the frame is to be seen.
    assert zarr.open_array(store.path / "cell", mode="r").shape == (3, 4, 6)
    store.append(30, frame(3))
    assert FrameReader.open(store.path).steps == (0, 10, 20, 30)


def test_nothing_partial_is_left(store: FrameStore) -> None:
    assert not [p for p in store.path.rglob("*") if "partial" in p.name]


def test_names_that_meet_are_refused() -> None:
    for name in ("time", "x", "cell"):
        with pytest.raises(RunError, match=name):
            variables_of([CELL, Field(name, GRID)])


def test_run_directories_never_overwrite(in_tmp_path: Path) -> None:
    names = [RunDirectory.create(None, "forest fire").path.as_posix() for _ in range(3)]
    assert names == ["runs/forest-fire", "runs/forest-fire-2", "runs/forest-fire-3"]
    out = Path("here")
    run = RunDirectory.create(out, "x")
    write_whole(run.case, "model = 1\n")
    with pytest.raises(CaseError, match="holds a run already"):
        RunDirectory.create(out, "x")
    assert run.case.exists()
    RunDirectory.create(out, "x", replace=True)
    assert not run.case.exists()
    (out / "thesis.tex").touch()
    with pytest.raises(CaseError, match="holds files already"):
        RunDirectory.create(out, "x", replace=True)
    assert (out / "thesis.tex").exists()


def test_a_place_that_cannot_be_written_is_one_error(in_tmp_path: Path) -> None:
    Path("file").touch()
    with pytest.raises(CaseError, match="cannot write"):
        RunDirectory.create(Path("file/run"), "x")
    with pytest.raises(RunError, match="cannot write"):
        write_whole(Path("missing/result.json"), "{}")


def test_files_appear_whole(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_whole(path, {"a": 1})
    write_whole(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert os.listdir(tmp_path) == ["result.json"]


@pytest.mark.parametrize("name", ["../../elsewhere", "a/b", "..", "", "/tmp/x", "a\nb"])
def test_a_field_whose_name_would_be_another_place(tmp_path: Path, name: str) -> None:
    """A field is a directory of the store: its name must not lead out of it."""
    axis = Coordinate("x", np.arange(3.0), {})
    with pytest.raises(CaseError, match="not the plain name"):
        Variable(name, np.dtype("f8"), (axis,), {})
    with pytest.raises(CaseError, match="not the plain name"):
        Variable("u", np.dtype("f8"), (Coordinate(name, np.arange(3.0), {}),), {})
