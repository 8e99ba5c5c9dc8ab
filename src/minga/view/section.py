"""Vertical sections through a wave field in the seismic convention: depth downwards, one colour for each sign."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from minga.output.variables import Coordinate

__all__ = ["section"]

_MOST = 1200


def section(values: NDArray[np.floating], down: Coordinate, across: Coordinate, title: str) -> bytes:
    """Return a PNG picture of values over (depth, distance); the largest hundredth of the magnitudes is clipped."""
    from matplotlib.figure import Figure

    stride = tuple(max(1, -(-length // _MOST)) for length in values.shape)
    shown = values[:: stride[0], :: stride[1]]
    finite = np.abs(shown[np.isfinite(shown)])
    loud = float(np.percentile(finite, 99)) if finite.size else 0.0
    loud = loud or float(finite.max(initial=0.0)) or 1.0
    (left, right), (top, bottom) = (_ends(axis.values) for axis in (across, down))
    tall = (bottom - top) / (right - left) if right > left else 1.0
    figure = Figure(figsize=(7.2, min(9.0, max(2.5, 5.6 * tall + 0.8))), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shown, cmap="RdBu_r", vmin=-loud, vmax=loud, aspect="equal", interpolation="bilinear",
                        extent=(left, right, bottom, top))  # fmt: skip
    axes.set(xlabel=f"{across.name} (m)", ylabel=f"{down.name} (m)", title=title)
    figure.colorbar(image, label=f"clipped at {loud:.3g}", shrink=0.8)
    stream = io.BytesIO()
    figure.savefig(stream, dpi=110, format="png", metadata={"Software": None})
    return stream.getvalue()


def _ends(positions: NDArray[np.floating]) -> tuple[float, float]:
    """Return the outer edges of the first and the last cell."""
    half = float(positions[1] - positions[0]) / 2 if len(positions) > 1 else 0.5
    return float(positions[0]) - half, float(positions[-1]) + half
