"""Fields as VTK image data (``.vti``), which ParaView, VisIt and PyVista open, and collections over time (``.pvd``).

Source of the format: "VTK File Formats" (vtk.org/doc, XML formats), version 1.0 with appended raw data.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.record.spacing import even_spacing
from minga.record.variables import Coordinate

__all__ = ["TYPES", "pvd", "vti"]

TYPES = {
    "bool": "UInt8", "uint8": "UInt8", "int16": "Int16", "int32": "Int32", "int64": "Int64", "uint32": "UInt32",
    "uint64": "UInt64", "float32": "Float32", "float64": "Float64",
}  # fmt: skip


def vti(name: str, values: NDArray[Any], axes: Sequence[Coordinate]) -> bytes:
    """A field of one to three axes as the file of an image whose cells hold its values.

    Spacing and origin are those of the coordinates, the last axis is VTK's x. CaseError for four axes, and for points
    that are not evenly spaced.
    """
    if len(axes) > 3:
        raise CaseError(
            f"VTK images have three axes at most, {name} has {len(axes)}",
            key="--format",
            remedy="write it as npy, or open the run's fields.zarr",
        )
    missing = 3 - len(axes)
    spacing = [*(even_spacing(axis, name, "VTK images") for axis in reversed(axes)), *[1.0] * missing]
    origin = [*(axis.values[0] - 0.5 * step for axis, step in zip(reversed(axes), spacing)), *[0.0] * missing]
    extent = " ".join(f"0 {length}" for length in [*reversed(values.shape), *[0] * missing])
    data = np.ascontiguousarray(values.view(np.uint8) if values.dtype == bool else values)
    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    head = (
        '<?xml version="1.0"?>\n'
        f'<VTKFile type="ImageData" version="1.0" byte_order="{order}" header_type="UInt64">\n'
        f'  <ImageData WholeExtent="{extent}" Origin="{_numbers(origin)}" Spacing="{_numbers(spacing)}">\n'
        f'    <Piece Extent="{extent}">\n'
        f"      <CellData Scalars={quoteattr(name)}>\n"
        f'        <DataArray type="{TYPES[values.dtype.name]}" Name={quoteattr(name)} format="appended" offset="0"/>\n'
        "      </CellData>\n"
        "    </Piece>\n"
        "  </ImageData>\n"
        '  <AppendedData encoding="raw">\n   _'
    )
    size = np.uint64(data.nbytes).tobytes()
    return b"".join([head.encode(), size, data.tobytes(), b"\n  </AppendedData>\n</VTKFile>\n"])


def pvd(files: Sequence[tuple[int, Path]]) -> str:
    """The collection that lists a file for each step, all in one directory."""
    entries = "".join(f'    <DataSet timestep="{step}" file={quoteattr(path.name)}/>\n' for step, path in files)
    return (
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0">\n  <Collection>\n'
        f"{entries}  </Collection>\n</VTKFile>\n"
    )


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{float(value)!r}" for value in values)
