"""VTK rectilinear grids: read back by the rules of the format, with unequal cells and a velocity at their centres."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from minga.cli.export import export
from minga.errors import CaseError
from minga.record.directory import RunDirectory
from minga.record.store import FrameReader, FrameStore
from minga.record.variables import VELOCITY, variables_of
from minga.record.vtr import rectilinear
from minga.space.field import Field
from minga.space.grid import Grid
from run_files import make_run

DTYPES = {"UInt8": "u1", "Float64": "f8"}


def read(file: bytes) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The arrays of cells by name, of shape (z, y, x) or with 3 components, and the edges along x, y, z."""
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
    shape = [len(edge) - 1 for edge in reversed(edges)]
    piece = root.find(".//Piece")
    assert piece is not None
    assert piece.get("Extent") == " ".join(f"0 {n}" for n in reversed(shape))
    cells = {}
    for array in root.iterfind(".//CellData/DataArray"):
        many = [int(array.get("NumberOfComponents") or 1)]
        cells[array.get("Name") or ""] = values(array).reshape(shape + (many if many != [1] else []))
    return cells, edges


def test_a_frame_with_all_fields(tmp_path: Path) -> None:
    """The last axis is VTK's x, so that components of the velocity are those along x, z, y of the cell."""
    grid = Grid((4, 3, 5), axes=list("yzx"), spacing=[0.5, 0.25, [1.0, 2.0, 2.0, 2.0, 1.0]], units="m")
    fields = [Field("c", grid), Field("kind", grid, "u1"), *(Field(f"v_{a}", grid, centre=a) for a in "yzx")]
    rng = np.random.default_rng(1)
    values = {f.name: (9 * rng.random(f.points.shape)).astype(f.dtype) for f in fields}
    store = FrameStore(tmp_path / "fields.zarr", variables_of(fields), {VELOCITY: "v_y v_z v_x"})
    store.append(7, values)
    cells, edges = read(rectilinear(FrameReader.open(tmp_path / "fields.zarr"), 0))
    assert set(cells) == {"c", "kind", "velocity"}
    assert np.array_equal(cells["c"], values["c"])
    assert np.array_equal(cells["kind"], values["kind"])
    assert cells["velocity"].shape == (4, 3, 5, 3)
    for component, axis in enumerate("xzy"):
        faces = values[f"v_{axis}"]
        low, high = (np.take(faces, range(a, a + grid.shape["yzx".index(axis)]), "yzx".index(axis)) for a in (0, 1))
        assert np.array_equal(cells["velocity"][..., component], 0.5 * (low + high))
    assert [len(edge) for edge in edges] == [6, 4, 5]
    assert edges[1] == pytest.approx([0, 0.25, 0.5, 0.75])
    assert np.array_equal(edges[0], [0, 1, 3, 5, 7, 8])  # where the velocity lies
    one, _ = read(rectilinear(FrameReader.open(tmp_path / "fields.zarr"), 0, "v_y"))
    assert np.array_equal(one["v_y"], values["v_y"])
    _, edges = read(rectilinear(FrameReader.open(tmp_path / "fields.zarr"), 0, "c"))
    assert edges[0][1:-1] == pytest.approx([1.25, 3.0, 5.0, 6.75])  # half-way between centres, which is all it knows


def test_the_command_writes_one_field_or_all(tmp_path: Path) -> None:
    field = Field("u", Grid((3, 4)), "u1")
    run = make_run(tmp_path / "run", field, {0: np.zeros((3, 4), "u1"), 5: np.arange(12, dtype="u1").reshape(3, 4)})
    assert isinstance(run, RunDirectory)
    for name in (None, "u"):
        assert "at step 5" in export(run.path, name, None, tmp_path / "u.vtr", "-1")
        cells, _ = read((tmp_path / "u.vtr").read_bytes())
        assert np.array_equal(cells["u"], np.arange(12).reshape(1, 3, 4))
    export(run.path, None, None, tmp_path / "all.vtr", "all")
    assert "all-5.vtr" in (tmp_path / "all.pvd").read_text()
    flat = make_run(tmp_path / "flat", Field("u", Grid((2, 2, 2, 2)), "u1"), {0: np.zeros((2, 2, 2, 2), "u1")})
    with pytest.raises(CaseError, match="three axes"):
        export(flat.path, None, None, tmp_path / "w.vtr", "-1")
