"""Pictures of several curves over one axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.drawing import Span
from minga.output.directory import disk_errors
from minga.view.colours import LINES

__all__ = ["curves_figure", "draw_curves"]

Numbers = Sequence[float] | NDArray[np.float64]

_FEW = 40
"""Number of points below which each point of a curve is marked."""
_STYLES = ("-", "--", "-.", ":")


def draw_curves(
    x: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    file: Path,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    logarithmic: bool = False,
    marks: Mapping[str, float] | None = None,
) -> Path:
    """Draw curves by name over ``x`` into ``file`` (.svg or .png) and return it. ``marks``: vertical lines by name."""
    lines = [(name, x, values) for name, values in curves.items()]
    figure = curves_figure(lines, title=title, xlabel=xlabel, ylabel=ylabel, logarithmic=logarithmic, marks=marks or {})
    with disk_errors(file):
        figure.savefig(file, dpi=110, metadata={"Date": None} if file.suffix == ".svg" else None)
    return file


def curves_figure(
    curves: Sequence[tuple[str, Numbers, Numbers]],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    logarithmic: bool = False,
    marks: Mapping[str, float] | None = None,
    spans: Iterable[Span] = (),
    logarithmic_x: bool = False,
    equal: bool = False,
) -> Any:
    """Return a figure of curves.

    Parameters
    ----------
    curves
        For each curve its label, its horizontal and its vertical coordinates.
    title, xlabel, ylabel
        Title and labels of the axes.
    logarithmic
        Whether the vertical axis is logarithmic.
    equal
        Whether a unit is as long on both axes.
    marks
        Vertical lines by name.
    spans
        Parts of the horizontal axis, with names that are shown along the upper edge.
    logarithmic_x
        Whether the horizontal axis is logarithmic.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for number, (name, x, values) in enumerate(curves):
        style = _STYLES[number // len(LINES) % len(_STYLES)]
        colour, marker = LINES[number % len(LINES)], "." if len(x) < _FEW else None
        axes.plot(x, values, style, color=colour, marker=marker, label=name, linewidth=1.2)
    for name, place in (marks or {}).items():
        _mark(axes, place, place, name, "left")
    for number, span in enumerate(spans):
        _mark(axes, span.low if number else None, 0.5 * (span.low + span.high), span.name, "center")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if logarithmic:
        axes.set_yscale("log")
    if logarithmic_x:
        axes.set_xscale("log")
    if equal:
        axes.set_aspect("equal", adjustable="datalim")
    axes.grid(visible=True, alpha=0.3)
    axes.margins(x=0.02 if marks else 0)
    if len(curves) > 1:
        axes.legend(frameon=False, fontsize=7 if len(curves) > 4 else 9, loc="best")
    return figure


def _mark(axes: Any, line: float | None, place: float, name: str, align: str) -> None:
    """Draw a thin vertical line, and a name beside it or between two of them."""
    if line is not None:
        axes.axvline(line, color="0.6", linewidth=0.8, zorder=0)
    axes.annotate(
        name,
        (place, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, -4),
        textcoords="offset points",
        ha=align,
        va="top",
        fontsize=7,
        color="0.4",
        annotation_clip=True,
    )
