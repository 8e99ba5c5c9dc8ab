"""The current that charges the double layer of the cathode, where cells do not resolve it.

A capacity C per unit of area takes the place of the permittivity at a metal: the charge C (metal - solution) then lies
in the cells next to it, as an excess of ions, so that the charge of the cell is conserved like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minga.engine.program import Program
from minga.lang.expr import Node, as_node
from minga.models.electrodeposition.potential import Poisson
from minga.models.electrodeposition.state import State
from minga.space.field import Register

__all__ = ["DoubleLayer"]


@dataclass(frozen=True, slots=True, eq=False)
class DoubleLayer:
    """The charge of the cathode, C.

    Attributes
    ----------
    now, before, attempted
        The charge at the last two steps, and at the end of the last attempt.
    rate
        Current into the cathode that charges it, at the end of the last attempt, A.
    """

    poisson: Poisson
    state: State
    now: Register = field(default_factory=lambda: Register("layer charge now"))
    before: Register = field(default_factory=lambda: Register("layer charge before"))
    attempted: Register = field(default_factory=lambda: Register("layer charge attempted"))
    rate: Register = field(default_factory=lambda: Register("layer current"))

    def attempt(self, program: Program) -> None:
        """Record the charge and the current in an attempt."""
        formula = self.poisson.formula
        charge = self.poisson.metal_charge(program, self.state.potential.next, cathode=True)
        program.let(self.attempted, charge)
        past: Node = formula.now * self.now - formula.before * self.before
        program.let(self.rate, past - formula.rate * as_node(self.attempted))

    def commit(self, program: Program) -> None:
        """Record the acceptance of the attempt."""
        program.let(self.before, self.now)
        program.let(self.now, self.attempted)
