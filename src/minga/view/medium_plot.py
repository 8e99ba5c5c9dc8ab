"""Pictures of a medium: one row for each quantity, with slices through the middle in true proportions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from minga.output.directory import disk_errors

__all__ = ["draw_medium"]

_LABELS: Final = {"vp": "vp (m/s)", "rho": "rho (kg/m3)", "theta": "theta (degree)", "phi": "phi (degree)"}
_SCALES: Final = {"vp": "viridis", "epsilon": "magma", "delta": "magma", "theta": "cividis", "phi": "twilight"}
_MOST_PIXELS = 600


def draw_medium(file: Path, planes: Mapping[str, Sequence[NDArray[Any]]], spacing: Sequence[float], title: str) -> Path:
    """Draw a medium into ``file`` (.png or .svg) and return it.

    Parameters
    ----------
    file
        The picture file.
    planes
        For each quantity the planes across y (z, x), across x (z, y) and across z (y, x), or the first one alone;
        angles in radians.
    spacing
        Metres between cells along z, y, x or along z, x.
    title
        Title of the picture.

    Raises
    ------
    RunError
        If the disk refuses.
    """
    from matplotlib.figure import Figure

    dz, dy, dx = spacing[0], spacing[-2:][0], spacing[-1]
    steps = ((dz, dx, "z", "x"), (dz, dy, "z", "y"), (dy, dx, "y", "x"))
    varied = {name: slices for name, slices in planes.items() if name == "vp" or any(np.ptp(s) > 0 for s in slices)}
    figure = Figure(figsize=(10, 0.6 + 2.6 * len(varied)), layout="constrained")
    columns = max(map(len, varied.values()))
    for axes_row, (name, slices) in zip(figure.subplots(len(varied), columns, squeeze=False), varied.items()):
        scale = 180 / np.pi if name in ("theta", "phi") else 1.0
        low = min(float(plane.min()) for plane in slices) * scale
        high = max(float(plane.max()) for plane in slices) * scale
        image: Any = None
        for axes, plane, (down, across, vertical, horizontal) in zip(axes_row, slices, steps):
            stride = max(1, -(-max(plane.shape) // _MOST_PIXELS))
            extent = (0, plane.shape[1] * across, plane.shape[0] * down, 0)
            image = axes.imshow(plane[::stride, ::stride] * scale, extent=extent, vmin=low, vmax=high,
                                cmap=_SCALES.get(name, "viridis"), aspect="equal")  # fmt: skip
            axes.set(xlabel=f"{horizontal} (m)", ylabel=f"{vertical} (m)")
        figure.colorbar(image, ax=axes_row, label=_LABELS.get(name, name), shrink=0.9)
    figure.suptitle(title)
    with disk_errors(file):
        figure.savefig(file, dpi=100, metadata={"Date": None} if file.suffix == ".svg" else None)
    return file
