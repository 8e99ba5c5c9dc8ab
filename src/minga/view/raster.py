"""Fields as plain images without axes or labels, for movies, reports and terminals.

Integers are drawn as rules and patterns are written, with the first axis downwards; floats as graphs are drawn,
upwards, except for depth in a section. A cell is a whole number of pixels if there is room; larger fields are averaged
over the cells of a pixel. If cells have different sizes, as on a graded mesh, a picture is made of equal ones, each
with the value of the cell that it lies in.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.output.frame_source import FrameSource
from minga.output.plane import Plane, plane_of
from minga.output.variables import Coordinate
from minga.view.colours import ColourScale, colour_scale, is_signed, limits_of
from minga.view.masked import shown_frame

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "FieldView",
    "ends",
    "equal_cells",
    "field_view",
    "fit",
    "history_size",
    "is_even",
    "pixels_of",
    "png",
    "raster",
    "with_palette",
]

Values = NDArray[Any]
Colours = NDArray[np.uint8]

_MOST_STRETCHED, _LEAST_PART = 4.0, 4
_BAND_CELLS = 1 << 22
"""Number of cells that are coloured at once, so that images of large fields need little memory."""
_MOST_EQUAL = 1024
"""Largest number of equal cells along an axis that replace unequal ones."""


@dataclass(frozen=True, slots=True)
class FieldView:
    """View of a field of a run: the plane that is shown of each frame, and one colour scale for all.

    Attributes
    ----------
    reader
        The frames of the run.
    field
        Name of the field.
    plane
        The plane that is shown.
    scale
        The colour scale.
    crisp
        Whether values are whole numbers.
    upwards
        Whether the first axis is drawn upwards.
    cells
        For each axis of a plane with two axes, the cell that each of the equal cells lies in; None if cells are equal.
    """

    reader: FrameSource
    field: str
    plane: Plane
    scale: ColourScale
    crisp: bool
    upwards: bool
    cells: tuple[NDArray[np.int64] | None, ...] = (None, None)

    @property
    def axes(self) -> tuple[Coordinate, ...]:
        """Coordinates of the plane, one or two."""
        return self.plane.axes

    def values(self, index: int) -> Values:
        """Return the plane of one frame, its axes in the order of `axes`, in equal cells."""
        found = self.plane.laid(shown_frame(self.reader, self.field, index, self.plane.at))
        for axis, cells in enumerate(self.cells):
            if cells is not None:
                found = np.take(found, cells, axis)
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along the axes of the plane, or of equal cells in their place."""
        return tuple(
            len(axis.values) if cells is None else len(cells)
            for axis, cells in zip(self.axes, self.cells, strict=False)
        )

    def image(self, index: int, room: tuple[int, int]) -> Image:
        """Return one frame of two axes, as large as fits ``room`` (width, height) in pixels."""
        return raster(self.values(index), self.scale, pixels_of(self.shape, self.axes, room), self.upwards)

    def history(self, indices: Sequence[int], room: tuple[int, int]) -> Image:
        """Return frames of one axis as the rows of an image, the first on top."""
        rows = np.stack([self.values(index) for index in indices])
        return raster(rows, self.scale, history_size(rows.shape, room))


def field_view(reader: FrameSource, field: str, indices: Sequence[int]) -> FieldView:
    """Return the view of a field for some of its frames; see `minga.output.plane`."""
    attributes = reader.attributes(field)
    plane = plane_of(reader.coordinates(field), attributes)
    dtype = reader.dtype(field)
    limits = limits_of((shown_frame(reader, field, index, plane.at) for index in indices), is_signed(attributes))
    scale = colour_scale(limits, dtype, attributes)
    crisp, cells = dtype.kind in "bui", equal_cells(plane.axes)
    return FieldView(reader, field, plane, scale, crisp, plane.upwards(dtype), cells)


def is_even(axis: Coordinate) -> bool:
    """Return whether cells along an axis are equally wide, as pixels are.

    Cells around the first and last node of an axis of nodes are narrower.
    """
    if axis.on_nodes:
        return False
    steps = np.diff(axis.values)
    return steps.size < 2 or bool(np.ptp(steps) <= 1e-6 * abs(steps).max())


def equal_cells(axes: Sequence[Coordinate]) -> tuple[NDArray[np.int64] | None, ...]:
    """Return for each axis the cell in which the middle of each equal cell lies; None for all if cells are equal.

    Equal cells are squares as large as the smallest cell, or larger if they would be too many, but along no axis fewer
    than there are cells.
    """
    if len(axes) != 2 or all(map(is_even, axes)):
        return (None,) * len(axes)
    faces = [axis.edges for axis in axes]
    lengths = [float(f[-1] - f[0]) for f in faces]
    side = max(min(float(np.diff(f).min()) for f in faces), max(lengths) / _MOST_EQUAL)
    return tuple(_lying_in(f, max(len(f) - 1, round(length / side))) for f, length in zip(faces, lengths, strict=True))


