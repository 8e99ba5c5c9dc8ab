"""Fields as pictures: crisp cells for integers, a smooth scale with a colour bar for floats, a middle slice in 3-D.

Drawn without a screen (Agg), one PNG a frame. All frames of a field share one colour scale, so that they compare. The
frames of integers on one axis are the rows of one picture, the space-time diagram.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.record.directory import disk_errors
from minga.record.store import FrameReader
from minga.record.variables import Coordinate

__all__ = ["chosen_frames", "draw", "draw_run", "plane"]

_DPI = 100
_LONGEST_CELLS, _LONGEST_FIELD, _SHORTEST = 1100, 720, 40
"""Pixels of the longer side of a picture (single cells want more), and of the shorter one at least."""
_LEFT, _RIGHT, _BELOW, _ABOVE, _BAR = 75, 120, 50, 35, 500
_MOST_STRETCHED = 4.0
_MOST_ROWS, _MOST_TICKS = 4096, 9
"""Frames in a space-time diagram, and labels along it."""
_FEW_STATES = 16
_STATE_COLOURS = ("#f7f5ef", "#3b7a4b", "#c8381e", "#1f3b57", "#e0a526", "#6a4c93")

Values = NDArray[Any]


def chosen_frames(count: int, most: int) -> list[int]:
    """At most ``most`` of ``count`` frames: every one, every second, ..., and the last in any case."""
    if most < 2:
        return list(range(count))[-1:] if most else []
    stride = max(1, -(-(count - 1) // (most - 1)))
    return sorted({*range(0, count, stride), *range(count)[-1:]})


def draw_run(store: Path, folder: Path, most: int = 16) -> list[Path]:
    """Draw the frames of all fields of a run into ``folder``; the files, in order of fields and steps."""
    reader = FrameReader.open(store)
    frames = chosen_frames(len(reader.steps), most)
    if not frames:
        return []
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
    width = len(str(reader.steps[-1]))
    drawn = []
    for field in reader.fields:
        coordinates, attributes = reader.coordinates(field), reader.attributes(field)
        if len(coordinates) == 1 and reader.frame(field).dtype.kind in "bui":
            drawn.append(_draw_history(reader, field, folder))
            continue
        limits = _limits([reader.frame(field, index) for index in frames])
        for index in frames:
            step = reader.steps[index]
            path = folder / f"{field}-{step:0{width}d}.png"
            draw(path, reader.frame(field, index), field, coordinates, attributes, title=f"step {step}", limits=limits)
            drawn.append(path)
    return drawn


def draw(
    path: Path,
    values: Values,
    name: str,
    coordinates: Sequence[Coordinate],
    attributes: dict[str, Any],
    title: str = "",
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw one frame of a field of any number of axes into a PNG file; RunError where the disk refuses.

    ``limits`` are the ends of the colour scale; by default those of the values.
    """
    image, axes, where = plane(values, coordinates)
    ends = limits or _limits([values])
    label = name if attributes.get("units", "1") == "1" else f"{name} ({attributes['units']})"
    title = ", ".join(part for part in (title, *where) if part)
    if image.ndim == 1 and image.dtype.kind in "bui":
        figure = _image(image[np.newaxis], [Coordinate("", np.zeros(1), {}), *axes], label, title, ends, square=True)
        figure.axes[0].set_yticks([])
    else:
        figure = (_line if image.ndim == 1 else _image)(image, axes, label, title, ends)
    with disk_errors(path):
        _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.partial")
    figure.savefig(temporary, dpi=_DPI, format="png")
    temporary.replace(path)


def _draw_history(reader: FrameReader, field: str, folder: Path) -> Path:
    """Draw all frames of a field on one axis into FIELD.png, the first on top."""
    rows = chosen_frames(len(reader.steps), _MOST_ROWS)
    steps = [reader.steps[index] for index in rows]
    path = folder / f"{field}.png"
    cells = np.stack([reader.frame(field, index) for index in rows])
    axes = [Coordinate("step", np.arange(len(rows), dtype=np.float64), {}), *reader.coordinates(field)]
    with disk_errors(path):
        figure = _image(cells, axes, field, "", _limits([cells]), square=True)
        plot = figure.axes[0]
        shown = sorted({round(place) for place in np.linspace(0, len(rows) - 1, min(len(rows), _MOST_TICKS))})
        plot.set_yticks(shown, [str(steps[row]) for row in shown])
        _save(figure, path)
    return path


def plane(values: Values, coordinates: Sequence[Coordinate]) -> tuple[Values, list[Coordinate], list[str]]:
    """The part of a field that can be drawn: its last two axes at the middle of the others, and which that is."""
    where = []
    axes = list(coordinates)
    while values.ndim > 2:
        middle = values.shape[0] // 2
        where.append(f"{axes[0].name} = {axes[0].values[middle]:g}")
        values, axes = values[middle], axes[1:]
    return values, axes, where


def _limits(frames: Sequence[Values]) -> tuple[float, float]:
    """Ends of a colour scale that holds all finite values of all frames."""
    finite = [f if f.dtype.kind != "f" else f[np.isfinite(f)] for f in frames]
    finite = [f for f in finite if f.size]
    if not finite:
        return 0.0, 1.0
    return float(min(f.min() for f in finite)), float(max(f.max() for f in finite))


