"""Fields as pictures: crisp cells for integers, a smooth scale with a colour bar for floats, a slice in 3-D.

Pictures are drawn without a display (Agg), one PNG for each frame. All frames of a field share one colour scale, so
that they can be compared. The frames of integers on one axis are the rows of one picture, the space-time diagram.
"""

from __future__ import annotations

import glob
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.output.directory import appearing, disk_errors
from minga.output.frame_source import FrameSource
from minga.output.plane import plane_of
from minga.output.store import FrameReader
from minga.output.variables import DRAWINGS, Coordinate
from minga.view.colours import LINES, ColourScale, Limits, colour_scale, is_signed, limits_of
from minga.view.masked import shown_frame
from minga.view.raster import ends, is_even, pixels_of

__all__ = [
    "chosen_frames",
    "draw",
    "draw_frame",
    "draw_run",
    "figure_png",
    "frame_figure",
    "frame_png",
    "label_of",
    "shared_limits",
    "show_plane",
]

_DPI = 100
_LONGEST_CELLS, _LONGEST_FIELD, _SHORTEST = 1100, 720, 40
"""Most pixels of the longer side of a picture (of cells and of floats), and least of the shorter side."""
_LEFT, _RIGHT, _BELOW, _ABOVE, _BAR = 75, 120, 50, 35, 500
_MOST_ROWS, _MOST_TICKS, _MOST_LABELS, _MOST_COMPARED = 4096, 9, 24, 16
"""Most frames in a space-time diagram, labels along it, states labelled beside a picture, frames that set a scale."""

Values = NDArray[Any]


