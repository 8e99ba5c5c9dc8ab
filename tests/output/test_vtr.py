"""VTK rectilinear grids: read back by the rules of the format, with unequal cells and a velocity at their centres."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray

from minga.cli.export import export
from minga.errors import CaseError
from minga.output.directory import RunDirectory
from minga.output.store import FrameReader, FrameStore
from minga.output.variables import VELOCITY, variables_of
from minga.output.vtk import pvd
from minga.output.vtr import rectilinear, vtr
from minga.output.xdmf import xdmf
from minga.space.field import Field
from minga.space.grid import Grid
from minga.view.raster import ends
from run_files import make_run

DTYPES = {
    "UInt8": "u1",
    "Int16": "i2",
    "Int32": "i4",
    "Int64": "i8",
    "UInt32": "u4",
    "UInt64": "u8",
    "Float32": "f4",
    "Float64": "f8",
}


def read(file: bytes) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The arrays of cells or points by name, of shape (z, y, x) or with 3 components; edges or points along x, y, z."""
    head, _, rest = file.partition(b'<AppendedData encoding="raw">\n   _')
    tail = rest[rest.rindex(b"\n  </AppendedData>") :]
    root = ElementTree.fromstring(head + b"<AppendedData>" + tail.lstrip())
    assert (root.get("type"), root.get("header_type"), root.get("byte_order")) == (
        "RectilinearGrid", "UInt64", "LittleEndian",
    )  # fmt: skip

    def values(array: ElementTree.Element) -> np.ndarray:
        start = int(array.get("offset") or 0)
        size = int(np.frombuffer(rest, "u8", 1, start)[0])
        return np.frombuffer(rest[start + 8 : start + 8 + size], DTYPES[array.get("type") or ""])

    edges = [values(array) for array in root.iterfind(".//Coordinates/DataArray")]
    points = root.find(".//PointData") is not None
    shape = [len(edge) - (not points) for edge in reversed(edges)]
    piece = root.find(".//Piece")
    assert piece is not None
    assert piece.get("Extent") == " ".join(f"0 {n - points}" for n in reversed(shape))
    cells = {}
    for array in root.iterfind(".//PointData/DataArray" if points else ".//CellData/DataArray"):
        many = [int(array.get("NumberOfComponents") or 1)]
        cells[array.get("Name") or ""] = values(array).reshape(shape + (many if many != [1] else []))
    return cells, edges


def test_a_frame_with_all_fields(tmp_path: Path) -> None:
    """Axes and components of the velocity are those of VTK by name, in whatever order the grid has them."""
    grid = Grid((4, 3, 5), axes=list("yzx"), spacing=[0.5, 0.25, [1.0, 2.0, 2.0, 2.0, 1.0]], units="m")
    fields = [Field("c", grid), Field("kind", grid, "u1"), *(Field(f"v_{a}", grid, centre=a) for a in "yzx")]
    rng = np.random.default_rng(1)
    values = {f.name: (9 * rng.random(f.points.shape)).astype(f.dtype) for f in fields}
    store = FrameStore(tmp_path / "fields.zarr", variables_of(fields), {VELOCITY: "v_y v_z v_x"})
    store.append(7, values)
    cells, edges = read(rectilinear(FrameReader.open(tmp_path / "fields.zarr"), 0))
    assert set(cells) == {"c", "kind", "velocity"}
    assert np.array_equal(cells["c"], values["c"].transpose(1, 0, 2))
    assert np.array_equal(cells["kind"], values["kind"].transpose(1, 0, 2))
    assert cells["velocity"].shape == (3, 4, 5, 3)
    for component, axis in enumerate("xyz"):
        faces = values[f"v_{axis}"]
        low, high = (np.take(faces, range(a, a + grid.shape["yzx".index(axis)]), "yzx".index(axis)) for a in (0, 1))
        assert np.array_equal(cells["velocity"][..., component], 0.5 * (low + high).transpose(1, 0, 2))
    assert [len(edge) for edge in edges] == [6, 5, 4]
    assert edges[2] == pytest.approx([0, 0.25, 0.5, 0.75])
    assert np.array_equal(edges[0], [0, 1, 3, 5, 7, 8])  # where the velocity lies
    one, places = read(rectilinear(FrameReader.open(tmp_path / "fields.zarr"), 0, ["v_y"]))
    assert np.array_equal(one["v_y"], values["v_y"].transpose(1, 0, 2))
    assert np.array_equal(places[1], [0.0, 0.5, 1.0, 1.5, 2.0])  # of the faces, nothing beyond the grid
    assert np.array_equal(places[0], [0.5, 2.0, 4.0, 6.0, 7.5])
    _, edges = read(rectilinear(FrameReader.open(tmp_path / "fields.zarr"), 0, ["c"]))
    assert edges[0] == pytest.approx([0, 1, 3, 5, 7, 8], abs=1e-15)


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 4, 5), (1, 2, 1)])
def test_values_and_shape(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.random.default_rng(1).random(shape) * 100).astype(dtype)
    cells, edges = read(vtr({"<u>": values}, [np.arange(length + 1.0) for length in shape]))
    assert list(cells) == ["<u>"]
    assert (cells["<u>"].reshape(shape) == values).all()
    assert [len(edge) - 1 for edge in edges] == [*reversed(shape), *[1] * (3 - len(shape))]


