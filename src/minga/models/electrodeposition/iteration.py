"""The coupled step of ions and potential: passes over Poisson's equation and transport until they agree.

A pass solves for a correction of the potential (`potential`), which is improved by secants of the passes before it
(`minga.solve.multisecant`), and then for the concentrations in the new potential (`transport`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.compile.explain import Kernel, kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.charges import Charges
from minga.models.electrodeposition.formula import Formula
from minga.models.electrodeposition.lengths import plane_of
from minga.models.electrodeposition.potential import Poisson, advance
from minga.models.electrodeposition.problem import ANODE, CATHODE, FLUID, Problem
from minga.models.electrodeposition.protocols.course import Course
from minga.models.electrodeposition.solvers import Unsolved
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.transport import Transport
from minga.solve.laplacian import step
from minga.solve.multisecant import Multisecant
from minga.space.field import Register, Slot

__all__ = ["Iteration"]

Readers = Sequence[CellReader]

WILD: Final = 1e6
"""Correction of the potential, in RT/F, from which on it is rejected as meaningless."""
CURRENT: Final = 1e-7
"""Fraction of a given current that may be missing."""
LEFT: Final = 10.0
"""Multiple of the current that may be missing before the last pass, up to which it may be missing after it."""
LARGEST: Final = 4.0
"""Largest change of the difference of potential at a metal in a pass where a current is given, RT/F. Currents of
reactions are exponentials of it: after a jump of the current their slope at the old one would lead far beyond."""
ROUGH: Final = 1e-5
"""Tolerance of the concentrations' systems before the last pass, where passes are economical: their residual is charge,
which the next pass corrects."""
INNER: Final = 4
"""Rounds of local equilibrium and transport in a pass. After one, concentrations depend on the fractions of the pass
before, not on the potential alone as secants assume, and many passes do not converge."""
NEVER: Final = 1e30
"""Value of the potential's change before the first pass, RT/F."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """The iteration that finds the next concentrations and potential.

    Attributes
    ----------
    drive
        Registers that drive the faces: the anode's potential, while it is sought, and the balancing fluxes.
    limit
        Largest number of passes.
    tolerance
        Tolerance of the last correction of the potential, RT/F.
    course
        The course of a program of currents and voltages, where there is one.
    unsolved
        Counts of unsolved systems of an attempt, including those of the flow, which is solved later.
    economical
        True for passes that end once the next change, extrapolated from the last two, is below the tolerance. Only the
        last of them solves for the concentrations to the full accuracy.
    counted
        The charges that ions bring to the electrodes, by which a given current is checked after the last pass.
    passes, converged, change, place
        Results of the last attempt: the number of passes, 1 if it converged and 0 if not, the last change of the
        potential in RT/F (the next one where that was estimated), and the cell where it was largest.
    """

    problem: Problem
    state: State
    poisson: Poisson
    transport: Transport
    formula: Formula
    drive: Mapping[str, Any]
    limit: int
    tolerance: float
    poisson_iterations: Register
    unsolved: Unsolved
    course: Course | None = None
    economical: bool = False
    counted: Charges | None = None
    secants: Multisecant = field(init=False)
    passes: Register = field(default_factory=lambda: Register("passes", "i8"))
    all_passes: Register = field(default_factory=lambda: Register("all passes", "i8"))
    converged: Register = field(default_factory=lambda: Register("converged", "i8"))
    change: Register = field(default_factory=lambda: Register("potential change"))
    last_change: Register = field(default_factory=lambda: Register("last potential change"))
    wild: Register = field(default_factory=lambda: Register("wild corrections", "i8"))
    place: Register = field(default_factory=lambda: Register("change at", "i8"))
    levels: Register = field(default_factory=lambda: Register("steps that are known", "i8"))
    steady: Register = field(default_factory=lambda: Register("voltage believed", "bool"))
    missing: Register = field(default_factory=lambda: Register("current missing"))
    enough: Register = field(default_factory=lambda: Register("charge that may be missing"))
    shift: Register = field(default_factory=lambda: Register("voltage shift"))
    wanted: Register = field(default_factory=lambda: Register("wanted charge"))
    voltages: tuple[Register, Register] = field(
        default_factory=lambda: (Register("voltage before"), Register("voltage earlier"))
    )
    charges: tuple[Register, Register] = field(
        default_factory=lambda: (Register("anode charge now"), Register("anode charge before"))
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "secants", Multisecant(self.problem.grid))

    def prepare(self, program: Program) -> None:
        """Record everything that follows from the kinds of cells."""
        phi = self.state.potential
        program.apply(advance, self.state.kind, phi.now, phi.now, voltage=self.state.voltage)
        self.transport.measure(program)

    def record(self, program: Program, guessed: Register | None = None) -> None:
        """Record an attempt at the next slots.

        Parameters
        ----------
        program
            The program to record in.
        guessed
            Condition that the next slots and the voltage contain a guess already; None: they never do.
        """
        state, formula = self.state, self.formula
        phi, voltage = state.potential, self.drive["voltage"]
        then = [c.next for c in state.concentration]
        ratio = Register("guess ratio")
        # The potential before the first step is not a solution that could be extrapolated.
        smooth = as_node(self.levels) > 1
        if self.course is not None:
            # Nor is a jump at the beginning of a segment a change that would go on.
            smooth = smooth & (self.course.steps > 1)
        program.let(ratio, where(smooth, formula.ratio, 0.0))
        with contextlib.nullcontext() if guessed is None else program.when(~guessed):
            program.let(voltage, state.voltage + ratio * (state.voltage - self.voltages[0]))
            program.apply(
                guess, phi.now, phi.previous, phi.next, [c.now for c in state.concentration],
                [c.previous for c in state.concentration], then, ratio=ratio,
            )  # fmt: skip
        if self.course is not None:
            program.let(voltage, where(self.course.seeks, voltage, self.course.level))
            program.apply(advance, state.kind, phi.next, phi.next, voltage=voltage)
        program.let(self.passes, 0)
        program.let(self.missing, 0.0)
        program.let(self.change, NEVER)
        program.let(self.transport.exactness, self.transport.tolerance)
        self.unsolved.begin(program)
        self.secants.begin(program)
        self.transport.set_faces(program, phi.next, then)
        enough = (self.change <= self.tolerance) | (self.passes >= self.limit)
        with program.masked(state.mask), program.repeat(until=enough):
            self._pass(program, then)
        self.transport.restore(program)
        program.let(self.converged, where(self.change <= self.tolerance, 1, 0))
        if self.counted is not None and self.problem.galvanostatic:
            self._check_current(program, self.counted)
        if self.course is not None and self.course.reference is not None:
            program.let(self.converged, where(self.course.misses(program), 0, self.converged))
        program.let(self.all_passes, self.all_passes + self.passes)

    def _check_current(self, program: Program, counted: Charges) -> None:
        """Record that an attempt has not converged if its current is not the given one.

        The current that ends the passes is that before the last of them.
        """
        counted.attempt(program)
        self._miss(program, (as_node(self._density) * self.plane + counted.current(1)) / self.formula.rate)
        program.let(self.converged, where(self.missing <= LEFT, self.converged, 0))

    def _miss(self, program: Program, charge: Node) -> None:
        """Record how much of the given current is missing, relative to what may be missing."""
        missing = mg.abs(charge) / self.enough
        program.let(self.missing, missing if self.course is None else where(self.course.by_current, missing, 0.0))

    def _pass(self, program: Program, then: Sequence[Slot]) -> None:
        problem, state, formula, course = self.problem, self.state, self.formula, self.course
        phi, voltage, sums = state.potential, self.drive["voltage"], self.poisson.sums
        transport = self.transport
        self.poisson.assemble(
            program, phi.next, then, transport.up, transport.down, transport.gain, transport.film, transport.bent,
            transport.equilibrium,
        )  # fmt: skip
        wanted = None
        if problem.voltage is None:
            given, now, before = as_node(self._density) * self.plane, *self._charges_before()
            program.let(self.wanted, (given + (now - before)) / formula.rate)
            wanted = self.wanted
            # The current that is missing, relative to the terms it is the sum of; where those vanish, relative to the
            # current that moves the voltage.
            terms = (abs(given) + (mg.abs(now) + mg.abs(before))) / formula.rate
            program.let(self.enough, CURRENT * terms + (self.tolerance / problem.beta) * sums.conductance)
            self._miss(program, self.wanted - sums.carried)
        program.let(self.drive["at_cathode"], sums.at_cathode)
        program.let(self.drive["at_anode"], sums.at_anode)
        self.poisson.correct(program, self.shift, wanted, None if course is None else course.shift)
        found = program.apply(
            tame, self.poisson.delta, most=WILD / problem.beta, into={"place": self.place, "wild": self.wild}
        )
        assert found is not None
        program.let(self.steady, mg.abs(self.shift) < WILD / problem.beta)
        program.let(self.shift, where(self.steady, self.shift, 0.0))
        # The first correction responds to guessed concentrations, so it is no image of the first guess.
        program.let(self.secants.rounds, where(self.passes == 1, 0, self.secants.rounds))
        largest = self.secants.step(program, phi.next, self.poisson.delta.now, voltage, self.shift)
        if problem.galvanostatic:
            self._restrain(program)
        program.apply(advance, state.kind, phi.next, phi.next, voltage=voltage)
        change = mg.max(largest, mg.abs(self.shift))
        if any(transport.film):
            change = mg.max(change, sums.film)
        program.let(self.change, change * self.problem.beta)
        if self.economical:
            self._extrapolate(program)
            last = (self.change <= self.tolerance) & (self.passes > 0) & (self.missing <= 1.0)
            rough = max(self.transport.tolerance, min(ROUGH, 1e-2 * self.tolerance))
            program.let(self.transport.exactness, where(last, self.transport.tolerance, rough))
        for _ in range(INNER if self.transport.equilibrium else 1):
            self.transport.set_faces(program, phi.next, then)
            self.transport.solve(program)
        # No pass recovers from corrections that are not numbers or are absurdly large.
        lost = (self.wild > 0) | ~self.steady | self.unsolved.any
        # The first correction responds to guessed concentrations, so a small one does not mean convergence. Nor does a
        # small correction of the voltage while the current differs from the given one.
        program.let(self.change, where(lost | (self.passes < 1) | (self.missing > 1.0), NEVER, self.change))
        program.let(self.passes, where(lost, self.limit, self.passes + 1))

    def _restrain(self, program: Program) -> None:
        """Record the reduction of a step that changes the potential at a metal by too much, and forget the secants."""
        secants, most = self.secants, LARGEST / self.problem.beta
        made = beside_metals(self.problem.grid.ndim)
        found = as_node(program.apply(made, self.state.kind, secants.taken, shift=secants.number_taken))
        with program.when(found > most):
            less = Register("part of step taken back")
            program.let(less, 1.0 - most / found)
            program.apply(take_back, self.state.potential.next, secants.taken, part=less)
            voltage = self.drive["voltage"]
            program.let(voltage, voltage - less * secants.number_taken)
            secants.begin(program)

    def _extrapolate(self, program: Program) -> None:
        """Record the estimate of the next change from the ratio of the last two; that to the first one says nothing."""
        before, now = as_node(self.last_change), as_node(self.change)
        falling = (self.passes > 1) & (now < 0.5 * before)
        following = Register("next potential change")
        program.let(following, where(falling, now * now / where(falling, before - now, 1.0), now))
        program.let(self.last_change, now)
        program.let(self.change, following)

    def _charges_before(self) -> tuple[Node, Node]:
        """Return the contributions of the anode's charges at the last two steps to the time formula, C/s."""
        return self.formula.now * self.charges[0], self.formula.before * self.charges[1]

    @property
    def plane(self) -> float:
        """Area of the cathode's plane, m2."""
        return plane_of(self.problem.grid)

    @property
    def _density(self) -> Register | float:
        """The given current density, A/m2."""
        return self.problem.current or 0.0 if self.course is None else self.course.level

    @property
    def at_rest(self) -> Node:
        """Flag: a current of 0 is given."""
        if self.course is None:
            return as_node(self.problem.current == 0.0)
        return as_node(self.course.by_current) & (as_node(self.course.level) == 0.0)

    def commit(self, program: Program) -> None:
        """Record the acceptance of an attempt, after its next slots have become the present ones."""
        program.let(self.levels, self.levels + 1)
        program.let(self.voltages[1], self.voltages[0])
        program.let(self.voltages[0], self.state.voltage)
        program.let(self.state.voltage, self.drive["voltage"])
        if self.problem.galvanostatic:
            program.let(self.charges[1], self.charges[0])
            program.let(self.charges[0], self.poisson.metal_charge(program, self.state.potential.now))


