"""Coupled solution for velocity and pressure of a time step of any length: A v + grad p = f, div v = 0.

Splitting the two, as a projection method does, causes an error proportional to the square of the diffusion length over
the cell's width, which matters least in most flows and most in a thin cell full of water. Instead, p is found by
conjugate gradients on the system that remains when v is eliminated, S p = div A^-1 grad p (Verfuerth, IMA J. Numer.
Anal. 4, 1984), preconditioned after Cahouet and Chabard (Int. J. Numer. Methods Fluids 8, 1988):

    1/S  ~  viscosity + (inertia + friction) / Laplace,      friction = 12 viscosity / gap^2

The friction term, Darcy's law for flow between two plates, is our addition: without it, every wave of the pressure
that is longer than the gap would cost iterations. The error of a projection thus becomes merely that of a first guess.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.lang.functions import min as lesser
from minga.lang.functions import sqrt
from minga.lang.functions import sum as cell_sum
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.projection import PressureLaplacian
from minga.models.electrodeposition.staggered import Readers, Staggered, area, product, push
from minga.models.electrodeposition.viscosity import Momentum
from minga.models.electrodeposition.viscous_levels import ViscousLevels
from minga.solve.krylov import (
    Preconditioner,
    Workspace,
    axpy,
    clear,
    conjugate_gradients,
    note,
    rounds,
    workspace,
    xpby,
)
from minga.solve.laplacian import step
from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot


@dataclass(frozen=True, slots=True)
class StokesOptions:
    """Tolerance and limits of the coupled solution.

    Attributes
    ----------
    tolerance
        Net inflow of cells relative to the flow through them, in root mean square, before the last step makes
        velocities solenoidal to rounding; also the relative residual of momentum.
    limit
        Largest number of iterations for the pressure.
    inner
        Largest number of iterations of each solve inside them.
    """

    tolerance: float = 1e-8
    limit: int = 200
    inner: int = 4000


@dataclass(frozen=True, slots=True)
class Effort:
    """Registers with the effort of the last step.

    Attributes
    ----------
    passes
        Number of iterations for the pressure.
    velocity
        Number of iterations of all solves for velocities.
    poisson
        Number of iterations of all solves with the Laplacian of the pressure.
    divergence
        Largest remaining net inflow of a cell, over the largest flow through one.
    """

    passes: Register = field(default_factory=lambda: Register("flow passes", "i8"))
    velocity: Register = field(default_factory=lambda: Register("flow velocity iterations", "i8"))
    poisson: Register = field(default_factory=lambda: Register("flow poisson iterations", "i8"))
    divergence: Register = field(default_factory=lambda: Register("flow divergence"))


@dataclass(frozen=True, eq=False)
class Stokes:
    """The coupled equations on a grid.

    Attributes
    ----------
    momentum
        Operators of the velocities.
    levels
        Preconditioners of the operators in `momentum`; empty to use their diagonals.
    inertia, friction
        Inertia of the operators in `momentum` and Darcy friction, kg/m3/s.
    viscosity
        Dynamic viscosity, Pa s.
    unsolved
        Register that counts solves that failed; None to end the run at the first.
    work
        Vectors of the solves for each velocity, one after the other.
    """

    staggered: Staggered
    momentum: tuple[Momentum, ...]
    levels: tuple[ViscousLevels, ...]
    laplacian: PressureLaplacian
    inertia: Register
    viscosity: float
    friction: float
    settings: StokesOptions = field(default_factory=StokesOptions)
    effort: Effort = field(default_factory=Effort)
    unsolved: Register | None = None
    work: tuple[Workspace, ...] = field(init=False)

    def __post_init__(self) -> None:
        s = self.staggered
        work = (workspace(m.wall, fixed(0.0), f"flow {s.grid.axes[m.axis]}") for m in self.momentum)
        object.__setattr__(self, "work", tuple(work))

    def solve(self, program: Program, right: Sequence[Field], velocity: Sequence[Slot], p: Field) -> None:
        """Record the solution, starting from the values of `velocity` and `p` (Pa); `right` is volume * f, in N."""
        s, effort, ndim = self.staggered, self.effort, self.staggered.grid.ndim
        r, z, d, image = (s.at_centres(f"pressure {what}") for what in ("residual", "correction", "direction", "image"))
        loads = [s.on_faces(f"load {axis}", a) for a, axis in enumerate(s.grid.axes)]
        moved = [s.on_faces(f"moved {axis}", a) for a, axis in enumerate(s.grid.axes)]
        rr, rz, alpha, enough = (Register(f"flow pressure {name}") for name in ("rr", "rz", "alpha", "enough"))
        inside = [Register(f"flow exactness {axis}") for axis in s.grid.axes]
        first, later = effort.passes == 0, effort.passes > 0

        for levels in self.levels:
            levels.setup(program)
        program.let(effort.passes, 0)
        program.let(rr, 0.0)
        program.let(effort.velocity, 0)
        self._what_is_left(program, right, velocity, p, loads, moved, inside)
        # All rounds share these solves: the first one corrects the velocity, the others follow the pressure.
        done = later & (rr <= enough)
        with rounds(program, done, rr, effort.passes, self.settings.limit, self.unsolved):
            with program.when(later):
                self._search(program, r, z, d, image, loads, alpha, rz)
                # Solves may be less exact the smaller the residual is (Simoncini and Szyld, SISC 25, 2003).
                for register in inside:
                    program.let(register, lesser(0.1 * sqrt(enough / rr), 1e-2))
            self._velocities(program, loads, moved, inside)
            with program.when(first):
                program.let(alpha, 1.0)
            with program.when(later):
                s.divergence(program, moved, image)
                curve = program.apply(dots(ndim), d, r, image)
                program.let(alpha, -curve.first / curve.second)  # type: ignore[union-attr]
                program.apply(advance(ndim), p, r, d, image, alpha=alpha, into=rr)
            for v, change in zip(velocity, moved, strict=True):
                program.apply(axpy, change, v, alpha=alpha)
            with program.when(first):
                flows = s.divergence(program, velocity, r)
                program.let(rr, flows.net)
                program.let(enough, (self.settings.tolerance * self.settings.tolerance) * flows.gross)
                for item in (d, image):
                    program.apply(clear, item)
            program.let(effort.passes, effort.passes + 1)
        program.let(effort.passes, effort.passes - 1)
        if self.unsolved is not None:
            note(program, p.now, rr <= enough, rr, self.unsolved)
        self._make_solenoidal(program, velocity, p, r, z)

    def _what_is_left(
        self, program: Program, right: Sequence[Field], velocity: Sequence[Slot], p: Field,
        loads: Sequence[Field], images: Sequence[Field], inside: Sequence[Register],
    ) -> None:  # fmt: skip
        """Record load = f - grad p - A v, and the tolerance of its solve, which is relative to f - grad p."""
        s, ndim = self.staggered, self.staggered.grid.ndim
        sums = []
        for axis, (v, load, image) in enumerate(zip(velocity, loads, images, strict=True)):
            self.momentum[axis](program, v, image)
            made = remaining(ndim, axis)
            sums.append(program.apply(made, p, right[axis], image, s.open[axis], load, s.width))
        whole = functools.reduce(lambda a, b: a + b, (item.whole for item in sums))  # type: ignore[union-attr]
        for register, item in zip(inside, sums, strict=True):
            left = item.left  # type: ignore[union-attr]
            exactness = self.settings.tolerance * sqrt(whole / where(left > 0.0, left, 1.0))
            program.let(register, lesser(exactness, 0.5))

    def _search(
        self, program: Program, r: Field, z: Field, d: Field, image: Field, loads: Sequence[Field],
        alpha: Register, rz: Register,
    ) -> None:  # fmt: skip
        """Record the next direction d, and load = - grad d."""
        s, ndim, started = self.staggered, self.staggered.grid.ndim, self.effort.passes > 1
        self._precondition(program, r, z)
        sums = program.apply(dots(ndim), z, r, image)
        # Polak and Ribiere's form: the preconditioner need not be the same in every round.
        change = alpha * sums.second / where(started, rz, 1.0)  # type: ignore[union-attr]
        program.apply(xpby, z, d, beta=where(started, change, 0.0))
        program.let(rz, sums.first)  # type: ignore[union-attr]
        for axis, load in enumerate(loads):
            program.apply(push(ndim, axis), d, s.open[axis], load, s.width)

    def _velocities(
        self, program: Program, loads: Sequence[Field], moved: Sequence[Field], exactness: Sequence[Register]
    ) -> None:
        """Record moved = A^-1 load."""
        preconditioners: Sequence[Preconditioner] = self.levels or [m.precondition for m in self.momentum]
        tools = zip(self.momentum, preconditioners, self.work, exactness, strict=True)
        for (operator, preconditioner, work, tolerance), load, v in zip(tools, loads, moved, strict=True):
            program.apply(clear, v)
            name = f"flow {self.staggered.grid.axes[operator.axis]}"
            found = conjugate_gradients(
                program, operator, v, load, preconditioner=preconditioner,
                tolerance=tolerance, limit=self.settings.inner, name=name, work=work, unsolved=self.unsolved,
            )  # fmt: skip
            program.let(self.effort.velocity, self.effort.velocity + found.iterations)

    def _precondition(self, program: Program, r: Field, z: Field) -> None:
        """Record z = viscosity * r / volume + (inertia + friction) / L r."""
        s, ndim = self.staggered, self.staggered.grid.ndim
        self.laplacian.roughly(program, r, z)
        program.apply(combine(ndim), r, z, s.width, weight=self.inertia + self.friction, viscosity=self.viscosity)

    def _make_solenoidal(self, program: Program, velocity: Sequence[Slot], p: Field, r: Field, z: Field) -> None:
        """Record the removal of the remaining divergence, to rounding."""
        s, ndim = self.staggered, self.staggered.grid.ndim
        program.apply(clear, z)
        self.laplacian.solve(
            program, z, r, s.divergence(program, velocity, r), tolerance=0.0, limit=self.settings.inner
        )
        self.laplacian.correct(program, z, velocity)
        # The pressure that goes with it (Timmermans, Minev and van de Vosse, Int. J. Numer. Methods Fluids 22, 1996).
        program.apply(rotational(ndim), p, z, r, s.width, inertia=self.inertia, viscosity=self.viscosity)
        flows = s.divergence(program, velocity, r)
        program.let(self.effort.divergence, flows.worst / where(flows.fastest > 0.0, flows.fastest, 1.0))


# In kernels ----------------------------------------------------------------------------------------------------------
@functools.cache
def dots(ndim: int) -> Kernel:
    """Return the kernel of the sums of a * b and a * c."""
    here = (0,) * ndim

    def both(a: CellReader, b: CellReader, c: CellReader) -> dict[str, Reduced]:
        return {"first": cell_sum(a[here] * b[here]), "second": cell_sum(a[here] * c[here])}

    return kernel(both)


@functools.cache
def remaining(ndim: int, axis: int) -> Kernel:
    """Return the kernel of load = f + area * (p below - p above) - image on open faces.

    It also returns the sum of squares, and that without image.
    """
    here, below = (0,) * ndim, step(ndim, axis, -1)

    def subtract(
        p: CellReader, f: CellReader, image: CellReader, open: CellReader, load: CellReader, width: Readers
    ) -> dict[str, Reduced]:
        whole = where(open[here] > 0, f[here] + area(width, axis) * (p[below] - p[here]), 0.0)
        left = whole - image[here]
        load[here] = left
        return {"whole": cell_sum(whole * whole), "left": cell_sum(left * left)}

    return kernel(subtract)


@functools.cache
def combine(ndim: int) -> Kernel:
    """Return the kernel of z = viscosity * r / volume + weight * z."""
    here = (0,) * ndim

    def add(r: CellReader, z: CellReader, width: Readers, *, weight: Node, viscosity: Node) -> None:
        z[here] = viscosity * (r[here] / product([w[0] for w in width])) + weight * z[here]

    return kernel(add)


@functools.cache
def rotational(ndim: int) -> Kernel:
    """Return the kernel of p += inertia * z + viscosity * r / volume."""
    here = (0,) * ndim

    def add(p: CellReader, z: CellReader, r: CellReader, width: Readers, *, inertia: Node, viscosity: Node) -> None:
        p[here] = p[here] + (inertia * z[here] + viscosity * (r[here] / product([w[0] for w in width])))

    return kernel(add)


@functools.cache
def advance(ndim: int) -> Kernel:
    """Return the kernel of p += alpha * d, r += alpha * image, which also returns the sum of r * r."""
    here = (0,) * ndim

    def move(p: CellReader, r: CellReader, d: CellReader, image: CellReader, *, alpha: Node) -> Reduced:
        p[here] = p[here] + alpha * d[here]
        value = r[here] + alpha * image[here]
        r[here] = value
        return cell_sum(value * value)

    return kernel(move)
