"""Figures of measurements next to a paper's results: panels with curves, and lines and bands for its numbers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from minga.output.directory import disk_errors

__all__ = ["draw_panels", "panel"]

_STYLES: Final = ("-", "--", "-.", ":")
_ACROSS: Final = 3
_WORDS_A_LINE: Final = 62
_LABEL: Final = 13
"""Letters per line in a label of bars."""


def panel(
    x: Sequence[float],
    curves: Mapping[str, Sequence[float | None]],
    xlabel: str,
    ylabel: str,
    *,
    logarithmic: str = "",
    lines: Mapping[str, float] | None = None,
    bands: Mapping[str, tuple[float, float]] | None = None,
    labels: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return one panel as plain data.

    Parameters
    ----------
    x, curves
        Places and values by name; values may have gaps (None).
    xlabel, ylabel
        Labels of the axes.
    logarithmic
        Names of logarithmic axes, such as "xy".
    lines, bands
        Levels and ranges of the paper, by their captions.
    labels
        Labels of the places; values are then drawn as bars.
    """
    return {
        "x": [float(place) for place in x],
        "curves": {name: [None if v is None else float(v) for v in values] for name, values in curves.items()},
        "xlabel": xlabel,
        "ylabel": ylabel,
        "logarithmic": logarithmic,
        "lines": dict(lines or {}),
        "bands": {name: list(ends) for name, ends in (bands or {}).items()},
        **({} if labels is None else {"labels": list(labels)}),
    }


def draw_panels(panels: Sequence[Mapping[str, Any]], file: Path, *, title: str, claim: str = "") -> Path:
    """Draw panels, three in a row, into ``file`` (.png or .svg), with the paper's claim below, and return it."""
    from matplotlib.figure import Figure

    across = min(len(panels), _ACROSS)
    rows = -(-len(panels) // across)
    words = textwrap.fill(claim, _WORDS_A_LINE * across)
    size = (4.8 * across + 0.6, 3.8 * rows + 0.5 + 0.16 * len(words.splitlines()))
    figure = Figure(figsize=size, layout="constrained")
    places = list(figure.subplots(rows, across, squeeze=False).flat)
    for axes, one in zip(places, panels, strict=False):
        _draw(axes, one)
    for axes in places[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(title, fontsize=11)
    if words:
        figure.supxlabel(f"The paper: {words}", fontsize=8, color="0.35", ha="left", x=0.02)
    with disk_errors(file):
        figure.savefig(file, dpi=110, metadata={"Date": None} if file.suffix == ".svg" else None)
    return file


def _draw(axes: Any, one: Mapping[str, Any]) -> None:
    """Draw curves, or groups of bars if the places have ``labels``."""
    names = list(one["curves"])
    for number, name in enumerate(names):
        values = [math.nan if value is None else value for value in one["curves"][name]]
        if "labels" in one:
            width = 0.8 / len(names)
            axes.bar([x + (number - (len(names) - 1) / 2) * width for x in one["x"]], values, width, label=name)
        else:
            axes.plot(one["x"], values, _STYLES[number // 10 % 4], marker=".", label=name, linewidth=1.2)
    if "labels" in one:
        axes.set_xticks(
            one["x"], [textwrap.fill(label, _LABEL, break_long_words=False) for label in one["labels"]], fontsize=6
        )
    for name, level in one["lines"].items():
        axes.axhline(level, color="0.45", linewidth=0.9, linestyle="--")
        axes.annotate(name, (0.01, level), xycoords=("axes fraction", "data"), va="bottom", fontsize=7, color="0.35")
    for name, (low, high) in one["bands"].items():
        axes.axhspan(low, high, color="0.85", zorder=0)
        axes.annotate(name, (0.01, high), xycoords=("axes fraction", "data"), va="top", fontsize=7, color="0.35")
    axes.set(xlabel=one["xlabel"], ylabel=one["ylabel"])
    if "x" in one["logarithmic"]:
        axes.set_xscale("log")
    if "y" in one["logarithmic"]:
        axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.3)
    if names:
        axes.legend(frameon=False, fontsize=7)
