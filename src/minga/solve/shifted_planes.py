"""Systems on grids of two axes with an imaginary part in the diagonal blocks, solved directly: small oscillations.

The matrix is that of :mod:`minga.solve.shifted_lines` with couplings along both axes. Real and imaginary parts are
solved for together, as twice as many real unknowns, by sparse factors.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node
from minga.lang.kernel import Kernel
from minga.solve.block_tridiagonal import Pattern
from minga.solve.five_point import Direct
from minga.solve.sparse_factors import sparse
from minga.space.boundary import fixed
from minga.space.field import Field
from minga.space.grid import Grid

__all__ = ["ShiftedPlanes"]

Readers = Sequence[CellReader]
Matrix = tuple[Sequence[Field], Sequence[Field], Sequence[Field]]


@dataclass(frozen=True, eq=False)
class ShiftedPlanes:
    """Solver for a real matrix with an imaginary part in its diagonal blocks; declares its own fields.

    Parameters
    ----------
    grid
        A grid of two axes that are not periodic.
    matrix
        Fields of the real matrix, lower, diagonal and upper, as `FivePoint` has them.
    coupling
        Which entries of the blocks beside the diagonal exist: k rows of k booleans.
    places
        Rows and columns in a block of the entries of the imaginary part.
    name
        The beginning of the names of all fields.

    Attributes
    ----------
    storage
        The entries of the imaginary part over `factor`, in the order of `places`, which the caller writes.
    solver
        Solver for real and imaginary parts.
    """

    grid: Grid
    matrix: Matrix
    coupling: Pattern
    places: tuple[tuple[int, int], ...]
    name: str = "shifted planes"
    storage: tuple[Field, ...] = field(init=False)
    solver: Direct = field(init=False)

    def __post_init__(self) -> None:
        k = len(self.coupling)
        none = (False,) * k
        doubled = (*((*row, *none) for row in self.coupling), *((*none, *row) for row in self.coupling))
        made = tuple(Field(f"{self.name} storage {n}", self.grid, boundary=fixed(0.0)) for n in range(len(self.places)))
        object.__setattr__(self, "storage", made)
        object.__setattr__(self, "solver", sparse(self.grid, 2 * k, doubled, self.name, keep=True))

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model, without those of the real matrix."""
        return *self.storage, *self.solver.fields

    def setup(self, program: Program, factor: Any) -> None:
        """Record the matrix; it has to be repeated whenever the real matrix or the factor has changed.

        Parameters
        ----------
        program
            The Program to record into.
        factor
            The number that multiplies the imaginary part, such as a register.
        """
        made = doubled_matrix(len(self.coupling), self.places)
        program.apply(made, *self.matrix, self.storage, *self.solver.matrix, factor=factor)

    def solve(self, program: Program, b: Sequence[Field], x: Sequence[Field]) -> None:
        """Record the solution for one right side.

        Parameters
        ----------
        program
            The Program to record into.
        b, x
            2 k fields of the right side and of the solution, which may be the same: real parts, then imaginary ones.
        """
        self.solver.solve(program, b, x)


@functools.cache
def doubled_matrix(k: int, places: tuple[tuple[int, int], ...]) -> Kernel:
    """Return the kernel of the matrix of real and imaginary parts."""
    here = (0, 0)

    def double(
        lower: Readers, diagonal: Readers, upper: Readers, storage: Readers, low: Readers, own: Readers, high: Readers,
        *, factor: Node,
    ) -> None:  # fmt: skip
        for given, made in ((lower, low), (upper, high)):
            size = len(given) // 2
            for axis in range(2):
                for n in range(size):
                    value = given[axis * size + n][here]
                    for part in range(2):
                        made[(2 * axis + part) * size + n][here] = value
        turned = {place: factor * item[here] for place, item in zip(places, storage, strict=True)}
        zero = diagonal[0][here] * 0.0
        for i in range(2 * k):
            for j in range(2 * k):
                row, column = i % k, j % k
                if i // k == j // k:
                    value = diagonal[row * k + column][here]
                else:
                    value = turned.get((row, column), zero) * (-1.0 if j >= k else 1.0)
                own[2 * k * i + j][here] = value

    return Kernel(double, name="matrix of an oscillation")
