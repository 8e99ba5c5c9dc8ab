"""The scheme of Milano, Mocskos and Marshall: one relaxation over all unknowns in each time step, until it converges.

Time steps are those of implicit Euler with a fixed length. Sweeps go over ions and potential (coupled at each point),
vorticity, vector potential and velocity, in one of three orders, until the largest residual is small.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minga.engine.engine import FieldValue
from minga.engine.model import Model
from minga.engine.presentation import FieldStyle, Presentation
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang import functions as mg
from minga.lang.expr import cast
from minga.models.electrodeposition.groups import limiting_current
from minga.models.electrodeposition.lengths import Lengths
from minga.models.electrodeposition.observe import amounts
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID, Problem
from minga.models.electrodeposition.relaxation.currents import balances, electrode_sums
from minga.models.electrodeposition.relaxation.failures import explainer
from minga.models.electrodeposition.relaxation.ions import sweep
from minga.models.electrodeposition.relaxation.options import RelaxationOptions, check_supported
from minga.models.electrodeposition.relaxation.push import push_kernel
from minga.models.electrodeposition.relaxation.vorticity import VectorPotential
from minga.models.electrodeposition.state import State, state_of
from minga.models.electrodeposition.units import units_of
from minga.solve.krylov import copy
from minga.space.field import Field, Register


def relaxation(problem: Problem, settings: RelaxationOptions | None = None) -> Model:
    """Return the model of a problem, solved by relaxation.

    Raises
    ------
    CaseError
        If this scheme cannot solve the problem.
    """
    chosen = RelaxationOptions() if settings is None else settings
    check_supported(problem, chosen)
    return Scheme.of(problem, chosen).model()


def relaxation_model(problem: Problem, **options: Any) -> Model:
    """Return the model of a problem, solved by relaxation with some of `RelaxationOptions` by name.

    Raises
    ------
    CaseError
        If an option is unknown, or this scheme cannot solve the problem.
    """
    known = [item.name for item in dataclasses.fields(RelaxationOptions)]
    for name in options:
        if name not in known:
            raise CaseError(
                f"relaxation has no option {name!r}",
                key=f"electrodeposition.relaxation.{name}",
                remedy=f"its options are {', '.join(known)}",
            )
    return relaxation(problem, RelaxationOptions(**options))


@dataclass(frozen=True, eq=False)
class Scheme:
    """The relaxation of a problem, with the data that it stores besides the state.

    Attributes
    ----------
    sweeps, worst
        Number of sweeps of the last time step, and the value of the criterion at its end.
    total
        Number of sweeps since the beginning.
    stuck
        1 once a time step did not converge; all later time steps are skipped.
    met
        Largest residuals of the last sweep by equation, largest change, and the cell where ions or potential were
        worst.
    given
        Fluxes into the solution at cathode and anode of ions that balance the other electrode, mol/m2/s.
    flow
        The flow; None if the fluid does not move.
    """

    problem: Problem
    settings: RelaxationOptions
    state: State
    lengths: Lengths
    sweeps: Register
    total: Register
    worst: Register
    stuck: Register
    met: dict[str, Register]
    given: tuple[Register, Register]
    flow: VectorPotential | None

    @classmethod
    def of(cls, problem: Problem, settings: RelaxationOptions) -> Scheme:
        """Declare the relaxation of a problem."""
        state, lengths = state_of(problem), Lengths(problem.grid)
        flow = None
        if problem.flow:
            viscosity = problem.constants.viscosity / problem.constants.density
            between = settings.between_blocks
            flow = VectorPotential(
                state.kind, state.velocity, lengths, viscosity, settings.order, between, settings.wall
            )
        return cls(
            problem,
            settings,
            state,
            lengths,
            Register("sweeps", "i8"),
            Register("sweeps in all", "i8"),
            Register("unsettled"),
            Register("stuck", "i8"),
            {name: Register(f"residual {name}") for name in ("ions", "potential", "change", "flow")}
            | {"place": Register("residual at", "i8")},
            (Register("into solution at cathode"), Register("into solution at anode")),
            flow,
        )

    @property
    def moving(self) -> tuple[Field, ...]:
        """Fields with time levels."""
        turning = () if self.flow is None else (*self.state.velocity, *self.flow.zeta.values())
        return (*self.state.concentration, self.state.potential, *turning)

    def model(self) -> Model:
        """Return the complete model."""
        state, steps = self.state, self.problem.steps
        step = Program("time steps")
        if self.flow is not None:
            self.flow.setup(step)
        count = max(1, round(steps.every / steps.first))
        with step.repeat(count), step.when(self.stuck == 0):
            self.time_step(step, steps.every / count)
        flow = () if self.flow is None else self.flow.fields
        fields = tuple(dict.fromkeys((state.kind, *self.moving, *flow, *self.lengths.fields)))
        observe = Program("observe")
        observables = self.observables(observe)
        return Model(
            "electrodeposition",
            self.problem.grid,
            fields,
            step,
            initial={**start_values(self.problem, state), **self.lengths.initial},
            output=tuple(f.name for f in (*state.concentration, state.potential, *state.velocity)),
            observe=observe,
            observables=observables,
            units=units_of(observables, self.problem.grid.ndim),
            explain=explainer(
                self.problem,
                state,
                self.stuck,
                [(f"the {name}", self.met[name]) for name in ("ions", "potential", "flow")],
                self.met["place"],
                self.settings.limit,
            ),
            velocity=tuple(f.name for f in state.velocity),
            registers={self.stuck: 0, state.time: 0.0, **dict.fromkeys(self.given, 0.0)},
            conserved=tuple(f"total_{s.name}" for s in self.problem.species),
            steps=round(steps.end / steps.every),
            seed=self.problem.seed,
            updates=self.total,
            presentation=self._presentation(fields),
        )

    def _presentation(self, fields: Sequence[Field]) -> Presentation:
        """Return the presentation of the model's fields; flow and vorticity have a colour for each sign."""
        turning = () if self.flow is None else (*self.flow.psi.values(), *self.flow.zeta.values())
        styles = {**self.state.presentation.fields, **{item.name: FieldStyle(signed=True) for item in turning}}
        return Presentation({item.name: styles[item.name] for item in fields if item.name in styles})

    def observables(self, program: Program) -> dict[str, Register | tuple[Register, ...]]:
        """Record the observables, and return their registers by name.

        Currents are those of ions, in A/m2 of the cathode's plane.
        """
        problem, state = self.problem, self.state
        grid = problem.grid
        plane = float(np.prod([np.sum(grid.widths(axis)) for axis in range(1, grid.ndim)]))
        sums = self.electrodes(program, new=False)
        seen: dict[str, Register | tuple[Register, ...]] = {
            "time": state.time,
            "dt": state.last,
            "voltage": state.voltage,
            "current": program.let(Register("current"), -sums.current_anode / plane),
            "current_cathode": program.let(Register("current at cathode"), sums.current_cathode / plane),
        }
        most = limiting_current(problem)
        if most is not None:
            seen["J_over_Jlim"] = program.let(Register("share of limit"), -sums.current_anode / (plane * most))
        ions: Any = program.apply(
            amounts(problem, self.lengths), state.kind, list(state.concentration), list(self.lengths.fields)
        )
        for number, species in enumerate(problem.species):
            seen[f"total_{species.name}"] = getattr(ions, f"total{number}")
        seen["least_concentration"] = ions.least
        return seen | {"sweeps": self.sweeps, "all_sweeps": self.total, "residual": self.worst}

    def time_step(self, program: Program, dt: float) -> None:
        """Record one time step."""
        state, moving = self.state, self.moving
        for item in moving:
            program.apply(copy, item, item.next)
        program.let(self.sweeps, 0)
        program.let(self.worst, float("inf"))
        with program.repeat(until=self.worst < self.settings.tolerance, limit=self.settings.limit):
            self.iteration(program, dt)
            program.let(self.sweeps, self.sweeps + 1)
        program.let(self.total, self.total + self.sweeps)
        program.let(self.stuck, cast(~(self.worst < self.settings.tolerance), "i8"))
        with program.when(self.stuck == 0):
            program.rotate(*moving)
            program.let(state.time, state.time + dt)
            program.let(state.last, dt)

    def iteration(self, program: Program, dt: float) -> None:
        """Record one sweep over all unknowns."""
        state, settings = self.state, self.settings
        relax = sweep(self.problem, self.lengths, settings.order, settings.between_blocks, settings.newton)
        found: Any = program.apply(
            relax,
            state.kind,
            [c.next for c in state.concentration],
            state.potential.next,
            list(state.concentration),
            [v.next for v in state.velocity],
            list(self.lengths.fields),
            per_dt=1.0 / dt,
            voltage=state.voltage,
            at_cathode=self.given[0],
            at_anode=self.given[1],
            into={name: self.met[name] for name in ("ions", "potential", "change", "place")},
        )
        if balances(self.problem):
            self.balance(program)
        worst, change = mg.max(found.ions, found.potential), found.change
        if self.flow is not None:
            turning, moved = self.sweep_flow(program, self.flow, dt)
            program.let(self.met["flow"], turning)
            worst, change = mg.max(worst, turning), mg.max(change, moved)
        program.let(self.worst, change if settings.criterion == "update" else worst)

    def balance(self, program: Program) -> None:
        """Record the flux at each electrode of ions that balance what the other one removes."""
        sums = self.electrodes(program, new=True)
        program.let(self.given[0], sums.ions_anode / sums.area_cathode)
        program.let(self.given[1], sums.ions_cathode / sums.area_anode)

    def electrodes(self, program: Program, *, new: bool) -> Any:
        """Record the sums over electrodes, for the next state if `new`, else for the present one."""
        state = self.state
        return program.apply(
            electrode_sums(self.problem, self.lengths),
            state.kind,
            [c.next if new else c.now for c in state.concentration],
            state.potential.next if new else state.potential.now,
            list(self.lengths.fields),
            voltage=state.voltage,
            at_cathode=self.given[0],
            at_anode=self.given[1],
        )

    def sweep_flow(self, program: Program, flow: VectorPotential, dt: float) -> tuple[Register, Register]:
        """Record one sweep over the flow."""
        state = self.state
        for axis, push in enumerate(flow.push):
            program.apply(
                push_kernel(self.problem, flow, axis),
                state.kind,
                [c.next for c in state.concentration],
                state.potential.next,
                [z.next for z in flow.zeta.values()],
                [v.next for v in state.velocity],
                push,
                list(self.lengths.fields),
                region=flow.inner_faces(axis),
            )
        slowest = max(s.diffusivity for s in self.problem.species)
        extent = max(float(np.sum(self.problem.grid.widths(a))) for a in range(self.lengths.ndim))
        return flow.sweep(program, [v.next for v in state.velocity], 1.0 / dt, slowest / (extent * extent))


def start_values(problem: Problem, state: State) -> dict[Field, FieldValue]:
    """Return the initial values: bulk concentrations, and a potential that rises linearly from the cathode.

    Metals have their own potentials.
    """
    grid = problem.grid
    kinds = np.zeros(grid.shape, np.uint8) if problem.kinds is None else problem.kinds
    values: dict[Field, FieldValue] = {state.kind: kinds}
    for species, item in zip(problem.species, state.concentration, strict=True):
        given = problem.initial.get(item.name, np.full(grid.shape, species.bulk))
        values[item] = np.where(kinds == FLUID, given, 0.0)
    voltage = problem.voltage or 0.0
    height = grid.centres(0) - grid.faces(0)[0]
    rising = voltage * height / float(np.sum(grid.widths(0)))
    even = np.broadcast_to(rising.reshape(-1, *(1,) * (grid.ndim - 1)), grid.shape)
    potential = problem.initial.get(state.potential.name, even)
    potential = np.where(kinds == CATHODE, 0.0, np.where(kinds == ANODE, voltage, potential))
    values[state.potential] = potential
    return values
