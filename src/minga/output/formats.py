"""Formats of ``minga export`` that need only the frames: for NumPy, ParaView, xarray and seismic programs."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.directory import appearing, write_whole
from minga.output.export import Export, ExportFormat
from minga.output.variables import STEP, TIME, step_attributes, time_attributes

if TYPE_CHECKING:
    from minga.output.netcdf import NetcdfVariable
    from minga.output.store import FrameReader
    from minga.output.traces import Recorded

__all__ = ["CSV", "NETCDF", "NPY", "RSF", "SEGY", "VTR", "XDMF"]

_NOTICED: Final = 1.0
"""Largest error in the time of the last sample, in microseconds, that is not reported."""


def _write_npy(export: Export) -> None:
    _save(export.path, export.values())


def _write_receivers_npy(path: Path, recorded: Recorded) -> None:
    _save(path, recorded.samples)


def _save(path: Path, values: NDArray[Any]) -> None:
    stream = io.BytesIO()
    np.save(stream, values)
    write_whole(path, stream.getvalue())


def _write_vtr(export: Export) -> str | None:
    from minga.output.vtr import left_out, rectilinear

    write_whole(export.path, rectilinear(export.reader, export.frame, None if export.every else export.fields))
    return _apart(left_out(export.reader) if export.every else ())


def _list_vtr(files: Sequence[tuple[float, Path]]) -> str:
    from minga.output.vtk import pvd

    return pvd(files)


def _write_xdmf(export: Export) -> str:
    from minga.output.xdmf import xdmf

    reader, field = export.reader, export.field
    frames = []
    for index in export.frames:
        raw = reader.raw(field, index)
        if raw is None:
            raise CaseError(
                f"frame {index} of {field} is not one raw file: it is compressed, in several chunks, or missing",
                key="--format",
                remedy='write vtr, or run with [output] codec = "none"',
            )
        frames.append((reader.times[index], raw))
    folder = export.path.parent
    write_whole(export.path, xdmf(field, reader.dtype(field), reader.coordinates(field), frames, folder))
    down = " and ".join(axis.name for axis in reader.coordinates(field) if axis.down)
    said = f"; {down} is shown upwards, since values are not copied: scale it by -1, or write vtr" if down else ""
    return f"the values stay in {os.path.relpath(reader.path.resolve(), folder.resolve())}{said}"


def _write_netcdf(export: Export) -> None:
    """Write frames of fields as one NetCDF file."""
    from minga.output.netcdf import NetcdfVariable, write_netcdf

    reader, indices = export.reader, export.frames
    steps = np.array([reader.steps[index] for index in indices], "i8")
    steps = steps.astype("i4") if steps.max(initial=0) < 1 << 31 else steps
    times = steps if reader.unit is None else np.array([reader.times[index] for index in indices])
    variables = [
        NetcdfVariable(name, (TIME,), values.shape, values.dtype, about, _once(values))
        for name, values, about in ((TIME, times, time_attributes(reader.unit)), (STEP, steps, step_attributes()))
    ]
    for axis in {axis.name: axis for field in export.fields for axis in reader.coordinates(field)}.values():
        values = axis.values
        variables.append(
            NetcdfVariable(axis.name, (axis.name,), values.shape, values.dtype, axis.attributes, _once(values))
        )
    found = [_variable(reader, field, indices) for field in export.fields]
    write_netcdf(export.path, [*variables, *found], dict(reader.group.attrs))


def _variable(reader: FrameReader, field: str, indices: Sequence[int]) -> NetcdfVariable:
    """Return frames of a field as a variable; they are read one by one while it is written."""
    from minga.output.netcdf import NetcdfVariable

    def frames() -> Iterator[NDArray[Any]]:
        for index in indices:
            yield reader.frame(field, index)

    coordinates = reader.coordinates(field)
    shape = (len(indices), *(len(axis.values) for axis in coordinates))
    dims = (TIME, *(axis.name for axis in coordinates))
    return NetcdfVariable(field, dims, shape, reader.dtype(field), reader.attributes(field), frames)


def _once(values: NDArray[Any]) -> Callable[[], list[NDArray[Any]]]:
    return lambda: [values]


def _write_csv(export: Export) -> str | None:
    from minga.output.columns import rows, together

    fields = together(export.reader, export.fields) if export.every else export.fields
    table = rows(export.reader, fields, export.frames)
    head = next(table)
    with appearing(export.path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        stream.write(head)
        stream.writelines(table)
    return _apart([name for name in export.fields if name not in fields])


def _apart(names: Sequence[str]) -> str | None:
    """Return a note on the fields that a file of all fields has no place for."""
    return f"left out: {', '.join(names)}, which lie at other points; export them with --field" if names else None


def _write_rsf(export: Export) -> None:
    from minga.output.rsf import rsf

    reader, field = export.reader, export.field
    raw = reader.raw(field, export.frame)
    title = f"{field} at {reader.when(export.frame)}"
    data = export.values() if raw is None else raw
    write_whole(export.path, rsf(field, reader.dtype(field), reader.coordinates(field), data, title))


def _write_segy(export: Export) -> None:
    from minga.output.segy_frame import write_frame

    write_frame(export.reader, export.field, export.frame, export.path)


def _write_receivers_segy(path: Path, recorded: Recorded) -> str | None:
    from minga.output.traces import traces_to_segy

    traces_to_segy(path, recorded)
    return rounded(recorded.interval, len(recorded.samples))


def rounded(interval: float, samples: int) -> str | None:
    """Return a note if an interval in seconds is not a whole number of microseconds, the unit of SEG-Y."""
    exact = interval * 1e6
    late = abs(round(exact) - exact) * (samples - 1)
    if late < _NOTICED:
        return None
    return (
        f"SEG-Y stores whole microseconds: the file says {round(exact)}, so that its last sample is"
        f" {late:.3g} microseconds off; choose a time step in whole microseconds to avoid this"
    )


CSV = ExportFormat(
    "spreadsheets, pandas, R, gnuplot: a row for each point and frame", _write_csv, frames=True, fields=True
)
NPY = ExportFormat("NumPy: numpy.load", _write_npy, write_receivers=_write_receivers_npy)
VTR = ExportFormat(
    "ParaView, VisIt, PyVista: all fields of a frame, also on stretched grids and at nodes",
    _write_vtr,
    fields=True,
    collection=(".pvd", _list_vtr),
)
XDMF = ExportFormat("ParaView, VisIt: refers to the frames of the run without copying", _write_xdmf, frames=True)
NETCDF = ExportFormat("xarray, Panoply, CDO, ...: NetCDF", _write_netcdf, frames=True, fields=True)
RSF = ExportFormat("Madagascar", _write_rsf)
SEGY = ExportFormat(
    "seismic programs: volumes, and shot records of receivers", _write_segy, write_receivers=_write_receivers_segy
)
