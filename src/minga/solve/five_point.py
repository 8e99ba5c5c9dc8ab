"""Systems on grids of two axes with k coupled unknowns a cell, coupled with the four cells beside it.

Solvers of such systems share how the matrix is stored, and how one rank solves for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.solve.block_tridiagonal import Pattern
from minga.space.boundary import fixed
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["Direct", "FivePoint", "OneRank"]

Floats = NDArray[np.float64]
OneRank = Callable[[Mapping[Field, Floats], Sequence[Floats]], Floats]
"""Function of the whole fields of a matrix and of the right side that returns the solution, (k, rows, columns)."""


@dataclass(frozen=True, eq=False)
class FivePoint:
    """The fields of a matrix on a grid of two axes, which couples each cell with itself and the four beside it.

    The caller's kernels write `diagonal`, and for each axis `lower` and `upper`, the coupling with the cell before and
    after: k x k blocks, row after row, f8; `lower` and `upper` have only the entries that `coupling` marks. Blocks that
    would reach beyond the grid are not used.

    Parameters
    ----------
    grid
        A grid of two axes that are not periodic.
    unknowns
        The number k of unknowns in a cell.
    coupling
        Which entries of `lower` and `upper` exist: k rows of k booleans.
    name
        The beginning of the names of all fields.

    Raises
    ------
    ProgramError
        If the grid has other axes.
    """

    grid: Grid
    unknowns: int
    coupling: Pattern
    name: str = "five-point"
    lower: tuple[tuple[Field, ...], ...] = field(init=False)
    diagonal: tuple[Field, ...] = field(init=False)
    upper: tuple[tuple[Field, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.grid.ndim != 2 or any(self.grid.periodic):
            raise ProgramError(
                f"{self.name}: a grid of {self.grid.ndim} axes, periodic: {self.grid.periodic}",
                remedy="choose one of two axes with two ends each",
            )
        k, put = self.unknowns, object.__setattr__
        for part in ("lower", "upper"):
            put(self, part, tuple(
                tuple(self._declare(f"{part} {axis}{i}{j}") for i, j in self.places) for axis in self.grid.axes
            ))  # fmt: skip
        put(self, "diagonal", tuple(self._declare(f"diagonal {i}{j}") for i in range(k) for j in range(k)))

    def _declare(self, what: str) -> Field:
        return Field(f"{self.name} {what}", self.grid, boundary=fixed(0.0))

    @property
    def places(self) -> list[tuple[int, int]]:
        """Row and column in a block of the entries that `lower` and `upper` have."""
        k = self.unknowns
        return [(i, j) for i in range(k) for j in range(k) if self.coupling[i][j]]

    @property
    def matrix(self) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]:
        """Lower, diagonal and upper, of all axes one after the other."""
        lower, upper = (tuple(item for axis in part for item in axis) for part in (self.lower, self.upper))
        return lower, self.diagonal, upper

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return tuple(item for part in self.matrix for item in part)


@dataclass(frozen=True, eq=False)
class Direct:
    """Direct solver for systems on grids of two axes; rank 0 solves while the others wait, so bits depend on no layout.

    Parameters
    ----------
    five_point
        The fields of the matrix.
    solved
        A function of the fields' whole arrays and of the right sides that returns the solution, of shape (k, rows,
        columns).
    label
        The name of the operation in a Program.
    """

    five_point: FivePoint
    solved: OneRank
    label: str

    @property
    def matrix(self) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]:
        """Lower, diagonal and upper, of all axes one after the other, as FivePoint has them."""
        return self.five_point.matrix

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.five_point.fields

    def setup(self, program: Program) -> None:
        """Record nothing: every solve factorises the matrix anew.

        Parameters
        ----------
        program
            The Program to record into.
        """

    def solve(self, program: Program, b: Sequence[Field], x: Sequence[Field]) -> None:
        """Record the solution for one right side; the solution is NaN if there is none.

        Parameters
        ----------
        program
            The Program to record into.
        b
            k fields of the right side.
        x
            k fields of the solution; may be `b`.
        """
        b, x = tuple(b), tuple(x)

        def solve(engine: Engine) -> None:
            values: dict[Field, Any] = {item: engine.gather(item) for item in (*self.fields, *b)}
            found: Floats | None = None
            if engine.comm.rank == 0:
                found = self.solved(values, [values[item] for item in b])
            found = engine.comm.bcast(found)
            for item, value in zip(x, found, strict=True):
                for box, view in engine.blocks(item):
                    view[...] = value[box.slices((0, 0))]

        solve.__name__ = self.label
        program.call(solve, reads=[item.now for item in (*self.fields, *b)], writes=[item.now for item in x])
