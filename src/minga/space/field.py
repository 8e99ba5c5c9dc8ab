"""Stored quantities of a simulation: fields on grids, their time levels, registers, and constants of the grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Never

import numpy as np

from minga.errors import LayoutError
from minga.lang.types import DType, as_dtype, is_float, is_signed
from minga.space.boundary import Boundary, BoundaryLike, as_boundary
from minga.space.box import Box
from minga.space.grid import Grid
from minga.space.register import SEED as SEED
from minga.space.register import STEP as STEP
from minga.space.register import TIME as TIME
from minga.space.register import Register as Register
from minga.space.register import RegisterKey as RegisterKey

MARGIN: Final = 16
"""Points by which data that every rank holds whole (fields without all axes, coordinates) extends beyond its ends."""


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """Declared quantity: one value at each point of the grid, in `slots` copies (time levels, Krylov bases).

    Parameters
    ----------
    name
        Name of the field.
    grid
        Grid on which it is declared.
    dtype
        One of bool u1 i2 i4 i8 u4 u8 f4 f8.
    slots
        Number of copies; slot 0 is `now`, slot 1 `next`, the last one `previous`.
    centre
        Axes on whose faces the points lie (names or numbers); empty for cells. Face i lies below cell i.
    axes
        The grid's axes that the field has; a field without all of them is held whole by every rank.
    on
        Box of the grid on which the field exists.
    boundary
        Conditions beyond the ends of the axes that are not periodic.
    unit
        Unit of the values; "1" is dimensionless.
    description
        Description of the quantity.

    Raises
    ------
    LayoutError
        If these do not fit together.
    """

    name: str
    grid: Grid
    dtype: DType
    slots: int
    centre: tuple[int, ...]
    axes: tuple[int, ...]
    on: Box | None
    boundary: Boundary
    unit: str
    description: str

    def __init__(
        self,
        name: str,
        grid: Grid,
        dtype: object = "f8",
        *,
        slots: int = 1,
        centre: Sequence[str | int] | str = (),
        axes: Sequence[str | int] | str | None = None,
        on: Box | None = None,
        boundary: BoundaryLike | Boundary = None,
        unit: str = "1",
        description: str = "",
        **moved: Never,
    ) -> None:
        _check_moved(name, moved)
        put = object.__setattr__
        faces = set(map(grid.axis, _names(centre)))
        put(self, "name", name)
        put(self, "grid", grid)
        try:
            put(self, "dtype", as_dtype(dtype))
        except ValueError as error:
            raise LayoutError(f"field {name!r}: {error}") from error
        put(self, "slots", slots)
        put(self, "centre", tuple(int(axis in faces) for axis in range(grid.ndim)))
        put(self, "axes", tuple(range(grid.ndim)) if axes is None else tuple(sorted(map(grid.axis, _names(axes)))))
        put(self, "on", on)
        put(self, "boundary", as_boundary(boundary, grid, name))
        put(self, "unit", unit)
        put(self, "description", description)
        if slots < 1:
            raise LayoutError(f"field {name!r} has {slots} slots", remedy="a field has one slot or more")
        if not self.axes:
            raise LayoutError(f"field {name!r} has no axes", remedy="a number equal on all ranks is a Register")
        if on is not None and not grid.points(self.centre).contains(on):
            raise LayoutError(
                f"field {name!r} exists on {on}, beyond its grid {grid.points(self.centre)}",
                remedy="choose a box inside the grid",
            )
        if boundary is not None and self.replicated:
            raise LayoutError(
                f"field {name!r} lacks axes of its grid and has boundary=",
                remedy="leave boundary= out: beyond its ends it is continued by its last value, or periodically",
            )
        if any(c is not None and c.antiperiodic for pair in self.boundary.sides for c in pair):
            self._check_antiperiodic()
        if on is not None and len(self.axes) != grid.ndim:
            raise LayoutError(f"field {name!r} has both axes= and on=", remedy="give it all axes, or no box")

    def _check_antiperiodic(self) -> None:
        """Raise LayoutError where values cannot change their sign at the ends of the grid."""
        if self.on is not None:
            raise LayoutError(f"field {self.name!r} is antiperiodic, and on a part of the grid", remedy="leave on= out")
        if not is_float(self.dtype) and not is_signed(self.dtype):
            raise LayoutError(
                f"field {self.name!r} is antiperiodic, and its values of type {self.dtype} have no sign",
                remedy="use a float or a signed type",
            )

    @property
    def replicated(self) -> bool:
        """True if every rank holds the whole field (it lacks axes of the grid)."""
        return len(self.axes) != self.grid.ndim

    @property
    def points(self) -> Box:
        """Box of all points, along the grid's axes (including those the field lacks)."""
        return self.grid.points(self.centre) if self.on is None else self.on

    @property
    def bounds(self) -> Box:
        """Box of all points along the field's own axes."""
        return self.project(self.points)

    def project(self, box: Box) -> Box:
        """Return a box of the grid projected to the field's own axes.

        Parameters
        ----------
        box
            A box of the grid, along all its axes.

        Returns
        -------
        Box
            The box along the field's own axes.
        """
        return Box(tuple(box.lo[a] for a in self.axes), tuple(box.hi[a] for a in self.axes))

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Flags of the grid's axes that wrap around for this field."""
        return tuple(
            p and (self.on is None or (self.on.lo[a] == 0 and self.on.hi[a] == self.grid.shape[a]))
            for a, p in enumerate(self.grid.periodic)
        )

    @property
    def antiperiodic(self) -> tuple[bool, ...]:
        """Flags of the grid's periodic axes at whose ends the values change their sign."""
        return tuple(p and self.boundary.at(a, "low") is not None for a, p in enumerate(self.periodic))

    def slot(self, index: int) -> Slot:
        """Return one of the field's copies; negative numbers count from the last.

        Parameters
        ----------
        index
            The number of the slot.

        Returns
        -------
        Slot
            The slot.

        Raises
        ------
        LayoutError
            If the field has no such slot.
        """
        if not -self.slots <= index < self.slots:
            raise LayoutError(
                f"field {self.name!r} has no slot {index}; it has {self.slots}", remedy="declare it with more slots="
            )
        return Slot(self, index % self.slots)

    @property
    def now(self) -> Slot:
        """Slot 0, the current time level."""
        return self.slot(0)

    @property
    def next(self) -> Slot:
        """Slot 1, the next time level."""
        return self.slot(1)

    @property
    def previous(self) -> Slot:
        """Last slot, the previous time level."""
        if self.slots < 2:
            raise LayoutError(
                f"field {self.name!r} has one slot, and so no earlier level", remedy="declare it with slots=2 or more"
            )
        return self.slot(-1)

    def __repr__(self) -> str:
        extra = "".join(
            [
                f", slots={self.slots}" if self.slots > 1 else "",
                f", faces={[self.grid.axes[a] for a, c in enumerate(self.centre) if c]}" if any(self.centre) else "",
                f", axes={[self.grid.axes[a] for a in self.axes]}" if self.replicated else "",
                f", on={self.on}" if self.on is not None else "",
                f", unit={self.unit!r}" if self.unit != "1" else "",
            ]
        )
        return f"Field({self.name!r}, {self.dtype}, {'x'.join(map(str, self.bounds.shape))}{extra})"


