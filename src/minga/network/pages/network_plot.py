"""Figure of time and bandwidth against message size: measured points, fits and breaks, one colour per transport."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.network.measuring.sampling import Sample
from minga.network.measuring.section import link_from
from minga.output.directory import disk_errors

__all__ = ["draw_network", "network_figure", "save_figure"]

_COLOURS = {"icmp": "tab:green", "udp": "tab:orange", "tcp": "tab:blue", "tcp-nagle": "tab:cyan", "mpi": "tab:red"}
_INSIDE = ("tab:purple", "tab:brown", "tab:pink", "tab:olive", "tab:gray")
_MEGABYTE = 1e6


def draw_network(section: Mapping[str, Any], file: Path) -> Path:
    """Draw the ``network`` section of a machine into ``file`` (.svg or .png), and return its path.

    The upper plot shows the one-way time (points: medians; bars: 5th to 95th percentile; lines: fits; marks: breaks),
    the lower one MB/s.
    """
    return save_figure(network_figure(section), file)


def save_figure(figure: Any, file: Path) -> Path:
    """Write a figure as .svg or .png, with the same bytes each time; raise RunError if the file cannot be written."""
    with disk_errors(file):
        figure.savefig(file, dpi=110, metadata={"Date": None} if file.suffix == ".svg" else None)
    return file


def network_figure(section: Mapping[str, Any]) -> Any:
    """Return the figure that :func:`draw_network` draws."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 9))
    figure.subplots_adjust(0.1, 0.06, 0.98, 0.96, hspace=0.05)
    above, below = figure.subplots(2, 1, sharex=True)
    for at, entry in enumerate(section["links"]):
        _draw(above, below, entry, at)
    # Messages of zero bytes are drawn at the left end of the logarithmic axis, which has no zero.
    above.set(ylabel="time one way (s)", xscale="log", yscale="log", title=_title(section))
    below.set(xlabel="message (bytes; 0 is drawn at 0.5)", ylabel="bandwidth (MB/s)", xscale="log", yscale="log")
    for plot in (above, below):
        plot.grid(True, which="major", alpha=0.3)
    if section["links"]:
        above.legend(loc="upper left")
    return figure


def _draw(above: Any, below: Any, entry: Mapping[str, Any], at: int) -> None:
    samples = [sample for sample in map(Sample.from_dict, entry["samples"]) if any(map(math.isfinite, sample.seconds))]
    inside = entry["level"] > 0
    colour = _INSIDE[at % len(_INSIDE)] if inside else _COLOURS.get(entry["transport"], "black")
    label = f"{entry['transport'].upper()}, {entry['between']}" if inside else entry["transport"].upper()
    sizes = np.array([sample.size for sample in samples], float)
    found = [sample.summary for sample in samples]
    median, low, high = (np.array([getattr(one, key) for one in found]) for key in ("median", "p5", "p95"))
    shown = np.maximum(sizes, 0.5)
    errors = np.maximum([median - low, high - median], 0.0)
    above.errorbar(shown, median, errors, fmt=".", color=colour, alpha=0.6, elinewidth=0.8)
    positive = sizes > 0
    below.plot(sizes[positive], sizes[positive] / median[positive] / _MEGABYTE, ".", color=colour, alpha=0.6)
    link = link_from(entry)
    curve = _curve(sizes, [segment.least for segment in link.segments])
    time = link.time(curve)
    visible = time > 0
    above.plot(np.maximum(curve, 0.5)[visible], time[visible], color=colour, linewidth=1.2, label=label)
    moving = visible & (curve > 0)
    below.plot(curve[moving], curve[moving] / time[moving] / _MEGABYTE, color=colour, linewidth=1.2)
    for piece in entry["fit_median"]["pieces"][1:]:
        for plot in (above, below):
            plot.axvline(piece["least"], color=colour, linewidth=0.7, linestyle=":")
        if piece["name"]:
            below.annotate(
                piece["name"], (piece["least"], 0.02), xycoords=("data", "axes fraction"), rotation=90, fontsize=7
            )


def _curve(sizes: NDArray[np.float64], breaks: Sequence[int]) -> NDArray[np.float64]:
    """Return the sizes at which lines are drawn, with points close to breaks on both sides."""
    if len(sizes) == 0:
        return sizes
    most = max(2.0, float(sizes.max()))
    edges = np.array([b + shift for b in breaks[1:] for shift in (-1, 0)], float)
    return np.unique(np.concatenate(([float(sizes.min())], np.geomspace(1, most, 300), edges)))


def _title(section: Mapping[str, Any]) -> str:
    names = ", ".join(section["pairs"]["names"][:6]) + (", ..." if len(section["pairs"]["names"]) > 6 else "")
    return f"{names}: {section['pairs']['medium']['kind']}, {section['library']}"