def _image(
    image: Values,
    axes: list[Coordinate],
    label: str,
    title: str,
    limits: tuple[float, float],
    square: bool = False,
) -> Any:
    """A picture of two axes, in which a cell is a whole number of pixels where there is room.

    The proportions are those of the coordinates, or of `square` cells.

    Integers are drawn as rules and patterns are written, the first axis downwards; floats as graphs are, upwards.
    """
    discrete = image.dtype.kind in "bui"
    wide, high = _pixels(image.shape, [] if square else axes, _LONGEST_CELLS if discrete else _LONGEST_FIELD)
    figure, plot, bar = _frame(wide, high)
    states = int(limits[1] - limits[0]) + 1
    few = discrete and states <= _FEW_STATES
    (left, right), (first, last) = _ends(axes[1]), _ends(axes[0])
    shown = plot.imshow(
        image.astype(np.int64) if discrete else image,
        aspect="auto",
        interpolation="nearest" if wide >= image.shape[1] and high >= image.shape[0] else "antialiased",
        interpolation_stage="rgba",
        origin="upper" if discrete else "lower",
        extent=(left, right, last, first) if discrete else (left, right, first, last),
        **(_few_states(states, limits[0]) if few else {"vmin": limits[0], "vmax": limits[1], "cmap": "viridis"}),
    )
    if states > 1 or not discrete:
        figure.colorbar(shown, cax=bar, label=label, ticks=np.arange(states) + limits[0] if few else None)
    else:
        bar.remove()
    plot.set(xlabel=_axis_label(axes[1]), ylabel=_axis_label(axes[0]), title=f"{label}, {title}" if title else label)
    return figure


def _frame(wide: int, high: int) -> tuple[Any, Any, Any]:
    """A figure with room for a picture of ``wide`` x ``high`` pixels exactly, and for a bar beside it."""
    from matplotlib.figure import Figure

    width, height = wide + _LEFT + _RIGHT, high + _BELOW + _ABOVE
    figure = Figure(figsize=(width / _DPI, height / _DPI))
    plot = figure.add_axes((_LEFT / width, _BELOW / height, wide / width, high / height))
    tall = min(high, _BAR)
    middle = _BELOW + (high - tall) / 2
    bar = figure.add_axes(((_LEFT + wide + 20) / width, middle / height, 15 / width, tall / height))
    return figure, plot, bar


def _line(values: Values, axes: list[Coordinate], label: str, title: str, limits: tuple[float, float]) -> Any:
    """A graph over one axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    plot = figure.add_subplot()
    discrete = values.dtype.kind in "bui"
    plot.plot(axes[0].values, values, drawstyle="steps-mid" if discrete else "default")
    margin = 0.05 * (limits[1] - limits[0]) or 0.5
    plot.set_ylim(limits[0] - margin, limits[1] + margin)
    plot.set(xlabel=_axis_label(axes[0]), ylabel=label, title=title)
    return figure


def _few_states(states: int, lowest: float) -> dict[str, Any]:
    """One colour a state: light for the lowest, so that sparse patterns look as they do in books, others well apart."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colours: list[Any] = ["#f7f5ef", "#1f3b57"]
    if 2 < states <= len(_STATE_COLOURS):
        colours = list(_STATE_COLOURS[:states])
    elif states > 2:
        colours = [colours[0], *map(tuple, colormaps["turbo"](np.linspace(0.08, 0.92, states - 1)))]
    edges = np.arange(max(states, 2) + 1) + lowest - 0.5
    return {"cmap": ListedColormap(colours), "norm": BoundaryNorm(edges, max(states, 2))}


def _pixels(shape: tuple[int, ...], axes: list[Coordinate], longest: int) -> tuple[int, int]:
    """Width and height of a picture: its longer side near ``longest``, its proportions those of the coordinates.

    Without axes, a cell is as high as it is wide.
    """
    ratio = 1.0
    if axes:
        (left, right), (first, last) = _ends(axes[1]), _ends(axes[0])
        ratio = ((last - first) / shape[0]) / ((right - left) / shape[1]) if right > left and last > first else 1.0
    ratio = min(max(ratio, 1 / _MOST_STRETCHED), _MOST_STRETCHED)  # height of a cell over its width
    rows, columns = shape[0] * max(ratio, 1.0), shape[1] * max(1 / ratio, 1.0)
    scale = longest / max(rows, columns)
    scale = float(int(scale)) if scale >= 1 else scale
    return max(_SHORTEST, round(columns * scale)), max(_SHORTEST, round(rows * scale))


def _ends(axis: Coordinate) -> tuple[float, float]:
    """The outer edges of the first and last point along an axis, for evenly drawn cells."""
    values = axis.values
    half = 0.5 * (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 0.5
    return float(values[0] - half), float(values[-1] + half)


def _axis_label(axis: Coordinate) -> str:
    units = axis.attributes.get("units", "1")
    return axis.name if units == "1" else f"{axis.name} ({units})"
