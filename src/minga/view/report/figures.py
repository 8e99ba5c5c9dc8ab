"""Fields of a run as pictures embedded in the page: a movie of planes, or a space-time diagram."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from minga.output.frame_source import FrameSource, time_of
from minga.output.store import FrameReader
from minga.output.variables import DRAWINGS, Coordinate
from minga.view.amounts import quantity
from minga.view.colours import ColourScale
from minga.view.pictures import chosen_frames
from minga.view.raster import FieldView, field_view, fit, history_size, is_even, pixels_of, png, raster
from minga.view.report.charts import Curve, curves

if TYPE_CHECKING:
    from markupsafe import Markup
    from PIL.Image import Image

__all__ = ["Figure", "Frame", "Legend", "figures"]

_LONGEST = 640
"""Pixels of the longer side of a picture in the page."""
_BYTES = 3_000_000
"""Largest size of all pictures of all fields together; base64 adds a third."""
_MOST_FRAMES, _MOST_ROWS, _MOST_PROFILES, _MOST_FIELDS = 61, 1024, 4, 8
_MOST_CELLS = 1 << 28
"""Most cells read in all frames of a field: there are fewer frames if they are large."""
_PROFILE_COLOURS = ("var(--line-1)", "var(--line-2)", "var(--line-3)", "var(--line-4)")


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture: the step that it shows, with the time of the model if it has one, and its PNG file as a data URL."""

    step: int
    time: str
    address: str

    @classmethod
    def of(cls, reader: FrameSource, index: int, file: bytes) -> Frame:
        """Return the picture of a frame of a run."""
        return cls(reader.steps[index], time_of(reader, index), _address(file))


@dataclass(frozen=True, slots=True)
class Legend:
    """Meaning of colours: (state, colour) pairs if states have colours, otherwise the ends of a gradient."""

    states: tuple[tuple[int, str], ...]
    gradient: str
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Figure:
    """Field in the page.

    Attributes
    ----------
    field, description, unit
        Name, description and unit of the field.
    where
        Positions of the plane along the axes that are not shown, such as "z = 5".
    axes
        Names of the axes that are shown.
    size
        Width and height on the page in pixels.
    crisp
        Whether cells keep their edges when a picture is enlarged.
    upwards
        Whether the first cell of the first axis lies below.
    across
        The field's axes that are not shown, and the index of the plane along each.
    shown
        The field's axes that are shown.
    dims
        Names of all axes of the field.
    history
        Whether the single picture shows one axis over time, first steps on top.
    frames, left_out
        The pictures, and the number of the run's frames that are not among them.
    legend
        Meaning of the colours.
    cells_a_side
        Cells along the side of a pixel, whose colour is their mean; 1 if no cell is smaller than a pixel.
    profiles
        Curves over the axis, for floats on one axis.
    faces
        For each axis that is shown the ends of its cells, as shares of the picture; None if cells are equal.
    """

    field: str
    description: str
    unit: str
    where: str
    axes: tuple[str, ...]
    size: tuple[int, int]
    crisp: bool
    upwards: bool
    across: tuple[tuple[int, int], ...]
    shown: tuple[int, ...]
    dims: tuple[str, ...]
    history: bool
    frames: tuple[Frame, ...]
    left_out: int
    legend: Legend
    cells_a_side: float
    profiles: Markup | None = None
    faces: tuple[NDArray[np.float64] | None, ...] = (None, None)


