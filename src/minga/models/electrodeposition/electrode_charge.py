"""The charge of an electrode, and the current that changes it.

A metal carries the charge that the field of the solution ends on. Where a capacity C per unit of area stands for a
double layer that cells do not resolve, it takes the place of the permittivity at the metal: the charge
C (metal - solution) then lies in the cells next to it, as an excess of ions, so that the charge of the cell is
conserved like any other.

The charge at earlier steps is that of the surface at these steps. Where the deposit has grown since, the potential of
then at the faces of now does not give it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minga.engine.program import Program
from minga.lang.expr import Node, as_node
from minga.models.electrodeposition.potential import Poisson
from minga.models.electrodeposition.state import State
from minga.space.field import Register

__all__ = ["ElectrodeCharge"]


@dataclass(frozen=True, slots=True, eq=False)
class ElectrodeCharge:
    """The charge of the cathode or the anode, C.

    Attributes
    ----------
    cathode
        True for the cathode.
    now, before, attempted
        The charge at the last two steps, and at the end of the last attempt.
    rate
        Current into the electrode that charges it, at the end of the last attempt, A.
    """

    poisson: Poisson
    state: State
    cathode: bool = True
    now: Register = field(init=False)
    before: Register = field(init=False)
    attempted: Register = field(init=False)
    rate: Register = field(init=False)

    def __post_init__(self) -> None:
        metal = "cathode" if self.cathode else "anode"
        for name in ("now", "before", "attempted", "rate"):
            object.__setattr__(self, name, Register(f"charge of {metal} {name}"))

    def attempt(self, program: Program) -> None:
        """Record the charge and the current in an attempt."""
        formula = self.poisson.formula
        program.let(self.attempted, self._charge(program))
        past: Node = formula.now * self.now - formula.before * self.before
        program.let(self.rate, past - formula.rate * as_node(self.attempted))

    def keep_stage(self, program: Program) -> None:
        """Record the charge at the first of two stages, in the place of that before the last step."""
        program.let(self.before, self._charge(program))

    def commit(self, program: Program) -> None:
        """Record the acceptance of the attempt."""
        program.let(self.before, self.now)
        program.let(self.now, self.attempted)

    def _charge(self, program: Program) -> object:
        return self.poisson.metal_charge(program, self.state.potential.next, cathode=self.cathode)
