"""Names of fields and positions of their points in terms of files: dimensions, coordinates, CF attributes.

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
from minga.engine.presentation import FieldStyle, Presentation
from minga.errors import RunError
from minga.paths import plain_name
from minga.space.field import Field
from minga.space.names import OF_RESULTS
from minga.space.names import STEP as STEP
from minga.space.names import TIME as TIME

__all__ = [
    "ALONG",
    "CONSERVED",
    "CONVENTIONS",
    "DRAWINGS",
    "FIRST_FACE",
    "LEFT_OUT",
    "LOCATION",
    "QUANTITIES",
    "SECTION",
    "STEP",
    "TIME",
    "VELOCITY",
    "Coordinate",
    "Variable",
    "faces_of",
    "model_attributes",
    "observable_attributes",
    "step_attributes",
    "time_attributes",
    "variable_of",
    "variables_of",
]

CONVENTIONS = "CF-1.11"
SECTION = "section"
"""Attribute for the axis across which pictures cut a field, and the position of the cut."""
ALONG = "drawn_along"
"""Attribute for the axis that pictures of a field draw to the right, with the other one upwards."""
VELOCITY = "velocity"
"""Attribute of a store that names the fields of its velocity, one for each axis of the grid."""
CONSERVED = "conserved"
"""Attribute of a store that names the observables of an audit: conserved amounts, compared with their first values."""
_ON_FACES = "_face"
_POSITIVE, _DOWN = "positive", "down"
"""CF attribute of an axis whose values grow downwards, and its value."""
QUANTITIES = "observables"
"""Attribute of a store with the units and descriptions of observables by name: JSON."""
LOCATION = "location"
"""Attribute of coordinates for points that are not cell centres: "node" or "face"."""
FIRST_FACE = "first_face"
"""Attribute of the centres of unequal cells: the position where the first cell begins; the others follow from it."""
LEFT_OUT = "left_out"
"""Attribute of a store that names a field: where it is not 0, the values of other fields have no meaning."""
DRAWINGS = "drawings"
"""Attribute of a store for the curves that belong into one picture: JSON of `minga.engine.drawing.Drawing`."""


def observable_attributes(model: Model, observable: str) -> dict[str, str]:
    """Return the CF attributes of an observable: its unit and description, if the model gives them.

    Those that are lists, and rows of a table together, also name the table.
    """
    unit, words = model.quantities.get(observable, ("", ""))
    found = ({"units": unit} if unit else {}) | ({"long_name": words} if words else {})
    if isinstance(model.observables.get(observable), tuple):
        found |= next(({"table": name} for name, columns in model.tables.items() if observable in columns), {})
    return found


def model_attributes(model: Model) -> dict[str, Any]:
    """Return a model's description as attributes of all its output: its name, its velocity, its drawings."""
    about: dict[str, Any] = {"model": model.name, **model.about}
    if model.velocity:
        about[VELOCITY] = " ".join(model.velocity)
    if model.conserved:
        about[CONSERVED] = ", ".join(model.conserved)
    if model.mask is not None:
        about[LEFT_OUT] = model.mask
    names = dict.fromkeys((*model.units, *(name for columns in model.tables.values() for name in columns)))
    if found := {name: said for name in names if (said := observable_attributes(model, name))}:
        about[QUANTITIES] = json.dumps(found)
    if model.presentation.drawings:
        about[DRAWINGS] = json.dumps([drawing.as_dict() for drawing in model.presentation.drawings])
    return about


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Positions of a field's points along one axis."""

    name: str
    values: NDArray[np.float64]
    attributes: dict[str, Any]

    @property
    def at_points(self) -> bool:
        """True if values belong to the points themselves, nodes or faces, and not to cells around them."""
        return LOCATION in self.attributes or self.on_faces

    @property
    def on_nodes(self) -> bool:
        """True if the points are nodes, the first and the last at the ends of the domain."""
        return self.attributes.get(LOCATION) == "node"

    @property
    def edges(self) -> NDArray[np.float64]:
        """Edges of the points' cells, one more than there are points.

        Cells of nodes end half-way to the next node, and at the first and the last. Cells of centres end where the grid
        has its faces, or if these are not known half-way to the next centre and as far beyond the last.
        """
        first = self.attributes.get(FIRST_FACE)
        if self.on_nodes:
            middle = 0.5 * (self.values[1:] + self.values[:-1])
            return np.concatenate([self.values[:1], middle, self.values[-1:]])
        if first is None:
            return faces_of(self.values)
        sign = (-1.0) ** np.arange(len(self.values))
        beyond = np.cumsum(sign * self.values)  # faces are 2 c_i - 2 c_(i-1) + ... -+ the first one
        return np.concatenate([[first], sign * (2.0 * beyond - first)])

    def kept(self, low: int, high: int, every: int) -> Coordinate:
        """Return every n-th of the points in a range."""
        attributes = dict(self.attributes)
        first = attributes.pop(FIRST_FACE, None)
        if first is not None and every == 1 and high > low:
            attributes[FIRST_FACE] = float(self.edges[low])
        return Coordinate(self.name, self.values[low:high:every], attributes)

    @property
    def on_faces(self) -> bool:
        """True if the points are the faces of all cells."""
        return self.name.endswith(_ON_FACES)

    @property
    def down(self) -> bool:
        """True if positions grow downwards."""
        return self.attributes.get(_POSITIVE) == _DOWN

    @property
    def upright(self) -> Coordinate:
        """The same points in the opposite order with the opposite sign, so that positions grow upwards."""
        attributes = {**self.attributes, _POSITIVE: "up"}
        if FIRST_FACE in attributes:
            attributes[FIRST_FACE] = -float(self.edges[-1])
        return Coordinate(self.name, -self.values[::-1], attributes)

    @property
    def axis(self) -> str:
        """Name of the axis for people: faces of cells have no name of their own."""
        return self.name.removesuffix(_ON_FACES)

    @property
    def label(self) -> str:
        """Name of the axis, with its unit if it has one."""
        unit = self.attributes.get("units", "1")
        return self.axis if unit == "1" else f"{self.axis} ({unit})"


