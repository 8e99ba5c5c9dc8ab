"""Draw the pictures of docs/gallery.md from the cases that ship with minga: `make gallery`.

Names on the command line draw only these. Each picture is one state of the case as it ships, or with the settings
named here, a part of the grid where a whole one would be too large.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw
import xarray
from numpy.typing import NDArray

import minga as mg
from minga.cli.case import find_source, read_case
from minga.output.plane import plane_of
from minga.output.variables import Coordinate
from minga.view.colours import colour_scale, limits_of
from minga.view.section import section

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "gallery"
MOST_BYTES = 40_000
SIDE = 512
"""Pixels of a picture's longer side, about."""
LIGHT, ROOF, WEST, EAST = (np.array(c) for c in ((247, 245, 239), (224, 165, 38), (31, 59, 87), (200, 56, 30)))
CUBE = 6
"""Half the width of a cube in pixels."""

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn of a case.

    settings  entries that differ from the case's, as for --set
    part      rows and columns that are shown; all where empty
    step      the state that is shown; None: the last
    history   one axis: the rows are the states 0, 1, ...
    cubes     three axes: live cells are cubes in space
    section   three axes: the part of the plane the field asks for that its model keeps, with its axes
    """

    settings: tuple[str, ...] = ()
    part: tuple[slice, ...] = ()
    step: int | None = None
    history: bool = False
    cubes: bool = False
    section: bool = False


PICTURES: Mapping[str, Picture] = {
    "life": Picture(part=(slice(196, 316), slice(196, 316)), step=200),
    "highlife": Picture(part=(slice(56, 200), slice(56, 200))),
    "day-and-night": Picture(),
    "brians-brain": Picture(step=150, part=(slice(0, 170), slice(0, 170))),
    "wireworld": Picture(),
    "langtons-loop": Picture(part=(slice(20, 118), slice(30, 146))),
    "forest-fire": Picture(part=(slice(0, 256), slice(0, 256))),
    "sandpile": Picture(),
    "critters": Picture(),
    "billiard-balls": Picture(step=100),
    "ising": Picture(part=(slice(0, 256), slice(0, 256))),
    "traffic": Picture(history=True),
    "cyclic": Picture(part=(slice(0, 256), slice(0, 256))),
    "gray-scott": Picture(),
    "laplace": Picture(),
    "bugs": Picture(),
    "life-3d": Picture(cubes=True),
    "rtm": Picture(section=True),
}


def draw(name: str, picture: Picture) -> Path:
    """Run a case and draw it."""
    case = read_case(find_source(name), picture.settings)
    steps = case.run.steps if picture.step is None else picture.step
    shown = case.fields[0].name
    left = mg.run(case.model, steps=steps, every=1 if picture.history else None, fields=[shown], threads=2)[shown]
    values = np.asarray(left) if picture.history else np.asarray(left[-1])
    path = FOLDER / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    if picture.section:
        path.write_bytes(_small(_section(left[-1], case.model.window)))
        return path
    scale = colour_scale(limits_of([values]), values.dtype, left.attrs)
    image = _cubes(values) if picture.cubes else scale.rgb(values)
    if picture.part:
        image = image[picture.part]
    if values.dtype.kind == "f" and not picture.cubes:
        image = image[::-1]
    path.write_bytes(_small(_enlarged(image)))
    return path


def _section(frame: xarray.DataArray, window: mg.Box) -> Values:
    """The picture of a vertical section, as a run's report has it."""
    inside = frame.isel({str(name): part for name, part in zip(frame.dims, window.slices((0, 0, 0)))})
    axes = [Coordinate(str(name), np.asarray(inside[name]), {}) for name in inside.dims]
    plane = plane_of(axes, frame.attrs)
    drawn = section(np.asarray(inside)[plane.at], plane.axes[0], plane.axes[1], ", ".join(plane.where) + " m")
    return np.asarray(PIL.Image.open(io.BytesIO(drawn)).convert("RGB"))


def _enlarged(image: Values) -> Values:
    """A cell is a whole number of pixels."""
    factor = max(1, SIDE // max(image.shape[:2]))
    return image.repeat(factor, axis=0).repeat(factor, axis=1)


def _small(image: Values) -> bytes:
    """A PNG with a palette of at most MOST_BYTES, with fewer shades where it must be."""
    picture = PIL.Image.fromarray(np.ascontiguousarray(image))
    for shades in (256, 128, 64, 32, 16):
        stream = io.BytesIO()
        picture.quantize(shades, dither=PIL.Image.Dither.NONE).save(stream, "PNG", optimize=True)
        if stream.tell() <= MOST_BYTES:
            break
    return stream.getvalue()


def _cubes(cells: Values) -> Values:
    """Live cells of three axes as cubes, seen along the diagonal; what is nearer hides what is behind."""
    half, rise = CUBE, CUBE // 2
    n = max(cells.shape)
    picture = PIL.Image.new("RGB", (2 * n * half, 2 * n * (half + rise) - n * half), tuple(LIGHT))
    draw = PIL.ImageDraw.Draw(picture)
    live = np.argwhere(cells)
    for z, y, x in live[np.argsort(live.sum(axis=1), kind="stable")]:  # z up; y and x come towards us
        left, top = n * half + (x - y) * half, (x + y) * rise + (n - 1 - z) * half
        shade = 0.35 + 0.65 * (x + y + z) / (3 * n)
        roof = [(left, top), (left + half, top + rise), (left, top + half), (left - half, top + rise)]
        west = [roof[3], roof[2], (left, top + 2 * half), (left - half, top + rise + half)]
        east = [roof[2], roof[1], (left + half, top + rise + half), (left, top + 2 * half)]
        for face, colour in ((roof, ROOF), (west, WEST), (east, EAST)):
            draw.polygon(face, fill=tuple((LIGHT + (colour - LIGHT) * shade).astype(int)))
    return np.asarray(picture)


def main(names: list[str]) -> None:
    for name in names or PICTURES:
        path = draw(name, PICTURES[name])
        print(f"{path.relative_to(FOLDER.parents[2])}  {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
