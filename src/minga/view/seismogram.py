"""Seismograms: samples of receivers over time, downwards, as grey levels with the largest ones clipped."""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.output.traces import Recorded

__all__ = ["seismogram"]

_CLIPPED: Final = 95.0
"""Percentage of the samples that are not clipped: direct waves would hide all others."""

_MOST: Final = 2000
"""Largest number of rows and columns that are drawn."""


def seismogram(recorded: Recorded, title: str = "") -> bytes:
    """Return a PNG picture: time downwards, receivers across in the order in which they were named.

    Each quantity that the receivers recorded has a panel of its own.
    """
    from matplotlib.figure import Figure

    panels = _panels(recorded)
    figure = Figure(figsize=(7.2 if len(panels) == 1 else 5.2 * len(panels), 5.4), layout="constrained")
    for axes, (quantity, columns) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        _draw(figure, axes, recorded, columns, quantity)
        axes.set(title=", ".join(filter(None, (title, quantity))))
    stream = io.BytesIO()
    figure.savefig(stream, dpi=110, format="png", metadata={"Software": None})
    return stream.getvalue()


def _panels(recorded: Recorded) -> dict[str, NDArray[np.int64]]:
    """Return the numbers of the receivers of each quantity."""
    count = recorded.samples.shape[1]
    said = recorded.quantities or ("",) * count
    return {name: np.flatnonzero([each == name for each in said]) for name in dict.fromkeys(said)}


def _draw(figure: Any, axes: Any, recorded: Recorded, columns: NDArray[np.int64], quantity: str) -> None:
    rows = len(recorded.seconds)
    stride = (max(1, -(-rows // _MOST)), max(1, -(-len(columns) // _MOST)))
    shown = recorded.samples[:: stride[0], columns[:: stride[1]]]
    finite = np.abs(shown[np.isfinite(shown)])
    loud = float(np.percentile(finite, _CLIPPED)) if finite.size else 0.0
    loud = loud or float(finite.max(initial=0.0)) or 1.0
    left, right, label = _across(recorded.positions[columns])
    extent = (left, right, float(recorded.seconds[-1]) if rows else 1.0, 0.0)
    image = axes.imshow(shown, cmap="gray_r", vmin=-loud, vmax=loud, aspect="auto", extent=extent,
                        interpolation="bilinear")  # fmt: skip
    axes.set(xlabel=label, ylabel="time (s)")
    figure.colorbar(image, label=f"{quantity or 'samples'}, clipped at {loud:.3g}", shrink=0.8)


def _across(positions: NDArray[np.float64]) -> tuple[float, float, str]:
    """Return the ends and the label of the horizontal axis.

    It shows metres along the axis of a line of receivers if they lie along only one axis, otherwise their numbers.
    """
    columns = len(positions)
    varied = [k for k in range(3) if columns > 1 and np.ptp(positions[:, k]) > 0]
    if len(varied) == 1:
        line = positions[:, varied[0]]
        steps = np.diff(line)
        if np.allclose(steps, steps[0], rtol=1e-3):
            half = float(steps[0]) / 2
            return float(line[0]) - half, float(line[-1]) + half, f"{'zyx'[varied[0]]} of receivers (m)"
    return 0.5, columns + 0.5, "receiver"
