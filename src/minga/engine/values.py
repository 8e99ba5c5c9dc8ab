"""Values that people put into fields: checked against the field's type, continued beyond the ends of whole copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minga.engine.comm import Comm
from minga.engine.storage import BlockArrays, Storage
from minga.errors import LayoutError
from minga.lang.types import is_float
from minga.space.box import Box
from minga.space.field import MARGIN, Field, Slot

__all__ = ["FieldValue", "continue_beyond", "fitting", "gathered", "set_values"]

FieldValue = np.ndarray | bool | int | float | Callable[[Box], np.ndarray]


def set_values(storage: Storage, slot: Slot, value: FieldValue) -> None:
    """Give the owned cells of a slot values. LayoutError for those that do not fit."""
    target = slot.field
    value = np.asarray(value) if isinstance(value, list | tuple) else value
    stored = storage.stored(target)
    storage.look(target)
    if isinstance(value, np.ndarray) and value.ndim and value.shape != target.bounds.shape:
        raise LayoutError(
            f"field {target.name!r} has shape {target.bounds.shape}, the array {value.shape}",
            remedy="give an array of the field's global shape",
        )
    for arrays in stored.blocks.values():
        owned = arrays.owned
        if owned.empty:
            continue
        view = arrays.view(slot.index, owned)
        if callable(value):
            given: Any = value(owned)
            shape = np.shape(given)
            if shape and shape != owned.shape:
                raise LayoutError(
                    f"the function of values for {target.name!r} gave shape {shape} for {owned}",
                    remedy=f"return one number, or an array of the box's shape, {owned.shape}",
                )
        elif isinstance(value, np.ndarray) and value.ndim:
            given = value[owned.slices(target.bounds.lo)]
        else:
            given = value
        view[...] = fitting(target, given)
        if target.replicated:
            continue_beyond(arrays, slot)


def gathered(storage: Storage, comm: Comm, slot: Slot) -> np.ndarray | None:
    """The whole field on rank 0, None elsewhere; collective."""
    target = slot.field
    mine = [(box, view.copy()) for box, view in storage.pieces(slot)]
    if target.replicated or storage.layout(target.grid).replicated:
        return mine[0][1] if comm.rank == 0 else None
    everything = comm.gather(mine)
    if everything is None:
        return None
    whole = np.zeros(target.bounds.shape, target.dtype)
    for pieces in everything:
        for box, values in pieces:
            whole[box.slices(target.bounds.lo)] = values
    return whole


def fitting(target: Field, given: Any) -> np.ndarray:
    """Values for a field. LayoutError for those that its type would change (floats may be rounded to f4)."""
    if given is None:
        raise LayoutError(
            f"field {target.name!r} is set to None",
            remedy="gather gives the whole field on rank 0 and None elsewhere: change the cells of each rank through "
            "engine.blocks, or send the array to all ranks with engine.comm.bcast; a function of a box returns "
            "that box's values",
        )
    values = np.asarray(given)
    if values.dtype.kind not in "biuf":
        raise LayoutError(f"field {target.name!r} is set to {values.dtype}", remedy="give numbers or bools")
    if target.dtype == "f4" and values.dtype != np.float32:
        with np.errstate(over="ignore"):
            kept = values.astype("f4")
        lost = np.isinf(kept)
        if lost.any() and (lost := lost & np.isfinite(values)).any():
            raise LayoutError(
                f"field {target.name!r} is f4, which cannot hold {values[lost].flat[0]}",
                remedy="declare the field as f8, or choose other units",
            )
        return kept
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
