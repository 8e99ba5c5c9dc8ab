"""Frames as VTK rectilinear grids (``.vtr``): all fields, velocity as a vector, and cells of unequal size.

ParaView, VisIt and PyVista open these files. Source of the format: "VTK File Formats" (vtk.org/doc, XML formats),
version 1.0 with appended raw data.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.store import FrameReader
from minga.output.variables import VELOCITY, Coordinate
from minga.output.velocity import at_centres, centres_of, edges_of, velocity_of
from minga.output.vtk import TYPES, order_of, time_of_file, upright

__all__ = ["left_out", "rectilinear", "vtr"]

Values = NDArray[Any]


def rectilinear(reader: FrameReader, index: int, fields: Sequence[str] | None = None) -> bytes:
    """Return the content of a file with one frame.

    Axes are ordered and oriented by `minga.output.vtk.upright`.

    Parameters
    ----------
    reader, index
        The frames of a run, and the number of one frame.
    fields
        Names of the fields. By default all fields that lie at the same points; velocity components on faces are
        combined into one vector at the cell centres.

    Raises
    ------
    CaseError
        If the fields have four axes, or if named fields lie at different points.
    """
    names = velocity_of(reader) if fields is None else ()
    axes, together = _together(reader, names, reader.fields if fields is None else fields)
    apart = [name for name in fields or () if name not in together]
    if apart:
        raise CaseError(
            f"{', '.join(apart)} lies at other points than {together[0]}",
            key="--field",
            remedy="write them one after the other",
        )
    if len(axes) > 3:
        raise CaseError(
            f"VTK grids have at most three axes, {'this run' if fields is None else fields[0]} has {len(axes)}",
            key="--format",
            remedy="write it as npy, or open the run's fields.zarr",
        )
    cells: dict[str, Values] = {name: reader.frame(name, index) for name in together}
    if len(names) > 1:
        parts = [at_centres(reader, n, a, axes[a].values, index) for a, n in enumerate(names)]
        parts = [-part if axes[number].down else part for number, part in enumerate(parts)]
        missing = [np.zeros_like(parts[0])] * (3 - len(parts))
        cells[VELOCITY] = np.stack([*(parts[number] for number in reversed(order_of(axes))), *missing], axis=-1)
    points = len(names) < 2 and any(axis.at_points for axis in axes)
    places = (
        [axis.values for axis in axes] if points else edges_of(reader, names if len(names) == len(axes) else (), axes)
    )
    places = [
        -found[::-1] if axis.down else np.asarray(found, np.float64) for axis, found in zip(axes, places, strict=True)
    ]
    shown = {name: upright(values, axes)[0] for name, values in cells.items()}
    return vtr(shown, [places[number] for number in order_of(axes)], reader.times[index], points=points)


def left_out(reader: FrameReader) -> list[str]:
    """Return the fields that a file of all fields leaves out because they lie at other points."""
    names = velocity_of(reader)
    _, together = _together(reader, names, reader.fields)
    return [name for name in reader.fields if name not in together and (len(names) < 2 or name not in names)]


def _together(
    reader: FrameReader, names: Sequence[str], wanted: Sequence[str]
) -> tuple[Sequence[Coordinate], list[str]]:
    """Return the axes of a file, and the wanted fields that lie at its points.

    `names` are the components of the velocity, if there is one.
    """
    axes: Sequence[Coordinate] = centres_of(reader, names) if len(names) > 1 else ()
    together = []
    # Fields at cells or nodes come first: they determine the points of the file.
    for name in sorted(wanted, key=lambda each: any(axis.on_faces for axis in reader.coordinates(each))):
        found = reader.coordinates(name)
        axes = axes or found
        if [(a.name, len(a.values)) for a in found] == [(a.name, len(a.values)) for a in axes]:
            together.append(name)
    return axes, together


def vtr(
    cells: Mapping[str, Values],
    faces: Sequence[NDArray[np.float64]],
    time: float | None = None,
    *,
    points: bool = False,
) -> bytes:
    """Return the content of a file with the values of cells.

    Parameters
    ----------
    cells
        Values by name, with one to three axes, the last along VTK's x; vectors have a further last axis of length 3.
    faces
        Positions of the cell faces along each axis, or with `points` those of the nodes.
    time
        Time of the frame, None if unknown.
    points
        True if the values belong to nodes instead of cells.
    """
    thin = min((float(np.diff(edge).min()) for edge in faces if len(edge) > 1), default=1.0)
    kind, missing = ("PointData", [0.0]) if points else ("CellData", [0.0, thin])
    edges = [*reversed(faces), *[np.array(missing)] * (3 - len(faces))]
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
        f"{time_of_file(time)}"
        f'    <Piece Extent="{extent}">\n'
        f"      <{kind}>\n{inside}      </{kind}>\n"
        f"      <Coordinates>\n{around}      </Coordinates>\n"
        "    </Piece>\n"
        "  </RectilinearGrid>\n"
        '  <AppendedData encoding="raw">\n   _'
    )
    return b"".join([head.encode(), *blocks, b"\n  </AppendedData>\n</VTKFile>\n"])
