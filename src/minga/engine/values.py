"""Values that people put into fields: checked against the field's type, continued beyond the ends of whole copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from minga.engine.storage import BlockArrays
from minga.errors import LayoutError
from minga.lang.types import is_float
from minga.space.field import MARGIN, Field, Slot

__all__ = ["continue_beyond", "fitting"]


def fitting(target: Field, given: Any) -> np.ndarray:
    """Values for a field. LayoutError for those that its type would change (floats may be rounded to f4)."""
    values = np.asarray(given)
    if values.dtype.kind not in "biuf":
        raise LayoutError(f"field {target.name!r} is set to {values.dtype}", remedy="give numbers or bools")
    if is_float(target.dtype):
        return values
    with np.errstate(invalid="ignore"):
        kept = values.astype(target.dtype)
    changed = kept != values
    if changed.any():
        raise LayoutError(
            f"field {target.name!r} is {target.dtype}, which cannot hold {values[changed].flat[0]}",
            remedy="round or clip the values, or declare the field with another dtype",
        )
    return kept


def continue_beyond(arrays: BlockArrays, slot: Slot) -> None:
    """Continue a replicated field beyond its ends: periodically, or by its last value."""
    target = slot.field
    inside = arrays.view(slot.index, arrays.owned).copy()
    for number, axis in enumerate(target.axes):
        width = [(0, 0)] * inside.ndim
        width[number] = (MARGIN, MARGIN)
        inside = np.pad(inside, width, mode="wrap" if target.periodic[axis] else "edge")
    arrays.array(slot.index)[...] = inside
