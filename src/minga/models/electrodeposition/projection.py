"""Projection of velocities onto solenoidal ones: the Laplacian of a pressure between open faces, and its solution.

L p = sum over open faces of area / gap * (p here - p there): minus divergence, inverse volumes of faces, gradient.
Solid cells have no row, constants (one for each connected body of fluid) are in its null space, and right-hand sides
that are inflows are in its range, whatever the solids.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.functions import max as greater
from minga.lang.functions import sqrt
from minga.lang.functions import sum as cell_sum
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.staggered import Balance, Readers, Staggered, area
from minga.solve.elliptic import Elliptic
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.solve.krylov import Workspace, clear, conjugate_gradients, workspace
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot

ROUNDING: Final = 2e-14
"""Inflows, relative to the flows they are differences of, below which they are taken for rounding errors, for which L
cannot be solved."""


@dataclass(frozen=True, eq=False)
class PressureLaplacian:
    """The operator L and its solution.

    Attributes
    ----------
    multigrid
        Whether a V-cycle is the preconditioner; otherwise the diagonal is.
    effort
        Register with the iterations of all solves of a step, which the step sets to 0 first.
    unsolved
        Register that counts solves that failed; None to end the run at the first.
    """

    staggered: Staggered
    multigrid: bool = True
    effort: Register = field(default_factory=lambda: Register("flow poisson iterations", "i8"))
    unsolved: Register | None = None
    enough: Register = field(default_factory=lambda: Register("flow poisson tolerance"))
    elliptic: Elliptic = field(init=False)
    cycle: EllipticMultigrid | None = field(init=False)
    work: Workspace = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "elliptic", Elliptic(self.staggered.grid, "flow pressure"))
        put(self, "cycle", self._levels() if self.multigrid else None)
        put(self, "work", workspace(self.staggered.at_centres("pressure"), fixed(0.0), "flow poisson"))

    def _levels(self) -> EllipticMultigrid:
        return EllipticMultigrid(self.elliptic, solids=self.staggered.mask is not None, name="flow pressure levels")

    def setup(self, program: Program) -> None:
        """Record the computation of all coefficients; it is needed again after solids have changed."""
        s = self.staggered
        if self.cycle is None:
            return
        for axis, face in enumerate(self.elliptic.faces):
            program.apply(conductance(s.grid.ndim, axis), s.open[axis], face, s.width, s.per_gap)
        program.apply(clear, self.elliptic.diagonal)
        self.cycle.setup(program)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields that must persist between steps."""
        return () if self.cycle is None else (*self.elliptic.fields, *self.cycle.fields)

    def __call__(self, program: Program, source: Field | Slot, target: Field | Slot) -> Register:
        """Record target = L source; return the register of the sum of source * target."""
        s = self.staggered
        dot = program.apply(outflow(s.grid.ndim), source, target, s.open, s.width, s.per_gap)
        assert isinstance(dot, Register)
        return dot

    def precondition(self, program: Program, residual: Field | Slot, correction: Field | Slot) -> None:
        """Record correction = M residual, with M a V-cycle or the inverse diagonal."""
        s = self.staggered
        if self.cycle is not None:
            self.cycle(program, residual, correction)
        else:
            program.apply(scaled(s.grid.ndim), residual, correction, s.open, s.width, s.per_gap)

    def roughly(self, program: Program, b: Field, x: Field) -> None:
        """Record x = L^-1 b as accurately as preconditioning needs: by a V-cycle, or to one digit with the diagonal."""
        if self.cycle is not None:
            self.cycle(program, b, x)
            return
        program.apply(clear, x)
        self._iterate(program, x, b, 0.1, limit=10000)

    def solve(self, program: Program, x: Field, b: Field, flows: Balance, *, tolerance: float, limit: int) -> None:
        """Record the solution of L x = b, where b is an inflow, starting from the values of `x`.

        Parameters
        ----------
        program
            The program to record in.
        x, b
            Fields of the unknown and of the right-hand side.
        flows
            Balance of the inflow, which determines the rounding error of b.
        tolerance
            Tolerance of the residual relative to b; never less than the rounding error of b itself.
        limit
            Largest number of iterations.
        """
        floor = where(flows.net > 0.0, ROUNDING * sqrt(flows.gross / where(flows.net > 0.0, flows.net, 1.0)), 0.5)
        program.let(self.enough, greater(tolerance, floor))
        self._iterate(program, x, b, self.enough, limit)

    def _iterate(self, program: Program, x: Field, b: Field, tolerance: float | Register, limit: int) -> None:
        found = conjugate_gradients(
            program, self, x, b, preconditioner=self.precondition,
            tolerance=tolerance, limit=limit, name="flow poisson", work=self.work, unsolved=self.unsolved,
        )  # fmt: skip
        program.let(self.effort, self.effort + found.iterations)

    def correct(self, program: Program, p: Field | Slot, velocity: Sequence[Field | Slot]) -> None:
        """Record the subtraction of the gradient of p from the velocity on open faces."""
        s = self.staggered
        for axis, v in enumerate(velocity):
            program.apply(subtract_gradient(s.grid.ndim, axis), p, v, s.open[axis], s.per_gap)


