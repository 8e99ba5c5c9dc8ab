"""RSF, the format of Madagascar: a text header that names the file of the values, or precedes them.

Source: "Guide to RSF file format" (ahay.org/wiki/Guide_to_RSF_file_format).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.spacing import even_spacing
from minga.output.variables import Coordinate

__all__ = ["rsf"]

_FORMATS = {
    "bool": "uchar", "uint8": "uchar", "int16": "short", "int32": "int", "int64": "long", "float32": "float",
    "float64": "double",
}  # fmt: skip
_END_OF_HEADER = b"\x0c\x0c\x04"


def rsf(
    name: str, dtype: np.dtype[Any], axes: Sequence[Coordinate], data: Path | NDArray[Any], title: str = ""
) -> bytes:
    """Return the content of an RSF file for a field.

    Axis 1 of RSF is the fastest, which is the last axis of the field.

    Parameters
    ----------
    name, dtype, axes
        Name, type and coordinates of the field.
    data
        A file of raw values, to which the header then refers, or an array, which is written after the header.
    title
        Title of the data set.

    Raises
    ------
    CaseError
        If RSF does not support the type, or if the points are not evenly spaced.
    """
    if dtype.name not in _FORMATS:
        raise CaseError(
            f"RSF does not support values of type {dtype}; it supports {', '.join(_FORMATS)}",
            key="--format",
            remedy="write it as npy",
        )
    lines = [f'data_format="native_{_FORMATS[dtype.name]}"', f"esize={dtype.itemsize}"]
    for number, axis in enumerate(reversed(axes), 1):
        step = even_spacing(axis, name, "RSF files")
        unit = axis.attributes.get("units", "")
        lines.append(
            f"n{number}={len(axis.values)} d{number}={step!r} o{number}={float(axis.values[0])!r} "
            f'label{number}="{_word(axis.name)}" unit{number}="{_word(unit)}"'
        )
    lines.append(f'label="{_word(name)}" title="{_word(title)}"')
    where = "stdin" if isinstance(data, np.ndarray) else str(data.resolve())
    header = "\n".join([*lines, f'in="{where}"', ""]).encode()
    if not isinstance(data, np.ndarray):
        return header
    return header + _END_OF_HEADER + np.ascontiguousarray(data, data.dtype.newbyteorder("<")).tobytes()


def _word(text: str) -> str:
    """Make text safe between double quotes."""
    return text.replace('"', "'").replace("\n", " ")
