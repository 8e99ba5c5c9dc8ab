"""What a field is called and where its points lie, in the terms of files: dimensions, coordinates, CF attributes.

Dimensions are ``time`` and the field's axes; points on faces have dimensions of their own (``y_face``), as their
coordinates differ. Attributes follow the CF conventions (cfconventions.org): ``units``, ``long_name``, ``axis``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.model import Model
from minga.errors import RunError
from minga.space.field import Field

__all__ = [
    "ALONG",
    "CONSERVED",
    "CONVENTIONS",
    "DRAWINGS",
    "LEFT_OUT",
    "SECTION",
    "TIME",
    "VELOCITY",
    "Coordinate",
    "Variable",
    "said_of",
    "variable_of",
    "variables_of",
]

CONVENTIONS = "CF-1.11"
TIME = "time"
SECTION = "section"
"""The attribute that says across which axis, and where, pictures cut a field."""
ALONG = "drawn_along"
"""The attribute that says which axis pictures of a field draw to the right, the other one upwards."""
VELOCITY = "velocity"
"""The attribute of a store that names the fields of its velocity, one an axis of the grid."""
CONSERVED = "conserved"
"""The attribute of a store that names the observables of an audit: what there is of something, now against then."""
_ON_FACES = "_face"
LEFT_OUT = "left_out"
"""The attribute of a store that names a field: where it is not 0, other fields have no values that mean anything."""
DRAWINGS = "drawings"
"""The attribute of a store that says which curves belong into one picture: JSON of `minga.engine.drawing.Drawing`."""


def said_of(model: Model) -> dict[str, Any]:
    """What a model says of itself, as attributes of all it leaves: its name, its velocity, what to draw together."""
    about: dict[str, Any] = {"model": model.name}
    if model.velocity:
        about[VELOCITY] = " ".join(model.velocity)
    if model.conserved:
        about[CONSERVED] = ", ".join(model.conserved)
    if model.mask is not None:
        about[LEFT_OUT] = model.mask
    if model.drawings:
        about[DRAWINGS] = json.dumps([drawing.as_dict() for drawing in model.drawings])
    return about


@dataclass(frozen=True, slots=True)
class Coordinate:
    """The positions of a field's points along one axis."""

    name: str
    values: NDArray[np.float64]
    attributes: dict[str, str]

    @property
    def on_faces(self) -> bool:
        """Whether they are those of the faces of all cells."""
        return self.name.endswith(_ON_FACES)

    @property
    def axis(self) -> str:
        """The axis as people call it: faces of cells have no name of their own."""
        return self.name.removesuffix(_ON_FACES)

    @property
    def label(self) -> str:
        """The axis with its unit, where it has one."""
        unit = self.attributes.get("units", "1")
        return self.axis if unit == "1" else f"{self.axis} ({unit})"


@dataclass(frozen=True, slots=True)
class Variable:
    """One output field as files see it."""

    name: str
    dtype: np.dtype[Any]
    coordinates: tuple[Coordinate, ...]
    attributes: dict[str, str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis, without time."""
        return tuple(len(c.values) for c in self.coordinates)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions, time first."""
        return (TIME, *(c.name for c in self.coordinates))


def variable_of(field: Field) -> Variable:
    """The terms of one field."""
    bounds = field.bounds
    coordinates = tuple(
        _coordinate(field, axis, low, high) for axis, low, high in zip(field.axes, bounds.lo, bounds.hi, strict=True)
    )
    return Variable(
        name=field.name,
        dtype=np.dtype(field.dtype),
        coordinates=coordinates,
        attributes={"units": field.unit, "long_name": field.description or field.name}
        | ({"flag_colors": " ".join(field.colours)} if field.colours else {})
        | ({"colour_scale": "signed"} if field.signed else {})
        | ({SECTION: f"{field.section[0]} = {field.section[1]!r}"} if field.section else {})
        | ({ALONG: coordinates[field.axes.index(field.grid.axis(field.along))].name} if field.along else {}),
    )


def variables_of(fields: Sequence[Field], where: str | None = None) -> tuple[Variable, ...]:
    """The terms of all output fields; RunError where two of them, or a field and an axis, share a name.

    ``where`` is what the error names as the place: the model.
    """
    variables = tuple(variable_of(field) for field in fields)
    taken: dict[str, str] = {TIME: "the time axis"}
    for variable in variables:
        for coordinate in variable.coordinates:
            taken.setdefault(coordinate.name, f"an axis of the grid of {variable.name}")
    for variable in variables:
        if variable.name in taken:
            raise RunError(
                f"the output field {variable.name!r} has the name of {taken[variable.name]}",
                where=where,
                remedy="give the field another name",
            )
        taken[variable.name] = "another output field"
    return variables


def _coordinate(field: Field, axis: int, low: int, high: int) -> Coordinate:
    grid = field.grid
    on_faces = bool(field.centre[axis])
    positions = (grid.faces(axis) if on_faces else grid.centres(axis))[low:high]
    name = grid.axes[axis]
    place = "cell faces" if on_faces else "cell centres"
    attributes = {"units": grid.units[axis], "long_name": f"{name} of {place}"}
    if name in "xyz":
        attributes["axis"] = name.upper()
    if field.on is not None:
        name = f"{name}_{field.name}"  # part of an axis: not the coordinate that other fields have
    elif on_faces:
        name += _ON_FACES
    return Coordinate(name, positions, attributes)
