"""Doing steps of a model: watched for its end, and left in the middle where somebody asks for the end of the run."""

from __future__ import annotations

import time
from collections.abc import Callable

from minga.engine.engine import Engine, Outcome
from minga.engine.lookout import Finding, Steps
from minga.engine.model import Model
from minga.engine.program import Program
from minga.engine.state import Beginning, State, state_of
from minga.engine.stop import Ended, Stop, Watch

__all__ = ["Stepper"]


class Stepper:
    """Does steps of a model on an engine, and says when there are no more to do; collective.

    Parameters
    ----------
    stop
        When the model's state ends the run; None for a run that only the model itself may end.
    """

    def __init__(self, model: Model, engine: Engine, stop: Stop | None) -> None:
        self._engine = engine
        self._steps = Steps(model.step, model.lookout)
        watched = stop is not None or model.over is not None
        self._watch = Watch(model, stop or Stop(), self._steps.program) if watched else None
        self._undo: Beginning | None = None
        self._costly = False
        """Whether keeping the state takes long, against what steps took last."""
        self.state: State = state_of(model, self.program)
        self.left = False
        """Whether the last steps were left in the middle, and undone."""

    @property
    def program(self) -> Program:
        """One step, with what is looked for after it."""
        return self._steps.program if self._watch is None else self._watch.program

    def start(self) -> None:
        """Begin at the first step."""
        self._steps.start(self._engine)
        if self._watch is not None:
            self._watch.start(self._engine)
        self._engine.prepare(self.program, looped=False)

    def leave_where(self, asked: Callable[[], bool]) -> None:
        """Leave a step that takes long once `asked` says so on any rank, where the state before it can be kept."""
        self._engine.look.asked = asked
        self._undo = Beginning(self._engine, self.state)

    def run(self, done: int, count: int) -> tuple[int, Outcome, float]:
        """Do `count` steps after `done` ones, or fewer: how many, whether they are good, and the seconds they took."""
        look, undo = self._engine.look, self._undo
        look.may = undo is not None and undo.possible and not self._costly
        if undo is not None and look.may:
            undo.keep()
        began = time.perf_counter()
        try:
            if self._watch is not None:
                count, outcome = self._watch.run(self._engine, count)
            else:
                count, outcome = self._steps.run(self._engine, done, count)
        finally:
            look.may = False
        elapsed = time.perf_counter() - began
        self.left = outcome.reason == "stop"
        if self.left and undo is not None:
            undo.put_back()
            return 0, Outcome(True, "stop"), elapsed
        return count, outcome, elapsed

    def costly(self, seconds: float) -> bool:
        """Return whether keeping the state takes much of this rank's time before steps of so many seconds."""
        return self._undo is not None and self._undo.costly(seconds)

    def agreed(self, costly: bool) -> None:
        """Take note of whether keeping the state takes long on any rank."""
        self._costly = costly

    def ended(self, done: int) -> Ended | None:
        """Return why the model is over after `done` steps; None where it is not."""
        return None if self._watch is None else self._watch.ended(self._engine, done)

    def findings(self) -> tuple[Finding, ...]:
        """Return what was found in the steps that people should know of."""
        return self._steps.findings(self._engine)
