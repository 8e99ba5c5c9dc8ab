"""Balances of what flows through the faces of cells, along one axis or two, solved directly.

Through a face of an axis, between cells i - 1 and i, flows up[i] c[i-1] - down[i] c[i]; a cell loses what flows out of
it, and rest * c besides. The matrix has no positive entries beside its diagonal, and its columns sum to `rest`: where
up, down and rest are not negative, neither is the solution for a right side that is not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.kernel import Kernel
from minga.solve.five_point import Direct, FivePoint
from minga.solve.five_point_parts import scales
from minga.solve.laplacian import step
from minga.solve.lines import Lines
from minga.solve.refinement import Term, refined
from minga.solve.sparse_factors import Structure
from minga.space.field import Field, Slot
from minga.space.grid import Grid

__all__ = ["Balances"]

Readers = Sequence[CellReader]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Balances:
    """Solver for balances on a grid of one or two axes that are not periodic.

    With one axis it subtracts nothing (:mod:`minga.solve.lines`), so that every number of the solution is accurate.
    With two axes it uses sparse factors. A region that loses very little, such as one behind a junction, owes its level
    to sums of columns that round-off of the diagonal would hide; so the solution is refined by what is missing in each
    cell's own balance, flow by flow, until it is the exact one, rounded (:mod:`minga.solve.refinement`).

    Parameters
    ----------
    grid
        A grid of one or two axes, none of them periodic.
    name
        The beginning of the names of all fields.
    """

    grid: Grid
    name: str = "balances"
    solver: Lines | Direct = field(init=False)

    def __post_init__(self) -> None:
        one = self.grid.ndim == 1
        made = Lines(self.grid, self.grid.axes[0], self.name) if one else _direct(self.grid, self.name)
        object.__setattr__(self, "solver", made)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return self.solver.fields

    def solve(
        self, program: Program, up: Sequence[Field], down: Sequence[Field], rest: Field | Slot, b: Field, x: Field
    ) -> None:
        """Record the solution for one right side.

        Parameters
        ----------
        program
            The Program to record into.
        up, down
            f8, >= 0, at the faces of each axis (both may be one field); 0 at the first and the last face.
        rest
            f8, >= 0, at the cells.
        b
            The right side (f8, at the cells).
        x
            The solution (f8, at the cells); may be `b`.
        """
        if isinstance(self.solver, Lines):
            self.solver.setup(program, up[0], down[0], rest)
            self.solver.solve(program, up[0], b, x)
            return
        lower, diagonal, upper = self.solver.matrix
        program.apply(faces(self.grid.ndim), list(up), list(down), rest, lower, diagonal, upper)
        self.solver.solve(program, (b,), (x,))


# Two axes ------------------------------------------------------------------------------------------------------------
@functools.cache
def faces(ndim: int) -> Kernel:
    """Return the kernel that writes flows beside the diagonal of a matrix, and losses in place of the diagonal."""
    here = (0,) * ndim

    def matrix(
        ups: Readers, downs: Readers, rest: CellReader, lower: Readers, diagonal: Readers, upper: Readers
    ) -> None:
        for axis, (up, down) in enumerate(zip(ups, downs, strict=True)):
            lower[axis][here] = -up[here]
            upper[axis][here] = -down[step(ndim, axis, 1)]
        diagonal[0][here] = rest[here]

    return Kernel(matrix, name="matrix of balances")


def _direct(grid: Grid, name: str) -> Direct:
    """Return the solver for two axes; the diagonal of its matrix holds what cells lose, not yet what flows out."""
    matrix = FivePoint(grid, 1, ((True,),), name)
    structure = functools.cache(lambda: Structure.of(matrix))  # on rank 0 alone, once it is needed

    def solved(values: Mapping[Field, Floats], right: Sequence[Floats]) -> Floats:
        flows = tuple(
            (-np.moveaxis(values[low], axis, 0)[1:], -np.moveaxis(values[high], axis, 0)[:-1])
            for axis, ((low,), (high,)) in enumerate(zip(matrix.lower, matrix.upper, strict=True))
        )
        (diagonal,) = matrix.diagonal
        return _balanced(structure(), values, diagonal, flows, right[0])

    return Direct(matrix, solved, "solve_balances")


def _balanced(
    structure: Structure, values: Mapping[Field, Floats], diagonal: Field, flows: Sequence[tuple[Floats, Floats]],
    b: Floats,
) -> Floats:  # fmt: skip
    """Return the solution, (1, rows, columns), NaN where there is none.

    flows  of each axis, which comes first: up and down through its inner faces
    """
    rest = values[diagonal]
    total = rest.copy()
    for axis, (up, down) in enumerate(flows):
        along = np.moveaxis(total, axis, 0)
        along[:-1] += up
        along[1:] += down
    whole = {**values, diagonal: total}
    scale = scales(structure.parts, whole, 1, b.shape)
    solve = structure.solver(structure.matrix(whole, scale))
    right = scale * b
    if solve is None or not np.isfinite(right).all():
        return np.full((1, *b.shape), np.nan)
    return refined(list(_terms(rest, flows, scale[0])), right, solve)


def _terms(rest: Floats, flows: Sequence[tuple[Floats, Floats]], scale: Floats) -> Iterator[Term]:
    """Yield what flows into cells and out of them, with the equations scaled; nothing has been added up."""
    every = tuple(slice(0, n) for n in rest.shape)
    yield Term(0, 0, every, every, scale * rest)
    for axis, (up, down) in enumerate(flows):
        low, high = ((*every[:axis], cut, *every[axis + 1 :]) for cut in (slice(0, -1), slice(1, None)))
        up, down = (np.moveaxis(flow, 0, axis) for flow in (up, down))
        yield Term(0, 0, low, low, scale[low] * up)
        yield Term(0, 0, low, high, -scale[low] * down)
        yield Term(0, 0, high, low, -scale[high] * up)
        yield Term(0, 0, high, high, scale[high] * down)
