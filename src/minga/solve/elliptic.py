"""An elliptic operator with coefficients that vary from face to face, as an operator for solvers.

    (A u)_P = sum over the faces f of cell P of k_f (u_P - u_N) + d_P u_P

k_f is a face's conductance: coefficient times area over the distance of the centres beside it. A face that nothing
passes through has k = 0, so masked cells, glass and the grid's ends need nothing else; what goes to walls of a given
value is in d. Where k >= 0 and d >= 0 the operator is symmetric and positive semidefinite on any grid. The row of a
solid cell is all zero: its unknown stays as it is, and its right side has to be 0.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.functions import sum as cell_sum
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid

__all__ = ["Elliptic", "live_axes"]

Readers = Sequence[CellReader]


def live_axes(grid: Grid) -> tuple[int, ...]:
    """Return the axes along which a cell may have neighbours other than itself: all but periodic ones of one cell."""
    return tuple(axis for axis, n in enumerate(grid.shape) if n > 1 or not grid.periodic[axis])


@dataclass(frozen=True, eq=False)
class Elliptic:
    """An elliptic operator with coefficients that vary from face to face, on a grid of one to four axes.

    ``(A u)_P = sum over the faces f of cell P of k_f (u_P - u_N) + d_P u_P``. The caller's kernels write the fields
    `faces` and `diagonal`. Fields that the operator is applied to need a boundary condition; any will do, because the
    values read there are multiplied by 0.

    Parameters
    ----------
    grid
        The grid; any of its axes may be periodic.
    name
        The beginning of the names of all fields.

    Attributes
    ----------
    faces
        Conductances, one field for each axis at its faces (f8, >= 0); face i lies below cell i. The first and the last
        face of an axis are 0; on a periodic axis they are one face, which the field holds once.
    diagonal
        The coefficient d of what goes to walls, at the cells (f8, >= 0).
    """

    grid: Grid
    name: str = "elliptic"
    faces: tuple[Field, ...] = field(init=False)
    diagonal: Field = field(init=False)

    def __post_init__(self) -> None:
        names = self.grid.axes
        faces = tuple(Field(f"{self.name} faces {a}", self.grid, centre=a, boundary=fixed(0.0)) for a in names)
        object.__setattr__(self, "faces", faces)
        object.__setattr__(self, "diagonal", Field(f"{self.name} diagonal", self.grid, boundary=fixed(0.0)))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the operator, for a Model."""
        return (*self.faces, self.diagonal)

    def __call__(self, program: Program, source: Field | Slot, target: Field | Slot) -> Register:
        """Record target = A source.

        Parameters
        ----------
        program
            The Program to record into.
        source, target
            Fields or slots at the cells of the grid.

        Returns
        -------
        Register
            The sum of source * target.
        """
        made = apply_elliptic(self.grid.ndim, live_axes(self.grid))
        product = program.apply(made, source, self.faces, self.diagonal, target)
        assert isinstance(product, Register)
        return product

    def active(self, program: Program, target: Field | Slot) -> None:
        """Record target = 1 where the row is not all zero, else 0: the null vector if nothing goes to walls.

        Parameters
        ----------
        program
            The Program to record into.
        target
            A field or slot at the cells of the grid.
        """
        program.apply(mark_active(self.grid.ndim, live_axes(self.grid)), self.faces, self.diagonal, target)


# In kernels ----------------------------------------------------------------------------------------------------------
def outflow(u: CellReader, faces: Readers, walls: Node, axes: Sequence[int]) -> Node:
    """Return A u in the cell; `faces` hold the conductance of the face below it, one field for each axis."""
    ndim = len(faces)
    here = (0,) * ndim
    value = u[here]
    total = walls * value
    for axis in axes:
        below, above = step(ndim, axis, -1), step(ndim, axis, 1)
        total = total + (faces[axis][here] * (value - u[below]) + faces[axis][above] * (value - u[above]))
    return total


def whole_diagonal(faces: Readers, walls: Node, axes: Sequence[int]) -> Node:
    """Return the factor of the cell's own value in `outflow`."""
    ndim = len(faces)
    total = walls
    for axis in axes:
        total = total + (faces[axis][(0,) * ndim] + faces[axis][step(ndim, axis, 1)])
    return total


def quotient(value: Node | float, divisor: Node) -> Node:
    """Return value / divisor, or 0 where the divisor is 0."""
    held = divisor > 0.0
    return where(held, value / where(held, divisor, 1.0), 0.0)


@functools.cache
def apply_elliptic(ndim: int, axes: tuple[int, ...]) -> Kernel:
    """Return the kernel of result = A u, which returns the sum of u * A u."""
    here = (0,) * ndim

    @kernel
    def elliptic(u: CellReader, faces: Readers, diagonal: CellReader, result: CellReader) -> Reduced:
        value = outflow(u, faces, diagonal[here], axes)
        result[here] = value
        return cell_sum(u[here] * value)

    return elliptic


def outside_axis(grid: Grid, axis: int) -> Kernel:
    """Return the kernel that sums what goes to walls and through the faces of all axes but one."""
    return _outside(grid.ndim, tuple(a for a in live_axes(grid) if a != axis))


@functools.cache
def _outside(ndim: int, axes: tuple[int, ...]) -> Kernel:
    here = (0,) * ndim

    @kernel
    def outside_lines(faces: Readers, diagonal: CellReader, result: CellReader) -> None:
        result[here] = whole_diagonal(faces, diagonal[here], axes)

    return outside_lines


@functools.cache
def mark_active(ndim: int, axes: tuple[int, ...]) -> Kernel:
    """Return the kernel that stores 1 where the row is not all zero, else 0."""
    here = (0,) * ndim

    @kernel
    def active_cells(faces: Readers, diagonal: CellReader, result: CellReader) -> None:
        result[here] = where(whole_diagonal(faces, diagonal[here], axes) > 0.0, 1.0, 0.0)

    return active_cells
