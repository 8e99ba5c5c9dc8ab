"""Exports that hold several frames in one file: NetCDF, and XDMF, which describes the frames where they lie."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.directory import write_whole
from minga.output.store import FrameReader
from minga.output.variables import STEP, TIME, step_attributes, time_attributes

if TYPE_CHECKING:
    from minga.output.netcdf import NetcdfVariable

__all__ = ["WHOLE"]


def _netcdf(reader: FrameReader, fields: Sequence[str], indices: Sequence[int], out: Path) -> str:
    """Write frames as one NetCDF file; what was written, in words."""
    from minga.output.netcdf import NetcdfVariable, write_netcdf

    steps = np.array([reader.steps[index] for index in indices], "i8")
    steps = steps.astype("i4") if steps.max(initial=0) < 1 << 31 else steps
    times = steps if reader.unit is None else np.array([reader.times[index] for index in indices])
    variables = [
        NetcdfVariable(name, (TIME,), values.shape, values.dtype, about, _once(values))
        for name, values, about in ((TIME, times, time_attributes(reader.unit)), (STEP, steps, step_attributes()))
    ]
    for axis in {axis.name: axis for field in fields for axis in reader.coordinates(field)}.values():
        values = axis.values
        variables.append(
            NetcdfVariable(axis.name, (axis.name,), values.shape, values.dtype, axis.attributes, _once(values))
        )
    found = [_variable(reader, field, indices) for field in fields]
    write_netcdf(out, [*variables, *found], dict(reader.group.attrs))
    said = f"{out}: {', '.join(fields)} at {_steps(reader, indices)}"
    return said if len(found) > 1 else f"{said}, {' x '.join(map(str, found[0].shape[1:]))} {found[0].dtype}"


def _variable(reader: FrameReader, field: str, indices: Sequence[int]) -> NetcdfVariable:
    """Frames of a field as a variable, read one by one while it is written."""
    from minga.output.netcdf import NetcdfVariable

    def frames() -> Iterator[NDArray[Any]]:
        for index in indices:
            yield reader.frame(field, index)

    coordinates = reader.coordinates(field)
    shape = (len(indices), *(len(axis.values) for axis in coordinates))
    dims = (TIME, *(axis.name for axis in coordinates))
    return NetcdfVariable(field, dims, shape, reader.dtype(field), reader.attributes(field), frames)


def _xdmf(reader: FrameReader, fields: Sequence[str], indices: Sequence[int], out: Path) -> str:
    """Write the description of frames of one field; what was written, in words."""
    from minga.output.xdmf import xdmf

    (field,) = fields
    frames = []
    for index in indices:
        raw = reader.raw(field, index)
        if raw is None:
            raise CaseError(
                f"frame {index} of {field} is no file of plain values: it is compressed, in several chunks, or missing",
                key="--format",
                remedy='write vti or vtkhdf, or run with [output] codec = "none"',
            )
        frames.append((reader.times[index], raw))
    write_whole(out, xdmf(field, reader.dtype(field), reader.coordinates(field), frames, out.parent))
    lies = os.path.relpath(reader.path.resolve(), out.parent.resolve())
    down = " and ".join(axis.name for axis in reader.coordinates(field) if axis.down)
    said = f"\n  {down} goes upwards there, as values are not copied: scale it by -1, or write vti" if down else ""
    return f"{out}: {field} at {_steps(reader, indices)}, whose values stay in {lies}{said}"


def _once(values: NDArray[Any]) -> Callable[[], list[NDArray[Any]]]:
    return lambda: [values]


def _steps(reader: FrameReader, indices: Sequence[int]) -> str:
    return reader.when(indices[0]) if len(indices) == 1 else f"{len(indices)} steps"


WHOLE: Mapping[str, Callable[[FrameReader, Sequence[str], Sequence[int], Path], str]] = {"nc": _netcdf, "xmf": _xdmf}
"""By format: a function that writes frames of fields to one file, and says what it wrote."""
