"""Store of frames on the disk, Zarr version 3: a time axis that grows during the run.

A frame becomes visible only when it is complete. Its chunks are written first; then its line in the manifest, which
makes it count; then the time axis, the arrays and the consolidated metadata are extended, each by renaming a finished
file. If a process was killed in between, its remains are put right when the store is opened to be resumed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from minga.engine.clock import Clock
from minga.errors import RunError
from minga.options import OutputSettings
from minga.output.directory import disk_errors
from minga.output.snapshots.chunks import Chunk
from minga.output.snapshots.codec import codecs_entry
from minga.output.snapshots.counters import Counters
from minga.output.snapshots.files import Disk
from minga.output.snapshots.manifest import FrameRecord, read_manifest, verified
from minga.output.snapshots.metadata import (
    TIMES_A_CHUNK,
    array_document,
    coordinate_document,
    group_document,
    time_documents,
)
from minga.output.variables import STEP, TIME, Coordinate

__all__ = ["Archive", "describe", "manifest_of"]

_METADATA = "zarr.json"
_WORD = ".written-by-"
_VERIFIED_WHOLE = 2
"""Number of the last frames of which every byte is checked when a store is resumed; of others the size is checked."""


def manifest_of(store: Path) -> Path:
    """Return the manifest of a store, which lies beside it: ``fields.zarr`` has ``fields.manifest.jsonl``."""
    return store.with_suffix(".manifest.jsonl")


class Archive:
    """Store that is being written, and everything that its chunks have in common. One process writes it.

    Attributes
    ----------
    path
        The store.
    frames
        The complete frames, in order.
    """

    def __init__(
        self,
        path: Path,
        chunks: Sequence[Sequence[Chunk]],
        settings: OutputSettings,
        disk: Disk,
        clock: Clock | None = None,
    ) -> None:
        """Initialise the common parts; use :meth:`create` or :meth:`open`. `clock` is the model's."""
        self.path, self.disk, self._clock = path, disk, clock
        self._metadata = Disk(disk.counters)
        self.frames: list[FrameRecord] = []
        self._attributes: dict[str, Any] = {}
        self._documents: dict[str, dict[str, Any]] = {}
        coordinates: dict[str, Coordinate] = {}
        for several in chunks:
            variable, chunk = several[0].variable, several[0].shape
            coordinates |= {c.name: c for c in variable.coordinates}
            self._documents[variable.name] = array_document(
                [0, *variable.shape],
                [1, *chunk],
                variable.dtype,
                variable.dims,
                variable.attributes | {"coordinates": STEP},
                codecs_entry(settings, variable.dtype),
            )
        self._growing = list(self._documents)
        self._coordinates = coordinates
        self._documents |= {name: coordinate_document(c) for name, c in coordinates.items()}
        self._chunks = chunks

    @classmethod
    def create(
        cls,
        path: Path,
        chunks: Sequence[Sequence[Chunk]],
        settings: OutputSettings,
        disk: Disk,
        attributes: Mapping[str, Any],
        clock: Clock | None = None,
    ) -> Self:
        """Make a store with no frames; nothing may be at `path` except a store that was not finished.

        Raises
        ------
        RunError
            If the disk refuses.
        """
        archive = cls(path, chunks, settings, disk, clock)
        archive._attributes = dict(attributes)
        with disk_errors(path):
            if path.is_dir() and not (path / _METADATA).exists():
                shutil.rmtree(path)
            path.mkdir()
            manifest_of(path).unlink(missing_ok=True)
            for name in (TIME, STEP, *archive._documents):
                (path / name).mkdir()
            for name, coordinate in archive._coordinates.items():
                archive._metadata.write(path / name / "c.0", np.ascontiguousarray(coordinate.values, "<f8").tobytes())
                archive._metadata.write(path / name / _METADATA, _json(archive._documents[name]))
            archive._lengthen()
        return archive

    @classmethod
    def open(
        cls,
        path: Path,
        chunks: Sequence[Sequence[Chunk]],
        settings: OutputSettings,
        disk: Disk,
        attributes: Mapping[str, Any],
        clock: Clock | None = None,
    ) -> Self:
        """Open a store to resume it.

        Metadata that a power failure has destroyed is made anew from the manifest, with `attributes`.

        Raises
        ------
        RunError
            If it does not hold such frames, or the disk refuses.
        """
        archive = cls(path, chunks, settings, disk, clock)
        try:
            root = json.loads((path / _METADATA).read_text())
            found = root["consolidated_metadata"]["metadata"]
        except OSError as error:
            raise RunError(f"{path} is not a store of frames: {error}") from error
        except (ValueError, KeyError):
            root, found = {"attributes": dict(attributes)}, archive._documents
        for name in archive._growing:
            if name not in found or not _alike(found[name], archive._documents[name]):
                raise RunError(
                    f"the frames in {path} do not fit: the array {name!r} differs, or is missing",
                    remedy="resume with the same fields, region, decimation, chunks and codec as before",
                )
        archive._attributes = root["attributes"]
        lines = manifest_of(path)
        if not lines.exists() and found.get(TIME, {}).get("shape", [0])[0]:
            raise RunError(
                f"{lines} is gone, which says which frames in {path} are whole",
                remedy=f"put it back; or remove {path} too, to resume without the frames so far",
            )
        archive.frames = read_manifest(lines)
        with disk_errors(path):
            (path / STEP).mkdir(exist_ok=True)  # stores of earlier versions have the steps as their time
        return archive

    def chunk_path(self, chunk: Chunk, frame: int) -> Path:
        """Return the file of a chunk."""
        return self.path / chunk.variable.name / chunk.key(frame)

    def publish(self, frames: Sequence[FrameRecord]) -> None:
        """Make frames visible whose chunks are present.

        Raises
        ------
        RunError
            If the disk refuses.
        """
        if not frames:
            return
        with disk_errors(self.path):
            self.disk.settle()
            self.disk.append(manifest_of(self.path), "".join(frame.line() for frame in frames))
            self.frames += frames
            self._lengthen(frames[0].index)

    def leave_word(self, rank: int, parts: Sequence[FrameRecord]) -> None:
        """Record for the publishing rank the parts of frames that a rank has written; a disk error here is ignored."""
        with contextlib.suppress(OSError):
            content = "".join(part.line() for part in parts).encode()
            self._metadata.write(self.path / f"{_WORD}{rank}", content)

    def last_words(self) -> dict[int, list[FrameRecord]]:
        """Return the records that other ranks have left in this way, by rank, and remove them."""
        words: dict[int, list[FrameRecord]] = {}
        with contextlib.suppress(OSError):
            for path in sorted(self.path.glob(f"{_WORD}*")):
                rank = path.name.removeprefix(_WORD)
                if rank.isdigit():  # else it is being written
                    words[int(rank)] = [FrameRecord.of(line) for line in path.read_text().splitlines()]
                    path.unlink()
        return words

    def truncate(self, step: int) -> tuple[int, ...]:
        """Remove the frames of later steps, and all remains of a killed process.

        Returns
        -------
        damaged
            Frames whose chunks are damaged or missing: they stay on the time axis, and read as NaN, or 0 for whole
            numbers.

        Raises
        ------
        RunError
            If the disk refuses.
        """
        with disk_errors(self.path):
            self.frames = [frame for frame in self.frames if frame.step <= step]
            damaged = tuple(frame.index for frame in self.frames if not self._sound(frame))
            self._lengthen()
            self.disk.write(manifest_of(self.path), "".join(frame.line() for frame in self.frames).encode())
            self.disk.settle()
            self.last_words()
            for name in self._growing:
                for path in (self.path / name).glob("c.*"):
                    if _frame_of(path) >= len(self.frames) or path.name.endswith(".partial"):
                        path.unlink(missing_ok=True)
        return damaged

    def _sound(self, frame: FrameRecord) -> bool:
        """Return whether a frame's chunks are as its line says; those that are not are removed."""
        whole = frame.index >= len(self.frames) - _VERIFIED_WHOLE
        sound = True
        names = {(chunk.variable.name, chunk.number): chunk for several in self._chunks for chunk in several}
        for receipt in frame.chunks:
            path = self.chunk_path(names[receipt.variable, receipt.number], frame.index)
            if not verified(path, receipt, whole=whole):
                sound = False
                path.unlink(missing_ok=True)
        return sound

    def _lengthen(self, first: int = 0) -> None:
        """Extend the time axis, the arrays and the metadata to all frames; steps before frame `first` are present."""
        count, kind = len(self.frames), "<i8" if self._clock is None else "<f8"
        for number in range(first // TIMES_A_CHUNK, -(-count // TIMES_A_CHUNK)):
            held = self.frames[number * TIMES_A_CHUNK : (number + 1) * TIMES_A_CHUNK]
            self._write_times(TIME, number, np.array([self._time(frame) for frame in held], kind))
            self._write_times(STEP, number, np.array([frame.step for frame in held], "<i8"))
        along = time_documents(count, None if self._clock is None else self._clock.unit)
        self._documents |= along
        for name, document in along.items():
            self._metadata.write(self.path / name / _METADATA, _json(document))
        for name in self._growing:
            self._documents[name]["shape"][0] = count
            self._metadata.write(self.path / name / _METADATA, _json(self._documents[name]))
        self._write_root()

    def _time(self, frame: FrameRecord) -> float:
        """Return the time of a frame; manifests of earlier versions hold only its step."""
        if self._clock is None:
            return frame.step
        return self._clock.at(frame.step) if frame.time is None else frame.time

    def _write_times(self, name: str, number: int, values: NDArray[Any]) -> None:
        """Write one chunk of a coordinate along the time axis."""
        whole = np.zeros(TIMES_A_CHUNK, values.dtype)
        whole[: len(values)] = values
        self._metadata.write(self.path / name / f"c.{number}", whole.tobytes())

    def _write_root(self) -> None:
        self._metadata.write(self.path / _METADATA, _json(group_document(self._attributes, self._documents)))


def describe(path: Path, attributes: Mapping[str, Any]) -> None:
    """Add attributes to a complete store that nobody is writing, such as the outcome of a run.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    with disk_errors(path):
        root = json.loads((path / _METADATA).read_text())
        root["attributes"] |= attributes
        disk = Disk(Counters(), durable=True)
        disk.write(path / _METADATA, _json(root))
        disk.settle()


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False).encode()


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two arrays differ only in their number of frames."""
    left, right = dict(one), json.loads(json.dumps(other))
    left["shape"], right["shape"] = left["shape"][1:], right["shape"][1:]
    keys = ("shape", "data_type", "chunk_grid", "codecs", "dimension_names")
    return all(left.get(key) == right.get(key) for key in keys)


def _frame_of(path: Path) -> int:
    """Return the frame that a chunk's file belongs to; -1 if there is none."""
    part = path.name.split(".")[1]
    return int(part) if part.isdigit() else -1
