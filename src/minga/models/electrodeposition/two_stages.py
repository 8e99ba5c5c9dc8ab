"""Time steps of two implicit stages, for solutions that jump between steps (Alexander, SIAM J. Numer. Anal. 14, 1977).

A growing deposit changes the region of the solution, after nearly every step where it is large. Formulas of several
steps would start anew each time. The diagonally implicit method of two stages with w = 1 - 1/sqrt(2),

    c1 = c0 + w dt f(c1),    c2 = c0 + (1 - w) dt f(c1) + w dt f(c2),

is of second order, L-stable, and needs nothing but c0, not even f(c0). Both stages have the form of the formula
c' = rate * c_next - now * c_now + before * c_previous, the second one with c1 in the place of c_previous. Its error is
taken to be the difference from the first-order solution c0 + dt f(c1), which is w dt (f(c2) - f(c1)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from minga.compile.explain import kernel
from minga.engine.program import Program
from minga.lang.cell import CellReader
from minga.lang.expr import Node, as_node, where
from minga.models.electrodeposition.charges import Charges
from minga.models.electrodeposition.iteration import Iteration
from minga.space.field import Field, Register

__all__ = ["TwoStages"]

Readers = Sequence[CellReader]

WEIGHT: Final = 0.2928932188134525
"""1 - 1/sqrt(2)."""
REST: Final = (1.0 - WEIGHT) / WEIGHT
"""Share of f(c1) in the second stage, relative to that of f(c2)."""


@dataclass(frozen=True, eq=False)
class TwoStages:
    """The stages of an attempt at a time step.

    The first stage is kept in the previous slots and in the present rates, which no one-step method needs.

    Attributes
    ----------
    iteration
        The iteration that solves a stage.
    rates
        Fields of dc/dt of each species: slots now, next.
    charges
        The charges that ions bring to the electrodes in both stages.
    staged
        Condition that the attempt has two stages.
    second
        Condition that the second stage is next.
    over
        Condition that the attempt is over.
    voltage
        Potential of the anode at the first stage, V.
    """

    iteration: Iteration
    rates: Sequence[Field]
    charges: Charges
    staged: Register = field(default_factory=lambda: Register("two stages", "bool"))
    second: Register = field(default_factory=lambda: Register("second stage", "bool"))
    over: Register = field(default_factory=lambda: Register("stages over", "bool"))
    voltage: Register = field(default_factory=lambda: Register("voltage of first stage"))

    def record(self, program: Program) -> None:
        """Record an attempt: one step with the present formula, or two stages, the second if the first converged."""
        iteration, formula, state = self.iteration, self.iteration.formula, self.iteration.state
        program.let(self.second, as_node(False))
        program.let(self.over, as_node(False))
        with program.repeat(until=self.over):
            with program.when(self.staged):
                program.let(formula.rate, 1.0 / (WEIGHT * state.dt))
                program.let(formula.now, formula.rate * where(self.second, 1.0 - REST, 1.0))
                program.let(formula.before, formula.rate * where(self.second, -REST, 0.0))
            if iteration.course is not None:
                share = where(self.staged & ~self.second, WEIGHT, 1.0)
                iteration.course.set_level(program, state.dt * share)
            iteration.record(program, guessed=self.second)
            goes_on = self.staged & ~self.second & (iteration.converged > 0)
            program.let(self.over, ~goes_on)
            with program.when(goes_on):
                self._keep(program)
            program.let(self.second, as_node(True))

    def _keep(self, program: Program) -> None:
        """Record the first stage: its state, its rates, and what passed the electrodes."""
        iteration, formula, state = self.iteration, self.iteration.formula, self.iteration.state
        levels = [(c.now, c.previous, c.next) for c in state.concentration]
        now, previous, then = ([level[place] for level in levels] for place in range(3))
        program.apply(
            keep_stage, now, then, previous, [r.now for r in self.rates], state.potential.next,
            state.potential.previous, rate=formula.rate,
        )  # fmt: skip
        program.let(self.voltage, iteration.drive["voltage"])
        self.charges.keep_stage(program)
        if iteration.problem.galvanostatic:
            program.let(iteration.charges[1], iteration.poisson.metal_charge(program, state.potential.next))

    def commit(self, program: Program) -> None:
        """Record the voltage of the first stage as that of the level before, after an attempt has been accepted."""
        with program.when(self.staged):
            program.let(self.iteration.voltages[1], self.voltage)


@kernel
def keep_stage(
    now: Readers, then: Readers, previous: Readers, rates: Readers, phi: CellReader, phi_before: CellReader, *,
    rate: Node,
) -> None:  # fmt: skip
    """Copy the next level to the previous one, and store the rates of change that lead to it."""
    here = (0,) * len(phi.axes)
    for c, new, old, slope in zip(now, then, previous, rates, strict=True):
        slope[here] = rate * (new[here] - c[here])
        old[here] = new[here]
    phi_before[here] = phi[here]
