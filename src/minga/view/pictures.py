"""Fields as pictures: crisp cells for integers, a smooth scale with a colour bar for floats, a middle slice in 3-D.

Drawn without a screen (Agg), one PNG a frame. All frames of a field share one colour scale, so that they compare.
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
_SMALLEST, _LARGEST = 480, 1600
_FEW_STATES = 16

Values = NDArray[Any]


def chosen_frames(count: int, most: int) -> list[int]:
    """At most ``most`` of ``count`` frames, evenly spread, the first and the last among them."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def draw_run(store: Path, folder: Path, most: int = 12) -> list[Path]:
    """Draw the frames of all fields of a run into ``folder``; the files, in order of fields and steps."""
    reader = FrameReader.open(store)
    frames = chosen_frames(len(reader.steps), most)
    if not frames or most < 1:
        return []
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
    width = len(str(reader.steps[-1]))
    drawn = []
    for field in reader.fields:
        coordinates, attributes = reader.coordinates(field), reader.attributes(field)
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
    low, high = limits or _limits([values])
    label = name if attributes.get("units", "1") == "1" else f"{name} ({attributes['units']})"
    title = ", ".join(part for part in (title, *where) if part)
    figure = _line(image, axes, label, title, (low, high)) if image.ndim == 1 else None
    if figure is None:
        figure = _image(image, axes, label, title, (low, high))
    with disk_errors(path):
        temporary = path.with_name(f".{path.name}.partial")
        figure.savefig(temporary, dpi=_DPI, format="png")
        temporary.replace(path)


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


def _image(image: Values, axes: list[Coordinate], label: str, title: str, limits: tuple[float, float]) -> Any:
    """A picture of two axes, drawn as a matrix: the first axis downwards, as rules and patterns are written."""
    from matplotlib.colors import BoundaryNorm
    from matplotlib.figure import Figure

    discrete = image.dtype.kind in "bui"
    rows, columns = image.shape
    figure = Figure(figsize=_size(rows, columns), layout="constrained")
    plot = figure.add_subplot()
    states = int(limits[1] - limits[0]) + 1
    options: dict[str, Any] = {"vmin": limits[0], "vmax": limits[1], "cmap": "viridis"}
    if discrete and states <= _FEW_STATES:
        edges = np.arange(states + 1) + limits[0] - 0.5
        options = {"cmap": _palette(states), "norm": BoundaryNorm(edges, states)}
    shown = plot.imshow(
        image.astype(np.int64) if discrete else image,
        interpolation="nearest" if discrete or max(image.shape) < 200 else "antialiased",
        extent=(*_ends(axes[1]), *_ends(axes[0])[::-1]),
        **options,
    )
    if discrete and states <= _FEW_STATES:
        if states > 1:
            figure.colorbar(shown, label=label, ticks=np.arange(states) + limits[0], shrink=0.6)
    else:
        figure.colorbar(shown, label=label, shrink=0.8)
    plot.set(xlabel=_axis_label(axes[1]), ylabel=_axis_label(axes[0]), title=f"{label}, {title}" if title else label)
    return figure


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


def _palette(states: int) -> Any:
    """Light for state 0, so that sparse automata look like their patterns in books, and well apart for the others."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    if states <= 2:
        return ListedColormap(["#f7f5ef", "#1f3b57"][:states])
    others = colormaps["turbo"](np.linspace(0.08, 0.92, states - 1))
    return ListedColormap([(0.97, 0.96, 0.94, 1.0), *map(tuple, others)])


def _size(rows: int, columns: int) -> tuple[float, float]:
    """Inches of a figure that gives each cell a whole number of pixels where there is room, and keeps the shape."""
    longest = max(rows, columns)
    scale = max(1, _SMALLEST // longest) if longest < _SMALLEST else min(1.0, _LARGEST / longest)
    wide = max(columns * scale, _SMALLEST / 2) + 160
    high = max(rows * scale, _SMALLEST / 3) + 100
    return wide / _DPI, high / _DPI


def _ends(axis: Coordinate) -> tuple[float, float]:
    """The outer edges of the first and last point along an axis, for evenly drawn cells."""
    values = axis.values
    half = 0.5 * (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 0.5
    return float(values[0] - half), float(values[-1] + half)


def _axis_label(axis: Coordinate) -> str:
    units = axis.attributes.get("units", "1")
    return axis.name if units == "1" else f"{axis.name} ({units})"
