"""Solids of a run in three dimensions, such as a deposit that grows: a lit surface, coloured by the time of its growth.

The solid consists of the cells that a model leaves out of its frames (`minga.view.masked`). Its surface consists of
their faces towards other cells; each corner is moved to the middle of the faces that meet there, which rounds cubes
off. The report turns the surface in the browser (``scene.js``) from the numbers of the frames in which cells became
solid; the picture that stands for it without WebGL is drawn here.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.output.frame_source import FrameSource, time_of
from minga.output.variables import LEFT_OUT
from minga.view.colours import smooth_palette
from minga.view.masked import left_out
from minga.view.pictures import chosen_frames
from minga.view.thinning import edges_thinned, strides_within, thinned

__all__ = ["Solid", "Surface", "solid_of", "solid_picture", "surface_of"]

Floats = NDArray[np.float64]

MOST_CELLS: Final = 1_200_000
"""Largest number of cells that a page receives, one byte each; of larger grids every second, third, ... cell."""
MOST_FRAMES: Final = 60
"""Largest number of frames whose solids are told apart."""
_VIEW: Final = (0.62, 0.42)
"""Angles of the picture, rad: around the first axis, and above the horizon."""
_LIGHT: Final = (0.35, 0.8, 0.5)
"""Direction of the light: to the right, up, towards the viewer."""
_AMBIENT: Final = 0.35
"""Brightness of what turns away from the light."""
_GRAZING: Final = 0.3
"""Cosine between a normal and the direction away from the viewer up to which a face is drawn."""
_POINTS: Final = 1.2
"""Points that are drawn for each pixel along a face."""
_INK: Final = (70, 80, 86)
"""Colour of the box around the cells."""


@dataclass(frozen=True, slots=True)
class Solid:
    """Solid cells of a run in three dimensions.

    Attributes
    ----------
    born
        For each cell, 1 + the number of the frame (of those in `steps`) in which it is solid first, or 0 if it never
        is; u1.
    faces
        Positions of the faces of cells along each axis; the first axis is drawn upwards.
    axes
        Names of the axes.
    steps
        Step of each frame.
    times
        Time of each frame with its unit; empty texts for models without time.
    """

    born: NDArray[np.uint8]
    faces: tuple[Floats, Floats, Floats]
    axes: tuple[str, str, str]
    steps: tuple[int, ...]
    times: tuple[str, ...]

    @property
    def palette(self) -> NDArray[np.uint8]:
        """Red, green and blue of each frame, from the first to the last."""
        return smooth_palette(len(self.steps))

    @property
    def colours(self) -> list[str]:
        """The palette as CSS writes it."""
        return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in self.palette.tolist()]

    @property
    def data(self) -> dict[str, Any]:
        """Numbers that ``scene.js`` draws, for JSON; `born` in row-major order, in base64."""
        return {
            "shape": self.born.shape,
            "faces": [[float(f"{place:.6g}") for place in edges] for edges in self.faces],
            "colours": self.colours,
            "steps": self.steps,
            "times": self.times,
            "born": base64.b64encode(self.born.tobytes()).decode(),
        }


def solid_of(reader: FrameSource) -> Solid | None:
    """Return the solid cells of a run; None if it has no three axes, or if no cell is ever solid."""
    mask = str(reader.attrs.get(LEFT_OUT, ""))
    if mask not in reader.fields or len(reader.coordinates(mask)) != 3 or not reader.steps:
        return None
    coordinates = reader.coordinates(mask)
    chosen = chosen_frames(len(reader.steps), MOST_FRAMES)
    names = [axis.name for axis in coordinates]
    shape = tuple(len(axis.values) for axis in coordinates)
    born, strides = np.zeros(shape, np.uint8), strides_within(shape, MOST_CELLS)
    for number, index in reversed(list(enumerate(chosen, 1))):
        solid = left_out(reader, names, index)
        if solid is not None:
            born[solid] = number
    if not born.any():
        return None
    faces = tuple(edges_thinned(axis.edges, stride) for axis, stride in zip(coordinates, strides, strict=True))
    kept = thinned(born, strides)
    times = tuple(time_of(reader, index) for index in chosen)
    return Solid(kept, faces, tuple(names), tuple(reader.steps[i] for i in chosen), times)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Surface:
    """Surface of a solid, made of quadrilaterals.

    Attributes
    ----------
    points
        Positions of the corners, shape (corners, 3).
    normals
        Unit vectors out of the solid at the corners, shape (corners, 3).
    quads
        Numbers of the four corners of each face, in order around it, shape (faces, 4).
    cells
        Row-major number of the solid cell of each face.
    """

    points: Floats
    normals: Floats
    quads: NDArray[np.int64]
    cells: NDArray[np.int64]


def surface_of(solid: NDArray[np.bool_], faces: tuple[Floats, Floats, Floats]) -> Surface:
    """Return the rounded surface of solid cells, closed at the ends of the grid.

    Parameters
    ----------
    solid
        Solid cells.
    faces
        Positions of the faces of cells along each axis.
    """
    own, solid = np.pad(np.arange(solid.size).reshape(solid.shape), 1), np.pad(solid, 1)
    shape = tuple(length + 1 for length in solid.shape)
    nodes = np.arange(int(np.prod(shape))).reshape(shape)
    quads, cells, outwards = [], [], []
    for axis in range(3):
        low, high = (np.moveaxis(solid, axis, 0)[part] for part in (slice(None, -1), slice(1, None)))
        corner, cell = np.moveaxis(nodes, axis, 0)[1:-1], np.moveaxis(own, axis, 0)
        square = np.stack([corner[:, :-1, :-1], corner[:, 1:, :-1], corner[:, 1:, 1:], corner[:, :-1, 1:]], -1)
        for side, there in ((1.0, low & ~high), (-1.0, high & ~low)):
            quads.append(square[there])
            cells.append((cell[:-1] if side > 0 else cell[1:])[there])
            normal = np.zeros((int(there.sum()), 3))
            normal[:, axis] = side
            outwards.append(normal)
    used, quad = np.unique(np.concatenate(quads), return_inverse=True)
    quad = quad.reshape(-1, 4)
    places = np.unravel_index(used, nodes.shape)
    corners = np.stack([np.pad(edges, 1, "edge")[place] for edges, place in zip(faces, places, strict=True)], -1)
    normals, points, count = np.zeros_like(corners), np.zeros_like(corners), np.zeros(len(corners))
    middles, normal = corners[quad].mean(axis=1), np.concatenate(outwards)
    for place in range(4):
        np.add.at(points, quad[:, place], middles)
        np.add.at(normals, quad[:, place], normal)
        np.add.at(count, quad[:, place], 1.0)
    sizes = np.sqrt((normals * normals).sum(axis=1, keepdims=True))
    return Surface(points / count[:, None], normals / np.where(sizes > 0, sizes, 1.0), quad, np.concatenate(cells))


def solid_picture(solid: Solid, size: int = 480) -> bytes:
    """Return a PNG picture of a solid, lit and seen from the side, coloured by time."""
    from PIL import Image, ImageDraw

    surface = surface_of(solid.born > 0, solid.faces)
    low, high = (np.array([edges[end] for edges in solid.faces]) for end in (0, -1))
    radius = 0.5 * float(np.linalg.norm(high - low))

    def seen(points: Floats) -> Floats:
        """Pixels to the right, pixels downwards, and nearness."""
        turned = (points - 0.5 * (low + high)) @ _axes_of_view().T / radius
        return np.stack([0.5 + 0.49 * turned[..., 0], 0.5 - 0.49 * turned[..., 1], turned[..., 2]], -1) * [
            size,
            size,
            1,
        ]

    colours = np.zeros((size, size, 4), np.uint8)
    if len(surface.quads):
        light = np.asarray(_LIGHT) / np.linalg.norm(_LIGHT)
        bright = _AMBIENT + (1.0 - _AMBIENT) * np.clip(surface.normals @ _axes_of_view().T @ light, 0.0, 1.0)
        # What is turned away from the viewer lies behind what is not, but rounded faces turn a little further.
        front = (surface.normals @ _axes_of_view()[2])[surface.quads].max(axis=1) > -_GRAZING
        corners, shades = (values[surface.quads[front]] for values in (seen(surface.points), bright))
        fine = int(np.clip(np.ceil(np.ptp(corners[..., :2], axis=1).max() * _POINTS), 2, 40))
        share = (np.arange(fine) + 0.5) / fine
        u, v = (part.ravel() for part in np.meshgrid(share, share))
        weights = np.stack([(1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v])
        born = solid.palette[solid.born.ravel()[surface.cells[front]] - 1]
        for part in np.array_split(
            np.argsort(corners[..., 2].mean(axis=1)), 1 + len(corners) * fine * fine // 4_000_000
        ):
            pixels = np.einsum("qck,cs->qsk", corners[part], weights).reshape(-1, 3)
            tone = np.einsum("qc,cs->qs", shades[part], weights)[..., None] * born[part][:, None, :]
            order = np.argsort(pixels[:, 2], kind="stable")
            x, y = (np.clip(pixels[order, k].astype(int), 0, size - 1) for k in (0, 1))
            colours[y, x, :3], colours[y, x, 3] = np.clip(tone.reshape(-1, 3)[order], 0, 255), 255
    image = Image.new("RGBA", (size, size), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    for axis in range(3):
        for one in (low, high):
            for two in (low, high):
                start = np.insert([one[(axis + 1) % 3], two[(axis + 2) % 3]], 0, low[axis])
                ends = np.stack([start, start])
                ends[1, 0] = high[axis]
                line = seen(np.roll(ends, axis, axis=1))[:, :2]
                pen.line([tuple(map(float, point)) for point in line], fill=_INK, width=1)
    image.alpha_composite(Image.fromarray(colours))
    stream = io.BytesIO()
    image.quantize(128).save(stream, "PNG")
    return stream.getvalue()


def _axes_of_view() -> Floats:
    """Directions to the right, upwards and towards the viewer, as rows over the axes of the grid (the first is up)."""
    around, above = _VIEW
    s, c, rise, flat = np.sin(around), np.cos(around), np.sin(above), np.cos(above)
    return np.array([[0.0, -s, c], [flat, -rise * c, -rise * s], [rise, flat * c, flat * s]])
