"""Previews of a field during a run, taken only while somebody watches.

A reader that wants to see the run repeatedly touches the file ``watching`` in the run's directory; its text is the name
of the field. Rank 0 checks its age about once a second. While it is fresh, each rank reduces its part of the field,
rank 0 puts the parts together, and ``preview.npz`` and ``ledger.json`` are renewed. Readers never communicate with the
run: they may come, go and crash.
"""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import RunError
from minga.output.cells import blocks_of_cells
from minga.output.directory import RunDirectory, write_whole
from minga.output.plane import plane_of
from minga.output.variables import variable_of
from minga.space.box import Box

__all__ = ["Preview", "WatchDetector", "read_preview", "small_part", "stride_of", "take_preview", "write_preview"]

LONGEST = 512
"""Largest number of points along the longer side of a preview."""

_PATIENCE = 5.0
"""Seconds without a sign of life after which a reader counts as gone."""
_INTERVAL = 1.0
_SHARE = 0.05
"""Largest share of the run's time that previews may take."""

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Preview:
    """One field after ``step`` steps, every ``stride``-th point of a plane.

    The plane is that of :mod:`minga.output.plane`, with its axes in the order of the field's axes.
    """

    field: str
    step: int
    stride: int
    values: Values


class WatchDetector:
    """Detection of watching readers on rank 0."""

    def __init__(self, directory: RunDirectory) -> None:
        self._watching = directory.watching
        self._next = 0.0
        self._touched: float | None = None
        self._since = 0.0

    def __call__(self) -> bool:
        """Return True if a preview is due now: at most once a second, and less often if previews are slow."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _INTERVAL
        try:
            touched = self._watching.stat().st_mtime
        except OSError:
            return False
        if touched != self._touched:  # not compared with a clock: that of the reader's machine may differ
            self._touched, self._since = touched, now
        return now - self._since < _PATIENCE

    def took(self, seconds: float) -> None:
        """Delay the next preview after one that took ``seconds``, so that previews take a small share of the time."""
        self._next = max(self._next, time.monotonic() + seconds / _SHARE)

    @property
    def field(self) -> str:
        """Name of the watched field; empty if the reader names none."""
        try:
            return self._watching.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""


def take_preview(model: Model, engine: Engine, step: int, field: str) -> Preview | None:
    """Take a preview, and return it on rank 0, None on the other ranks; collective.

    If `field` is not an output field, the first output field is taken.
    """
    name = engine.comm.bcast(field if field in model.output else model.output[0])
    item = model.field(name)
    found = variable_of(item, model.presentation.style(name))
    at, shape = plane_of(found.coordinates, found.attributes).at, found.shape
    at += (slice(None),) * (len(shape) - len(at))
    stride = stride_of([extent for extent, index in zip(shape, at, strict=True) if isinstance(index, slice)])
    mine = blocks_of_cells(engine, model, name) if engine.comm.rank == 0 or not item.replicated else []
    parts = engine.comm.gather(
        [part for box, values in mine if (part := small_part(box, values, item.bounds, stride, at))]
    )
    if parts is None:
        return None
    return Preview(name, step, stride, _together(parts, item.bounds.shape, at, stride, np.dtype(item.dtype)))


def write_preview(directory: RunDirectory, preview: Preview) -> None:
    """Write a preview for the readers; a disk error does not end the run."""
    stream = io.BytesIO()
    field, step, stride = map(np.array, (preview.field, preview.step, preview.stride))
    np.savez(stream, values=preview.values, field=field, step=step, stride=stride)
    try:
        write_whole(directory.preview, stream.getvalue(), lasting=False)
    except RunError:
        return


def read_preview(directory: RunDirectory) -> Preview | None:
    """Return the last preview, or None if there is none."""
    try:
        with np.load(io.BytesIO(directory.preview.read_bytes()), allow_pickle=False) as found:
            return Preview(str(found["field"]), int(found["step"]), int(found["stride"]), found["values"])
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def stride_of(extents: Sequence[int]) -> int:
    """Return the number of cells along each side of one point of a preview."""
    return max(1, -(-max(extents) // LONGEST))


def small_part(
    box: Box, values: Values, bounds: Box, stride: int, at: Sequence[int | slice]
) -> tuple[tuple[slice, ...], Values] | None:
    """Return the part of a preview that a box of a field contributes: its slices, and its points.

    ``at`` is the plane, counted from ``bounds``. A point of integers is the largest state among its cells, so that a
    single live cell shows; parts of one point in several boxes are combined by ``np.maximum``. A point of floats is the
    cell in its middle.
    """
    if box.empty:
        return None
    where, axis = [], 0
    for index, start, end, low, high in zip(at, bounds.lo, bounds.hi, box.lo, box.hi, strict=True):
        low, high = low - start, high - start
        if not isinstance(index, slice):
            if not low <= index < high:
                return None
            values = np.take(values, index - low, axis)
            continue
        if values.dtype.kind == "f":
            points = _middles(end - start, stride)
            first, last = np.searchsorted(points, (low, high))
            values = np.take(values, points[first:last] - low, axis)
        else:
            first, last = low // stride, -(-high // stride)
            edges = np.maximum(np.arange(first, last) * stride, low) - low
            values = np.maximum.reduceat(values, edges, axis)
        where.append(slice(int(first), int(last)))
        axis += 1
    return tuple(where), np.ascontiguousarray(values)


def _middles(extent: int, stride: int) -> NDArray[np.int64]:
    """Return the cell that represents each point of a preview of floats."""
    return np.minimum(np.arange(-(-extent // stride)) * stride + stride // 2, extent - 1)


def _together(
    parts: Iterable[Iterable[tuple[tuple[slice, ...], Values]]],
    extents: Sequence[int],
    at: Sequence[int | slice],
    stride: int,
    dtype: np.dtype[Any],
) -> Values:
    shape = tuple(-(-extent // stride) for extent, index in zip(extents, at, strict=True) if isinstance(index, slice))
    whole = np.full(shape, np.iinfo(dtype).min if dtype.kind in "iu" else 0, dtype)
    for part in parts:
        for where, values in part:
            whole[where] = values if dtype.kind == "f" else np.maximum(whole[where], values)
    return whole
