"""Exports that hold several frames in one file: NetCDF, and XDMF, which describes the frames where they lie."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.record.directory import write_whole
from minga.record.store import FrameReader
from minga.record.variables import TIME

__all__ = ["WHOLE"]


def _netcdf(reader: FrameReader, field: str, indices: Sequence[int], out: Path) -> str:
    """Write frames as one NetCDF file; what was written, in words."""
    from minga.record.netcdf import NetcdfVariable, write_netcdf

    steps = np.array([reader.steps[index] for index in indices])
    kind = np.dtype("i4" if not len(steps) or steps.max() < 1 << 31 else "i8")
    variables = [NetcdfVariable(TIME, (TIME,), steps.shape, kind, _of_time(reader), lambda: [steps.astype(kind)])]
    coordinates = reader.coordinates(field)
    for axis in coordinates:
        values = axis.values
        variables.append(
            NetcdfVariable(axis.name, (axis.name,), values.shape, values.dtype, axis.attributes, _once(values))
        )

    def frames() -> Iterator[NDArray[Any]]:
        for index in indices:
            yield reader.frame(field, index)

    shape = (len(indices), *(len(axis.values) for axis in coordinates))
    dims = (TIME, *(axis.name for axis in coordinates))
    variables.append(NetcdfVariable(field, dims, shape, reader.dtype(field), reader.attributes(field), frames))
    write_netcdf(out, variables, dict(reader.group.attrs))
    return f"{out}: {field} at {_steps(reader, indices)}, {' x '.join(map(str, shape[1:]))} {reader.dtype(field)}"


def _xdmf(reader: FrameReader, field: str, indices: Sequence[int], out: Path) -> str:
    """Write the description of frames; what was written, in words."""
    from minga.record.xdmf import xdmf

    frames = []
    for index in indices:
        raw = reader.raw(field, index)
        if raw is None:
            raise CaseError(
                f"frame {index} of {field} is no file of plain values: it is compressed, in several chunks, or missing",
                key="--format",
                remedy='write vti or vtkhdf, or run with [output] codec = "none"',
            )
        frames.append((reader.steps[index], raw))
    write_whole(out, xdmf(field, reader.dtype(field), reader.coordinates(field), frames, out.parent))
    lies = os.path.relpath(reader.path.resolve(), out.parent.resolve())
    return f"{out}: {field} at {_steps(reader, indices)}, whose values stay in {lies}"


def _of_time(reader: FrameReader) -> dict[str, Any]:
    return dict(reader.group[TIME].attrs)


def _once(values: NDArray[Any]) -> Callable[[], list[NDArray[Any]]]:
    return lambda: [values]


def _steps(reader: FrameReader, indices: Sequence[int]) -> str:
    return f"step {reader.steps[indices[0]]}" if len(indices) == 1 else f"{len(indices)} steps"


WHOLE: Mapping[str, Callable[[FrameReader, str, Sequence[int], Path], str]] = {"nc": _netcdf, "xmf": _xdmf}
"""By format: a function that writes frames of a field to one file, and says what it wrote."""
