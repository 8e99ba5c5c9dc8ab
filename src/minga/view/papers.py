"""Figures for papers: a column wide, with units on every axis, vector graphics but for the cells of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minga.errors import CaseError, suggest
from minga.output.dataset_frames import DatasetFrames
from minga.output.plane import plane_of
from minga.space.names import OBSERVED, OBSERVED_TIMES
from minga.view.colours import LINES, colour_scale
from minga.view.masked import shown_frame
from minga.view.pictures import chosen_frames, label_of, shared_limits, show_plane

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

__all__ = ["paper_figure"]

_MILLIMETRES_AN_INCH: Final = 25.4
_NARROWEST, _WIDEST = 20.0, 1000.0
_FLAT, _TALL = 0.25, 1.5
"""Least and largest height of a picture relative to the width of the figure."""
_LINE: Final = 0.62
"""The same of a graph."""
_MOST_COMPARED: Final = 16
_STYLE: Final[dict[Any, Any]] = {
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
}


def paper_figure(dataset: xarray.Dataset, name: str | None, frame: int, width: float) -> Figure:
    """Return the figure of one frame of a field, or of an observable over time.

    Parameters
    ----------
    dataset
        The dataset of a run.
    name
        A field or an observable; by default the first field.
    frame
        Number of the frame of a field; negative numbers count from the last.
    width
        Width of the figure in mm.

    Raises
    ------
    CaseError
        If there is no such field, observable or frame, or the width is invalid.
    """
    from matplotlib import rc_context

    if not isinstance(width, int | float) or not _NARROWEST <= width <= _WIDEST:
        raise CaseError(
            f"the width of a figure is a number of mm from {_NARROWEST:g} to {_WIDEST:g}, not {width!r}", key="width"
        )
    frames = DatasetFrames(dataset)
    chosen = _name(frames, dataset, name)
    with rc_context(_STYLE):
        if chosen in frames.fields:
            return _field(frames, chosen, frame, width / _MILLIMETRES_AN_INCH)
        return _observable(dataset[chosen], width / _MILLIMETRES_AN_INCH)


def _name(frames: DatasetFrames, dataset: xarray.Dataset, name: str | None) -> str:
    over_time = [str(key) for key, values in dataset.data_vars.items() if values.dims == (OBSERVED,)]
    known = [*frames.fields, *over_time]
    if not known:
        raise CaseError("the dataset has no fields", remedy="take one that mg.run returned")
    if name is not None and name not in known:
        raise CaseError(
            f"the dataset has no field or observable over time {name!r}; it has {', '.join(known)}",
            suggestion=suggest(name, known),
        )
    return known[0] if name is None else name


def _observable(values: xarray.DataArray, width: float) -> Figure:
    figure, plot = _empty(width, _LINE * width)
    timed = OBSERVED_TIMES in values.coords
    over = values[OBSERVED_TIMES if timed else OBSERVED]
    plot.plot(over.values, values.values, color=LINES[0])
    plot.set(xlabel=label_of("time" if timed else "step", over.attrs), ylabel=label_of(str(values.name), values.attrs))
    return figure


def _field(frames: DatasetFrames, name: str, frame: int, width: float) -> Figure:
    attributes, coordinates = frames.attributes(name), frames.coordinates(name)
    values = shown_frame(frames, name, frame)
    count = len(frames.steps)
    compared = sorted({*chosen_frames(count, _MOST_COMPARED), frame % count})
    scale = colour_scale(shared_limits(frames, name, compared), values.dtype, attributes)
    label = label_of(name, attributes, scale)
    plane = plane_of(coordinates, attributes)
    image, axes = plane.laid(values[plane.at]), list(plane.axes)
    if image.ndim == 1:
        figure, plot = _empty(width, _LINE * width)
        plot.plot(
            axes[0].values, image, color=LINES[0], drawstyle="steps-mid" if image.dtype.kind in "bui" else "default"
        )
        plot.set(xlabel=axes[0].label, ylabel=label)
        return figure
    shape = float(np.ptp(axes[0].edges)) / float(np.ptp(axes[1].edges))
    figure, plot = _empty(width, width * min(max(0.75 * shape + 0.1, _FLAT), _TALL))
    shown = show_plane(plot, image, axes, scale, upwards=plane.upwards(values.dtype))
    plot.set_aspect("equal" if _FLAT <= shape <= _TALL else "auto")
    states = np.arange(len(scale.palette)) + scale.low if scale.states else None
    ends = "both" if scale.clipped else "neither"  # pointed ends: some values lie beyond
    figure.colorbar(shown, ax=plot, label=label, ticks=states, extend=ends)
    plot.set(xlabel=axes[1].label, ylabel=axes[0].label, title=", ".join(plane.where))
    return figure


def _empty(width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=300)
    return figure, figure.add_subplot()
