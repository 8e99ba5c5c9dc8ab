"""``manifest.jsonl``: a line for each complete frame, with the checksums of its chunks.

A frame counts when its line is there. A line that a killed process left incomplete does not count.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FrameRecord", "Receipt", "read_manifest", "receipt_of", "verified"]

_IN_CACHE = 1 << 18
"""Bytes of a chunk that are processed together."""
_PIECE = 16 << 20


@dataclass(frozen=True, slots=True)
class Receipt:
    """One chunk of one frame that is on the disk: bytes and CRC-32 of its file, least and largest value.

    The values are None if a chunk holds NaN, or nothing.
    """

    variable: str
    number: int
    bytes: int
    crc32: int
    min: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """One line: the frame's place on the time axis, the steps done, the time of writing (UTC), and its chunks.

    `time` is that of the model after these steps, if it has a clock.
    """

    index: int
    step: int
    written: str
    chunks: tuple[Receipt, ...]
    time: float | None = None

    @property
    def bytes(self) -> int:
        """Size of all chunks."""
        return sum(chunk.bytes for chunk in self.chunks)

    def line(self) -> str:
        """Return the line for the file."""
        fields: dict[str, dict[str, Any]] = {}
        for name in dict.fromkeys(chunk.variable for chunk in self.chunks):
            mine = [chunk for chunk in self.chunks if chunk.variable == name]
            fields[name] = {
                "min": _over(min, [chunk.min for chunk in mine]),
                "max": _over(max, [chunk.max for chunk in mine]),
                "chunks": [_plain(chunk) for chunk in mine],
            }
        entry: dict[str, Any] = {"index": self.index, "step": self.step}
        entry |= {"time": self.time} if self.time is not None and math.isfinite(self.time) else {}
        entry |= {"written": self.written, "bytes": self.bytes}
        return json.dumps(entry | {"fields": fields}, allow_nan=False) + "\n"

    @classmethod
    def of(cls, line: str) -> FrameRecord:
        """Return the record of a line; raise ValueError or KeyError if it is invalid."""
        entry = json.loads(line)
        chunks = tuple(Receipt(name, **chunk) for name, field in entry["fields"].items() for chunk in field["chunks"])
        time = None if entry.get("time") is None else float(entry["time"])
        return cls(int(entry["index"]), int(entry["step"]), str(entry["written"]), chunks, time)


def read_manifest(path: Path) -> list[FrameRecord]:
    """Return the frames of a store in order, up to the first line that is incomplete or out of order."""
    frames: list[FrameRecord] = []
    if not path.exists():
        return frames
    for line in path.read_text(errors="replace").splitlines(keepends=True):
        try:
            frame = FrameRecord.of(line) if line.endswith("\n") else None
        except (ValueError, KeyError, TypeError):
            frame = None
        if frame is None or frame.index != len(frames):
            break
        frames.append(frame)
    return frames


def receipt_of(variable: str, number: int, values: NDArray[Any], content: memoryview) -> Receipt:
    """Return the receipt of a chunk.

    ``values`` are those that it holds, ``content`` the bytes of its file, which may be these values' own memory.
    """
    flat = values.reshape(-1)
    low, high, crc = [], [], 0
    length = max(1, _IN_CACHE // flat.itemsize)
    pieces = max(1, -(-flat.size // length))
    part = -(-len(content) // pieces)
    for k in range(pieces):  # the piece that was just read is still in the cache
        piece = flat[k * length : (k + 1) * length]
        if piece.size:
            low.append(piece.min())
            high.append(piece.max())
        crc = zlib.crc32(content[k * part : (k + 1) * part], crc)
    return Receipt(variable, number, len(content), crc, _finite(low, np.min), _finite(high, np.max))


def verified(path: Path, receipt: Receipt, *, whole: bool) -> bool:
    """Return whether a chunk's file has the expected size, and with `whole` the expected bytes."""
    try:
        if path.stat().st_size != receipt.bytes:
            return False
        if not whole:
            return True
        crc = 0
        with path.open("rb") as stream:
            while piece := stream.read(_PIECE):
                crc = zlib.crc32(piece, crc)
    except OSError:
        return False
    return crc == receipt.crc32


def _finite(found: Sequence[Any], choose: Any) -> float | None:
    """Return the least or largest of the values found; None if there are none, or it is not finite."""
    value = choose(found).item() if found else math.nan
    return value if math.isfinite(value) else None


def _over(choose: Any, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known and len(known) == len(values) else None


def _plain(chunk: Receipt) -> Mapping[str, Any]:
    entry = asdict(chunk)
    del entry["variable"]
    return entry
