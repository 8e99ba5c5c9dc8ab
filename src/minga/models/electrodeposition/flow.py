"""A time step of incompressible flow on the staggered grid, around solids that may change.

    density * (a v - b v.now - c v.previous + (v . grad) v) = - grad p + viscosity * Laplace v + force,    div v = 0

The scheme is of second order in space and time (backward differences with steps of any length and extrapolated
convection), and of first order in the first step. Velocity and pressure are solved for together, so steps need not
resolve the diffusion of momentum, which in a thin cell is over before anything else begins. The part of the force that
is a gradient is first balanced by the pressure, so that a fluid at rest under gravity stays at rest.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.errors import ProgramError
from minga.lang.cell import CellReader
from minga.lang.expr import where
from minga.lang.kernel import Kernel
from minga.models.electrodeposition.convection import Weights, carried, extrapolated
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.projection import PressureLaplacian
from minga.models.electrodeposition.staggered import Readers, Staggered, add_push, volume
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.stokes import Effort, Stokes, StokesOptions
from minga.models.electrodeposition.viscosity import Momentum
from minga.models.electrodeposition.viscous_levels import ViscousLevels
from minga.solve.elliptic_multigrid import EllipticMultigrid
from minga.space.boundary import Side
from minga.space.field import Field, Register

FAR: Final = 50.0
"""Square of the ratio of diffusion length to cell width above which V-cycles are worth their cost, as measured."""

Lids = Mapping[tuple[str, str, Side], float]
"""Speeds of moving walls, m/s, by axis of motion, axis that the wall is at an end of, and end."""


@dataclass(frozen=True, eq=False)
class Flow:
    """The flow of a problem, which advances the velocity and pressure of its state.

    `setup` goes before the first step of a run, and again after cells have changed kind. `step` records the next slots
    of the velocity from the others, over `state.dt`; it rotates nothing. A Model needs `fields`, `initial` and
    `hierarchies`.

    Attributes
    ----------
    lids
        Speeds of moving walls, m/s: ("x", "z", "high") moves along x, at the high end of z.
    convection
        Whether momentum is convected; without convection the equations are those of Stokes.
    multigrid
        Whether V-cycles precondition the pressure; otherwise its diagonal does.
    levels
        Whether V-cycles precondition the velocities; otherwise their diagonals do. By default V-cycles do if momentum
        diffuses across many cells in the longest time step.
    force
        Force density on the faces across each axis, N/m3. The caller records it before a step; only its values on open
        faces count.
    effort
        Registers with the effort of the last step.
    unsolved
        Register that counts systems that were not solved; None to end the run at the first.
    """

    problem: Problem
    state: State
    lids: Lids = field(default_factory=dict)
    convection: bool = True
    multigrid: bool = True
    levels: bool | None = None
    settings: StokesOptions = field(default_factory=StokesOptions)
    effort: Effort = field(default_factory=Effort)
    unsolved: Register | None = None
    staggered: Staggered = field(init=False)
    force: tuple[Field, ...] = field(init=False)
    balance: Field = field(init=False)
    dynamic: Field = field(init=False)
    laplacian: PressureLaplacian = field(init=False)
    stokes: Stokes = field(init=False)
    weights: Weights = field(init=False)

    def __post_init__(self) -> None:
        grid, constants = self.problem.grid, self.problem.constants
        if grid.ndim not in (2, 3) or grid.twisted:
            raise ProgramError(
                f"flow on {grid!r} is not possible",
                remedy="flow needs two or three axes without twisted ends; leave it out on other grids",
            )
        if not self.state.velocity or self.state.pressure is None:
            raise ProgramError("the state has no velocity for the flow", remedy="declare the problem with flow=True")
        for along, across, side in self.lids:
            if grid.axis(along) == grid.axis(across) or grid.periodic[grid.axis(across)] or side not in ("low", "high"):
                raise ProgramError(
                    f"there can be no wall at the {side} end of {across} that moves along {along}",
                    remedy="moving walls lie at an end of an axis that is not periodic, and move along another axis",
                )
        put = object.__setattr__
        staggered = Staggered(grid, self.state.kind, self.state.mask)
        weights = Weights()
        momentum = tuple(Momentum(staggered, a, constants.viscosity, weights.inertia) for a in range(grid.ndim))
        wanted = self._diffuses() if self.levels is None else self.levels
        levels = tuple(map(ViscousLevels, momentum)) if wanted else ()
        laplacian = PressureLaplacian(staggered, self.multigrid, self.effort.poisson, self.unsolved)
        put(self, "staggered", staggered)
        put(self, "weights", weights)
        put(self, "force", tuple(staggered.on_faces(f"force {axis}", a) for a, axis in enumerate(grid.axes)))
        put(self, "balance", staggered.at_centres("balance"))
        put(self, "dynamic", staggered.at_centres("dynamic pressure"))
        put(self, "laplacian", laplacian)
        put(
            self,
            "stokes",
            Stokes(
                staggered, momentum, levels, laplacian, weights.inertia, constants.viscosity, self._friction(),
                self.settings, self.effort, self.unsolved,
            ),
        )  # fmt: skip

    def _diffuses(self) -> bool:
        """Return whether momentum diffuses across several of the narrowest cells in the longest step."""
        grid, constants, steps = self.problem.grid, self.problem.constants, self.problem.steps
        narrowest = min(float(grid.widths(a).min()) for a in range(grid.ndim))
        longest = max(steps.first, steps.every)
        return constants.viscosity * longest > FAR * constants.density * narrowest * narrowest

    def _friction(self) -> float:
        """Return the Darcy friction of the narrowest gap between two walls, in kg/m3/s."""
        grid = self.problem.grid
        gaps = [float(grid.widths(a).sum()) for a in range(grid.ndim) if not grid.periodic[a]]
        return 12.0 * self.problem.constants.viscosity / (min(gaps) * min(gaps)) if gaps else 0.0

    # For Models ------------------------------------------------------------------------------------------------------
    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields that must persist between steps, besides those of the state."""
        walls = (m.wall for m in self.stokes.momentum)
        levels = (item for one in self.stokes.levels for item in one.fields)
        return (
            *self.staggered.fields, *walls, *self.laplacian.fields, *levels, *self.force, self.balance, self.dynamic
        )  # fmt: skip

    @property
    def initial(self) -> Mapping[Field, NDArray[np.float64]]:
        """Initial values of `fields`, where they are not 0."""
        return self.staggered.initial

    @property
    def hierarchies(self) -> tuple[EllipticMultigrid, ...]:
        """Multigrid hierarchies, which lay out the coarse grids."""
        pressure = () if self.laplacian.cycle is None else (self.laplacian.cycle,)
        return (*pressure, *(one.cycle for one in self.stokes.levels))

    # In Programs -----------------------------------------------------------------------------------------------------
    def setup(self, program: Program) -> None:
        """Record everything that follows from the kinds of cells; the velocity of cells that turned solid becomes 0."""
        self.staggered.setup(program)
        for axis, velocity in enumerate(self.state.velocity):
            for slot in (velocity.now, velocity.previous):
                program.apply(stopped(self.problem.grid.ndim), self.staggered.open[axis], slot)
        for operator in self.stokes.momentum:
            operator.setup(program)
        self.laplacian.setup(program)
        for one in self.stokes.levels:
            one.invalidate(program)

    def step(self, program: Program) -> None:
        """Record a step: the next velocity, and the pressure that goes with it."""
        with program.masked(self.state.mask):
            self._step(program)

    def _step(self, program: Program) -> None:
        s, state, ndim = self.staggered, self.state, self.problem.grid.ndim
        density = self.problem.constants.density
        right = [s.on_faces(f"right side {axis}", a) for a, axis in enumerate(s.grid.axes)]
        now, before = [v.now for v in state.velocity], [v.previous for v in state.velocity]
        next_ = [v.next for v in state.velocity]
        w = self.weights
        w.record(program, state.dt, state.last, density, self.problem.steps.order)
        program.let(self.effort.poisson, 0)
        for axis, target in enumerate(right):
            program.apply(
                carried(ndim, axis, self.convection), now, before, self.force[axis], s.open[axis], target,
                s.width, s.gap, weight=w.now, earlier=w.earlier, ratio=w.ratio, density=density,
            )  # fmt: skip
        for (along, across, side), speed in self.lids.items():
            axis = s.grid.axis(along)
            self.stokes.momentum[axis].moving_wall(program, right[axis], s.grid.axis(across), side == "high", speed)
        self._balance(program, right)
        for axis, guess in enumerate(next_):
            program.apply(extrapolated(ndim), now[axis], before[axis], s.open[axis], guess, ratio=w.ratio)
        self.stokes.solve(program, right, next_, self.dynamic)
        assert state.pressure is not None
        program.apply(total(ndim), self.balance, self.dynamic, state.pressure)

    def _balance(self, program: Program, right: list[Field]) -> None:
        """Record the pressure that balances the gradient part of the right-hand side, and the removal of that part."""
        s, ndim = self.staggered, self.problem.grid.ndim
        inflow = s.at_centres("inflow")
        densities = [s.on_faces(f"load {axis}", a) for a, axis in enumerate(s.grid.axes)]
        for axis, target in enumerate(densities):
            program.apply(per_volume(ndim, axis), right[axis], target, s.width, s.gap)
        flows = s.divergence(program, densities, inflow)
        self.laplacian.solve(program, self.balance, inflow, flows, tolerance=1e-9, limit=self.settings.inner)
        for axis, target in enumerate(right):
            program.apply(add_push(ndim, axis), self.balance, target, s.open[axis], target, s.width)


# In kernels ----------------------------------------------------------------------------------------------------------
@functools.cache
def per_volume(ndim: int, axis: int) -> Kernel:
    """Return the kernel of target = source / volume around the face."""
    here = (0,) * ndim

    def divide(source: CellReader, target: CellReader, width: Readers, gap: Readers) -> None:
        target[here] = source[here] / volume(width, gap, axis)

    return kernel(divide)


@functools.cache
def total(ndim: int) -> Kernel:
    """Return the kernel of target = a + b."""
    here = (0,) * ndim

    def add(a: CellReader, b: CellReader, target: CellReader) -> None:
        target[here] = a[here] + b[here]

    return kernel(add)


@functools.cache
def stopped(ndim: int) -> Kernel:
    """Return the kernel that sets v to 0 where the mask is 0."""
    here = (0,) * ndim

    def stop(open: CellReader, v: CellReader) -> None:
        v[here] = where(open[here] > 0, v[here], 0.0)

    return kernel(stop)
