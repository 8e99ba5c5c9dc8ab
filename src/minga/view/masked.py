"""Frames as they are shown: without the values of cells that a model leaves out, such as solid ones in a fluid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.output.frame_source import FrameSource
from minga.output.variables import LEFT_OUT
from minga.view.colours import values_shown

__all__ = ["left_out", "shown_frame"]


def left_out(reader: FrameSource, axes: Sequence[str], index: int = -1) -> NDArray[np.bool_] | None:
    """Return the cells along these axes that a model leaves out of a frame; None if there are none."""
    mask = str(reader.attrs.get(LEFT_OUT, ""))
    if mask not in reader.fields or [c.name for c in reader.coordinates(mask)] != list(axes):
        return None
    return np.asarray(reader.frame(mask, index) != 0)


def shown_frame(reader: FrameSource, field: str, index: int, at: tuple[int | slice, ...] = ()) -> NDArray[Any]:
    """Return a frame of a field, or the part `at` of it, as it is drawn; for floats in cells, NaN where left out."""
    values = values_shown(reader.frame(field, index, at), reader.attributes(field))
    mask = str(reader.attrs.get(LEFT_OUT, ""))
    if values.dtype.kind != "f" or mask not in reader.fields:
        return values
    coordinates = reader.coordinates(field)
    if len(coordinates) < 2 or [c.name for c in coordinates] != [c.name for c in reader.coordinates(mask)]:
        return values
    return np.where(reader.frame(mask, index, at) != 0, np.nan, values)
