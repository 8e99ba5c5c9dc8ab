"""Seismograms: samples of receivers over time, downwards, as grey levels with the largest ones clipped."""

from __future__ import annotations

import io
from typing import Final

import numpy as np

from minga.output.traces import Recorded

__all__ = ["seismogram"]

_CLIPPED: Final = 95.0
"""Percentage of the samples that are not clipped: direct waves would hide all others."""

_MOST: Final = 2000
"""Largest number of rows and columns that are drawn."""


def seismogram(recorded: Recorded, title: str = "") -> bytes:
    """Return a PNG picture: time downwards, receivers across, in the order in which they were named."""
    from matplotlib.figure import Figure

    rows, columns = recorded.samples.shape
    stride = (max(1, -(-rows // _MOST)), max(1, -(-columns // _MOST)))
    shown = recorded.samples[:: stride[0], :: stride[1]]
    finite = np.abs(shown[np.isfinite(shown)])
    loud = float(np.percentile(finite, _CLIPPED)) if finite.size else 0.0
    loud = loud or float(finite.max(initial=0.0)) or 1.0
    across = _across(recorded)
    figure = Figure(figsize=(7.2, 5.4), layout="constrained")
    axes = figure.subplots()
    extent = (across[0], across[1], float(recorded.seconds[-1]) if rows else 1.0, 0.0)
    image = axes.imshow(shown, cmap="gray_r", vmin=-loud, vmax=loud, aspect="auto", extent=extent,
                        interpolation="bilinear")  # fmt: skip
    axes.set(xlabel=across[2], ylabel="time (s)", title=title)
    figure.colorbar(image, label=f"samples, clipped at {loud:.3g}", shrink=0.8)
    stream = io.BytesIO()
    figure.savefig(stream, dpi=110, format="png", metadata={"Software": None})
    return stream.getvalue()


def _across(recorded: Recorded) -> tuple[float, float, str]:
    """Return the ends and the label of the horizontal axis.

    It shows metres along the axis of a line of receivers if they lie along only one axis, otherwise their numbers.
    """
    columns = recorded.samples.shape[1]
    varied = [k for k in range(3) if columns > 1 and np.ptp(recorded.positions[:, k]) > 0]
    if len(varied) == 1:
        line = recorded.positions[:, varied[0]]
        steps = np.diff(line)
        if np.allclose(steps, steps[0], rtol=1e-3):
            half = float(steps[0]) / 2
            return float(line[0]) - half, float(line[-1]) + half, f"{'zyx'[varied[0]]} of receivers (m)"
    return 0.5, columns + 0.5, "receiver"
