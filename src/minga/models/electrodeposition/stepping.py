"""Time stepping: attempts that are committed or repeated with a shorter step, all inside one Program.

One step of a run covers `steps.every` seconds. It consists of time steps by BDF2 (or implicit Euler) whose lengths
follow from an error estimate: the difference between the solution and its prediction from the last steps. An attempt
writes only next slots, so that a rejected attempt leaves no trace but a shorter proposal.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.expr import Node, as_node, cast, where
from minga.lang.math import exp, log
from minga.models.electrodeposition.charges import Charges
from minga.models.electrodeposition.counters import COMPLETE, CUT_OFF, EXHAUSTED, REACHED, Counters
from minga.models.electrodeposition.currents import middle_current
from minga.models.electrodeposition.disturbances import flow_error
from minga.models.electrodeposition.flow import Flow
from minga.models.electrodeposition.forces import record_forces
from minga.models.electrodeposition.growth import DepositGrowth
from minga.models.electrodeposition.iteration import Iteration
from minga.models.electrodeposition.predictions import TOO_BIG, compare, greatest
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.protocols.course import Course
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.two_stages import TwoStages
from minga.space.field import STEP, Field, Register, Slot

__all__ = ["Stepping"]

SAFETY: Final = 0.8
"""Safety factor of the step control."""
SHORTEST: Final = 1e-9
"""Shortest step, as a fraction of `steps.every` or of the first step; shorter steps mean that something is wrong."""
LANDING: Final = 1e-9
"""Fraction of a step that may remain to the target."""
EARLY: Final = 1e-30
"""Lower bound of errors in the step control."""
OVERSHOOT: Final = 1.2
"""Multiple of the cut-off voltage beyond which an attempt is repeated with a shorter step, so that a run ends near its
cut-off."""
BRIEF: Final = 1e-7
"""Step, as a fraction of `steps.every` or of the first step, at or below which a voltage beyond the cut-off is accepted
as it is."""
LONGEST: Final = 1e300
"""Length of a step that is not known yet."""


@dataclass(frozen=True, eq=False)
class Stepping:
    """The step of a run, which covers an interval with time steps.

    Attributes
    ----------
    flow
        The flow, if the fluid moves.
    attempts
        Largest number of attempts in one step of the run, where the lengths of time steps are adaptive.
    charges
        The charges that ions bring to the electrodes, where a given current, a program, several reactions
        or a deposit need them.
    rates
        Fields of dc/dt of each species at the last step: slots now, next.
    growing
        The growth of the deposit, if it grows.
    stages
        The stages of a time step, where the deposit grows and steps are of second order.
    course
        The course of a program of currents and voltages, where there is one.
    ended
        0, or the reason why the run is over: 1 the deposit reached the anode, 2 the voltage passed its cut-off, 3 the
        program of currents and voltages is over, 4 no voltage drives its current.
    least
        Lowest concentration of an ion after the last attempt, as a fraction of its bulk; at most 1.
    middle
        Current half way along y before the last cells turned solid, A, where the deposit grows.
    """

    problem: Problem
    state: State
    iteration: Iteration
    flow: Flow | None
    attempts: int = 10_000
    charges: Charges | None = None
    counters: Counters = field(default_factory=Counters)
    rates: tuple[Field, ...] = field(init=False)
    growing: DepositGrowth | None = field(init=False)
    stages: TwoStages | None = field(init=False)
    course: Course | None = field(init=False)
    proposal: Register = field(init=False)
    before: Register = field(init=False)
    careful: Register = field(init=False)
    prepared: Register = field(init=False)
    fresh: Register = field(init=False)
    settling: Register = field(init=False)
    ended: Register = field(default_factory=lambda: Register("ended", "i8"))
    least: Register = field(default_factory=lambda: Register("least concentration"))
    middle: Register = field(default_factory=lambda: Register("current before growth"))

    def __post_init__(self) -> None:
        put, grid = object.__setattr__, self.problem.grid
        put(self, "rates", tuple(Field(f"rate of {s.name}", grid, slots=2) for s in self.problem.species))
        transport = self.iteration.transport
        growing = None
        if self.problem.growth is not None:
            assert self.charges is not None
            growing = DepositGrowth(self.problem, self.state, transport.lengths, transport, self.charges, self.rates)
        put(self, "growing", growing)
        staged = growing is not None and self.problem.steps.order == 2
        put(self, "stages", TwoStages(self.iteration, self.rates, self.charges) if staged and self.charges else None)
        put(self, "course", self.iteration.course)
        put(self, "proposal", Register("proposed dt", initial=self.problem.steps.first))
        put(self, "before", Register("error before", initial=1.0))
        put(self, "careful", Register("careful", "i8"))
        put(self, "prepared", Register("prepared", "i8"))
        put(self, "fresh", Register("fresh cells", "i8"))
        put(self, "settling", Register("proposed dt after deposits", initial=LONGEST))

    @property
    def registers(self) -> dict[Register, float]:
        """Registers with their initial values, for a Model."""
        first = self.problem.steps.first
        return {
            self.state.dt: first, self.proposal: first, self.before: 1.0, self.settling: LONGEST, self.state.time: 0.0,
        }  # fmt: skip

    @property
    def grown(self) -> tuple[Field, ...]:
        """Fields of a growing deposit, which must persist between steps."""
        return () if self.growing is None else (self.growing.flux, *self.growing.dissolving.initial)

    @property
    def grown_initial(self) -> Mapping[Field, Any]:
        """Initial values of such fields."""
        return {} if self.growing is None else self.growing.dissolving.initial

    def record(self, program: Program) -> None:
        """Record one step of the run."""
        state, steps, counters = self.state, self.problem.steps, self.counters
        target = Register("target")
        goal = (cast(as_node(STEP), "f8") + 1.0) * steps.every
        # The last step of the run ends with it, also where its intervals do not divide it.
        program.let(target, goal if steps.count * steps.every <= steps.end * (1.0 + 1e-6) else mg.min(goal, steps.end))
        program.let(counters.attempts, where(counters.failed > 0, counters.attempts, 0))
        over = (state.time >= target) | (counters.failed > 0) | (self.ended > 0)
        if self.growing is not None:
            over = over | (self.growing.reached > 0)
        with program.repeat(until=over):
            if self.growing is None:
                self._go_on(program, target)
            else:
                self._grow(program, self.growing)
                with program.when(self.growing.reached == 0):
                    self._go_on(program, target)
        if self.growing is not None:
            program.let(self.ended, where(self.growing.reached > 0, REACHED, self.ended))
        # A loop that reaches its limit ends the run; `explain` of the model gives the reason.
        with program.when(counters.failed > 0), program.repeat(until=counters.failed == 0, limit=0):
            program.let(counters.failed, counters.failed)
        program.let(STEP, STEP + 1)

    def _grow(self, program: Program, growing: DepositGrowth) -> None:
        """Record the growth of the deposit before the next attempt."""
        growing.fill(program)
        with program.when(growing.added > 0):
            program.let(self.prepared, 0)
            program.let(self.fresh, growing.added)
            program.let(self.proposal, mg.min(self.proposal, self.settling))

    def _go_on(self, program: Program, target: Register) -> None:
        """Record an attempt, and its acceptance or rejection."""
        with program.when(self.prepared == 0):
            self.iteration.prepare(program)
            if self.flow is not None:
                self.flow.setup(program)
            program.let(self.prepared, 1)
        goal = target
        if self.course is not None:
            self.course.begin(program, self.proposal)
            goal = self.course.goal(program, target)
        self._choose(program, goal)
        with program.unchecked():
            accepted = self._attempt(program)
        with program.when(accepted):
            self._commit(program, goal)
        self._control(program, accepted)
        self._give_up(program, accepted, target)

    def _choose(self, program: Program, target: Register) -> None:
        """Record the length of the next attempt: the proposal, adjusted to meet the target without a tiny last step."""
        state, steps = self.state, self.problem.steps
        left, proposal = target - state.time, as_node(self.proposal)
        if self.course is not None:
            proposal = mg.min(proposal, self.course.longest)
        near = where(proposal * 2.0 > left, 0.5 * left, proposal)
        program.let(state.dt, where(proposal * (1.0 + LANDING) >= left, left, near))
        ratio: Node | float = 0.0
        if steps.order == 2:
            last = where(state.last > 0.0, state.last, 1.0)
            # Values from before a cell turned solid do not enter the formula.
            smooth = (state.last > 0.0) & (self.careful == 0) & (self.fresh == 0)
            ratio = where(smooth, state.dt / last, 0.0)
        self.iteration.formula.record(program, state.dt, ratio)
        if self.stages is not None:
            program.let(self.stages.staged, self.fresh > 0)

    def _attempt(self, program: Program) -> Register:
        """Record an attempt; return the register that says whether it is accepted."""
        state, steps, counters = self.state, self.problem.steps, self.counters
        formula = self.iteration.formula
        if self.course is not None:
            self.course.set_level(program, state.dt)
        (self.stages or self.iteration).record(program)
        if self.flow is not None:
            then = [c.next for c in state.concentration]
            with program.when(self.iteration.converged > 0):
                record_forces(program, self.problem, self.flow.staggered, then, state.potential.next, self.flow.force)
                self.flow.step(program)
        program.let(counters.attempts, counters.attempts + 1)
        made = compare(self.problem, mean=self.stages is not None)
        seen = program.apply(
            made, state.kind, *self._levels(), [r.now for r in self.rates],
            [r.next for r in self.rates], rate=formula.rate, h0=formula.now, h1=formula.before, dt=state.dt,
            ratio=formula.ratio, last=state.last,
        )  # fmt: skip
        found, error = vars(seen), Register("error now")
        difference = found["difference"] * ((1.0 + formula.ratio) / (2.0 + 3.0 * formula.ratio))
        if self.stages is not None:
            mean = mg.sqrt(found["square"] / where(found["cells"] > 0, cast(as_node(found["cells"]), "f8"), 1.0))
            wild = found["difference"] >= TOO_BIG
            difference = where(self.stages.staged, where(wild, found["difference"], mean), difference)
        # There is no prediction for the first step: its length is the one that was asked for.
        program.let(error, where(state.last > 0.0, difference * (1.0 / steps.tolerance), 0.0))
        if self.flow is not None and steps.flow_tolerance is not None:
            of_flow = flow_error(program, self.problem, state, self.iteration.levels, self._order)
            program.let(error, mg.max(error, of_flow))
        program.let(counters.error, where(error < TOO_BIG, error, TOO_BIG))
        lows, worsts = ([found[f"{word}{n}"] for n in range(len(self.rates))] for word in ("least", "worst"))
        least = functools.reduce(mg.min, lows[1:], as_node(lows[0]))
        converged, positive = (self.iteration.converged > 0) & ~self.iteration.unsolved.any, least >= 0.0
        small = (counters.error <= 1.0) if steps.adaptive else (counters.error <= TOO_BIG)
        accepted, reasons, limited = Register("accepted", "bool"), counters.reasons, self.problem.cutoff < math.inf
        reasons.judge(program, self.iteration, positive, small, self._overshoots() if limited else None)
        program.let(accepted, reasons.reason == 0)
        parts = [low * (1.0 / s.bulk) for low, s in zip(lows, self.problem.species, strict=True) if s.bulk > 0.0]
        program.let(self.least, functools.reduce(mg.min, parts, as_node(1.0)))
        if self.charges is not None:
            self.charges.attempt(program)
        if self.course is not None:
            self.course.watch(program, accepted, lows, as_node(self.iteration.drive["voltage"]))
            reasons.judge_limits(program, accepted)
        at = where(positive, found["place"], found["least_at"])
        program.let(counters.place, where(converged, at, self.iteration.place))
        program.let(counters.species, where(positive, greatest(worsts), greatest([-low for low in lows])))
        return accepted

    def _overshoots(self) -> Node:
        """Return whether the voltage is far beyond its cut-off and a shorter step may end nearer to it."""
        state, steps = self.state, self.problem.steps
        far = mg.abs(as_node(self.iteration.drive["voltage"])) > OVERSHOOT * self.problem.cutoff
        return far & (state.last > 0.0) & (state.dt > BRIEF * min(steps.every, steps.first))

    @property
    def _order(self) -> Node:
        """The power of the time step by which its error varies."""
        return where(self.iteration.formula.ratio > 0.0, 3.0, 2.0)

    def _levels(self) -> tuple[list[Slot], list[Slot], list[Slot]]:
        c = self.state.concentration
        return [x.now for x in c], [x.next for x in c], [x.previous for x in c]

    def _commit(self, program: Program, target: Register) -> None:
        state, counters = self.state, self.counters
        landed = state.dt * (1.0 + LANDING) >= target - state.time
        program.let(state.time, where(landed, target, state.time + state.dt))
        program.let(state.last, state.dt)
        program.rotate(*state.concentration, state.potential, *state.velocity, *self.rates)
        self.iteration.commit(program)
        if self.stages is not None:
            self.stages.commit(program)
        if self.problem.cutoff < math.inf:
            beyond = mg.abs(as_node(state.voltage)) > self.problem.cutoff
            program.let(self.ended, where(beyond, CUT_OFF, self.ended))
        if self.charges is not None:
            self.charges.commit(program)
        if self.course is not None:
            self.course.commit(program)
        program.let(counters.taken, counters.taken + 1)
        program.let(self.careful, 0)
        if self.growing is not None:
            self.growing.book(program)
            with program.when(self.growing.fills):
                transport = self.iteration.transport
                transport.equilibrate(program, [c.now for c in state.concentration])
                program.let(self.middle, middle_current(program, self.problem, transport.lengths, self.iteration))

    def _control(self, program: Program, accepted: Register) -> None:
        """Record the proposal for the next attempt, by a PI controller (Soederlind, Numer. Algorithms 31, 2002)."""
        state, steps, counters, iteration = self.state, self.problem.steps, self.counters, self.iteration
        if self.growing is not None:
            much = mg.min(self.growing.amount, 1.0)
            program.let(counters.error, where(accepted & (counters.error < much), much, counters.error))
        error = where(counters.error > EARLY, counters.error, EARLY)
        factor = SAFETY * exp((-0.6 * log(error) + 0.2 * log(self.before)) / self._order)
        # Longer steps would gain nothing if the iteration already takes many passes.
        most = where(iteration.passes * 2 > iteration.limit, 1.0, 2.0)
        grown = where(factor > most, most, where(factor < 0.3, 0.3, factor))
        shrunk = where(iteration.converged > 0, where(factor < 0.6, where(factor < 0.1, 0.1, factor), 0.6), 0.3)
        if steps.adaptive:
            longer = grown * state.dt
            kept = where((state.dt < self.proposal) & (longer < self.proposal) & (grown >= 1.0), self.proposal, longer)
            program.let(self.proposal, where(accepted, kept, shrunk * state.dt))
            if self.growing is not None:
                # Steps after a cell has turned solid have their own length, which is remembered for the next such cell.
                settled = where(accepted, longer, shrunk * state.dt)
                program.let(self.settling, where(self.fresh > 0, settled, self.settling))
        else:
            # First a step of the order that was asked for, then one by Euler's method, then shorter ones.
            retry = where(self.careful > 0, 0.5, 1.0) * state.dt
            program.let(self.proposal, where(accepted, steps.first, retry))
        with program.when(accepted):
            program.let(self.before, where(error > 1e-4, error, 1e-4))
            program.let(self.fresh, 0)
        with program.when(~accepted):
            program.let(counters.rejected, counters.rejected + 1)
            counters.reasons.count(program)
            program.let(self.careful, 1)
        if self.course is not None:
            self.course.events.shorten(program, self.proposal, self.careful)
            self.course.exhaust(program, accepted)
            program.let(self.ended, where(self.course.done > 0, COMPLETE, self.ended))
            program.let(self.ended, where(self.course.exhausted > 0, EXHAUSTED, self.ended))

    def _give_up(self, program: Program, accepted: Register, target: Register) -> None:
        """Record the reason to give up, where another attempt is pointless."""
        steps, counters, iteration = self.problem.steps, self.counters, self.iteration
        with program.when(~accepted & (self.ended == 0)):
            floor = SHORTEST * min(steps.every, steps.first)
            why = where(iteration.converged > 0, where(counters.error > 1.0, 2, 3), 1)
            why = where(iteration.unsolved.any, 4, why)
            program.let(counters.failed, where(self.proposal < floor, why, 0))
        most_attempts = self.attempts if steps.adaptive else math.ceil(4.0 * steps.every / steps.first) + self.attempts
        lost = (counters.failed == 0) & (counters.attempts >= most_attempts) & (self.state.time < target)
        program.let(counters.failed, where(lost, 5, counters.failed))
