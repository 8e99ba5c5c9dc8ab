"""Exact solution of the part of an operator along one axis: a preconditioner, or a solver in one dimension.

Through face i, between cells i - 1 and i, flows up[i] c[i-1] - down[i] c[i]; a cell loses what flows out of it, and
rest * c besides:

    (T c)_i = rest_i c_i + (up[i+1] c_i - down[i+1] c_{i+1}) - (up[i] c_{i-1} - down[i] c_i)

Diffusion has up = down, drift and convection (Scharfetter and Gummel) have not. Where up, down and rest are not
negative, nothing is subtracted on the way: elimination keeps what of a pivot does not flow on, as Grassmann, Taksar and
Heyman's algorithm does (Operations Research 33, 1985), so that pivots are accurate however small `rest` is.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader
from minga.lang.expr import Node, where
from minga.lang.kernel import Kernel
from minga.solve.elliptic import Elliptic, outside_axis, quotient
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Slot
from minga.space.grid import Grid

__all__ = ["EllipticLines", "Lines"]


@dataclass(frozen=True, eq=False)
class Lines:
    """Exact solver for all lines of a grid along an axis that is not periodic; declares three vectors.

    The work passes through the ranks along the axis, one after the other, with the bits of one rank. Where a row is all
    zero, the unknown becomes 0; where nothing holds a line (`rest` is 0), its last unknown does.

    Parameters
    ----------
    grid
        The grid.
    axis
        Name or number of the axis.
    name
        The beginning of the names of all fields.

    Attributes
    ----------
    inverse, ratio
        Inverses of the pivots, and the factor of the next unknown along the axis; `setup` computes both.
    partial
        The right side after elimination.
    """

    grid: Grid
    axis: str | int
    name: str = "lines"
    along: int = field(init=False)
    inverse: Field = field(init=False)
    ratio: Field = field(init=False)
    partial: Field = field(init=False)

    def __post_init__(self) -> None:
        along = self.grid.axis(self.axis)
        if self.grid.periodic[along]:
            raise ProgramError(
                f"lines along {self.grid.axes[along]!r}, which is periodic: their first and last cells are coupled",
                remedy="choose an axis with two ends",
            )
        put = object.__setattr__
        put(self, "along", along)
        for vector in ("inverse", "ratio", "partial"):
            put(self, vector, Field(f"{self.name} {vector}", self.grid, boundary=fixed(0.0)))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.inverse, self.ratio, self.partial

    def setup(self, program: Program, up: Field | Slot, down: Field | Slot, rest: Field | Slot) -> None:
        """Record the elimination; it has to be repeated whenever the coefficients have changed.

        Parameters
        ----------
        program
            The Program to record into.
        up, down
            f8, >= 0, at the faces of the axis, or at cells for the face below each (they may be one field); 0 at the
            first and the last face.
        rest
            f8, >= 0, at the cells.
        """
        made = factorisation(self.grid.ndim, self.along)
        program.apply(made, up, down, rest, self.partial, self.ratio, self.inverse)

    def solve(self, program: Program, up: Field | Slot, b: Field | Slot, x: Field | Slot) -> None:
        """Record the solution x of T x = b.

        Parameters
        ----------
        program
            The Program to record into.
        up
            The field `up` that `setup` was given.
        b
            The right side, at the cells.
        x
            The solution, at the cells. Beyond the ends of the axis it needs a finite value: boundary=mg.fixed(0.0).
        """
        self.eliminate(program, up, b)
        program.apply(substitution(self.grid.ndim, self.along), self.ratio, self.partial, x)

    def relax(
        self,
        program: Program,
        up: Field | Slot,
        diagonal: Field | Slot,
        b: Field | Slot,
        u: Slot | None,
        result: Slot,
        weight: float,
    ) -> None:
        """Record result = u + weight * x, with the solution x of T x = b; `b` becomes x.

        Parameters
        ----------
        program
            The Program to record into.
        up
            The field `up` that `setup` was given.
        diagonal
            A field at the cells; where it is 0 the result is 0.
        b
            The right side, which is overwritten.
        u
            The values to start from; None: 0.
        result
            The relaxed values.
        weight
            The fraction of the solution that is added.
        """
        self.eliminate(program, up, b)
        made = damped_substitution(self.grid.ndim, self.along, 0 if u is None else 1)
        old = () if u is None else (u,)
        program.apply(made, self.ratio, self.partial, diagonal, old, b, result, weight=weight)

    def eliminate(self, program: Program, up: Field | Slot, b: Field | Slot) -> None:
        """Record the first half of a solution, the elimination of the right side into `partial`.

        Parameters
        ----------
        program
            The Program to record into.
        up
            The field `up` that `setup` was given.
        b
            The right side.
        """
        program.apply(elimination(self.grid.ndim, self.along), up, self.inverse, b, self.partial)


@dataclass(frozen=True, eq=False)
class EllipticLines:
    """The tridiagonal part of an elliptic operator along one axis, as a preconditioner; exact on a grid of one axis.

    `setup` has to run before the first call, and whenever the operator's fields have changed.

    Parameters
    ----------
    elliptic
        The operator.
    axis
        Name or number of the axis.
    name
        The beginning of the names of all fields.
    """

    elliptic: Elliptic
    axis: str | int
    name: str = "lines"
    lines: Lines = field(init=False)
    rest: Field = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", Lines(self.elliptic.grid, self.axis, self.name))
        object.__setattr__(self, "rest", Field(f"{self.name} rest", self.elliptic.grid))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return *self.lines.fields, self.rest

    def setup(self, program: Program) -> None:
        """Record the elimination, and the contributions of the other axes to the diagonal.

        Parameters
        ----------
        program
            The Program to record into.
        """
        made = outside_axis(self.elliptic.grid, self.lines.along)
        faces = self.elliptic.faces[self.lines.along]
        program.apply(made, self.elliptic.faces, self.elliptic.diagonal, self.rest)
        self.lines.setup(program, faces, faces, self.rest)

    def __call__(self, program: Program, residual: Field | Slot, correction: Field | Slot) -> None:
        """Record correction = M residual.

        Parameters
        ----------
        program
            The Program to record into.
        residual, correction
            Fields or slots at the cells of the grid.
        """
        self.lines.solve(program, self.elliptic.faces[self.lines.along], residual, correction)


# Kernels -------------------------------------------------------------------------------------------------------------
@functools.cache
def factorisation(ndim: int, axis: int) -> Kernel:
    """Return the kernel that computes pivots and ratios, along +axis."""
    here, below, above = (0,) * ndim, step(ndim, axis, -1), step(ndim, axis, 1)

    def factorise_lines(
        up: CellReader, down: CellReader, rest: CellReader, stays: CellReader, ratio: CellReader, inverse: CellReader
    ) -> None:
        # Of what a cell holds, the share `stays` does not flow on to the next; `kept` is its part of the pivot.
        kept = rest[here] + down[here] * stays[below]
        pivot = kept + up[above]
        stays[here] = quotient(kept, pivot)
        ratio[here] = quotient(down[above], pivot)
        inverse[here] = quotient(1.0, pivot)

    return Kernel(factorise_lines, order={axis: 1}, name="line factorisation")


@functools.cache
def elimination(ndim: int, axis: int) -> Kernel:
    """Return the kernel that eliminates the unknowns below from the right side, along +axis."""
    here, below = (0,) * ndim, step(ndim, axis, -1)

    def eliminate(up: CellReader, inverse: CellReader, b: CellReader, partial: CellReader) -> None:
        partial[here] = (b[here] + up[here] * partial[below]) * inverse[here]

    return Kernel(eliminate, order={axis: 1}, name="line elimination")


@functools.cache
def substitution(ndim: int, axis: int) -> Kernel:
    """Return the kernel that computes the unknowns, along -axis."""
    here, above = (0,) * ndim, step(ndim, axis, 1)

    def substitute(ratio: CellReader, partial: CellReader, x: CellReader) -> None:
        x[here] = partial[here] + ratio[here] * x[above]

    return Kernel(substitute, order={axis: -1}, name="line substitution")


@functools.cache
def damped_substitution(ndim: int, axis: int, old: int) -> Kernel:
    """Return the kernel that computes the unknowns and adds `weight` of them to old ones: `old` fields, 1 or 0."""
    here, above = (0,) * ndim, step(ndim, axis, 1)

    def substitute(
        ratio: CellReader, partial: CellReader, diagonal: CellReader, u: Sequence[CellReader], x: CellReader,
        result: CellReader, *, weight: Node,
    ) -> None:  # fmt: skip
        value = partial[here] + ratio[here] * x[above]
        x[here] = value
        change = weight * value
        result[here] = where(diagonal[here] > 0.0, u[0][here] + change if old else change, 0.0)

    return Kernel(substitute, order={axis: -1}, name="damped line substitution")
