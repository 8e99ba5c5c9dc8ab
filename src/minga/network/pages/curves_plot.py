"""Figure with a curve for each machine, as in the thesis of F. Tinetti (Appendix C, Figures C.6 to C.15).

There is one row for each transport and encoding: time against size on the left, MB/s on the right, all axes
logarithmic.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from minga.network.measuring.curves import Curve
from minga.network.measuring.sampling import Sample
from minga.network.pages.network_plot import save_figure

__all__ = ["curves_figure", "draw_curves", "panels"]

_MEGABYTE: Final = 1e6
_ENCODINGS: Final = {
    "none": "",
    "translated": ", translated by the receiver",
    "xdr": ", XDR at both ends",
    "pickled": ", pickled",
}
_NAMES: Final = {"tcp-nagle": "TCP in two writes, with Nagle's algorithm", "udpbcast": "UDP broadcast"}

Panels = dict[str, dict[str, dict[int, float]]]


def panels(section: Mapping[str, Any]) -> Panels:
    """Return the data of each panel in drawing order: median seconds by bytes for each machine or library."""
    found: Panels = {}
    for data in section.get("machines", ()):
        curve = Curve.from_dict(data)
        title = _NAMES.get(curve.transport, curve.transport.upper()) + _ENCODINGS[curve.encoding]
        found.setdefault(title, {})[curve.name] = curve.medians()
    for entry in section.get("libraries", ()):
        title = f"MPI, {entry['between']}"
        samples = (Sample.from_dict(data) for data in entry["samples"])
        found.setdefault(title, {})[entry["library"]] = {s.size: s.summary.median for s in samples if s.size}
    return found


def draw_curves(section: Mapping[str, Any], file: Path) -> Path:
    """Draw the curves of a section into ``file`` (.svg or .png), and return its path."""
    return save_figure(curves_figure(section), file)


def curves_figure(section: Mapping[str, Any]) -> Any:
    """Return the figure that :func:`draw_curves` draws; panels share their axes, so they can be compared by eye."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    chosen = panels(section)
    hubs = {data["hub_name"] for data in section.get("machines", ())}
    names = list(dict.fromkeys(name for lines in chosen.values() for name in lines))
    colours = {name: colormaps["tab20"](at % 20) for at, name in enumerate(names)}
    high = 1.2 + 2.6 * max(1, len(chosen))
    figure = Figure(figsize=(10, high))
    # Margins are given in inches, since an automatic layout takes seconds with so many axes.
    figure.subplots_adjust(0.08, 0.5 / high, 0.98, 1 - 0.7 / high, wspace=0.18, hspace=0.32)
    axes = figure.subplots(max(1, len(chosen)), 2, sharex=True, sharey="col", squeeze=False)
    for (left, right), (title, lines) in zip(axes, chosen.items()):
        for name, times in lines.items():
            sizes, seconds = list(times), list(times.values())
            look = {"color": colours[name], "label": name, "linewidth": 1.1, "markersize": 3.5}
            left.plot(sizes, seconds, "o-", **look)
            right.plot(sizes, [size / s / _MEGABYTE for size, s in times.items()], "o-", **look)
        left.set(title=title, ylabel="time one way (s)", xscale="log", yscale="log")
        right.set(ylabel="MB/s", xscale="log", yscale="log")
        for plot in (left, right):
            plot.grid(True, which="major", alpha=0.3)
        if lines:
            left.legend(loc="upper left", fontsize=7)
    for plot in axes[-1]:
        plot.set_xlabel("message (bytes)")
    if hubs:
        figure.suptitle(f"between {', '.join(sorted(hubs))} and each machine", y=1 - 0.2 / high)
    return figure