def figures(reader: FrameReader) -> list[Figure]:
    """Return all fields of a run that has frames, the first few in full; an empty list if there are no frames.

    If the model describes drawings of its curves, fields on one axis are left to `minga.view.report.drawings`.
    """
    together = DRAWINGS in reader.group.attrs
    names = [name for name in reader.fields if not (together and len(reader.coordinates(name)) == 1)]
    shown = names[:_MOST_FIELDS] if reader.steps else ()
    return [_figure(reader, name, _BYTES // len(shown)) for name in shown]


def _figure(reader: FrameReader, name: str, room: int) -> Figure:
    lengths = [len(axis.values) for axis in reader.coordinates(name)]
    flat = len(lengths) == 1
    most = min(_MOST_ROWS if flat else _MOST_FRAMES, _MOST_CELLS // math.prod(lengths[-2:]))
    chosen = chosen_frames(len(reader.steps), max(2, most))
    view = field_view(reader, name, chosen)
    attributes = reader.attributes(name)
    crisp = view.crisp
    if flat:
        rows = np.stack([view.values(index) for index in chosen])
        size = history_size(rows.shape, (_LONGEST, _LONGEST))
        frames: tuple[Frame, ...] = (
            Frame.of(reader, chosen[-1], png(raster(rows, view.scale, _smallest(rows.shape, size)))),
        )
        left_out = len(reader.steps) - len(chosen)
    else:
        size = pixels_of(view.shape, view.axes, (_LONGEST, _LONGEST))
        frames = _frames(view, chosen, room)
        left_out = len(reader.steps) - len(frames)
    return Figure(
        field=name,
        description=str(attributes.get("long_name", "")),
        unit="" if attributes.get("units", "1") == "1" else str(attributes["units"]),
        where=", ".join(view.plane.where),
        axes=tuple(axis.axis for axis in view.axes),
        size=size,
        crisp=crisp,
        upwards=view.upwards and not flat,
        across=tuple((axis, index) for axis, index in enumerate(view.plane.at) if not isinstance(index, slice)),
        shown=view.plane.shown,
        dims=tuple(axis.name for axis in reader.coordinates(name)),
        history=flat,
        frames=frames,
        left_out=left_out,
        legend=_legend(view.scale),
        cells_a_side=1.0 if flat else max(1.0, max(view.shape) / _LONGEST),
        profiles=_profiles(view, chosen) if flat and not crisp else None,
        faces=tuple(None if flat or is_even(axis) else _shares(axis) for axis in view.axes),
    )


def _shares(axis: Coordinate) -> NDArray[np.float64]:
    """Return the ends of cells, from 0 to 1."""
    faces = axis.edges
    found: NDArray[np.float64] = (faces - faces[0]) / (faces[-1] - faces[0])
    return found


def _frames(view: FieldView, chosen: Sequence[int], room: int) -> tuple[Frame, ...]:
    """Return pictures of frames in at most ``room`` bytes: every second one is left out until they fit.

    The last frame is always kept.
    """
    last = png(_plain(view, chosen[-1]))
    few = chosen_frames(len(chosen), max(2, room // max(1, len(last))))
    chosen = [chosen[place] for place in few]
    files = [png(_plain(view, index)) for index in chosen[:-1]] + [last]
    while sum(map(len, files)) > room and len(files) > 2:
        kept = chosen_frames(len(files), len(files) // 2)
        files, chosen = [files[place] for place in kept], [chosen[place] for place in kept]
    return tuple(Frame.of(view.reader, index, file) for index, file in zip(chosen, files, strict=True))


def _plain(view: FieldView, index: int) -> Image:
    """Return a frame with one pixel for each cell, or fewer: the page enlarges it."""
    return raster(view.values(index), view.scale, fit(view.shape, _LONGEST), view.upwards)


def _smallest(shape: tuple[int, ...], size: tuple[int, int]) -> tuple[int, int]:
    """Return the size of an image that the page enlarges to ``size``: one pixel for each cell if cells are larger."""
    return min(shape[1], 2 * size[0]), min(shape[0], 2 * size[1])


def _address(file: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(file).decode("ascii")


def _legend(scale: ColourScale) -> Legend:
    colours = scale.hexadecimal
    if scale.states and len(colours) <= 32:
        states = tuple((int(scale.low) + number, colour) for number, colour in enumerate(colours))
        return Legend(states, "", "", "")
    stops = colours if scale.states else colours[:: max(1, len(colours) // 16)] + colours[-1:]
    high = ", ".join(filter(None, (quantity(scale.number(scale.high)), scale.clipped)))
    return Legend((), f"linear-gradient(to right, {', '.join(stops)})", quantity(scale.number(scale.low)), high)


def _profiles(view: FieldView, chosen: Sequence[int]) -> Markup:
    """Draw a few frames of a field on one axis as curves, the last in the strongest colour."""
    few = [chosen[place] for place in chosen_frames(len(chosen), _MOST_PROFILES)]
    lines = [
        Curve(
            f"step {view.reader.steps[index]}",
            view.axes[0].values,
            np.asarray(view.values(index), np.float64),
            colour,
        )
        for index, colour in zip(few, _PROFILE_COLOURS[-len(few) :])
    ]
    return curves(view.field, lines, over=view.axes[0].axis)
