"""Stores of frames for callers with whole arrays: writing one array after the other, and reading.

The format of a store on the disk is described in :mod:`minga.output.snapshots`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.clock import Clock
from minga.errors import CaseError, suggest
from minga.options import OutputSettings
from minga.output.directory import disk_errors
from minga.output.frame_source import when_of
from minga.output.snapshots.archive import Archive
from minga.output.snapshots.chunks import chunks_of
from minga.output.snapshots.counters import Counters
from minga.output.snapshots.files import Disk
from minga.output.snapshots.manifest import FrameRecord, Receipt, receipt_of
from minga.output.variables import STEP, TIME, Coordinate, Variable

__all__ = ["FrameReader", "FrameStore"]


class FrameStore:
    """Store that is being written frame by frame, each complete before the next. One process writes it.

    A run takes its frames with :class:`minga.output.snapshots.snapshots.Snapshots` instead, and continues meanwhile.
    """

    def __init__(
        self, path: Path, variables: Sequence[Variable], attributes: Mapping[str, Any], clock: Clock | None = None
    ) -> None:
        """Create the store with no frames; ``path`` must not exist.

        Raises
        ------
        RunError
            If the disk refuses.
        """
        settings = OutputSettings(durable=False)
        self.path = path
        self._chunks = [chunks_of(variable, settings.chunk_bytes) for variable in variables]
        self._disk = Disk(Counters())
        self._archive = Archive.create(path, self._chunks, settings, self._disk, attributes, clock)

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(self._archive.frames)

    def append(self, step: int, arrays: Mapping[str, NDArray[Any]], time: float | None = None) -> None:
        """Add a frame: the state after ``step`` steps, one whole array for each variable.

        Raises
        ------
        RunError
            If the disk refuses; frames that were complete stay so.
        """
        receipts: list[Receipt] = []
        with disk_errors(self.path):
            for chunk in (chunk for several in self._chunks for chunk in several):
                name, values = chunk.variable.name, arrays[chunk.variable.name]
                if values.shape != chunk.variable.shape:
                    raise ValueError(f"{name} has shape {values.shape}, expected {chunk.variable.shape}")
                held = np.zeros(chunk.shape, chunk.variable.dtype)
                held[: chunk.box.shape[0]] = values[chunk.box.slices((0,) * values.ndim)]
                content = held.tobytes()
                receipts.append(receipt_of(name, chunk.number, held[: chunk.box.shape[0]], memoryview(content)))
                self._disk.write(self._archive.chunk_path(chunk, self.frames), content)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        self._archive.publish([FrameRecord(self.frames, step, now, tuple(receipts), time)])


@dataclass(frozen=True, slots=True)
class FrameReader:
    """Complete frames of a store.

    Attributes
    ----------
    path
        Path of the store.
    group
        The Zarr group.
    steps
        Number of steps done, for each frame.
    times
        Time of each frame in `unit`; without a unit the model has no time, and these are the steps.
    unit
        Unit of time, or None.
    """

    path: Path
    group: Any
    steps: tuple[int, ...]
    times: tuple[float, ...]
    unit: str | None

    @classmethod
    def open(cls, path: Path) -> FrameReader:
        """Open the store at ``path``."""
        import zarr

        group: Any = zarr.open_group(str(path), mode="r", zarr_format=3)
        times = group[TIME][:]
        steps = group[STEP][:] if STEP in group else times  # earlier versions kept the steps alone
        unit = str(group[TIME].attrs["units"]) if times.dtype.kind == "f" else None
        return cls(path, group, tuple(map(int, steps)), tuple(times.tolist()), unit)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the stored fields."""
        along = (n for n, a in self.group.arrays() if a.metadata.dimension_names[0] == TIME)
        return tuple(sorted(name for name in along if name not in (TIME, STEP)))

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Attributes of the whole store."""
        attributes: Mapping[str, Any] = self.group.attrs
        return attributes

    def when(self, index: int) -> str:
        """Describe the time of a frame: ``step 20``, and the model time if there is one."""
        return when_of(self.steps[index], self.times[index], self.unit)

    def frame(self, field: str, index: int = -1, at: tuple[int | slice, ...] = ()) -> NDArray[Any]:
        """Return one frame of a field, without the time axis; negative indices count from the last.

        ``at`` are indices along the first axes: only the data there is read, and these axes are left out; a slice keeps
        its axis.

        Raises
        ------
        CaseError
            If there is no such field or frame.
        """
        number = self.number(field, index)
        raw = self.raw(field, number) if at else None
        if raw is not None:
            shape, dtype = self.group[field].shape[1:], self.group[field].dtype
            return np.array(np.memmap(raw, dtype, "r", shape=shape)[at])
        frame: NDArray[Any] = self.group[field][(number, *at)]
        return frame

    def raw(self, field: str, index: int) -> Path | None:
        """Return the file that holds only a frame's values, little-endian, last axis fastest; None if there is none."""
        number, array = self.number(field, index), self.group[field]
        whole = array.chunks == (1, *(max(1, length) for length in array.shape[1:]))
        if not whole or [codec.to_dict()["name"] for codec in array.metadata.codecs] != ["bytes"]:
            return None
        path: Path = self.path / field / array.metadata.encode_chunk_key((number, *[0] * (array.ndim - 1)))
        return path if path.is_file() else None

    def number(self, field: str, index: int) -> int:
        """Return the number of a frame, counted from the first.

        Raises
        ------
        CaseError
            If there is no such field or frame.
        """
        self._known(field)
        count = len(self.steps)
        if not -count <= index < count:
            raise CaseError(
                f"the run has no frame {index}: it has {count}, numbered from 0"
                + (f" (steps {self.steps[0]} to {self.steps[-1]})" if count else ""),
                key="--frame",
            )
        return index % count

    def _known(self, field: str) -> Any:
        """Return the array of a field; raise CaseError if there is no such field."""
        if field not in self.fields:
            raise CaseError(
                f"the run has no field {field!r}; it has {', '.join(self.fields)}",
                key="--field",
                suggestion=suggest(field, self.fields),
            )
        return self.group[field]

    def dtype(self, field: str) -> np.dtype[Any]:
        """Return the type of the values of a field."""
        dtype: np.dtype[Any] = self._known(field).dtype
        return dtype

    def attributes(self, field: str) -> dict[str, Any]:
        """Return the CF attributes of a field."""
        return dict(self._known(field).attrs)

    def coordinates(self, field: str) -> tuple[Coordinate, ...]:
        """Return the positions of the points of a field along its axes."""
        names = self._known(field).metadata.dimension_names[1:]
        return tuple(Coordinate(n, self.group[n][:], dict(self.group[n].attrs)) for n in names)