def _lying_in(faces: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the cells between these faces in which the middles of ``count`` equal ones lie."""
    middles = faces[0] + (np.arange(count) + 0.5) * ((faces[-1] - faces[0]) / count)
    found: NDArray[np.int64] = np.searchsorted(faces, middles, side="right").astype(np.int64) - 1
    return found.clip(0, len(faces) - 2)


def raster(values: Values, scale: ColourScale, size: tuple[int, int], upwards: bool = False) -> Image:
    """Draw values on two axes as an image of ``size`` (width, height) pixels; ``upwards``: the first row lies below."""
    import PIL.Image

    width, height = size
    rows, columns = values.shape
    if upwards:
        values = values[::-1]
    if width >= columns and height >= rows:
        image = _with_colours(values, scale)
        return image.resize(size, PIL.Image.Resampling.NEAREST) if image.size != size else image
    image = _averaged(values, scale, (max(1, columns // width), max(1, rows // height)))
    return image.resize(size, PIL.Image.Resampling.BOX) if image.size != size else image


def _averaged(values: Values, scale: ColourScale, factors: tuple[int, int]) -> Image:
    """Average colours over blocks of cells, of which those at the end may be smaller."""
    import PIL.Image

    (wide, high), (rows, columns) = factors, values.shape
    means = PIL.Image.new("RGB", (-(-columns // wide), -(-rows // high)))
    band = max(1, _BAND_CELLS // (columns * high)) * high
    for first in range(0, rows, band):
        image = _with_colours(values[first : first + band], scale).convert("RGB")
        means.paste(image.reduce(factors), (0, first // high))
    return means


def _with_colours(values: Values, scale: ColourScale) -> Image:
    """Return values as an image with one pixel each, and the scale as its palette."""
    import PIL.Image

    image = PIL.Image.fromarray(np.ascontiguousarray(scale.numbers(values)), "P")
    image.putpalette(scale.palette.tobytes())
    return image


def with_palette(image: Image) -> Image:
    """Return an image of at most 256 colours: the same one if it has a palette, else one as near as possible."""
    import PIL.Image

    return image if image.mode == "P" else image.quantize(256, dither=PIL.Image.Dither.NONE)


def png(image: Image) -> bytes:
    """Return an image as a PNG file, with a palette, which keeps it small."""
    stream = io.BytesIO()
    with_palette(image).save(stream, "PNG", compress_level=4)
    return stream.getvalue()


def fit(shape: tuple[int, ...], longest: int) -> tuple[int, int]:
    """Return width and height of an image with one pixel for each cell, or fewer so that it fits ``longest`` pixels."""
    scale = min(1.0, longest / max(shape))
    return max(1, round(shape[1] * scale)), max(1, round(shape[0] * scale))


def pixels_of(shape: tuple[int, ...], axes: Sequence[Coordinate], room: tuple[int, int]) -> tuple[int, int]:
    """Return width and height of a picture that fits ``room``; its proportions are those of the coordinates.

    Without axes, cells are square.
    """
    ratio = 1.0
    if axes:
        (left, right), (first, last) = ends(axes[1]), ends(axes[0])
        ratio = ((last - first) / shape[0]) / ((right - left) / shape[1]) if right > left and last > first else 1.0
    ratio = min(max(ratio, 1 / _MOST_STRETCHED), _MOST_STRETCHED)  # height of a cell over its width
    rows, columns = shape[0] * max(ratio, 1.0), shape[1] * max(1 / ratio, 1.0)
    scale = min(room[0] / columns, room[1] / rows)
    scale = float(int(scale)) if scale >= 1 else scale
    return max(1, round(columns * scale)), max(1, round(rows * scale))


def history_size(shape: tuple[int, ...], room: tuple[int, int]) -> tuple[int, int]:
    """Return width and height of a space-time diagram; its cells are squares unless one side is much longer."""
    width, height = pixels_of(shape, (), room)
    return max(width, _least(shape[1], room[0])), max(height, _least(shape[0], room[1]))


def _least(cells: int, room: int) -> int:
    """Return a quarter of the room, as a whole number of pixels for each cell if possible."""
    quarter = max(1, room // _LEAST_PART)
    return cells * (quarter // cells) if cells <= quarter else quarter


def ends(axis: Coordinate) -> tuple[float, float]:
    """Return the outer edges of the first and last point along an axis."""
    values = axis.values
    if not is_even(axis):
        faces = axis.edges
        return float(faces[0]), float(faces[-1])
    half = 0.5 * (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 0.5
    return float(values[0] - half), float(values[-1] + half)
