"""Collection of pairs without ionisation: what their photocurrent is multiplied from.

Pairs that recombine, or leave through the contact that they came from, are no part of the photocurrent, and their
absence is not a noise of the multiplication: currents count only the carriers that are collected. At the state of the
solution, the adjoint of the current without ionisation yields the charges that a pair contributes on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from minga.engine.program import Program
from minga.models.photodiode.solver.biasing import Track
from minga.models.photodiode.solver.newton import Newton
from minga.models.photodiode.solver.problem import Problem
from minga.models.photodiode.solver.transposed import Transposed
from minga.models.photodiode.structure.depletion import photocurrent_sign
from minga.space.field import Field

__all__ = ["Primaries"]


@dataclass(frozen=True, eq=False)
class Primaries:
    """Recorder of the collection without ionisation at the solution of a curve.

    Attributes
    ----------
    newton
        The equations without ionisation; those of the curve if they are.
    adjoint
        Adjoint of their current.
    collected
        Charges collected per pair at each node.
    """

    track: Track
    problem: Problem
    newton: Newton = field(init=False)
    adjoint: Transposed = field(init=False)
    collected: Field = field(init=False)

    def __post_init__(self) -> None:
        equations, name, put = self.track.equations, f"{self.track.name} primaries", object.__setattr__
        alone = replace(equations, ionisation=False, space=None, name=name) if equations.ionisation else equations
        put(self, "newton", alone)
        put(self, "adjoint", Transposed(alone, self.problem.linear, f"{name} "))
        put(self, "collected", Field(f"{name} collected", self.track.state.grid))

    @property
    def fields(self) -> Sequence[Field]:
        """All fields that are not those of the curve, for a Model."""
        own = () if self.newton is self.track.equations else self.newton.fields
        return *own, *self.adjoint.fields, self.collected

    def record(self, program: Program) -> None:
        """Record the collection at the present solution."""
        track, c = self.track, self.newton.coefficients
        sign, light = photocurrent_sign(c.device) * c.device.direction, 1.0 if track.curve == "lit" else 0.0
        self.adjoint.record(program, track.state.now, track.state.bias, light, sign)
        self.adjoint.effects(program, self.collected)
