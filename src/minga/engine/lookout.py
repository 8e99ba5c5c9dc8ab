"""Something that is looked for while a model runs, until it is found; the run is the same with and without.

A look takes time, so it is taken when it is due and not in every step: each one says when the next can find anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from minga.engine.program import Program
from minga.space.field import Register

if TYPE_CHECKING:
    from minga.engine.engine import Engine, Outcome

__all__ = ["Finding", "Lookout", "Steps"]

FEW: Final = 64
"""Steps without a look that are worth a loop of their own."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What people should know of a run that is over: a sentence, and the same as data by name."""

    text: str
    facts: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Lookout:
    """What is looked for while a model runs.

    step   one step of the model that first looks at the state before it, where a look is due
    due    the step before which the next look is taken, an i8 register that `step` sets
    found  the step after which it was found, an i8 register; -1 while it is not
    tell   says what was found, if it is worth telling; called on every rank when the run is over, if anything was
    """

    step: Program
    due: Register
    found: Register
    tell: Callable[[Engine], Finding | None]


class Steps:
    """The steps of a model: those that look while there is something to find and a look comes due, else plain ones."""

    def __init__(self, plain: Program, lookout: Lookout | None) -> None:
        self._plain, self._lookout = plain, lookout

    @property
    def program(self) -> Program:
        """One step, which looks if it has to."""
        return self._plain if self._lookout is None else self._lookout.step

    def start(self, engine: Engine) -> None:
        """Forget what was found before, ahead of the first step."""
        if self._lookout is not None:
            engine.write(self._lookout.due, 0)
            engine.write(self._lookout.found, -1)

    def run(self, engine: Engine, done: int, count: int) -> tuple[int, Outcome]:
        """Do `count` steps after `done` ones, or fewer without a look: how many, and how they ended."""
        if self._lookout is None or engine.read(self._lookout.found) >= 0:
            return count, engine.run(self._plain, count)
        free = int(engine.read(self._lookout.due)) - done
        if engine.halo_depth > 1 and free >= FEW:  # a condition in a loop makes its halos one step deep
            count = min(count, free)
            return count, engine.run(self._plain, count)
        return count, engine.run(self._lookout.step, count)

    def findings(self, engine: Engine) -> tuple[Finding, ...]:
        """What was found."""
        if self._lookout is None or engine.read(self._lookout.found) < 0:
            return ()
        finding = self._lookout.tell(engine)
        return () if finding is None else (finding,)
