"""Diagnostics that search the state while a model runs, until they find something, without changing the run.

A check takes time, so it is done when it is due and not in every step: each check sets the step of the next one.
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
"""Minimum number of steps without a check for which a separate loop pays off."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a completed run that users should know: a sentence, and the same facts as data by name."""

    text: str
    facts: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """A condition that is searched for while a model runs.

    step   one step of the model that first checks the state before it, if a check is due
    due    step before which the next check is done, an i8 register that `step` sets
    found  step after which the condition was found, an i8 register; -1 until then
    tell   returns the finding if it is worth reporting; called on every rank after a run in which something was found
    """

    step: Program
    due: Register
    found: Register
    tell: Callable[[Engine], Finding | None]


class Steps:
    """The steps of a model: with checks while there is something to find and a check is due, otherwise plain ones."""

    def __init__(self, plain: Program, diagnostics: Diagnostics | None) -> None:
        self._plain, self._diagnostics = plain, diagnostics

    @property
    def program(self) -> Program:
        """The program of one step, including the check if it is due."""
        return self._plain if self._diagnostics is None else self._diagnostics.step

    def start(self, engine: Engine) -> None:
        """Discard earlier findings before the first step."""
        if self._diagnostics is not None:
            engine.write(self._diagnostics.due, 0)
            engine.write(self._diagnostics.found, -1)

    def changed(self, engine: Engine) -> None:
        """Check before the next step, as the state was changed between steps."""
        if self._diagnostics is not None:
            engine.write(self._diagnostics.due, 0)

    def run(self, engine: Engine, done: int, count: int) -> tuple[int, Outcome]:
        """Run `count` steps after `done` ones, or fewer without a check; return their number and the outcome."""
        if self._diagnostics is None or engine.read(self._diagnostics.found) >= 0:
            return count, engine.run(self._plain, count)
        free = int(engine.read(self._diagnostics.due)) - done
        if engine.halo_depth > 1 and free >= FEW:  # a condition inside a loop limits its halos to a depth of one step
            count = min(count, free)
            return count, engine.run(self._plain, count)
        return count, engine.run(self._diagnostics.step, count)

    def findings(self, engine: Engine) -> tuple[Finding, ...]:
        """Return the findings of the run."""
        if self._diagnostics is None or engine.read(self._diagnostics.found) < 0:
            return ()
        finding = self._diagnostics.tell(engine)
        return () if finding is None else (finding,)
