"""Diagnostics that look for one event while a model runs, until it is found; they do not change the run.

A check takes time, so it is made when it is due and not in every step: each one says when the next can find anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from minga.engine.program import Program
from minga.space.field import Register

if TYPE_CHECKING:
    from minga.engine.engine import Engine, Outcome

__all__ = ["Diagnostics", "Finding", "Steps"]

FEW: Final = 64
"""Smallest number of steps without a check that is worth a loop of its own."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What people should know of a run that is over: a sentence, and the same as data by name."""

    text: str
    facts: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """A search for one event while a model runs.

    step   one step of the model that first examines the state before it, where a check is due
    due    the step before which the next check is made, an i8 register that `step` sets
    found  the step after which it was found, an i8 register; -1 while it is not
    tell   says what was found, if it is worth telling; called on every rank when the run is over, if anything was
    """

    step: Program
    due: Register
    found: Register
    tell: Callable[[Engine], Finding | None]


class Steps:
    """The steps of a model: with checks while there is something to find and a check comes due, else plain ones."""

    def __init__(self, plain: Program, diagnostics: Diagnostics | None) -> None:
        self._plain, self._diagnostics = plain, diagnostics

    @property
    def program(self) -> Program:
        """One step, with a check if there are diagnostics."""
        return self._plain if self._diagnostics is None else self._diagnostics.step

    def start(self, engine: Engine) -> None:
        """Forget what was found before, ahead of the first step."""
        if self._diagnostics is not None:
            engine.write(self._diagnostics.due, 0)
            engine.write(self._diagnostics.found, -1)

    def run(self, engine: Engine, done: int, count: int) -> tuple[int, Outcome]:
        """Do `count` steps after `done` ones, or fewer without a check; return their number and their outcome."""
        if self._diagnostics is None or engine.read(self._diagnostics.found) >= 0:
            return count, engine.run(self._plain, count)
        free = int(engine.read(self._diagnostics.due)) - done
        if engine.halo_depth > 1 and free >= FEW:  # a condition in a loop makes its halos one step deep
            count = min(count, free)
            return count, engine.run(self._plain, count)
        return count, engine.run(self._diagnostics.step, count)

    def findings(self, engine: Engine) -> tuple[Finding, ...]:
        """What was found."""
        if self._diagnostics is None or engine.read(self._diagnostics.found) < 0:
            return ()
        finding = self._diagnostics.tell(engine)
        return () if finding is None else (finding,)
