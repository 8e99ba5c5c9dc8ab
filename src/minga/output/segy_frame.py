"""Frames of three axes as SEG-Y volumes, with a trace for each column of cells along the first axis, the depth."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from minga.errors import CaseError
from minga.output.segy import write_segy
from minga.output.spacing import even_spacing
from minga.output.store import FrameReader

__all__ = ["write_frame"]

_CENTIMETRES = 100.0


def write_frame(reader: FrameReader, field: str, index: int, path: Path) -> None:
    """Write a frame as a sorted volume: in-lines along the second axis, cross-lines along the third.

    Coordinates are stored in centimetres, and the spacing of samples in depth in millimetres.

    Raises
    ------
    CaseError
        If the field does not have three axes, or if its points are not evenly spaced.
    """
    axes = reader.coordinates(field)
    if len(axes) != 3:
        raise CaseError(
            f"a SEG-Y volume has three axes, {field} has {len(axes)}", key="--format", remedy="write it as nc or npy"
        )
    depth, across, along = axes
    steps = [even_spacing(axis, field, "SEG-Y volumes") for axis in axes]
    values = reader.frame(field, index).astype(np.float32, copy=False)
    lines, crosslines = len(across.values), len(along.values)
    y, x = (np.rint(axis.values * _CENTIMETRES).astype(np.int64) for axis in (across, along))
    inline = np.repeat(np.arange(1, lines + 1), crosslines)
    crossline = np.tile(np.arange(1, crosslines + 1), lines)
    headers = {
        "in_line": np.arange(1, inline.size + 1),
        "in_file": np.arange(1, inline.size + 1),
        "inline": inline,
        "crossline": crossline,
        "coordinate_scale": -int(_CENTIMETRES),
        "cdp_y": np.repeat(y, crosslines),
        "cdp_x": np.tile(x, lines),
    }
    unit = depth.attributes.get("units", "1")
    text = [
        f"{field} AT {reader.when(index)}",
        f"SAMPLES ALONG {depth.name} FROM {float(depth.values[0])!r}, {steps[0]!r} APART, IN {unit}",
    ]
    # By convention, the interval of samples in depth is in millimetres in place of microseconds.
    write_segy(path, values.reshape(len(depth.values), -1).T, steps[0] * 1e-3, headers=headers, text=text)
