"""Stored state of a device, for each curve that is solved."""

from __future__ import annotations

from dataclasses import dataclass, field

from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid

__all__ = ["State"]


@dataclass(frozen=True, eq=False)
class State:
    """Unknowns of one curve, in slots now, next and previous, and its position on the curve.

    Attributes
    ----------
    potential, electron, hole
        Unknowns, kT/q, as in `minga.models.photodiode.solver.physics`.
    bias
        Bias of `now`, kT/q.
    step
        Step from `previous` to `now`, kT/q; 0 if there is no previous state.
    proposal
        Largest next step, kT/q, positive.
    light
        Fraction of the light in `now`.
    begun
        1 once `now` is a solution.
    """

    grid: Grid
    name: str
    potential: Field = field(init=False)
    electron: Field = field(init=False)
    hole: Field = field(init=False)
    bias: Register = field(init=False)
    step: Register = field(init=False)
    proposal: Register = field(init=False)
    light: Register = field(init=False)
    begun: Register = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for item, what in (("potential", "phi"), ("electron", "electron level"), ("hole", "hole level")):
            put(self, item, Field(f"{what} {self.name}", self.grid, slots=3, boundary=fixed(0.0)))
        for item in ("bias", "step", "proposal", "light"):
            put(self, item, Register(f"{item} {self.name}"))
        put(self, "begun", Register(f"begun {self.name}", "i8"))

    @property
    def fields(self) -> tuple[Field, Field, Field]:
        """Fields of the unknowns, in order."""
        return self.potential, self.electron, self.hole

    @property
    def now(self) -> list[Slot]:
        """Slots of the last solution."""
        return [item.now for item in self.fields]

    @property
    def next(self) -> list[Slot]:
        """Slots of the solution being computed."""
        return [item.next for item in self.fields]

    @property
    def previous(self) -> list[Slot]:
        """Slots of the solution before the last one."""
        return [item.previous for item in self.fields]