def chosen_frames(count: int, most: int) -> list[int]:
    """Return at most ``most`` of ``count`` frames: every one, every second, ..., and always the last."""
    if most < 2:
        return list(range(count))[-1:] if most else []
    stride = max(1, -(-(count - 1) // (most - 1)))
    return sorted({*range(0, count, stride), *range(count)[-1:]})


def draw_run(store: Path, folder: Path, most: int = 16) -> list[Path]:
    """Draw the frames of all fields of a run into ``folder`` and return the files, in order of fields and steps.

    If the model describes drawings of its curves, fields on one axis are left to `minga.view.drawings`.
    """
    reader = FrameReader.open(store)
    frames = chosen_frames(len(reader.steps), most)
    if not frames:
        return []
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
    drawn = []
    together = DRAWINGS in reader.group.attrs
    for field in reader.fields:
        if together and len(reader.coordinates(field)) == 1:
            continue
        if _has_history(reader, field):
            drawn.append(_draw_history(reader, field, folder))
            continue
        limits = shared_limits(reader, field, frames)
        drawn += [_draw_step(reader, field, index, folder, limits) for index in frames]
        _remove_others(folder, field, drawn)
    return drawn


def _remove_others(folder: Path, field: str, drawn: Sequence[Path]) -> None:
    """Remove pictures of a field left by an earlier part of the run: their colours have other meanings."""
    for path in folder.glob(f"{glob.escape(field)}-*.png"):
        if path not in drawn and path.stem[len(field) + 1 :].isdecimal():
            with disk_errors(path):
                path.unlink(missing_ok=True)


def draw_frame(reader: FrameReader, field: str, index: int, folder: Path) -> Path:
    """Return the picture of one frame in ``folder``: the one that `draw_run` drew, or a new one."""
    if _has_history(reader, field):
        path = folder / f"{field}.png"
        return path if path.exists() else _draw_history(reader, field, folder)
    path = _path(reader, field, index, folder)
    if path.exists():
        return path
    compared = {*chosen_frames(len(reader.steps), _MOST_COMPARED), index}
    return _draw_step(reader, field, index, folder, shared_limits(reader, field, sorted(compared)))


def shared_limits(reader: FrameSource, field: str, frames: Sequence[int]) -> Limits:
    """Return the ends of one colour scale for these frames."""
    attributes = reader.attributes(field)
    signed = is_signed(attributes)
    at = plane_of(reader.coordinates(field), attributes).at if signed else ()
    return limits_of((shown_frame(reader, field, index, at) for index in frames), signed)


def _draw_step(reader: FrameReader, field: str, index: int, folder: Path, limits: Limits) -> Path:
    path = _path(reader, field, index, folder)
    attributes, coordinates = reader.attributes(field), reader.coordinates(field)
    title = reader.when(index)
    draw(path, shown_frame(reader, field, index), field, coordinates, attributes, title=title, limits=limits)
    return path


def _path(reader: FrameReader, field: str, index: int, folder: Path) -> Path:
    return folder / f"{field}-{reader.steps[index]:0{len(str(reader.steps[-1]))}d}.png"


def _has_history(reader: FrameReader, field: str) -> bool:
    """Return whether the frames are drawn as the rows of one picture."""
    return len(reader.coordinates(field)) == 1 and reader.dtype(field).kind in "bui"


def draw(
    path: Path,
    values: Values,
    name: str,
    coordinates: Sequence[Coordinate],
    attributes: dict[str, Any],
    title: str = "",
    limits: Limits | None = None,
) -> None:
    """Draw one frame of a field into a PNG file; see `frame_figure`.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    _save(frame_figure(values, name, coordinates, attributes, title, limits), path)


def frame_png(reader: FrameSource, field: str, index: int, frames: Sequence[int]) -> bytes:
    """Return the picture of one frame as a PNG file; its colours are those of all these frames."""
    attributes, coordinates = reader.attributes(field), reader.coordinates(field)
    values, title, limits = shown_frame(reader, field, index), reader.when(index), shared_limits(reader, field, frames)
    return figure_png(frame_figure(values, field, coordinates, attributes, title, limits))


def figure_png(figure: Any) -> bytes:
    """Return a figure as a PNG file."""
    stream = io.BytesIO()
    figure.savefig(stream, dpi=_DPI, format="png")
    return stream.getvalue()


def frame_figure(
    values: Values,
    name: str,
    coordinates: Sequence[Coordinate],
    attributes: dict[str, Any],
    title: str = "",
    limits: Limits | None = None,
) -> Any:
    """Return the figure of one frame of a field with any number of axes.

    ``values`` are those of `minga.view.colours.values_shown`; ``limits`` are the ends of the colour scale, by default
    those of the values.
    """
    plane = plane_of(coordinates, attributes)
    image, axes = plane.laid(values[plane.at]), list(plane.axes)
    if limits is None:
        limits = limits_of([image], signed=True) if is_signed(attributes) else limits_of([values])
    scale = colour_scale(limits, values.dtype, attributes)
    label = label_of(name, attributes, scale)
    title = ", ".join(part for part in (title, *plane.where) if part)
    if image.ndim == 1 and image.dtype.kind in "bui":
        figure = _image(image[np.newaxis], [Coordinate("", np.zeros(1), {}), *axes], label, title, scale, square=True)
        figure.axes[0].set_yticks([])
        return figure
    if image.ndim == 1:
        return _line(image, axes, label, title, scale)
    return _image(image, axes, label, title, scale, upwards=plane.upwards(values.dtype))


def label_of(name: str, attributes: Mapping[str, Any], scale: ColourScale | None = None) -> str:
    """Return the label of an axis or of a colour bar: a name with its unit."""
    label = name if attributes.get("units", "1") == "1" else f"{name} ({attributes['units']})"
    return f"log10 {label}" if scale is not None and scale.logarithmic else label


def _save(figure: Any, path: Path) -> None:
    with appearing(path) as temporary:
        figure.savefig(temporary, dpi=_DPI, format="png")


def _draw_history(reader: FrameReader, field: str, folder: Path) -> Path:
    """Draw all frames of a field on one axis into FIELD.png, the first on top."""
    rows = chosen_frames(len(reader.steps), _MOST_ROWS)
    steps = [reader.steps[index] for index in rows]
    path = folder / f"{field}.png"
    cells = np.stack([reader.frame(field, index) for index in rows])
    axes = [Coordinate("step", np.arange(len(rows), dtype=np.float64), {}), *reader.coordinates(field)]
    scale = colour_scale(limits_of([cells]), cells.dtype, reader.attributes(field))
    figure = _image(cells, axes, field, "", scale, square=True)
    plot = figure.axes[0]
    shown = sorted({round(place) for place in np.linspace(0, len(rows) - 1, min(len(rows), _MOST_TICKS))})
    plot.set_yticks(shown, [str(steps[row]) for row in shown])
    _save(figure, path)
    return path


def _image(
    image: Values,
    axes: list[Coordinate],
    label: str,
    title: str,
    scale: ColourScale,
    square: bool = False,
    upwards: bool = False,
) -> Any:
    """Draw a picture of two axes, in which a cell is a whole number of pixels if there is room.

    The proportions are those of the coordinates, or of `square` cells. The first axis goes downwards, or `upwards`.
    """
    discrete = image.dtype.kind in "bui"
    longest = _LONGEST_CELLS if discrete else _LONGEST_FIELD
    wide, high = (max(_SHORTEST, side) for side in pixels_of(image.shape, [] if square else axes, (longest, longest)))
    figure, plot, bar = _frame(wide, high)
    fits = wide >= image.shape[1] and high >= image.shape[0]
    shown = show_plane(plot, image, axes, scale, square=square, upwards=upwards, crisp=fits)
    if image.min() < image.max() or scale.high > scale.low + 1 or not discrete:
        states = np.arange(len(scale.palette)) + scale.low if scale.states else ()
        ticks = states if 0 < len(states) <= _MOST_LABELS else None
        figure.colorbar(shown, cax=bar, label="\n".join(filter(None, (label, scale.clipped))), ticks=ticks)
        if not discrete:
            bar.ticklabel_format(axis="y", scilimits=(-3, 4))  # long numbers would leave no room for the label
    else:
        bar.remove()
    plot.set(xlabel=axes[1].label, ylabel=axes[0].label, title=f"{label}, {title}" if title else label)
    if axes[1].attributes.get("units", "1") != "1":
        plot.ticklabel_format(scilimits=(-2, 4))  # small lengths would not fit beside the picture
    return figure


def show_plane(
    plot: Any,
    image: Values,
    axes: Sequence[Coordinate],
    scale: ColourScale,
    *,
    square: bool = False,
    upwards: bool = False,
    crisp: bool = True,
) -> Any:
    """Draw the cells of two axes into axes of matplotlib, to scale unless they are `square`, and return the artist."""
    if square or (is_even(axes[0]) and is_even(axes[1])):
        (left, right), (first, last) = ends(axes[1]), ends(axes[0])
        return plot.imshow(
            image.astype(np.int64) if image.dtype.kind in "bui" else image,
            aspect="auto",
            interpolation="nearest" if crisp else "antialiased",
            interpolation_stage="rgba",
            origin="lower" if upwards else "upper",
            extent=(left, right, first, last) if upwards else (left, right, last, first),
            **_colours(scale),
        )
    x, y = (axis.edges for axis in (axes[1], axes[0]))
    shown = plot.pcolormesh(x, y, image, rasterized=True, **_colours(scale))
    plot.set_ylim((y[0], y[-1]) if upwards else (y[-1], y[0]))
    return shown


def _frame(wide: int, high: int) -> tuple[Any, Any, Any]:
    """Return a figure with room for a picture of exactly ``wide`` x ``high`` pixels, and for a bar beside it."""
    from matplotlib.figure import Figure

    width, height = wide + _LEFT + _RIGHT, high + _BELOW + _ABOVE
    figure = Figure(figsize=(width / _DPI, height / _DPI))
    plot = figure.add_axes((_LEFT / width, _BELOW / height, wide / width, high / height))
    tall = min(high, _BAR)
    middle = _BELOW + (high - tall) / 2
    bar = figure.add_axes(((_LEFT + wide + 20) / width, middle / height, 15 / width, tall / height))
    return figure, plot, bar


def _line(values: Values, axes: list[Coordinate], label: str, title: str, scale: ColourScale) -> Any:
    """Draw a graph over one axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    plot = figure.add_subplot()
    discrete = values.dtype.kind in "bui"
    plot.plot(axes[0].values, values, color=LINES[0], drawstyle="steps-mid" if discrete else "default")
    low, high = scale.extremes or (scale.low, scale.high)
    margin = 0.05 * (high - low) or 0.5
    plot.set_ylim(low - margin, high + margin)
    plot.set(xlabel=axes[0].label, ylabel=label, title=title)
    return figure


def _colours(scale: ColourScale) -> dict[str, Any]:
    """Return a scale in terms of matplotlib."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    if not scale.states:
        return {"vmin": scale.low, "vmax": scale.high, "cmap": ListedColormap(scale.hexadecimal)}
    count = len(scale.palette)
    return {
        "cmap": ListedColormap(scale.hexadecimal),
        "norm": BoundaryNorm(np.arange(count + 1) + scale.low - 0.5, count),
    }
