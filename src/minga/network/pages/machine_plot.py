"""Figures of a measured machine: its network, a curve for each machine, and the speeds of kernels against size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from minga.network.pages.curves_plot import draw_curves, panels
from minga.network.pages.network_plot import draw_network, save_figure

if TYPE_CHECKING:
    from minga.plan.machine.machine import Machine

__all__ = ["draw_machine"]


def draw_machine(machine: Machine, file: Path) -> list[Path]:
    """Draw the network into ``file``, its machines into FILE-machines and the speeds into FILE-speeds.

    Only measured parts are drawn, and the first one is always written to ``file`` itself.

    Returns
    -------
    list of Path
        The files that were written.
    """
    written: list[Path] = []

    def place(name: str) -> Path:
        return file.with_name(f"{file.stem}-{name}{file.suffix}") if written else file

    network = machine.measured.get("network")
    if network and network["links"]:
        written.append(draw_network(network, file))
    if network and panels(network):
        written.append(draw_curves(network, place("machines")))
    if any(kind.speeds.get("cpu") for kind in machine.nodes):
        written.append(_draw_speeds(machine, place("speeds")))
    return written


def _draw_speeds(machine: Machine, file: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for kind in machine.nodes:
        for key, entry in kind.speeds.get("cpu", {}).items():
            cells = entry.speed.cells
            line = axes.plot(cells, entry.speed.rate(cells), "o-", label=f"{entry.name or key} on {kind.name}")[0]
            for size, samples in zip(entry.cells, entry.seconds, strict=False):
                rates = size / np.array(samples)
                axes.plot(np.full(len(rates), size), rates, ".", color=line.get_color(), alpha=0.15)
    axes.set(xscale="log", yscale="log", xlabel="cells of a core", ylabel="cells/s of a core, all cores busy")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    return save_figure(figure, file)
