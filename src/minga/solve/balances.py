"""Balances of what flows through the faces of cells, along one axis or two, solved directly.

Through a face of an axis, between cells i - 1 and i, flows up[i] c[i-1] - down[i] c[i]; a cell loses what flows out of
it, and rest * c besides. The matrix has no positive entries beside its diagonal, and its columns sum to `rest`: where
up, down and rest are not negative, neither is the solution for a right side that is not.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.kernel import Kernel
from minga.solve.five_point import Direct
from minga.solve.laplacian import step
from minga.solve.lines import Lines
from minga.solve.sparse import sparse
from minga.space.field import Field, Slot
from minga.space.grid import Grid

__all__ = ["Balances"]

Readers = Sequence[CellReader]


@dataclass(frozen=True, eq=False)
class Balances:
    """Solves balances on a grid of one or two axes that are not periodic.

    Of one axis without a subtraction (:mod:`minga.solve.lines`), so that solutions are right in each of their numbers;
    of two by sparse factors, whose solutions are those of a matrix that differs in no entry by more than round-off.
    """

    grid: Grid
    name: str = "balances"
    solver: Lines | Direct = field(init=False)

    def __post_init__(self) -> None:
        one = self.grid.ndim == 1
        made = Lines(self.grid, self.grid.axes[0], self.name) if one else sparse(self.grid, 1, ((True,),), self.name)
        object.__setattr__(self, "solver", made)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.solver.fields

    def solve(
        self, program: Program, up: Sequence[Field], down: Sequence[Field], rest: Field | Slot, b: Field, x: Field
    ) -> None:
        """Record the solution; x may be b.

        up, down  f8, >= 0, at the faces of each axis (both may be one field); 0 at the first and the last face
        rest      f8, >= 0, at the cells
        """
        if isinstance(self.solver, Lines):
            self.solver.setup(program, up[0], down[0], rest)
            self.solver.solve(program, up[0], b, x)
            return
        lower, diagonal, upper = self.solver.matrix
        program.apply(entries(self.grid.ndim), list(up), list(down), rest, lower, diagonal, upper)
        self.solver.solve(program, (b,), (x,))


@functools.cache
def entries(ndim: int) -> Kernel:
    """The matrix, from what flows."""
    here = (0,) * ndim

    def matrix(
        ups: Readers, downs: Readers, rest: CellReader, lower: Readers, diagonal: Readers, upper: Readers
    ) -> None:
        total = rest[here]
        for axis, (up, down) in enumerate(zip(ups, downs, strict=True)):
            above = step(ndim, axis, 1)
            total = total + (up[above] + down[here])
            lower[axis][here] = -up[here]
            upper[axis][here] = -down[above]
        diagonal[0][here] = total

    return Kernel(matrix, name="matrix of balances")
