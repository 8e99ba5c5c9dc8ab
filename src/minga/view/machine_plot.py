"""A measured machine as pictures: its network, and the speeds of kernels against size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from minga.record.directory import disk_errors
from minga.view.network_plot import draw_network

if TYPE_CHECKING:
    from minga.fit.machine.machine import Machine

__all__ = ["draw_machine"]


def draw_machine(machine: Machine, file: Path) -> list[Path]:
    """Draw the network into ``file`` and the speeds into FILE-speeds; the files that were written."""
    written = []
    network = machine.measured.get("network")
    if network and network["links"]:
        written.append(draw_network(network, file))
    if any(kind.speeds.get("cpu") for kind in machine.nodes):
        beside = file.with_name(f"{file.stem}-speeds{file.suffix}") if written else file
        written.append(_draw_speeds(machine, beside))
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
    with disk_errors(file):
        figure.savefig(file, dpi=110, metadata={"Date": None} if file.suffix == ".svg" else None)
    return file
