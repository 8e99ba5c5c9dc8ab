"""Pictures of a field for the page: the last preview while the run continues, any stored frame at all times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.output.directory import RunDirectory
from minga.output.plane import plane_of
from minga.output.preview import Preview, read_preview
from minga.output.store import FrameReader
from minga.output.variables import Coordinate
from minga.view.colours import ColourScale, colour_scale, is_signed, limits_of
from minga.view.pictures import chosen_frames
from minga.view.raster import ends, field_view, png, raster

__all__ = ["Frames", "Picture", "Pictures"]

LONGEST = 1024
"""Largest size in pixels of the longer side of a picture; the browser enlarges cells if there is room."""

_SCALED_BY = 8
"""Number of stored frames that determine the ends of the colour scale."""
_ROWS = 512
_MOST_STRETCHED = 4.0
"""Largest ratio of the sides of a cell that is drawn."""

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """PNG file and its description. ``aspect`` is width over height, ``legend`` pairs of a value and a colour."""

    field: str
    step: int
    aspect: float
    states: bool
    legend: tuple[tuple[str, str], ...]
    content: bytes


@dataclass(frozen=True, slots=True)
class Frames:
    """Stored frames at one moment; ``mark`` changes when frames are added."""

    reader: FrameReader
    mark: int

    @classmethod
    def open(cls, directory: RunDirectory, known: Frames | None) -> Frames | None:
        """Return the frames of a run, None if it has none yet; the known ones if nothing was added."""
        metadata = directory.fields / "zarr.json"
        try:
            mark = metadata.stat().st_mtime_ns
            if known is not None and known.mark == mark:
                return known
            reader = FrameReader.open(directory.fields)
        except Exception:  # Zarr may raise anything for a store that is just being created
            return known
        return cls(reader, mark) if reader.steps and reader.fields else known


class Pictures:
    """Drawer of pictures of one run that keeps the ends of each field's scale, so that colours keep their meaning."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._limits: dict[str, tuple[float, float]] = {}

    def latest(self, frames: Frames, field: str, live: bool) -> tuple[str, Preview | None]:
        """Return a key that changes with the newest picture of a field, and the preview if that picture is one."""
        preview = read_preview(self._directory) if live else None
        steps = frames.reader.steps
        if preview is not None and preview.field == field and preview.step > steps[-1] and preview.values.ndim > 1:
            return f"{field}-live-{preview.step}", preview
        return f"{field}-{len(steps) - 1}-{steps[-1]}", None

    def of_preview(self, frames: Frames, preview: Preview) -> Picture:
        """Return the picture of a preview."""
        plane = plane_of(frames.reader.coordinates(preview.field), frames.reader.attributes(preview.field))
        scale = self._scale(frames, preview.field, preview.values)
        values = plane.laid(preview.values)
        high, wide = values.shape
        image = raster(values, scale, (wide, high), plane.upwards(values.dtype))
        return _picture(preview.field, preview.step, _aspect(plane.axes), scale, png(image))

    def of_frame(self, frames: Frames, field: str, index: int) -> Picture:
        """Return the picture of a stored frame; for a field on one axis, the rows of all frames up to it."""
        reader = frames.reader
        view = field_view(reader, field, [index])
        scale = self._scale(frames, field, view.values(index))
        if len(view.axes) > 1:
            image = raster(view.values(index), scale, _fitting(view.shape), view.upwards)
            aspect = _aspect(view.axes)
        else:
            rows = np.stack([view.values(at) for at in chosen_frames(index + 1, _ROWS)])
            self._scale(frames, field, rows)
            image = raster(rows, scale, _fitting(rows.shape))
            aspect = rows.shape[1] / rows.shape[0]
        return _picture(field, reader.steps[index], aspect, scale, png(image))

    def _scale(self, frames: Frames, field: str, values: Values) -> ColourScale:
        """Return one scale for all values of a field seen so far, including the first and the last stored frames.

        A field that oscillates around 0 has the scale of the frame: waves grow and fade by more than colours can show.
        """
        reader = frames.reader
        attributes = reader.attributes(field)
        if is_signed(attributes):
            return colour_scale(limits_of([values], signed=True), values.dtype, attributes)
        if field not in self._limits:
            several = chosen_frames(len(reader.steps), _SCALED_BY)
            scale = field_view(reader, field, several).scale
            self._limits[field] = (scale.low, scale.high)
        low, high = self._limits[field]
        least, most = limits_of([values])[:2]
        self._limits[field] = ends = (min(low, least), max(high, most))
        return colour_scale(ends, values.dtype, attributes)


def _picture(field: str, step: int, aspect: float, scale: ColourScale, content: bytes) -> Picture:
    colours = scale.hexadecimal
    if scale.states:
        legend = tuple((f"{scale.low + number:g}", colour) for number, colour in enumerate(colours))
    else:
        chosen = np.linspace(0, len(colours) - 1, 16).round().astype(int)
        values = np.linspace(scale.low, scale.high, len(chosen))
        legend = tuple(
            (f"{scale.number(value):.4g}", colours[number]) for value, number in zip(values, chosen, strict=True)
        )
    return Picture(field, step, aspect, scale.states, legend, content)


def _fitting(shape: tuple[int, ...]) -> tuple[int, int]:
    scale = min(1.0, LONGEST / max(shape))
    return max(1, round(shape[1] * scale)), max(1, round(shape[0] * scale))


def _aspect(axes: Sequence[Coordinate]) -> float:
    """Return width over height of a field on two axes."""
    (first, last), (left, right) = map(ends, axes)
    rows, columns = (len(axis.values) for axis in axes)
    cell = abs(right - left) / columns / (abs(last - first) / rows) if last != first else 1.0
    return columns / rows * min(max(cell, 1 / _MOST_STRETCHED), _MOST_STRETCHED)
