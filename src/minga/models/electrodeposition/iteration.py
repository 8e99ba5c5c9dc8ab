"""The coupled step of ions and potential: passes of Poisson's equation and transport until they agree.

A pass solves for a correction of the potential (`potential`), which secants of the passes before it amend
(`minga.solve.multisecant`), and then for the concentrations in the new potential (`transport`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import Node, where
from minga.models.electrodeposition.potential import Poisson, advance
from minga.models.electrodeposition.problem import Problem
from minga.models.electrodeposition.solvers import Unsolved
from minga.models.electrodeposition.state import State
from minga.models.electrodeposition.transport import Formula, Transport
from minga.solve.multisecant import Multisecant
from minga.space.field import Register, Slot

__all__ = ["Iteration"]

Readers = Sequence[CellReader]

WILD: Final = 1e6
"""RT/F: a correction of the potential that is not believed."""
CURRENT: Final = 1e-7
"""Of a given current: how much of it may be missing."""
NEVER: Final = 1e30
"""RT/F: stands for a change before the first pass."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """Records the next concentrations and potential.

    limit      passes at most
    tolerance  of the last correction of the potential, in RT/F
    unsolved   of an attempt; those of the flow, which comes later, among them
    drive      registers that the faces follow: the anode's potential while it is sought, and balancing fluxes
    passes, converged, change, place   of the last attempt: how many, whether (1) or not (0), the last change in RT/F
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
    secants: Multisecant = field(init=False)
    passes: Register = field(default_factory=lambda: Register("passes", "i8"))
    all_passes: Register = field(default_factory=lambda: Register("all passes", "i8"))
    converged: Register = field(default_factory=lambda: Register("converged", "i8"))
    change: Register = field(default_factory=lambda: Register("potential change"))
    wild: Register = field(default_factory=lambda: Register("wild corrections", "i8"))
    place: Register = field(default_factory=lambda: Register("change at", "i8"))
    levels: Register = field(default_factory=lambda: Register("steps that are known", "i8"))
    steady: Register = field(default_factory=lambda: Register("voltage believed", "bool"))
    missing: Register = field(default_factory=lambda: Register("current missing"))
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
        """Record what follows from the kinds of cells."""
        phi = self.state.potential
        program.apply(advance, self.state.kind, phi.now, phi.now, voltage=self.state.voltage)
        self.transport.measure(program)

    def record(self, program: Program) -> None:
        """Record an attempt at the next slots."""
        state, formula = self.state, self.formula
        phi, voltage = state.potential, self.drive["voltage"]
        then = [c.next for c in state.concentration]
        ratio = Register("guess ratio")
        # The potential before the first step is no solution that could be continued.
        program.let(ratio, where(self.levels > 1, formula.ratio, 0.0))
        program.let(voltage, state.voltage + ratio * (state.voltage - self.voltages[0]))
        program.apply(
            guess, state.kind, phi.now, phi.previous, phi.next, [c.now for c in state.concentration],
            [c.previous for c in state.concentration], then, ratio=ratio, voltage=voltage,
        )  # fmt: skip
        program.let(self.passes, 0)
        program.let(self.missing, 0.0)
        program.let(self.change, NEVER)
        self.unsolved.begin(program)
        self.secants.begin(program)
        self.transport.set_faces(program, phi.next, then)
        enough = (self.change <= self.tolerance) | (self.passes >= self.limit)
        with program.masked(state.mask), program.repeat(until=enough):
            self._pass(program, then)
        self.transport.restore(program)
        program.let(self.converged, where(self.change <= self.tolerance, 1, 0))
        program.let(self.all_passes, self.all_passes + self.passes)

    def _pass(self, program: Program, then: Sequence[Slot]) -> None:
        problem, state, formula = self.problem, self.state, self.formula
        phi, voltage, sums = state.potential, self.drive["voltage"], self.poisson.sums
        self.poisson.assemble(program, phi.next, then, self.transport.up, self.transport.down)
        wanted = None
        if problem.current is not None:
            given, now, before = problem.current * self.plane, *self._charges_before()
            program.let(self.wanted, (given + (now - before)) / formula.rate)
            wanted = self.wanted
            # What is missing of the current, over what it is the sum of: where it vanishes, what moves the voltage.
            terms = (abs(given) + (mg.abs(now) + mg.abs(before))) / formula.rate
            enough = CURRENT * terms + (self.tolerance / problem.beta) * sums.conductance
            program.let(self.missing, mg.abs(self.wanted - sums.carried) / enough)
        program.let(self.drive["at_cathode"], sums.at_cathode)
        program.let(self.drive["at_anode"], sums.at_anode)
        self.poisson.correct(program, self.shift, wanted)
        found = program.apply(
            tame, self.poisson.delta, most=WILD / problem.beta, into={"place": self.place, "wild": self.wild}
        )
        assert found is not None
        program.let(self.steady, mg.abs(self.shift) < WILD / problem.beta)
        program.let(self.shift, where(self.steady, self.shift, 0.0))
        largest = self.secants.step(program, phi.next, self.poisson.delta.now, voltage, self.shift)
        program.apply(advance, state.kind, phi.next, phi.next, voltage=voltage)
        program.let(self.change, mg.max(largest, mg.abs(self.shift)) * self.problem.beta)
        self.transport.set_faces(program, phi.next, then)
        self.transport.solve(program)
        # Nothing comes back from corrections that are not numbers, or beyond all sense.
        lost = (self.wild > 0) | ~self.steady | self.unsolved.any
        # The first correction answers to the concentrations that were guessed: that it is small says nothing. Nor does
        # a small one of the voltage while the current is another one than is given.
        program.let(self.change, where(lost | (self.passes < 1) | (self.missing > 1.0), NEVER, self.change))
        program.let(self.passes, where(lost, self.limit, self.passes + 1))

    def _charges_before(self) -> tuple[Node, Node]:
        """What the time formula takes of the anode's charges at the last two steps, C/s."""
        return self.formula.now * self.charges[0], self.formula.before * self.charges[1]

    @property
    def plane(self) -> float:
        """m2 of the cathode's plane."""
        grid, area = self.problem.grid, 1.0
        for axis, name in enumerate(grid.axes):
            if name != "y":
                area *= float(grid.widths(axis).sum())
        return area

    def commit(self, program: Program) -> None:
        """Record that the next slots are accepted, after they have become the present ones."""
        program.let(self.levels, self.levels + 1)
        program.let(self.voltages[1], self.voltages[0])
        program.let(self.voltages[0], self.state.voltage)
        program.let(self.state.voltage, self.drive["voltage"])
        if self.problem.current is not None:
            program.let(self.charges[1], self.charges[0])
            program.let(self.charges[0], self.poisson.anode_charge(program, self.state.potential.now))


@kernel
def tame(delta: CellReader, *, most: Node) -> dict[str, Reduced]:
    """delta = 0 where it is not a number or larger than `most`; returns in how many cells, and where it is largest."""
    here = (0,) * len(delta.axes)
    value = delta[here]
    known = mg.abs(value) < most
    delta[here] = where(known, value, 0.0)
    return {"wild": mg.count(~known), "place": mg.argmax(where(known, mg.abs(value), most))}


@kernel
def guess(
    kind: CellReader, phi: CellReader, phi_before: CellReader, phi_next: CellReader, now: Readers, before: Readers,
    then: Readers, *, ratio: Node, voltage: Node,
) -> None:  # fmt: skip
    """Where passes start: the last two steps continued, concentrations at least a half of what they were."""
    here = (0,) * len(phi.axes)
    phi_next[here] = phi[here] + ratio * (phi[here] - phi_before[here])
    for new, c, older in zip(then, now, before, strict=True):
        foretold = c[here] + ratio * (c[here] - older[here])
        new[here] = mg.min(mg.max(foretold, 0.5 * c[here]), 2.0 * c[here])
