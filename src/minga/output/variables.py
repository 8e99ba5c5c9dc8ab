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
from minga.paths import plain_name
from minga.space.field import Field

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
    "observable_attributes",
    "said_of",
    "step_attributes",
    "time_attributes",
    "variable_of",
    "variables_of",
]

CONVENTIONS = "CF-1.11"
TIME = "time"
"""The dimension of frames; its coordinate is the time of the model, or the steps where a model has none."""
STEP = "step"
"""The coordinate of frames that counts steps."""
SECTION = "section"
"""The attribute that says across which axis, and where, pictures cut a field."""
ALONG = "drawn_along"
"""The attribute that says which axis pictures of a field draw to the right, the other one upwards."""
VELOCITY = "velocity"
"""The attribute of a store that names the fields of its velocity, one an axis of the grid."""
CONSERVED = "conserved"
"""The attribute of a store that names the observables of an audit: what there is of something, now against then."""
_ON_FACES = "_face"
_POSITIVE, _DOWN = "positive", "down"
"""What the CF conventions say of an axis whose values grow downwards."""
QUANTITIES = "observables"
"""The attribute of a store with the units and descriptions of observables by name: JSON."""
LOCATION = "location"
"""The attribute of coordinates that says where in cells points lie that are not their centres: "node" or "face"."""
FIRST_FACE = "first_face"
"""The attribute of the centres of unequal cells that says where the first cell begins: the others follow from that."""
LEFT_OUT = "left_out"
"""The attribute of a store that names a field: where it is not 0, other fields have no values that mean anything."""
DRAWINGS = "drawings"
"""The attribute of a store that says which curves belong into one picture: JSON of `minga.engine.drawing.Drawing`."""


def observable_attributes(model: Model, observable: str) -> dict[str, str]:
    """The CF attributes of an observable: its unit and description, as far as the model says them."""
    unit, words = model.quantities.get(observable, ("", ""))
    return ({"units": unit} if unit else {}) | ({"long_name": words} if words else {})


def said_of(model: Model) -> dict[str, Any]:
    """What a model says of itself, as attributes of all it leaves: its name, its velocity, what to draw together."""
    about: dict[str, Any] = {"model": model.name, **model.about}
    if model.velocity:
        about[VELOCITY] = " ".join(model.velocity)
    if model.conserved:
        about[CONSERVED] = ", ".join(model.conserved)
    if model.mask is not None:
        about[LEFT_OUT] = model.mask
    if model.units:
        about[QUANTITIES] = json.dumps({name: observable_attributes(model, name) for name in model.units})
    if model.drawings:
        about[DRAWINGS] = json.dumps([drawing.as_dict() for drawing in model.drawings])
    return about


@dataclass(frozen=True, slots=True)
class Coordinate:
    """The positions of a field's points along one axis."""

    name: str
    values: NDArray[np.float64]
    attributes: dict[str, Any]

    @property
    def at_points(self) -> bool:
        """Whether values belong to the points themselves, nodes or faces, and not to cells around them."""
        return LOCATION in self.attributes or self.on_faces

    @property
    def on_nodes(self) -> bool:
        """Whether they are nodes, the first and the last at the ends of the domain."""
        return self.attributes.get(LOCATION) == "node"

    @property
    def edges(self) -> NDArray[np.float64]:
        """Where the cells of the points end, one more than there are points.

        Those of nodes end half-way to the next one, and at the first and the last; those of centres where the grid has
        them, and if that is not known half-way to the next one and as far beyond the last.
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
        """Each n-th of the points from one to another."""
        attributes = dict(self.attributes)
        first = attributes.pop(FIRST_FACE, None)
        if first is not None and every == 1 and high > low:
            attributes[FIRST_FACE] = float(self.edges[low])
        return Coordinate(self.name, self.values[low:high:every], attributes)

    @property
    def on_faces(self) -> bool:
        """Whether they are those of the faces of all cells."""
        return self.name.endswith(_ON_FACES)

    @property
    def down(self) -> bool:
        """Whether positions grow downwards."""
        return self.attributes.get(_POSITIVE) == _DOWN

    @property
    def upright(self) -> Coordinate:
        """The same points in the opposite order with the other sign, so that positions grow upwards."""
        attributes = {**self.attributes, _POSITIVE: "up"}
        if FIRST_FACE in attributes:
            attributes[FIRST_FACE] = -float(self.edges[-1])
        return Coordinate(self.name, -self.values[::-1], attributes)

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

    def __post_init__(self) -> None:
        """CaseError for names that would be other places than a directory of the store."""
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


def step_attributes() -> dict[str, str]:
    """What files say of the coordinate that counts steps."""
    return {"units": "1", "long_name": "steps done"}


def time_attributes(unit: str | None) -> dict[str, str]:
    """What files say of the time axis, of a model whose time has a unit, or None where time counts steps."""
    found = step_attributes() if unit is None else {"units": unit, "long_name": "time of the model"}
    return found | {"axis": "T"}


def variables_of(fields: Sequence[Field], where: str | None = None) -> tuple[Variable, ...]:
    """The terms of all output fields; RunError where two of them, or a field and an axis, share a name.

    ``where`` is what the error names as the place: the model.
    """
    variables = tuple(variable_of(field) for field in fields)
    taken: dict[str, str] = {TIME: "the time axis", STEP: "the count of steps"}
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
    """Edges of cells, half-way between their centres and as far beyond the last; exact where widths are equal."""
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
