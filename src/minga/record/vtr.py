"""A frame of a run as a VTK rectilinear grid (``.vtr``): all its fields, the velocity as a vector, unequal cells.

ParaView, VisIt and PyVista open it. Source of the format: "VTK File Formats" (vtk.org/doc, XML formats), version 1.0
with appended raw data.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.record.store import FrameReader
from minga.record.variables import VELOCITY, Coordinate
from minga.record.velocity import centred, centres_of, edges_of, velocity_of
from minga.record.vtk import TYPES

__all__ = ["rectilinear", "vtr"]

Values = NDArray[Any]


def rectilinear(reader: FrameReader, index: int, field: str | None = None) -> bytes:
    """A frame as the content of a file: one field, or all that lie at the centres of the same cells.

    Velocities on faces become one vector at the centres. CaseError for fields of four axes, and where nothing is left.
    """
    names = velocity_of(reader) if field is None else ()
    cells: dict[str, Values] = {}
    axes: Sequence[Coordinate] = centres_of(reader, names) if len(names) > 1 else ()
    for name in reader.fields if field is None else (field,):
        found = reader.coordinates(name)
        axes = axes or found
        if [(a.name, len(a.values)) for a in found] == [(a.name, len(a.values)) for a in axes]:
            cells[name] = reader.frame(name, index)
    if len(axes) > 3:
        raise CaseError(f"VTK grids have three axes at most, {field or 'this run'} has {len(axes)}", key="--format")
    if len(names) > 1:
        parts = [centred(reader.frame(n, index), a, len(axes[a].values)) for a, n in enumerate(names)]
        missing = [np.zeros_like(parts[0])] * (3 - len(parts))
        cells[VELOCITY] = np.stack([*reversed(parts), *missing], axis=-1)
    return vtr(cells, edges_of(reader, names if len(names) == len(axes) else (), axes))


def vtr(cells: Mapping[str, Values], faces: Sequence[NDArray[np.float64]]) -> bytes:
    """Values of cells between faces along one to three axes, the last one VTK's x; vectors have a last axis of 3."""
    edges = [*reversed(faces), *[np.array([0.0, 1.0])] * (3 - len(faces))]
    extent = " ".join(f"0 {len(edge) - 1}" for edge in edges)
    blocks: list[bytes] = []

    def array(name: str, values: Values, components: int = 1) -> str:
        at = sum(map(len, blocks))
        plain = np.ascontiguousarray(values.view(np.uint8) if values.dtype == bool else values)
        blocks.append(np.uint64(plain.nbytes).tobytes() + plain.tobytes())
        many = f' NumberOfComponents="{components}"' if components > 1 else ""
        return (
            f'        <DataArray type="{TYPES[values.dtype.name]}" Name={quoteattr(name)}{many} format="appended" '
            f'offset="{at}"/>\n'
        )

    inside = "".join(array(n, v, v.shape[-1] if v.ndim > len(faces) else 1) for n, v in cells.items())
    around = "".join(array(name, edge) for name, edge in zip("xyz", edges))
    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    head = (
        '<?xml version="1.0"?>\n'
        f'<VTKFile type="RectilinearGrid" version="1.0" byte_order="{order}" header_type="UInt64">\n'
        f'  <RectilinearGrid WholeExtent="{extent}">\n'
        f'    <Piece Extent="{extent}">\n'
        f"      <CellData>\n{inside}      </CellData>\n"
        f"      <Coordinates>\n{around}      </Coordinates>\n"
        "    </Piece>\n"
        "  </RectilinearGrid>\n"
        '  <AppendedData encoding="raw">\n   _'
    )
    return b"".join([head.encode(), *blocks, b"\n  </AppendedData>\n</VTKFile>\n"])
