"""Systems on grids of two axes with k coupled unknowns a cell, solved by iteration, on all ranks.

BiCGStab with one cycle of `minga.solve.block_multigrid` for each product. Every equation is divided by the norm of its
right side, so that the iteration ends when what is left of each is small beside what there was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import where
from minga.lang.kernel import Kernel
from minga.solve.biconjugate import Vectors, coupled_bicgstab
from minga.solve.block_multigrid import BlockMultigrid, Vector
from minga.solve.block_tridiagonal import Pattern
from minga.solve.five_point import FivePoint
from minga.solve.krylov import Solution
from minga.space.field import Field, Register
from minga.space.grid import Grid

__all__ = ["Iterative"]

USABLE: Final = 1e-6
"""Fraction of the right side's norm that the residual may have at the limit."""


@dataclass(frozen=True, eq=False)
class Iterative:
    """Iterative solver for systems on a grid of two axes: BiCGStab preconditioned by multigrid, on all ranks.

    `five_point` declares the fields of the matrix. Every equation is divided by the norm of its right side.

    Parameters
    ----------
    grid
        A grid of two axes that are not periodic.
    unknowns
        The number k of unknowns in a cell.
    coupling
        Which entries of the blocks beside the diagonal exist: k rows of k booleans.
    held
        An integer field; in cells where it is not 0 the equations are unknown = 0.
    shared
        Groups of equations of the same kind, by their numbers, which are divided by one norm, the largest of the group;
        None: each equation has its own.
    tolerance
        The iteration ends at this ratio of the residual's norm to that of the right side.
    limit
        The most iterations. The result at the limit is accepted if its residual is within 1e-6 of the right side, else
        it is NaN.
    name
        The beginning of the names of all fields.

    Attributes
    ----------
    unsolved
        The number of solves that have reached the limit.
    """

    grid: Grid
    unknowns: int
    coupling: Pattern
    held: Field
    shared: tuple[tuple[int, ...], ...] | None = None
    tolerance: float = 1e-11
    limit: int = 200
    name: str = "iterative"
    five_point: FivePoint = field(init=False)
    multigrid: BlockMultigrid = field(init=False)
    weights: tuple[Register, ...] = field(init=False)
    unsolved: Register = field(init=False)
    x: Vector = field(init=False)
    b: Vector = field(init=False)
    vectors: Vectors = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "five_point", FivePoint(self.grid, self.unknowns, self.coupling, self.name))
        multigrid = BlockMultigrid(self.five_point, self.held, name=f"{self.name} multigrid")
        put(self, "multigrid", multigrid)
        put(self, "weights", tuple(Register(f"{self.name} weight {i}") for i in range(self.unknowns)))
        put(self, "unsolved", Register(f"{self.name} unsolved", "i8"))
        for item in ("x", "b"):
            put(self, item, multigrid.vector(f"{self.name} {item}"))
        names = ("r", "shadow", "p", "v", "t", "y")
        put(self, "vectors", Vectors(*(multigrid.vector(f"{self.name} {item}") for item in names)))

    @property
    def matrix(self) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]:
        """Lower, diagonal and upper, of all axes one after the other, as FivePoint has them."""
        return self.five_point.matrix

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, for a Model."""
        own = (self.x, self.b, *(getattr(self.vectors, name) for name in Vectors.__dataclass_fields__))
        return *self.five_point.fields, *self.multigrid.fields, *(slot.field for vector in own for slot in vector)

    @property
    def hierarchies(self) -> tuple[BlockMultigrid, ...]:
        """The hierarchies of grids, for a Model."""
        return (self.multigrid,)

    def setup(self, program: Program) -> None:
        """Record nothing: every solve computes the coarse matrices anew.

        Parameters
        ----------
        program
            The Program to record into.
        """

    def solve(self, program: Program, b: Sequence[Field], x: Sequence[Field]) -> Solution:
        """Record the solution for one right side, starting from 0; the solution is NaN if none was found.

        Parameters
        ----------
        program
            The Program to record into.
        b
            k fields of the right side.
        x
            k fields of the solution; may be `b`.

        Returns
        -------
        Solution
            Registers of the iteration.
        """
        multigrid = self.multigrid
        self._weigh(program, b)
        multigrid.setup(program, self.weights)
        multigrid.take(program, b, self.b, self.weights)
        for slot in self.x:
            program.apply(_clear, slot)
        solution = coupled_bicgstab(
            program, multigrid.product, self.x, self.b, self.vectors, preconditioner=multigrid,
            tolerance=self.tolerance, limit=self.limit, name=self.name, unsolved=self.unsolved,
        )  # fmt: skip
        with program.when(~(solution.residual <= USABLE * USABLE * solution.reference)):
            for slot in self.x:
                program.apply(_lose, slot)
        multigrid.give(program, self.x, x)
        return solution

    def _weigh(self, program: Program, b: Sequence[Field]) -> None:
        """Record the factors of the equations: 1 where the right side is 0."""
        sizes: list[Any] = [program.apply(_largest, item) for item in b]
        for group in self.shared or tuple((i,) for i in range(self.unknowns)):
            size = sizes[group[0]]
            for i in group[1:]:
                size = mg.max(size, sizes[i])
            for i in group:
                program.let(self.weights[i], where(size > 0.0, 1.0 / where(size > 0.0, size, 1.0), 1.0))


def _largest_of(x: CellReader) -> Reduced:
    return mg.max(mg.abs(x[(0,) * len(x.axes)]))


def _cleared(x: CellReader) -> None:
    x[(0,) * len(x.axes)] = 0.0


def _lost(x: CellReader) -> None:
    x[(0,) * len(x.axes)] = math.nan


_lose = Kernel(_lost, name="no solution")
_largest = Kernel(_largest_of, name="largest size")
_clear = Kernel(_cleared, name="clear")