def _check_moved(name: str, moved: Mapping[str, object]) -> None:
    """Raise LayoutError for options that belong to the presentation of a model, TypeError for all others."""
    for option in moved:
        if option not in ("colours", "signed", "section", "along"):
            raise TypeError(f"Field.__init__() got an unexpected keyword argument {option!r}")
        style = f"mg.Presentation(fields={{{name!r}: mg.FieldStyle({option}=...)}})"
        raise LayoutError(
            f"field {name!r}: {option}= belongs to the presentation of a model",
            remedy=f"write mg.Model(..., presentation={style})",
        )


def _names(axes: Sequence[str | int] | str) -> Sequence[str | int]:
    """Return several axes as they are, or the name of one as a sequence."""
    return ((axes,) if axes else ()) if isinstance(axes, str) else axes


@dataclass(frozen=True, slots=True)
class Slot:
    """One copy of a field, by its present position: rotation moves the contents, not the name.

    Parameters
    ----------
    field
        The field.
    index
        The present position of the slot.
    """

    field: Field
    index: int

    def __repr__(self) -> str:
        return self.field.name if self.field.slots == 1 else f"{self.field.name}[{self.index}]"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """Values that every rank holds whole: coordinates, boundary arrays; `array[0, ...]` has index `origin`."""

    name: str
    axes: tuple[int, ...]
    origin: tuple[int, ...]
    array: np.ndarray


def coordinate_constant(grid: Grid, axis: int, centre: int, margin: int = MARGIN) -> Constant:
    """Return the positions of points along an axis and of `margin` points beyond both ends.

    The points go on evenly there; along a periodic axis they are those of the other end, as the cells are.
    """
    points = grid.faces(axis) if centre else grid.positions(axis)
    name = f"@coordinate{axis}"
    if grid.periodic[axis]:
        around = np.arange(-margin, grid.shape[axis] + margin) % grid.shape[axis]
        return Constant(name, (axis,), (-margin,), points[around])
    widths = grid.widths(axis)
    low = points[0] - widths[0] * np.arange(margin, 0, -1)
    high = points[-1] + widths[-1] * np.arange(1, margin + 1)
    return Constant(name, (axis,), (-margin,), np.concatenate([low, points, high]))
