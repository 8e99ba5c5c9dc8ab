"""VTKHDF: image data in an HDF5 file, which ParaView 5.10 and later open. Needs h5py, of the extra ``minga[export]``.

Source of the format: "VTKHDF File Format" (docs.vtk.org), version 1.0, type ImageData.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError
from minga.output.directory import appearing
from minga.output.spacing import placed
from minga.output.variables import Coordinate
from minga.output.vtk import upright

__all__ = ["write_vtkhdf"]


def write_vtkhdf(
    path: Path, name: str, values: NDArray[Any], axes: Sequence[Coordinate], time: float | None = None
) -> None:
    """A field of one to three axes as the cells of an image, written whole or not at all; axes are as
    `minga.output.vtk.upright` brings them.

    CaseError for four axes, points that are not evenly spaced, and without h5py; RunError where the disk refuses.
    """
    try:
        import h5py
    except ImportError as error:
        raise CaseError(
            "VTKHDF files need the library h5py, which is not installed",
            key="--format",
            remedy="install it with: pip install 'minga[export]', or write vti",
        ) from error
    if len(axes) > 3:
        raise CaseError(f"VTK images have three axes at most, {name} has {len(axes)}", key="--format")
    values, axes = upright(values, axes)
    missing = 3 - len(axes)
    place = placed(axes[::-1], name, "VTK images")
    lengths = [*(len(axis.values) for axis in reversed(axes)), *[1] * missing]
    between = [*place.between, *[0 if place.points else 1] * missing]
    cells = values.view(np.uint8) if values.dtype == bool else values
    with appearing(path) as temporary, h5py.File(temporary, "w") as file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = np.array([1, 0], np.int64)
        root.attrs.create("Type", b"ImageData", dtype=h5py.string_dtype("ascii", len("ImageData")))
        root.attrs["WholeExtent"] = np.array([end for length in between for end in (0, length)], np.int64)
        root.attrs["Origin"] = np.array([*place.origin, *[0.0] * missing])
        root.attrs["Spacing"] = np.array([*place.steps, *[min(place.steps)] * missing])
        root.attrs["Direction"] = np.eye(3).ravel()
        if time is not None:
            root.create_group("FieldData").create_dataset("TimeValue", data=np.array([float(time)]))
        root.create_group(place.kind).create_dataset(name, data=cells.reshape(lengths[::-1]))
