"""XDMF: an XML description of a run's frames, which stay in place and which ParaView and VisIt open as an animation.

Source of the format: XDMF Model and Format, version 3 (xdmf.org).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from minga.errors import CaseError
from minga.output.spacing import placed
from minga.output.variables import Coordinate

__all__ = ["xdmf"]

_NUMBERS = {"b": "UChar", "u": "UInt", "i": "Int", "f": "Float"}


def xdmf(
    name: str, dtype: np.dtype[Any], axes: Sequence[Coordinate], frames: Sequence[tuple[float, Path]], folder: Path
) -> str:
    """Return the XDMF text that describes a field of one to three axes over time as an image.

    Parameters
    ----------
    name
        Name of the field.
    dtype
        Type of the values.
    axes
        Coordinates of the field, slowest first.
    frames
        Pairs of a time and a file of raw values.
    folder
        Directory of the XDMF file, to which file names are relative.

    Raises
    ------
    CaseError
        If the field has four axes, or its points are not evenly spaced.
    """
    if len(axes) > 3:
        raise CaseError(f"XDMF images have at most three axes, {name} has {len(axes)}", key="--format")
    missing = 3 - len(axes)
    place = placed(axes, name, "XDMF images")
    lengths = [1] * missing + [len(axis.values) for axis in axes]
    thin = min(place.steps)  # spacing along axes that the field does not have
    steps, origin = [thin] * missing + place.steps, [0.0 if place.points else -0.5 * thin] * missing + place.origin
    number = "UChar" if dtype.kind == "u" and dtype.itemsize == 1 else _NUMBERS[dtype.kind]
    nodes, cells = _text(length + (not place.points) for length in lengths), _text(lengths)
    grids = "".join(
        f'      <Grid Name={quoteattr(name)} GridType="Uniform">\n'
        f'        <Time Value="{time!r}"/>\n'
        f'        <Topology TopologyType="3DCoRectMesh" Dimensions="{nodes}"/>\n'
        '        <Geometry GeometryType="ORIGIN_DXDYDZ">\n'
        f'          <DataItem Dimensions="3" NumberType="Float" Precision="8" Format="XML">{_text(origin)}</DataItem>\n'
        f'          <DataItem Dimensions="3" NumberType="Float" Precision="8" Format="XML">{_text(steps)}</DataItem>\n'
        "        </Geometry>\n"
        f'        <Attribute Name={quoteattr(name)} AttributeType="Scalar" Center="{place.centre}">\n'
        f'          <DataItem Dimensions="{cells}" NumberType="{number}" Precision="{dtype.itemsize}" Format="Binary" '
        f'Endian="Little" Seek="0">{escape(_relative(file, folder))}</DataItem>\n'
        "        </Attribute>\n"
        "      </Grid>\n"
        for time, file in frames
    )
    return (
        '<?xml version="1.0"?>\n<Xdmf Version="3.0">\n  <Domain>\n'
        f'    <Grid Name={quoteattr(name)} GridType="Collection" CollectionType="Temporal">\n'
        f"{grids}    </Grid>\n  </Domain>\n</Xdmf>\n"
    )


def _relative(file: Path, folder: Path) -> str:
    return os.path.relpath(file.resolve(), folder.resolve())


def _text(numbers: Any) -> str:
    return " ".join(f"{number!r}" for number in numbers)