@dataclass(frozen=True, slots=True)
class Variable:
    """One output field as files see it."""

    name: str
    dtype: np.dtype[Any]
    coordinates: tuple[Coordinate, ...]
    attributes: dict[str, str]

    def __post_init__(self) -> None:
        """Raise CaseError for names that would not be a directory inside the store."""
        plain_name(self.name, "the name of an output field")
        for coordinate in self.coordinates:
            plain_name(coordinate.name, "the name of an axis")

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis, without time."""
        return tuple(len(c.values) for c in self.coordinates)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions, time first."""
        return (TIME, *(c.name for c in self.coordinates))


def variable_of(field: Field, style: FieldStyle | None = None) -> Variable:
    """Return one field in the terms of files, with the style that pictures draw it in."""
    style = style or FieldStyle()
    grid = field.grid
    bounds = field.bounds
    coordinates = tuple(
        _coordinate(field, axis, low, high) for axis, low, high in zip(field.axes, bounds.lo, bounds.hi, strict=True)
    )
    return Variable(
        name=field.name,
        dtype=np.dtype(field.dtype),
        coordinates=coordinates,
        attributes={"units": field.unit, "long_name": field.description or field.name}
        | ({"flag_colors": " ".join(style.colours)} if style.colours else {})
        | ({"colour_scale": "signed"} if style.signed else {})
        | ({SECTION: f"{grid.axes[grid.axis(style.section[0])]} = {style.section[1]!r}"} if style.section else {})
        | ({ALONG: coordinates[field.axes.index(grid.axis(style.along))].name} if style.along else {}),
    )


def step_attributes() -> dict[str, str]:
    """Return the attributes of the coordinate that counts steps."""
    return {"units": "1", "long_name": "steps done"}


def time_attributes(unit: str | None) -> dict[str, str]:
    """Return the attributes of the time axis, given the model's unit of time, or None if time counts steps."""
    found = step_attributes() if unit is None else {"units": unit, "long_name": "time of the model"}
    return found | {"axis": "T"}


def variables_of(
    fields: Sequence[Field], where: str | None = None, presentation: Presentation | None = None
) -> tuple[Variable, ...]:
    """Return the terms of all output fields.

    ``where`` is the place that the error names: the model.

    Raises
    ------
    RunError
        If two fields, or a field and an axis, share a name.
    """
    looks = presentation or Presentation()
    variables = tuple(variable_of(field, looks.style(field.name)) for field in fields)
    taken: dict[str, str] = dict(OF_RESULTS)
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


def faces_of(centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return edges of cells, half-way between their centres and as far beyond the last; exact for equal widths."""
    if len(centres) < 2:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middle = 0.5 * (centres[1:] + centres[:-1])
    return np.concatenate([[2 * centres[0] - middle[0]], middle, [2 * centres[-1] - middle[-1]]])


def _coordinate(field: Field, axis: int, low: int, high: int) -> Coordinate:
    grid = field.grid
    on_faces = bool(field.centre[axis])
    on_nodes = not on_faces and grid.nodes[axis] is not None
    positions = (grid.faces(axis) if on_faces else grid.positions(axis))[low:high]
    name = grid.axes[axis]
    place = "cell faces" if on_faces else "nodes" if on_nodes else "cell centres"
    attributes: dict[str, Any] = {"units": grid.units[axis], "long_name": f"{name} of {place}"}
    if on_faces or on_nodes:
        attributes[LOCATION] = "face" if on_faces else "node"
    elif high > low and (high - low == 1 or not isinstance(grid.spacing[axis], float)):
        attributes[FIRST_FACE] = float(grid.faces(axis)[low])
    if name in "xyz":
        attributes["axis"] = name.upper()
    if name in grid.down:
        attributes[_POSITIVE] = _DOWN
    if field.on is not None:
        name = f"{name}_{field.name}"  # part of an axis: not the coordinate that other fields have
    elif on_faces:
        name += _ON_FACES
    return Coordinate(name, positions, attributes)
