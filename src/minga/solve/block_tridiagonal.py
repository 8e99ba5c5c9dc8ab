"""Block-tridiagonal systems along one axis: k coupled unknowns a cell, every line of cells at once.

    L_i x_{i-1} + D_i x_i + U_i x_{i+1} = b_i,      L, D, U of k x k, x and b of k numbers

Elimination upwards and substitution downwards are ordered kernels, so the work goes through any number of ranks along
the axis with the bits of one; lines beside each other are worked on together. It is the block LU decomposition of Golub
and Van Loan (Matrix Computations, 4th edition, section 4.5.1); the pivot blocks are decomposed in the given order of
the unknowns, without exchanges. That is accurate where in every block the unknowns dominate the equations of their own
number, as in the equations of drift and diffusion with the potential first. It does not depend on how equations are
scaled: each may be multiplied by a number of its own.

A factorisation serves any number of right sides.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader
from minga.lang.expr import Node
from minga.lang.kernel import Kernel
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Slot
from minga.space.grid import Grid

__all__ = ["BlockLines"]

Readers = Sequence[CellReader]
Pattern = tuple[tuple[bool, ...], ...]


@dataclass(frozen=True, eq=False)
class BlockLines:
    """Solver for block-tridiagonal systems along an axis of a grid that is not periodic; declares its own fields.

    The caller's kernels write `lower`, `diagonal` and `upper`, rows of k fields each, f8; blocks that would reach
    beyond the ends are not used. The work passes through the ranks along the axis with the bits of one rank.

    Parameters
    ----------
    grid
        The grid.
    axis
        Name or number of the axis.
    unknowns
        The number k of coupled unknowns in a cell.
    name
        The beginning of the names of all fields.
    coupling
        Which entries of `lower` and `upper` exist, k rows of k; None: all. For others there is no field.

    Attributes
    ----------
    factors
        Factors of the pivot blocks: L and U, without the ones on the diagonal of L, and 1/U on the diagonal.
    ratio
        D^-1 U after elimination.
    partial
        The right side after elimination.
    """

    grid: Grid
    axis: str | int
    unknowns: int
    name: str = "block lines"
    coupling: Pattern | None = None
    along: int = field(init=False)
    lower: tuple[tuple[Field | None, ...], ...] = field(init=False)
    diagonal: tuple[tuple[Field, ...], ...] = field(init=False)
    upper: tuple[tuple[Field | None, ...], ...] = field(init=False)
    factors: tuple[Field, ...] = field(init=False)
    ratio: tuple[Field, ...] = field(init=False)
    partial: tuple[Field, ...] = field(init=False)

    def __post_init__(self) -> None:
        along, k = self.grid.axis(self.axis), self.unknowns
        if self.grid.periodic[along]:
            raise ProgramError(
                f"lines along {self.grid.axes[along]!r}, which is periodic: their first and last cells are coupled",
                remedy="choose an axis with two ends",
            )
        pattern = self.coupling or ((True,) * k,) * k
        if k < 1 or len(pattern) != k or any(len(row) != k for row in pattern):
            raise ProgramError(
                f"{k} unknowns a cell with couplings {self.coupling}", remedy=f"give {k} rows of {k} truth values"
            )

        def matrix(what: str, wanted: Pattern) -> tuple[tuple[Field | None, ...], ...]:
            return tuple(
                tuple(self._declare(f"{what} {i}{j}") if wanted[i][j] else None for j in range(k)) for i in range(k)
            )

        put = object.__setattr__
        put(self, "along", along)
        put(self, "coupling", pattern)
        put(self, "lower", matrix("lower", pattern))
        put(self, "upper", matrix("upper", pattern))
        put(self, "diagonal", matrix("diagonal", ((True,) * k,) * k))
        put(self, "factors", tuple(self._declare(f"factor {i}{j}") for i in range(k) for j in range(k)))
        put(self, "ratio", tuple(self._declare(f"ratio {i}{j}") for i in range(k) for j in range(k)))
        put(self, "partial", tuple(self._declare(f"partial {i}") for i in range(k)))

    def _declare(self, what: str) -> Field:
        return Field(f"{self.name} {what}", self.grid, boundary=fixed(0.0))

    @property
    def matrix(self) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]:
        """The fields of lower, diagonal and upper that exist, each row after row."""
        lower, upper = (tuple(item for row in part for item in row if item) for part in (self.lower, self.upper))
        return lower, tuple(item for row in self.diagonal for item in row), upper

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        return *(item for part in self.matrix for item in part), *self.factors, *self.ratio, *self.partial

    def setup(self, program: Program) -> None:
        """Record the factorisation; it has to be repeated whenever the matrix has changed.

        Parameters
        ----------
        program
            The Program to record into.
        """
        made = factorisation(self.grid.ndim, self.along, self._pattern)
        program.apply(made, *self.matrix, self.factors, self.ratio)

    def solve(self, program: Program, b: Sequence[Field | Slot], x: Sequence[Field | Slot]) -> None:
        """Record the solution for one right side.

        Parameters
        ----------
        program
            The Program to record into.
        b
            k fields or slots of the right side.
        x
            k fields or slots of the solution; may be `b`. Beyond the ends of the axis they need a finite value:
            boundary=mg.fixed(0.0).
        """
        ndim, along = self.grid.ndim, self.along
        program.apply(elimination(ndim, along, self._pattern), self.matrix[0], self.factors, b, self.partial)
        program.apply(substitution(ndim, along, self.unknowns), self.ratio, self.partial, x)

    @property
    def _pattern(self) -> Pattern:
        assert self.coupling is not None
        return self.coupling


# Kernels -------------------------------------------------------------------------------------------------------------
def arranged(values: Sequence[CellReader], pattern: Pattern) -> list[list[CellReader | None]]:
    """Return the fields that exist, at their places in the block."""
    rest = iter(values)
    return [[next(rest) if there else None for there in row] for row in pattern]


def forward(factor: Sequence[Sequence[Node]], column: list[Node]) -> list[Node]:
    """L^-1 of a column."""
    found: list[Node] = []
    for i, value in enumerate(column):
        for j in range(i):
            value = value - factor[i][j] * found[j]
        found.append(value)
    return found


def backward(factor: Sequence[Sequence[Node]], column: list[Node]) -> list[Node]:
    """U^-1 of a column; the diagonal of `factor` holds inverses."""
    k = len(column)
    found: list[Node] = list(column)
    for i in reversed(range(k)):
        value = column[i]
        for j in range(i + 1, k):
            value = value - factor[i][j] * found[j]
        found[i] = value * factor[i][i]
    return found


def decomposed(block: list[list[Node]]) -> list[list[Node]]:
    """L and U of a block in its place, with 1/U on the diagonal."""
    k = len(block)
    made = [list(row) for row in block]
    for i in range(k):
        made[i][i] = 1.0 / made[i][i]
        for j in range(i + 1, k):
            made[j][i] = made[j][i] * made[i][i]
            for c in range(i + 1, k):
                made[j][c] = made[j][c] - made[j][i] * made[i][c]
    return made


@functools.cache
def factorisation(ndim: int, axis: int, pattern: Pattern) -> Kernel:
    """Pivot blocks and ratios, along +axis."""
    here, below, k = (0,) * ndim, step(ndim, axis, -1), len(pattern)

    def factorise_blocks(lower: Readers, diagonal: Readers, upper: Readers, factors: Readers, ratio: Readers) -> None:
        low, high = arranged(lower, pattern), arranged(upper, pattern)
        block = [[diagonal[i * k + j][here] for j in range(k)] for i in range(k)]
        for i in range(k):
            for m, entry in enumerate(low[i]):
                if entry is not None:
                    for j in range(k):
                        if any(row[j] for row in pattern):
                            block[i][j] = block[i][j] - entry[here] * ratio[m * k + j][below]
        made = decomposed(block)
        for i in range(k):
            for j in range(k):
                factors[i * k + j][here] = made[i][j]
        for j in range(k):
            entries = [row[j] for row in high]
            if all(entry is None for entry in entries):
                found: list[Node] = [made[0][0] * 0.0] * k
            else:
                column = [made[0][0] * 0.0 if entry is None else entry[here] for entry in entries]
                found = backward(made, forward(made, column))
            for i in range(k):
                ratio[i * k + j][here] = found[i]

    return Kernel(factorise_blocks, order={axis: 1}, name="block line factorisation")


@functools.cache
def elimination(ndim: int, axis: int, pattern: Pattern) -> Kernel:
    """Return the kernel that eliminates the unknowns below from the right side, along +axis."""
    here, below, k = (0,) * ndim, step(ndim, axis, -1), len(pattern)

    def eliminate_blocks(lower: Readers, factors: Readers, b: Readers, partial: Readers) -> None:
        low = arranged(lower, pattern)
        factor = [[factors[i * k + j][here] for j in range(k)] for i in range(k)]
        column: list[Node] = []
        for i in range(k):
            value = b[i][here]
            for m, entry in enumerate(low[i]):
                if entry is not None:
                    value = value - entry[here] * partial[m][below]
            column.append(value)
        for i, value in enumerate(backward(factor, forward(factor, column))):
            partial[i][here] = value

    return Kernel(eliminate_blocks, order={axis: 1}, name="block line elimination")


@functools.cache
def substitution(ndim: int, axis: int, unknowns: int) -> Kernel:
    """Return the kernel that computes the unknowns, along -axis."""
    here, above, k = (0,) * ndim, step(ndim, axis, 1), unknowns

    def substitute_blocks(ratio: Readers, partial: Readers, x: Readers) -> None:
        beyond = [x[j][above] for j in range(k)]
        for i in range(k):
            value = partial[i][here]
            for j in range(k):
                value = value - ratio[i * k + j][here] * beyond[j]
            x[i][here] = value

    return Kernel(substitute_blocks, order={axis: -1}, name="block line substitution")
