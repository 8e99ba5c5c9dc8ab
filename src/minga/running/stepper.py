"""Steps of a model: watched for its end, and interrupted if the end of the run is requested."""

from __future__ import annotations

import time
from collections.abc import Callable

from minga.engine.diagnostics import Finding, Steps
from minga.engine.engine import Engine, Outcome
from minga.engine.model import Model
from minga.engine.program import Program
from minga.engine.state import Beginning, State, state_of
from minga.engine.stop import Ended, Stop, Watch
from minga.running.recording import Recording

__all__ = ["Stepper"]


class Stepper:
    """Stepper of a model on an engine, which knows when there are no more steps to do; collective.

    Parameters
    ----------
    stop
        When the model's state ends the run; None for a run that only the model itself may end.
    """

    def __init__(self, model: Model, engine: Engine, stop: Stop | None) -> None:
        self._stop = stop
        self._asked: Callable[[], bool] | None = None
        self._follow(model, engine)

    def _follow(self, model: Model, engine: Engine) -> None:
        """Prepare the steps of a model on an engine."""
        stop = self._stop
        self._engine = engine
        self._steps = Steps(model.step, model.diagnostics)
        adaptive = model.clock is not None and model.clock.kind == "adaptive"  # a loop ends where the time is reached
        watched = stop is not None or model.over is not None or adaptive
        self._watch = Watch(model, stop or Stop(), self._steps.program) if watched else None
        self._undo: Beginning | None = None
        self._costly = False
        """True if saving the state takes long compared with the latest steps."""
        self.state: State = state_of(model, self.program)
        self.left = False
        """True if the last steps were interrupted and undone."""

    @property
    def program(self) -> Program:
        """Program of one step and of the checks after it."""
        return self._steps.program if self._watch is None else self._watch.program

    @property
    def watched(self) -> bool:
        """True if a condition may end the steps before their number is done."""
        return self._watch is not None

    def start(self) -> None:
        """Begin at the first step."""
        self._steps.start(self._engine)
        if self._watch is not None:
            self._watch.start(self._engine)
        self._engine.prepare(self.program, looped=False)

    def move(self, model: Model, engine: Engine) -> None:
        """Go on with the same model on another grid and engine, whose state is put there next."""
        asked = self._asked
        self._follow(model, engine)
        self.start()
        if asked is not None:
            self.leave_where(asked)

    def leave_where(self, asked: Callable[[], bool]) -> None:
        """Interrupt long steps once `asked` returns True on any rank, if the state before them can be saved."""
        self._asked = asked
        self._engine.interrupt.requested = asked
        self._undo = Beginning(self._engine, self.state)

    def run(self, done: int, count: int, recording: Recording | None = None) -> tuple[int, Outcome, float]:
        """Do at most `count` steps after `done` ones; return their number, whether they are good, and their seconds.

        If a recording is given, the steps are those that it records.
        """
        interrupt, undo = self._engine.interrupt, self._undo
        interrupt.may_leave = undo is not None and undo.possible and not self._costly
        if undo is not None and interrupt.may_leave:
            undo.keep()
        began = time.perf_counter()
        try:
            if recording is not None:
                count, outcome = recording.run(self._engine, count)
            elif self._watch is not None:
                count, outcome = self._watch.run(self._engine, count)
            else:
                count, outcome = self._steps.run(self._engine, done, count)
        finally:
            interrupt.may_leave = False
        elapsed = time.perf_counter() - began
        self.left = outcome.reason == "stop"
        if self.left and undo is not None:
            undo.restore()
            return 0, Outcome(True, "stop"), elapsed
        return count, outcome, elapsed

    def changed(self) -> None:
        """Record that the state was changed between steps."""
        self._steps.changed(self._engine)

    def costly(self, seconds: float) -> bool:
        """Return whether saving the state takes much of this rank's time before steps of so many seconds."""
        return self._undo is not None and self._undo.costly(seconds)

    def agreed(self, costly: bool) -> None:
        """Record whether saving the state takes long on any rank."""
        self._costly = costly

    def ended(self, done: int) -> Ended | None:
        """Return the reason for which the model has ended after `done` steps; None if it has not."""
        return None if self._watch is None else self._watch.ended(self._engine, done)

    def unmet(self) -> str | None:
        """Return what the model watched for, to no avail; None for nothing."""
        return None if self._watch is None else self._watch.unmet(self._engine)

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of the steps that people should know."""
        return self._steps.findings(self._engine)
