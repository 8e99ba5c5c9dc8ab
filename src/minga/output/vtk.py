"""Shared parts of VTK files: types, the order of axes, times, and collections over time (``.pvd``).

Source of the format: "VTK File Formats" (vtk.org/doc, XML formats).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from minga.output.variables import Coordinate

__all__ = ["TYPES", "order_of", "pvd", "time_of_file", "upright"]

TYPES = {
    "bool": "UInt8", "uint8": "UInt8", "int16": "Int16", "int32": "Int32", "int64": "Int64", "uint32": "UInt32",
    "uint64": "UInt64", "float32": "Float32", "float64": "Float64",
}  # fmt: skip


def order_of(axes: Sequence[Coordinate]) -> tuple[int, ...]:
    """Return the indices of the axes in the order of VTK's z, y and x.

    Three axes named x, y and z are ordered by name; any others keep their order, with the last one along x.
    """
    names = [axis.axis for axis in axes]
    return tuple(map(names.index, "zyx")) if sorted(names) == ["x", "y", "z"] else tuple(range(len(axes)))


def upright(values: NDArray[Any], axes: Sequence[Coordinate]) -> tuple[NDArray[Any], list[Coordinate]]:
    """Return values and their axes in the order z, y, x, all pointing upwards, as programs based on VTK expect them.

    An axis that points downwards, such as depth, is reversed: its positions become negative and increase upwards.
    Further axes of `values`, such as one of components, are not changed.
    """
    order = order_of(axes)
    values = values.transpose((*order, *range(len(axes), values.ndim)))
    found = [axes[number] for number in order]
    turned = tuple(number for number, axis in enumerate(found) if axis.down)
    return np.flip(values, turned), [axis.upright if axis.down else axis for axis in found]


def time_of_file(time: float | None) -> str:
    """Return the XML element with the time of a frame, or an empty string if the time is unknown."""
    if time is None:
        return ""
    array = '<DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">'
    return f"    <FieldData>{array}{float(time)!r}</DataArray></FieldData>\n"


def pvd(files: Sequence[tuple[float, Path]]) -> str:
    """Return the text of a ``.pvd`` collection, which lists one file for each time, all in one directory."""
    entries = "".join(f'    <DataSet timestep="{time!r}" file={quoteattr(path.name)}/>\n' for time, path in files)
    return (
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="1.0">\n  <Collection>\n'
        f"{entries}  </Collection>\n</VTKFile>\n"
    )