def test_what_lies_at_other_points_is_said_or_goes_to_netcdf(tmp_path: Path) -> None:
    """A NetCDF file holds all fields, or those that are named; other formats refuse several."""
    grid = Grid((3, 4), axes="yx")
    fields = [Field("c", grid), Field("e", grid, centre="x")]
    run = make_run(tmp_path / "run", fields[0], {})
    shutil.rmtree(run.fields)
    values = {f.name: np.arange(float(f.points.size)).reshape(f.points.shape) for f in fields}
    FrameStore(run.fields, variables_of(fields), {}).append(0, values)
    assert "left out: e, which" in export(run.path, None, None, tmp_path / "x.vtr", "-1")
    assert "left out" not in export(run.path, "e", None, tmp_path / "e.vtr", "-1")
    assert "all fields at step 0" in export(run.path, None, None, tmp_path / "x.nc", "-1")
    export(run.path, ["e", "c", "e"], None, tmp_path / "named.nc", "all")
    for name in ("x.nc", "named.nc"):
        with xarray.open_dataset(tmp_path / name) as found:
            for field, expected in values.items():
                assert np.array_equal(found[field].values[0], expected)
    with pytest.raises(CaseError, match="e lies at other points than c"):
        export(run.path, ["e", "c"], None, tmp_path / "several.vtr", "-1")
    assert not (tmp_path / "several.vtr").exists()


def test_values_of_nodes_lie_at_the_nodes(tmp_path: Path) -> None:
    """Of two axes, one of unequal nodes; what lies between nodes is on the faces of their volumes."""
    nodes = np.array([0.0, 1.0, 4.0, 5.0])
    grid = Grid((3, 4), axes="xy", spacing=[[0.5, 1.0, 0.5], [0.5, 2.0, 2.0, 0.5]], nodes=[[0.0, 1.0, 2.0], nodes])
    fields = [Field("p", grid), Field("e", grid, centre="y")]
    values = {f.name: np.arange(float(f.points.size)).reshape(f.points.shape) for f in fields}
    store = FrameStore(tmp_path / "fields.zarr", variables_of(fields), {})
    store.append(0, values)
    reader = FrameReader.open(tmp_path / "fields.zarr")
    found, places = read(rectilinear(reader, 0))
    assert set(found) == {"p"}
    assert np.array_equal(found["p"][0], values["p"])
    assert [list(p) for p in places] == [list(nodes), [0.0, 1.0, 2.0], [0.0]]
    between, places = read(rectilinear(reader, 0, ["e"]))
    assert np.array_equal(between["e"][0], values["e"])
    assert [list(p) for p in places] == [[0.0, 0.5, 2.5, 4.5, 5.0], [0.0, 1.0, 2.0], [0.0]]
    x, y = reader.coordinates("p")
    assert (list(y.values), y.attributes["location"], y.attributes["long_name"]) == (list(nodes), "node", "y of nodes")
    assert list(x.edges) == [0.0, 0.5, 1.5, 2.0]
    assert ends(y) == (0.0, 5.0)
    text = xdmf("p", np.dtype("f8"), (x,), [(0, tmp_path / "c")], tmp_path)
    assert 'Dimensions="1 1 3"' in text
    assert 'Center="Node"' in text
    assert "0.0 0.0 0.0</DataItem>" in text


def test_the_command_writes_one_field_or_all(tmp_path: Path) -> None:
    field = Field("u", Grid((3, 4)), "u1")
    run = make_run(tmp_path / "run", field, {0: np.zeros((3, 4), "u1"), 5: np.arange(12, dtype="u1").reshape(3, 4)})
    assert isinstance(run, RunDirectory)
    for name in (None, "u"):
        assert "at step 5" in export(run.path, name, None, tmp_path / f"{name}.vtr", "-1")
        cells, _ = read((tmp_path / f"{name}.vtr").read_bytes())
        assert np.array_equal(cells["u"], np.arange(12).reshape(1, 3, 4))
    export(run.path, None, None, tmp_path / "all.vtr", "all")
    assert "all-5.vtr" in (tmp_path / "all.pvd").read_text()
    flat = make_run(tmp_path / "flat", Field("u", Grid((2, 2, 2, 2)), "u1"), {0: np.zeros((2, 2, 2, 2), "u1")})
    with pytest.raises(CaseError, match="three axes"):
        export(flat.path, None, None, tmp_path / "w.vtr", "-1")


def test_a_collection_lists_the_steps() -> None:
    text = pvd([(0, Path("out/u-00.vtr")), (10, Path("out/u-10.vtr"))])
    found = [(entry.get("timestep"), entry.get("file")) for entry in ElementTree.fromstring(text).iter("DataSet")]
    assert found == [("0", "u-00.vtr"), ("10", "u-10.vtr")]
    assert "out/" not in text
