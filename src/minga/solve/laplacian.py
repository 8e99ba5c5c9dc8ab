"""Negative Laplacian of cell-centred finite volumes on rectilinear grids, as an operator for solvers.

`A u` in a cell is its volume times `shift * u - Laplace u`: what flows out through the cell's faces. Multiplied by the
volume the operator is symmetric on any grid, stretched or not; the right side of `shift * u - Laplace u = f` is then
`volume * f`. A face between two cells carries the difference of their values over the distance of their centres; a
`dirichlet` wall the difference to the wall's value over half a cell; a `neumann` wall nothing.

All that depends on the place is kept in one-axis arrays. Ghost cells of a field hold the wall's own value there
(`boundary=mg.fixed(value)`), 0 unless the problem says otherwise; where the wall is `neumann` they do not matter.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.errors import LayoutError, suggest
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.functions import sum as cell_sum
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid

if TYPE_CHECKING:
    from minga.engine.engine import Engine

Floats = NDArray[np.float64]
Wall = Literal["dirichlet", "neumann"]
Walls = Wall | Mapping[str | int, Wall | tuple[Wall, Wall]]
Readers = Sequence[CellReader]

KINDS: Final = ("dirichlet", "neumann")


def as_walls(walls: Walls, grid: Grid) -> tuple[tuple[Wall, Wall], ...]:
    """Return the kinds of wall at both ends of every axis, given as one kind for all, or by axis (a kind or a pair)."""
    if isinstance(walls, str):
        return ((_kind(walls),) * 2,) * grid.ndim
    sides: list[tuple[Wall, Wall]] = [("dirichlet", "dirichlet")] * grid.ndim
    for name, pair in walls.items():
        low, high = (pair, pair) if isinstance(pair, str) else pair
        sides[grid.axis(name)] = (_kind(low), _kind(high))
    return tuple(sides)


def _kind(word: str) -> Wall:
    if word == "dirichlet" or word == "neumann":
        return word  # type: ignore[return-value]
    close = suggest(word, KINDS)
    raise LayoutError(
        f"{word!r} is no kind of wall", remedy=f"did you mean {close!r}?" if close else f"use one of {', '.join(KINDS)}"
    )


def couplings(grid: Grid, axis: int, walls: tuple[Wall, Wall]) -> tuple[Floats, Floats]:
    """Return the coefficients of the differences to both neighbours, 1/(width * distance), of shape (N,) each."""
    width = grid.widths(axis)
    length = len(width)
    if length == 1 and grid.periodic[axis]:  # a cell that is its own neighbour exchanges nothing
        return np.zeros(1), np.zeros(1)
    inside = 0.5 * (width[:-1] + width[1:])
    if grid.periodic[axis]:
        ends = (np.array([0.5 * (width[-1] + width[0])]),) * 2
        faces = 1.0 / np.concatenate((ends[0], inside, ends[1]))
    else:
        low = 2.0 / width[0] if walls[0] == "dirichlet" else 0.0
        high = 2.0 / width[-1] if walls[1] == "dirichlet" else 0.0
        faces = np.concatenate(([low], 1.0 / inside, [high]))
    return faces[:-1] / width, faces[1:] / width


# In kernels ----------------------------------------------------------------------------------------------------------
def step(ndim: int, axis: int, distance: int) -> tuple[int, ...]:
    """Return the offset of a neighbour along one axis."""
    return tuple(distance if a == axis else 0 for a in range(ndim))


def volume(width: Readers) -> Node:
    """Return the volume of the cell."""
    return functools.reduce(operator.mul, (w[0] for w in width))


def outflow(u: CellReader, low: Readers, high: Readers, shift: Node) -> Node:
    """Return `shift * u - Laplace u` in the cell."""
    ndim = len(low)
    here = u[(0,) * ndim]
    total = shift * here
    for axis in range(ndim):
        below, above = u[step(ndim, axis, -1)], u[step(ndim, axis, 1)]
        total = total + (low[axis][0] * (here - below) + high[axis][0] * (here - above))
    return total


def diagonal(low: Readers, high: Readers, shift: Node) -> Node:
    """Return the factor of the cell's own value in `outflow`."""
    total = shift
    for below, above in zip(low, high, strict=True):
        total = total + (below[0] + above[0])
    return total


@kernel
def apply_laplacian(
    u: CellReader, result: CellReader, low: Readers, high: Readers, width: Readers, *, shift: Node
) -> Reduced:
    """Store result = A u; return the sum of u * A u."""
    value = volume(width) * outflow(u, low, high, shift)
    here = (0,) * len(low)
    result[here] = value
    return cell_sum(u[here] * value)


@kernel
def times_volume(f: CellReader, result: CellReader, width: Readers) -> None:
    """Store result = volume * f."""
    here = (0,) * len(width)
    result[here] = volume(width) * f[here]


@kernel
def subtract_laplacian(
    u: CellReader, f: CellReader, result: CellReader, low: Readers, high: Readers, width: Readers, *, shift: Node
) -> None:
    """Store result = f - A u."""
    here = (0,) * len(low)
    result[here] = f[here] - volume(width) * outflow(u, low, high, shift)