@kernel
def tame(delta: CellReader, *, most: Node) -> dict[str, Reduced]:
    """Set delta to 0 where it is not a number or exceeds `most`; return in how many cells, and where it is largest."""
    here = (0,) * len(delta.axes)
    value = delta[here]
    known = mg.abs(value) < most
    delta[here] = where(known, value, 0.0)
    return {"wild": mg.count(~known), "place": mg.argmax(where(known, mg.abs(value), most))}


@functools.cache
def beside_metals(ndim: int) -> Kernel:
    """Return the kernel of the largest change of the difference of potential between a metal and a cell beside it."""
    here = (0,) * ndim

    @kernel
    def change_at_metals(kind: CellReader, delta: CellReader, *, shift: Node) -> Reduced:
        largest = as_node(0.0)
        for axis in range(ndim):
            for side in (-1, 1):
                beyond = kind[step(ndim, axis, side)]
                metal = (beyond == CATHODE) | (beyond == ANODE)
                change = mg.abs(where(beyond == ANODE, shift, 0.0) - delta[here])
                largest = mg.max(largest, where(metal, change, 0.0))
        return mg.max(where(kind[here] == FLUID, largest, 0.0))

    return change_at_metals


@kernel
def take_back(x: CellReader, change: CellReader, *, part: Node) -> None:
    """Subtract a part of a change from x."""
    here = (0,) * len(x.axes)
    x[here] = x[here] - part * change[here]


@kernel
def guess(
    phi: CellReader, phi_before: CellReader, phi_next: CellReader, now: Readers, before: Readers, then: Readers, *,
    ratio: Node,
) -> None:  # fmt: skip
    """Extrapolate the last two steps to start the passes, with concentrations changed by a factor of 2 at most."""
    here = (0,) * len(phi.axes)
    phi_next[here] = phi[here] + ratio * (phi[here] - phi_before[here])
    for new, c, older in zip(then, now, before, strict=True):
        predicted = c[here] + ratio * (c[here] - older[here])
        new[here] = mg.min(mg.max(predicted, 0.5 * c[here]), 2.0 * c[here])
