"""Exports for other programs, read back by the rules of their formats."""

from __future__ import annotations

import math
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from minga.cli.export import export
from minga.errors import CaseError
from minga.output.segy import SegyFile
from minga.output.spacing import even_spacing
from minga.output.store import FrameStore
from minga.output.variables import Coordinate, variables_of
from minga.space.field import Field
from minga.space.grid import Grid

GRID = Grid((4, 5, 6), spacing=(10.0, 20.0, 30.0), origin=(1.0, 0.0, -15.0), axes="zyx", units="m")
DTYPES = ["bool", "u1", "i2", "i4", "i8", "u4", "f4", "f8"]


def frames(dtype: str, grid: Grid = GRID) -> list[np.ndarray]:
    return [(np.random.default_rng(k).random(grid.shape) * 250).astype(dtype) for k in range(3)]


def make(path: Path, dtype: str = "f4", grid: Grid = GRID) -> Path:
    """A run with three frames of the field `p`, at steps 0, 10 and 20."""
    (run := path / "run").mkdir()
    store = FrameStore(run / "fields.zarr", variables_of([Field("p", grid, dtype, unit="Pa")]), {"title": "made"})
    for k, values in enumerate(frames(dtype, grid)):
        store.append(10 * k, {"p": values})
    return run


class Cdf:
    """Reads a file of the NetCDF classic formats, by their specification."""

    def __init__(self, path: Path) -> None:
        self.data, self.at = path.read_bytes(), 4
        assert self.data[:3] == b"CDF"
        self.wide = {2: False, 5: True}[self.data[3]]
        assert self.count() == 0  # no record dimension
        self.dims = [(self.name(), self.count()) for _ in range(self.items(10))]
        self.attributes = self.read_attributes()
        self.variables = {}
        for _ in range(self.items(11)):
            name = self.name()
            dims = [self.dims[self.count()] for _ in range(self.count())]
            attributes, kind, size = self.read_attributes(), self.number(4), self.count()
            dtype = np.dtype({1: ">i1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 9: ">u4", 10: ">i8"}[kind])
            begin, shape = self.number(8), tuple(length for _, length in dims)
            assert size == -(-math.prod(shape) * dtype.itemsize // 4) * 4
            values = np.frombuffer(self.data, dtype, math.prod(shape), begin).reshape(shape)
            self.variables[name] = ([name for name, _ in dims], attributes, values)
            assert begin + size <= len(self.data)

    def number(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "big")

    def count(self) -> int:
        return self.number(8 if self.wide else 4)

    def items(self, tag: int) -> int:
        found, count = self.number(4), self.count()
        assert found == (tag if count else 0)
        return count

    def name(self) -> str:
        return self.text(self.count())

    def text(self, length: int) -> str:
        start = self.at
        self.at += -(-length // 4) * 4
        return self.data[start : start + length].decode()

    def read_attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self.items(12)):
            name, kind, count = self.name(), self.number(4), self.count()
            if kind == 2:
                found[name] = self.text(count)
            else:
                code, size = {4: (">i", 4), 6: (">d", 8)}[kind]
                (found[name],) = struct.unpack_from(code, self.data, self.at)
                self.at += size
        return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_netcdf(tmp_path: Path, dtype: str) -> None:
    run, out = make(tmp_path, dtype), tmp_path / "p.nc"
    assert "3 steps" in export(run, None, None, out, "all")
    file = Cdf(out)
    assert file.wide == (dtype in ("i8", "u4"))
    dims, attributes, values = file.variables["p"]
    assert dims == ["time", "z", "y", "x"]
    assert attributes["units"] == "Pa"
    assert file.attributes["title"] == "made"
    native = values.astype(values.dtype.newbyteorder("="))
    found = native.view(dtype) if dtype in ("bool", "u1") else native
    assert (found == np.stack(frames(dtype))).all()
    assert attributes.get("dtype") == ("bool" if dtype == "bool" else None)
    assert attributes.get("_Unsigned") == ("true" if dtype == "u1" else None)
    assert file.variables["time"][2].tolist() == [0, 10, 20]
    assert file.variables["z"][2].tolist() == [6, 16, 26, 36]
    assert len(list(tmp_path.iterdir())) == 2


def test_xdmf_points_at_the_frames_where_they_lie(tmp_path: Path) -> None:
    run = make(tmp_path)
    (folder := tmp_path / "films").mkdir()
    export(run, "p", None, folder / "p.xmf", "all")
    grids = ElementTree.parse(folder / "p.xmf").findall("./Domain/Grid/Grid")
    assert [grid.find("Time").get("Value") for grid in grids] == ["0", "10", "20"]  # type: ignore[union-attr]
    for grid, values in zip(grids, frames("f4"), strict=True):
        (item,) = grid.findall("./Attribute/DataItem")
        assert (item.get("Format"), item.get("Endian"), item.get("Precision")) == ("Binary", "Little", "4")
        shape = [int(n) for n in (item.get("Dimensions") or "").split()]
        found = np.fromfile(folder / (item.text or ""), "<f4", offset=int(item.get("Seek") or 0)).reshape(shape)
        assert (found == values).all()
        origin, step = ([float(n) for n in (part.text or "").split()] for part in grid.findall("./Geometry/DataItem"))
        assert (origin, step) == ([1.0, 0.0, -15.0], [10.0, 20.0, 30.0])
        topology = grid.find("Topology")
        assert topology is not None
        assert topology.get("Dimensions") == "5 6 7"


@pytest.mark.parametrize("raw", [True, False])
def test_rsf(tmp_path: Path, raw: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run, out = make(tmp_path), tmp_path / "p.rsf"
    if not raw:
        monkeypatch.setattr("minga.output.store.FrameReader.raw", lambda *_: None)
    export(run, None, None, out, "1")
    header, _, inside = out.read_bytes().partition(b"\x0c\x0c\x04")
    said = dict(re.findall(r'(\w+)="?([^"\s]*)', header.decode()))
    lengths = [int(said[f"n{axis}"]) for axis in (3, 2, 1)]
    content = Path(said["in"]).read_bytes() if raw else inside
    assert (said["in"] == "stdin") == (not raw)
    assert (np.frombuffer(content, "<f4").reshape(lengths) == frames("f4")[1]).all()
    assert (said["data_format"], said["esize"], said["label3"], said["unit1"]) == ("native_float", "4", "z", "m")
    assert [float(said[f"{key}{axis}"]) for key in "od" for axis in (3, 2, 1)] == [6, 10, 0, 10, 20, 30]


def test_segy(tmp_path: Path) -> None:
    run, out = make(tmp_path), tmp_path / "p.sgy"
    export(run, None, None, out, "-1")
    file = SegyFile.open(out)
    values = frames("f4")[2]
    assert (file.traces(slice(None)) == values.reshape(4, 30).T).all()
    assert file.headers["inline"].tolist() == np.repeat(np.arange(1, 6), 6).tolist()
    assert (file.headers["cdp_x"][:6] / 100).tolist() == [0, 30, 60, 90, 120, 150]


@pytest.mark.parametrize(("kind", "grid", "dtype", "text"), [
    ("sgy", Grid((4, 5)), "f4", "three axes, p has 2"),
    ("xmf", Grid((2, 2, 2, 2)), "f4", "at most three axes"),
    ("vtr", Grid((2, 2, 2, 2)), "f4", "at most three axes"),
    ("xmf", Grid((3, 2), spacing=([1.0, 2.0, 4.0], 1.0)), "f4", "XDMF images have evenly spaced"),
    ("rsf", Grid((4, 5)), "u4", "not support values of type uint32"),
    ("rsf", Grid((3, 2), spacing=([1.0, 2.0, 4.0], 1.0)), "f4", "RSF files have evenly spaced"),
])  # fmt: skip
def test_what_a_format_cannot_hold(tmp_path: Path, kind: str, grid: Grid, dtype: str, text: str) -> None:
    run = make(tmp_path, dtype, grid)
    with pytest.raises(CaseError, match=text):
        export(run, None, kind, tmp_path / "out", "-1")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_single_point_has_a_spacing() -> None:
    assert even_spacing(Coordinate("x", np.array([3.0]), {}), "u", "files") == 1.0
