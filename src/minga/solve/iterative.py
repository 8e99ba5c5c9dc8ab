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
from minga.lang.expr import Node, as_node, where
from minga.lang.kernel import Kernel
from minga.solve.biconjugate import Vectors, coupled_bicgstab
from minga.solve.block_multigrid import BlockMultigrid, Vector
from minga.solve.block_tridiagonal import Pattern
from minga.solve.five_point import Direct, FivePoint
from minga.solve.krylov import Solution
from minga.solve.sparse_factors import factors_of
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
        it is NaN, or by factors.
    name
        The beginning of the names of all fields.
    factors
        Whether a system that the iteration does not solve is solved by sparse factors, on rank 0, and so are all after
        it.
    keep
        Whether factors are kept for further right sides of the same matrix.

    Attributes
    ----------
    unsolved
        The number of solves that have reached the limit.
    given_up
        1 once factors solve the systems.
    """

    grid: Grid
    unknowns: int
    coupling: Pattern
    held: Field
    shared: tuple[tuple[int, ...], ...] | None = None
    tolerance: float = 1e-11
    limit: int = 200
    name: str = "iterative"
    factors: bool = False
    keep: bool = False
    five_point: FivePoint = field(init=False)
    multigrid: BlockMultigrid = field(init=False)
    weights: tuple[Register, ...] = field(init=False)
    unsolved: Register = field(init=False)
    given_up: Register = field(init=False)
    direct: Direct | None = field(init=False)
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
        put(self, "given_up", Register(f"{self.name} given up", "i8"))
        put(self, "direct", factors_of(self.five_point, keep=self.keep) if self.factors else None)
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
        if self.direct is None:
            solution = self._iterate(program, b)
            with program.when(~_found(solution)):
                for slot in self.x:
                    program.apply(_lose, slot)
            self.multigrid.give(program, self.x, x)
            return solution
        with program.when(self.given_up == 0):
            solution = self._iterate(program, b)
            program.let(self.given_up, where(_found(solution), 0, 1))
        # The right side may be in the same fields as the solution.
        with program.when(self.given_up == 0):
            self.multigrid.give(program, self.x, x)
        with program.when(self.given_up > 0):
            self.direct.solve(program, b, x)
        return solution

    def _iterate(self, program: Program, b: Sequence[Field]) -> Solution:
        """Record the iteration for one right side, into `self.x`."""
        multigrid = self.multigrid
        self._weigh(program, b)
        multigrid.setup(program, self.weights)
        multigrid.take(program, b, self.b, self.weights)
        for slot in self.x:
            program.apply(_clear, slot)
        return coupled_bicgstab(
            program, multigrid.product, self.x, self.b, self.vectors, preconditioner=multigrid,
            tolerance=self.tolerance, limit=self.limit, name=self.name, unsolved=self.unsolved,
        )  # fmt: skip

    def _weigh(self, program: Program, b: Sequence[Field]) -> None:
        """Record the factors of the equations: 1 where the right side is 0."""
        sizes: list[Any] = [program.apply(_largest, item) for item in b]
        for group in self.shared or tuple((i,) for i in range(self.unknowns)):
            size = sizes[group[0]]
            for i in group[1:]:
                size = mg.max(size, sizes[i])
            for i in group:
                program.let(self.weights[i], where(size > 0.0, 1.0 / where(size > 0.0, size, 1.0), 1.0))


def _found(solution: Solution) -> Node:
    """Return whether a residual is so small that the solution is of use."""
    return as_node(solution.residual <= USABLE * USABLE * solution.reference)


def _largest_of(x: CellReader) -> Reduced:
    return mg.max(mg.abs(x[(0,) * len(x.axes)]))


def _cleared(x: CellReader) -> None:
    x[(0,) * len(x.axes)] = 0.0


def _lost(x: CellReader) -> None:
    x[(0,) * len(x.axes)] = math.nan


_lose = Kernel(_lost, name="no solution")
_largest = Kernel(_largest_of, name="largest size")
_clear = Kernel(_cleared, name="clear")
