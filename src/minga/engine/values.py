"""Values given to fields: checking them against the field's type, and extending replicated fields beyond their ends."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from minga.engine.comm import Comm
from minga.engine.storage import BlockArrays, Storage
from minga.errors import LayoutError, MingaError, shown
from minga.lang.types import is_float
from minga.space.box import Box
from minga.space.field import MARGIN, Field, Slot
from minga.space.of_place import OfPlace, of_place

__all__ = [
    "FieldValue",
    "at_points",
    "check_shape",
    "continue_beyond",
    "fitting",
    "gathered",
    "is_of_position",
    "set_values",
]

FieldValue = np.ndarray | bool | int | float | Callable[..., np.ndarray]
"""Values of a field: a number, an array, a function of a box, or a function of the coordinates of all axes."""


def set_values(storage: Storage, slot: Slot, value: FieldValue) -> None:
    """Set the owned cells of a slot. Raise LayoutError for values that do not fit."""
    target = slot.field
    value = np.asarray(value) if isinstance(value, list | tuple) else value
    stored = storage.stored(target)
    storage.before_access(target)
    if isinstance(value, np.ndarray) and value.ndim:
        check_shape(target, value)
    for arrays in stored.blocks.values():
        owned = arrays.owned
        if owned.empty:
            continue
        view = arrays.view(slot.index, owned)
        if callable(value):
            given: Any = values_in(value, target, owned)
        elif isinstance(value, np.ndarray) and value.ndim:
            given = value[owned.slices(target.bounds.lo)]
        else:
            given = value
        view[...] = fitting(target, given)
        if target.replicated:
            continue_beyond(arrays, slot)


def check_shape(target: Field, value: np.ndarray) -> None:
    """Raise LayoutError for an array that has not the shape of a whole field."""
    if value.shape != target.bounds.shape:
        raise LayoutError(
            f"field {target.name!r} has shape {target.bounds.shape}, the array {value.shape}",
            remedy="give an array of the field's global shape",
        )


def values_in(function: Callable[[Box], Any], target: Field, box: Box) -> Any:
    """Return the values of a function of a box. Raise LayoutError if it takes or returns anything else, or fails."""
    if is_of_position(function, target):
        return at_points(function, target, box)
    names = ", ".join(target.grid.axes[axis] for axis in target.axes)
    indices = f"{names} = np.ogrid[box.slices({(0,) * box.ndim})] gives the indices of its cells"
    try:
        inspect.signature(function).bind(box)
    except TypeError as error:
        taken = ", ".join(inspect.signature(function).parameters)
        raise LayoutError(
            f"the values of field {target.name!r} are given by a function of ({taken}), which is called with one "
            "argument, a box of cells",
            where=_place(function),
            remedy=f"write def values({names}): ..., which gets coordinates, or def values(box): ..., which returns an "
            f"array of shape box.shape; {indices}",
        ) from error
    except ValueError:
        pass  # functions in C may have no signature
    try:
        given = function(box)
    except MingaError:
        raise
    except Exception as error:
        raise LayoutError(
            f"the function of values for {target.name!r} failed for {box}: {type(error).__name__}: {error}",
            where=_place(function, error),
            remedy=f"it gets a box of cells and returns one number, or an array of shape box.shape; {indices}",
        ) from error
    shape = _shape(given)
    if shape and shape != box.shape:
        raise LayoutError(
            f"the function of values for {target.name!r} gave shape {shape} for {box}",
            where=_place(function),
            remedy=f"return one number, or an array of the box's shape, {box.shape}; {indices}",
        )
    return given


def is_of_position(function: Callable[..., Any], target: Field) -> bool:
    """Return True if a function takes coordinates: its parameters have names of axes, or the number of several axes."""
    return _of_place(function, target) is not None


def _of_place(function: Callable[..., Any], target: Field) -> OfPlace | None:
    """Return how a function takes coordinates; None if it takes a box."""
    return of_place(function, [target.grid.axes[axis] for axis in target.axes], box=True)


def at_points(function: Callable[..., Any], target: Field, box: Box) -> np.ndarray:
    """Return the values of a function of position for a box of points, given their coordinates along each axis."""
    grid = target.grid
    lines = [
        grid.continued(axis, np.arange(lo, hi), bool(target.centre[axis]))
        for axis, lo, hi in zip(target.axes, box.lo, box.hi, strict=True)
    ]
    names = [grid.axes[axis] for axis in target.axes]
    bound = _of_place(function, target)
    assert bound is not None
    try:
        given = np.asarray(bound(dict(zip(names, np.ix_(*lines), strict=True))))
        return np.broadcast_to(given, box.shape)
    except MingaError:
        raise
    except Exception as error:
        raise LayoutError(
            f"the function of position for {target.name!r} failed for {box}: {type(error).__name__}: {error}",
            where=_place(function, error),
            remedy=f"it gets the coordinates {', '.join(names)}, arrays that broadcast against each other, and returns "
            "one",
        ) from error


def _shape(given: Any) -> tuple[int, ...] | str:
    """Return the shape of a function's values, or a text if rows differ in length."""
    try:
        return tuple(np.shape(given))
    except ValueError:
        return "(rows of different lengths)"


def _place(function: Callable[..., Any], error: BaseException | None = None) -> tuple[str, int] | None:
    """Return the file and line of a function, or of its line that raised an error."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    frames = traceback.extract_tb(error.__traceback__) if error is not None else ()
    lines = [frame.lineno for frame in frames if frame.filename == code.co_filename and frame.lineno]
    return code.co_filename, lines[-1] if lines else code.co_firstlineno


def gathered(storage: Storage, comm: Comm, slot: Slot) -> np.ndarray | None:
    """Return the whole field on rank 0, None elsewhere. Collective."""
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
    """Convert values to a field's type. Raise LayoutError if that changes them (floats may be rounded to f4)."""
    if given is None:
        raise LayoutError(
            f"field {target.name!r} is set to None",
            remedy="gather gives the whole field on rank 0 and None elsewhere: change the cells of each rank through "
            "engine.blocks, or give the whole array back with engine.scatter; a function of a box returns "
            "that box's values",
        )
    values = np.asarray(given)
    if values.dtype.kind not in "biuf":
        raise LayoutError(
            f"field {target.name!r} is set to {shown(given)} (NumPy type {values.dtype})",
            remedy="give real numbers or bools",
        )
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
    """Extend a replicated field beyond its ends: periodically, or with its last value."""
    target = slot.field
    inside = arrays.view(slot.index, arrays.owned).copy()
    for number, axis in enumerate(target.axes):
        width = [(0, 0)] * inside.ndim
        width[number] = (MARGIN, MARGIN)
        inside = np.pad(inside, width, mode="wrap" if target.periodic[axis] else "edge")
    arrays.array(slot.index)[...] = inside