@kernel
def relax_laplacian(
    u: CellReader,
    f: CellReader,
    result: CellReader,
    low: Readers,
    high: Readers,
    width: Readers,
    *,
    shift: Node,
    weight: Node,
) -> None:
    """Store u + weight * (f - A u) / diagonal of A: one step of damped Jacobi."""
    here = (0,) * len(low)
    size = volume(width)
    residual = f[here] - size * outflow(u, low, high, shift)
    result[here] = u[here] + weight * (residual / (size * diagonal(low, high, shift)))


@kernel
def first_relaxation(
    f: CellReader, result: CellReader, low: Readers, high: Readers, width: Readers, *, shift: Node, weight: Node
) -> None:
    """Store one step of damped Jacobi from u = 0; where nothing holds the cell (diagonal 0), it stays 0."""
    here = (0,) * len(low)
    total = volume(width) * diagonal(low, high, shift)
    result[here] = where(total > 0.0, weight * (f[here] / where(total > 0.0, total, 1.0)), 0.0)


# In Programs ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Laplacian:
    """The negative Laplacian on one grid, integrated over each cell: `A u = volume * (shift * u - Laplace u)`.

    The sign makes the operator positive definite, as conjugate gradients and multigrid require. Poisson's equation
    `Laplace u = g` is `A u = -volume * g`; `right_side(program, f, b)` computes `b = volume * f` for `shift * u -
    Laplace u = f`, so pass `f = -g`.

    Parameters
    ----------
    grid
        A rectilinear grid of one to four axes, any of them periodic.
    walls
        ``"dirichlet"`` or ``"neumann"``, or by the name of an axis one of these or a pair (low, high); periodic axes
        have none.
    shift
        A number >= 0 that is added to the diagonal, as an implicit time step does.
    name
        Begins the names of the operator's fields.

    Raises
    ------
    LayoutError
        If the shift is negative or not finite.
    """

    grid: Grid
    walls: Walls = "dirichlet"
    shift: float = 0.0
    name: str = "laplacian"
    low: tuple[Field, ...] = field(init=False)
    high: tuple[Field, ...] = field(init=False)
    width: tuple[Field, ...] = field(init=False)
    constants: Mapping[Field, Floats] = field(init=False)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.shift) and self.shift >= 0):
            raise LayoutError(f"the shift of a Laplacian is {self.shift}", remedy="give 0 or a positive number")
        constants: dict[Field, Floats] = {}

        def one_axis(kind: str, axis: int, values: Floats) -> Field:
            letter = self.grid.axes[axis]
            item = Field(f"{self.name} {kind} {letter}", self.grid, axes=(axis,), boundary=None)
            constants[item] = values
            return item

        kinds = as_walls(self.walls, self.grid)
        pairs = [couplings(self.grid, axis, kinds[axis]) for axis in range(self.grid.ndim)]
        put = object.__setattr__
        put(self, "low", tuple(one_axis("low", a, pair[0]) for a, pair in enumerate(pairs)))
        put(self, "high", tuple(one_axis("high", a, pair[1]) for a, pair in enumerate(pairs)))
        put(self, "width", tuple(one_axis("width", a, self.grid.widths(a)) for a in range(self.grid.ndim)))
        put(self, "constants", constants)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the operator, for ``mg.Model(..., fields=...)``."""
        return tuple(self.constants)

    @property
    def initial(self) -> Mapping[Field, Floats]:
        """The values of `fields`, for ``mg.Model(..., initial=...)``."""
        return self.constants

    def load(self, engine: Engine) -> None:
        """Set the fields of one axis, which hold coefficients; once for each engine, before it runs.

        Parameters
        ----------
        engine
            The engine.
        """
        for item, values in self.constants.items():
            engine.set(item, values)

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
        product = program.apply(apply_laplacian, source, target, self.low, self.high, self.width, shift=self.shift)
        assert isinstance(product, Register)
        return product

    def right_side(self, program: Program, f: Field | Slot, target: Field | Slot) -> None:
        """Record target = volume * f, the right side of A u = target for the equation shift * u - Laplace u = f.

        Parameters
        ----------
        program
            The Program to record into.
        f, target
            Fields or slots at the cells of the grid.
        """
        program.apply(times_volume, f, target, self.width)

    def residual(self, program: Program, u: Field | Slot, f: Field | Slot, target: Field | Slot) -> None:
        """Record target = f - A u.

        Parameters
        ----------
        program
            The Program to record into.
        u, f, target
            Fields or slots at the cells of the grid.
        """
        program.apply(subtract_laplacian, u, f, target, self.low, self.high, self.width, shift=self.shift)

    def relax(
        self, program: Program, u: Field | Slot | None, f: Field | Slot, target: Field | Slot, weight: float = 1.0
    ) -> None:
        """Record one step of damped Jacobi.

        Parameters
        ----------
        program
            The Program to record into.
        u
            The values to start from; None: 0.
        f
            The right side.
        target
            The relaxed values.
        weight
            The fraction of the Jacobi correction that is applied.
        """
        coefficients = (self.low, self.high, self.width)
        if u is None:
            program.apply(first_relaxation, f, target, *coefficients, shift=self.shift, weight=weight)
        else:
            program.apply(relax_laplacian, u, f, target, *coefficients, shift=self.shift, weight=weight)