# In kernels ----------------------------------------------------------------------------------------------------------
def _links(ndim: int, open: Readers, width: Readers, per_gap: Readers) -> list[tuple[tuple[int, ...], Node]]:
    """Return the offsets of the neighbours and the factors of their differences (m)."""
    found: list[tuple[tuple[int, ...], Node]] = []
    for axis in range(ndim):
        size = area(width, axis)
        for offset, side in ((-1, 0), (1, 1)):
            passes = open[axis][step(ndim, axis, side)] > 0
            found.append((step(ndim, axis, offset), where(passes, size * per_gap[axis][side], 0.0)))
    return found


@functools.cache
def outflow(ndim: int) -> Kernel:
    """Return the kernel of target = L p, which also returns the sum of p * L p."""
    here = (0,) * ndim

    def image(p: CellReader, target: CellReader, open: Readers, width: Readers, per_gap: Readers) -> Reduced:
        terms = [link * (p[here] - p[offset]) for offset, link in _links(ndim, open, width, per_gap)]
        value = functools.reduce(lambda a, b: a + b, terms)
        target[here] = value
        return cell_sum(p[here] * value)

    return kernel(image)


@functools.cache
def scaled(ndim: int) -> Kernel:
    """Return the kernel of z = r / diagonal of L, with 0 where the row is empty."""
    here = (0,) * ndim

    def divide(r: CellReader, z: CellReader, open: Readers, width: Readers, per_gap: Readers) -> None:
        diagonal = functools.reduce(lambda a, b: a + b, (link for _, link in _links(ndim, open, width, per_gap)))
        z[here] = where(diagonal > 0.0, r[here] / where(diagonal > 0.0, diagonal, 1.0), 0.0)

    return kernel(divide)


@functools.cache
def subtract_gradient(ndim: int, axis: int) -> Kernel:
    """Return the kernel of v -= gradient of p on open faces."""
    here, below = (0,) * ndim, step(ndim, axis, -1)

    def correct(p: CellReader, v: CellReader, open: CellReader, per_gap: Readers) -> None:
        v[here] = where(open[here] > 0, v[here] - per_gap[axis][0] * (p[here] - p[below]), 0.0)

    return kernel(correct)


@functools.cache
def conductance(ndim: int, axis: int) -> Kernel:
    """Return the kernel of k = area / gap on open faces, 0 on others."""
    here = (0,) * ndim

    def make(open: CellReader, k: CellReader, width: Readers, per_gap: Readers) -> None:
        k[here] = where(open[here] > 0, area(width, axis) * per_gap[axis][0], 0.0)

    return kernel(make)
