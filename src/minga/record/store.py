"""Frames of fields in a Zarr store (version 3) that xarray opens: a time axis that grows as the run goes on.

A frame becomes visible only when it is complete: its chunks are written first, then the arrays are lengthened, then the
consolidated metadata that readers begin with is replaced, each by renaming a finished file. Chunk edges depend on the
shape of a field alone, so a store is the same whatever the ranks.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.errors import CaseError, suggest
from minga.record.directory import disk_errors
from minga.record.variables import CONVENTIONS, TIME, Coordinate, Variable

__all__ = ["FrameReader", "FrameStore", "chunk_shape"]

_CHUNK_BYTES = 4 << 20
_TIMES_A_CHUNK = 1024


def chunk_shape(shape: Sequence[int], itemsize: int, limit: int = _CHUNK_BYTES) -> tuple[int, ...]:
    """Chunks of at most ``limit`` bytes: the longest axis is halved until they fit, inner axes last."""
    chunk = [max(1, length) for length in shape]
    while int(np.prod(chunk)) * itemsize > limit and max(chunk) > 1:
        axis = int(np.argmax(chunk))
        chunk[axis] = -(-chunk[axis] // 2)
    return tuple(chunk)


class FrameStore:
    """A store that is being written. One process writes it."""

    def __init__(self, path: Path, variables: Sequence[Variable], attributes: Mapping[str, Any]) -> None:
        """Create the store with no frames; ``path`` must not exist. RunError where the disk refuses."""
        import zarr

        self.path = path
        self.frames = 0
        self._variables = {variable.name: variable for variable in variables}
        self._arrays: dict[str, Any] = {}
        with disk_errors(path):
            group = self._group = zarr.open_group(path, mode="w-", zarr_format=3)
            group.attrs.update({"Conventions": CONVENTIONS, **attributes})
            coordinates = {c.name: c for variable in variables for c in variable.coordinates}
            for coordinate in coordinates.values():
                _write_coordinate(group, coordinate)
            self._arrays[TIME] = group.create_array(
                TIME,
                shape=(0,),
                chunks=(_TIMES_A_CHUNK,),
                dtype="i8",
                dimension_names=(TIME,),
                attributes={"units": "1", "long_name": "steps done", "axis": "T"},
            )
            for variable in variables:
                self._arrays[variable.name] = group.create_array(
                    variable.name,
                    shape=(0, *variable.shape),
                    chunks=(1, *chunk_shape(variable.shape, variable.dtype.itemsize)),
                    dtype=variable.dtype,
                    dimension_names=variable.dims,
                    attributes=dict(variable.attributes),
                )
            self._publish()

    def append(self, step: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Add a frame: the state after ``step`` steps, one whole array for each variable.

        RunError where the disk refuses; frames that were complete stay so.
        """
        with disk_errors(self.path):
            for name, variable in self._variables.items():
                if arrays[name].shape != variable.shape:
                    raise ValueError(f"{name} has shape {arrays[name].shape}, expected {variable.shape}")
                self._write_beyond(self._arrays[name], arrays[name])
            self._write_beyond(self._arrays[TIME], np.asarray(step, np.int64))
            for array in self._arrays.values():
                array.resize((self.frames + 1, *array.shape[1:]))
            self._publish()
        self.frames += 1

    def describe(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes of the whole store, such as what a run came to; RunError where the disk refuses."""
        with disk_errors(self.path):
            self._group.attrs.update(attributes)
            self._publish()

    def _write_beyond(self, array: Any, values: NDArray[Any]) -> None:
        """Write the chunks of the next frame while the array on disk still ends before it."""
        import zarr
        from zarr.core.array import AsyncArray

        longer = array.metadata.update_shape((self.frames + 1, *array.shape[1:]))
        zarr.Array(AsyncArray(metadata=longer, store_path=array.store_path))[self.frames] = values

    def _publish(self) -> None:
        import zarr

        with warnings.catch_warnings():
            # Zarr reminds that consolidated metadata is a convention; Zarr and xarray both read it.
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            zarr.consolidate_metadata(str(self.path), zarr_format=3)


@dataclass(frozen=True, slots=True)
class FrameReader:
    """The complete frames of a store."""

    path: Path
    group: Any
    steps: tuple[int, ...]

    @classmethod
    def open(cls, path: Path) -> FrameReader:
        """Open the store at ``path``."""
        import zarr

        group: Any = zarr.open_group(str(path), mode="r", zarr_format=3)
        return cls(path, group, tuple(int(step) for step in group[TIME][:]))

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the stored fields."""
        return tuple(sorted(n for n, a in self.group.arrays() if n != TIME and a.metadata.dimension_names[0] == TIME))

    def frame(self, field: str, index: int = -1, at: tuple[int, ...] = ()) -> NDArray[Any]:
        """One frame of a field, without the time axis; negative indices count from the last.

        ``at`` are indices along the first axes: only what lies there is read, and these axes are left out. Raises
        CaseError where there is no such field or frame.
        """
        if field not in self.fields:
            raise CaseError(
                f"the run has no field {field!r}; it has {', '.join(self.fields)}",
                key="--field",
                suggestion=suggest(field, self.fields),
            )
        count = len(self.steps)
        if not -count <= index < count:
            raise CaseError(
                f"the run has no frame {index}: it has {count}, numbered from 0"
                + (f" (steps {self.steps[0]} to {self.steps[-1]})" if count else ""),
                key="--frame",
            )
        frame: NDArray[Any] = self.group[field][(index % count, *at)]
        return frame

    def dtype(self, field: str) -> np.dtype[Any]:
        """Type of the values of a field."""
        dtype: np.dtype[Any] = self.group[field].dtype
        return dtype

    def attributes(self, field: str) -> dict[str, Any]:
        """CF attributes of a field."""
        return dict(self.group[field].attrs)

    def coordinates(self, field: str) -> tuple[Coordinate, ...]:
        """Positions of the points of a field along its axes."""
        names = self.group[field].metadata.dimension_names[1:]
        return tuple(Coordinate(n, self.group[n][:], dict(self.group[n].attrs)) for n in names)


def _write_coordinate(group: Any, coordinate: Coordinate) -> None:
    values = coordinate.values
    array = group.create_array(
        coordinate.name,
        shape=values.shape,
        chunks=values.shape,
        dtype=values.dtype,
        dimension_names=(coordinate.name,),
        attributes=dict(coordinate.attributes),
    )
    array[:] = values
