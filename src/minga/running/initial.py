"""Initial values that a run is given in place of those of its model: arrays, functions, or the last frame of a run."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from minga.engine.model import Model
from minga.engine.model_check import levels_read
from minga.engine.values import values_in
from minga.errors import CaseError, shown, suggest
from minga.space.bit_words import Packed
from minga.space.field import Field, Slot

__all__ = ["with_initial"]


def with_initial(model: Model, initial: object) -> Model:
    """Return a model with other initial values.

    Parameters
    ----------
    model
        The model.
    initial
        Values by field or by name, as `Model` takes them: numbers, arrays of the field's shape, functions of the
        coordinates; other fields keep the values of the model. Or a dataset of an earlier run, whose last frame then
        gives all output fields.

    Raises
    ------
    CaseError
        If the values do not belong to the model, or do not fit its fields, or if steps read levels of the fields that
        the frames of a dataset do not hold, or on an unbounded plane.
    """
    if model.growth is not None:  # values beyond the first window would be lost
        raise CaseError(
            "initial: an unbounded plane has no shape that values could fit",
            key="initial",
            remedy="give the first cells, and their place, to the model: init={'pattern': run.cell[-1].values, "
            "'at': [row, column]}",
        )
    values = _values(model, initial)
    packed = {one.cells.name: one for one in model.packed.values()}
    found: dict[Any, Any] = dict(model.given)
    for key, value in _real_parts(model, values).items():
        name = key if isinstance(key, str) else key.name if isinstance(key, Field) else None
        if name in packed:
            planes = _planes(packed[name], value)
            found.update({plane.now: part for plane, part in zip(packed[name].planes, planes, strict=True)})
        else:
            found[key if isinstance(key, Slot) else _known(model, key)] = value
    return dataclasses.replace(model, initial=found)


def _real_parts(model: Model, values: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the values of fields, given those of complex ones, which are the two fields NAME_re and NAME_im."""
    names = {field.name for field in model.visible}
    result: dict[Any, Any] = {}
    for key, value in values.items():
        parts = (f"{key}_re", f"{key}_im")
        if isinstance(value, str):
            raise CaseError(
                f"initial: {key!r} is the text {shown(value)}",
                remedy="give a number, an array or a function of the coordinates, or the text to the model: "
                "mg.pde(..., initial={...})",
            )
        if not isinstance(key, str) or key in names or not names.issuperset(parts):
            result[key] = value
        elif callable(value):
            raise CaseError(
                f"initial: {key!r} is a function, and the field is complex",
                remedy=f"give functions of its parts, {' and '.join(parts)}, or an array",
            )
        else:
            result.update(zip(parts, (np.real(value), np.imag(value)), strict=True))
    return result


def _values(model: Model, initial: object) -> Mapping[Any, Any]:
    """Return the values by key."""
    xarray = sys.modules.get("xarray")
    if xarray is not None and isinstance(initial, xarray.Dataset):
        return _of_last_frame(model, initial)
    if isinstance(initial, Mapping):
        return initial
    names = [field.name for field in model.visible if not field.replicated]
    if xarray is not None and isinstance(initial, xarray.DataArray):
        raise CaseError(
            f"initial: expected values by field, found the array {initial.name!r}",
            remedy=f"write initial={{{names[0]!r}: array.values}}",
        )
    raise CaseError(
        f"initial={shown(initial)}: expected values by field, or a dataset of a run",
        remedy=f"write initial={{{names[0]!r}: ...}}",
    )


def _of_last_frame(model: Model, dataset: Any) -> dict[str, np.ndarray]:
    """Return the output fields of a model from the last frame of a dataset."""
    found = {}
    for name in model.output:
        if name not in dataset.data_vars:
            raise CaseError(
                f"initial: the dataset has no field {name!r} of model {model.name!r}",
                suggestion=suggest(name, map(str, dataset.data_vars)),
                remedy="give the fields one by one: initial={'u': dataset.u[-1].values}",
            )
        array = dataset[name]
        if "time" in array.dims:
            if not array.sizes["time"]:
                raise CaseError("initial: the dataset has no frame")
            array = array.isel(time=-1)
        field = model.field(name)
        shape = tuple(field.bounds.shape)
        if array.shape != shape:
            raise CaseError(
                f"initial: {name!r} of the dataset has the shape {array.shape}, and that of the model {shape}",
                remedy="take a run whose frames hold all cells of the same grid, without region and decimate",
            )
        found[name] = array.values
    _check_levels(model, found)
    return found


def _check_levels(model: Model, names: Collection[str]) -> None:
    """Raise CaseError if steps read earlier levels of these fields, which a frame does not hold."""
    for field in model.fields:
        if field.name in names and (read := levels_read(model.step, field)):
            name = f"{field.name}.previous" if read[0] == field.previous else f"{field.name}.slot({read[0].index})"
            raise CaseError(
                f"initial: steps of model {model.name!r} read {name}, which a frame does not hold",
                remedy=f"resume the run with out= and resume=True, or give all levels: initial={{{field.name!r}: "
                f"history.{field.name}[-1].values, {name!r}: ...}}",
            )


def _known(model: Model, key: Field | Slot | str) -> Slot:
    """Return the slot of a field that the model has."""
    if isinstance(key, str):
        names = [field.name for field in model.visible]
        if key.partition(".")[0] not in names:
            raise CaseError(
                f"initial: model {model.name!r} has no field {key!r}",
                suggestion=suggest(key, names),
                remedy=f"its fields are {', '.join(model.output)}",
            )
    return model._slot(key)


def _planes(packed: Packed, value: Any) -> list[Any]:
    """Return the bits of cells' states as values of the planes."""
    cells = packed.cells
    given = np.asarray(values_in(value, cells, cells.bounds) if callable(value) else value)
    most = (1 << len(packed.planes)) - 1
    if given.shape not in ((), cells.grid.shape):
        raise CaseError(f"initial: {cells.name!r} has the shape {given.shape}, and the grid {cells.grid.shape}")
    states = given.astype(np.uint8, casting="unsafe")
    if not np.array_equal(states, given) or states.max(initial=0) > most:
        raise CaseError(f"initial: the states of {cells.name!r} are whole numbers from 0 to {most}")
    return packed.pack(np.broadcast_to(states, cells.grid.shape))
