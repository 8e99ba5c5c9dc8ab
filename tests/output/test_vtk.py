"""VTK images: read back by the rules of the format, with the positions of the grid."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from minga.errors import CaseError
from minga.output.variables import variable_of
from minga.output.vtk import pvd, vti
from minga.space.field import Field
from minga.space.grid import Grid

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


def read(file: bytes) -> tuple[dict[str, list[float]], str, np.ndarray]:
    """Extent, origin and spacing, the name, and the values, of shape (z, y, x)."""
    head, _, rest = file.partition(b'<AppendedData encoding="raw">\n   _')
    tail = rest[rest.rindex(b"\n  </AppendedData>") :]
    root = ElementTree.fromstring(head + b"<AppendedData>" + tail.lstrip())
    assert (root.tag, root.get("type"), root.get("header_type")) == ("VTKFile", "ImageData", "UInt64")
    image = root.find("ImageData")
    assert image is not None
    piece = image.find("Piece")
    array = root.find(".//CellData/DataArray")
    assert piece is not None
    assert array is not None
    assert piece.get("Extent") == image.get("WholeExtent")
    about = {key: [float(n) for n in (image.get(key) or "").split()] for key in ("WholeExtent", "Origin", "Spacing")}
    extent = about["WholeExtent"]
    shape = [max(1, int(extent[2 * axis + 1] - extent[2 * axis])) for axis in (2, 1, 0)]
    dtype = np.dtype(DTYPES[array.get("type") or ""]).newbyteorder(
        "<" if root.get("byte_order") == "LittleEndian" else ">"
    )
    start = int(array.get("offset") or 0)
    size = int(np.frombuffer(rest, "u8", 1, start)[0])
    values = np.frombuffer(rest[start + 8 : start + 8 + size], dtype)
    return about, array.get("Name") or "", values.reshape(shape)


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", "i4", "i8", "u4", "u8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 4, 5), (1, 2, 1)])
def test_values_and_shape(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.random.default_rng(1).random(shape) * 100).astype(dtype)
    about, name, found = read(vti("<u>", values, variable_of(Field("u", Grid(shape), dtype)).coordinates))
    assert name == "<u>"
    assert (found.reshape(shape) == values).all()
    lengths = [*reversed(shape), *[0] * (3 - len(shape))]
    assert about["WholeExtent"] == [n for length in lengths for n in (0, length)]


def test_positions_are_those_of_the_grid() -> None:
    grid = Grid((4, 6), spacing=(0.5, 0.25), origin=(10.0, -1.0))
    about, _, _ = read(vti("u", np.zeros((4, 6)), variable_of(Field("u", grid)).coordinates))
    assert about["Spacing"] == pytest.approx([0.25, 0.5, 1.0])
    assert about["Origin"] == pytest.approx([-1.0, 10.0, 0.0])


def test_what_an_image_cannot_hold() -> None:
    axes = variable_of(Field("u", Grid((2, 2, 2, 2)))).coordinates
    with pytest.raises(CaseError, match="three axes at most"):
        vti("u", np.zeros((2, 2, 2, 2)), axes)
    grid = Grid((3, 2), spacing=([1.0, 2.0, 4.0], 1.0))
    with pytest.raises(CaseError, match="evenly spaced"):
        vti("u", np.zeros((3, 2)), variable_of(Field("u", grid)).coordinates)


def test_a_collection_lists_the_steps() -> None:
    root = ElementTree.fromstring(pvd([(0, Path("out/u-00.vti")), (10, Path("out/u-10.vti"))]))
    found = [(entry.get("timestep"), entry.get("file")) for entry in root.iter("DataSet")]
    assert found == [("0", "u-00.vti"), ("10", "u-10.vti")]
    assert not re.search("out/", ElementTree.tostring(root, encoding="unicode"))
