"""Pictures of the differences between two runs of one problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minga.output.directory import disk_errors
from minga.space.grid import Grid

__all__ = ["draw_differences"]


def draw_differences(
    frames: Sequence[NDArray[np.float64]], grid: Grid, kinds: NDArray[np.uint8] | None, title: str, path: Path
) -> None:
    """Draw magnitudes of differences, one panel for each time step, on one colour scale; solid cells are grey.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    from matplotlib.figure import Figure

    height = float(np.sum(grid.widths(0)))
    width = float(np.sum(grid.widths(1)))
    figure = Figure(figsize=(9, 1.0 + 1.5 * len(frames)), layout="constrained")
    most = max(float(frame.max()) for frame in frames) or 1.0
    image = None
    axes = figure.subplots(len(frames), 1, sharex=True, squeeze=False)[:, 0]
    for number, (panel, frame) in enumerate(zip(axes, frames, strict=True), 1):
        seen = np.ma.masked_array(frame, np.zeros(frame.shape, bool) if kinds is None else kinds > 0)
        panel.set_facecolor("0.6")
        image = panel.imshow(
            seen.T, origin="lower", extent=(0, height, 0, width), vmin=0, vmax=most, cmap="viridis", aspect="auto"
        )
        panel.set_ylabel(f"step {number}\n{grid.axes[1]}")
    axes[-1].set_xlabel(grid.axes[0])
    figure.suptitle(title)
    if image is not None:
        figure.colorbar(image, ax=list(axes), shrink=0.8)
    with disk_errors(path):
        figure.savefig(path, dpi=110)
