"""Several curves over one axis, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from minga.record.directory import disk_errors

__all__ = ["draw_curves"]


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
    """Draw curves by name over ``x`` into ``file`` (.svg or .png); returns it. ``marks``: upright lines by name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    styles = ("-", "--", "-.", ":")
    for number, (name, values) in enumerate(curves.items()):
        axes.plot(x, values, styles[number // 10 % 4], marker="." if len(x) < 40 else None, label=name, linewidth=1.2)
    for name, place in (marks or {}).items():
        axes.axvline(place, color="0.6", linewidth=0.8)
        axes.annotate(name, (place, 1.0), xycoords=("data", "axes fraction"), va="top", fontsize=7, color="0.4")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if logarithmic:
        axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False, fontsize=7)
    with disk_errors(file):
        figure.savefig(file, dpi=110, metadata={"Date": None} if file.suffix == ".svg" else None)
    return file
