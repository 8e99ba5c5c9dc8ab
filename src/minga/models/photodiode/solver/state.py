"""What is stored of a device's state, for each curve that is solved."""

from __future__ import annotations

from dataclasses import dataclass, field

from minga.space.boundary import fixed
from minga.space.field import Field, Register, Slot
from minga.space.grid import Grid

__all__ = ["State"]


@dataclass(frozen=True, eq=False)
class State:
    """The unknowns of one curve, slots now, next and previous, and where it stands.

    potential, electron, hole   kT/q, as in `minga.models.photodiode.solver.physics`
    bias       kT/q, of `now`
    step       kT/q, that led to `now` from `previous`; 0 where there is no previous state
    proposal   kT/q > 0, the next step at most
    light      share of the light that `now` is in
    begun      1 once `now` is a solution
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
        """The unknowns in their order."""
        return self.potential, self.electron, self.hole

    @property
    def now(self) -> list[Slot]:
        """The solution found last."""
        return [item.now for item in self.fields]

    @property
    def next(self) -> list[Slot]:
        """What is being worked on."""
        return [item.next for item in self.fields]

    @property
    def previous(self) -> list[Slot]:
        """The solution before the last."""
        return [item.previous for item in self.fields]
