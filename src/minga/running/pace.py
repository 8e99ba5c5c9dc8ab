"""Steps of a run from one model time at which something happens to the next."""

from __future__ import annotations

import math
from typing import Final

from minga.engine.clock import Kind
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.errors import CaseError, ProgramError, RunError
from minga.running.simulation import Simulation
from minga.space.field import Register

__all__ = ["Pace", "check_end"]

_ANY: Final = 1 << 60
"""Number of steps that stands for any number."""
_SLIVER: Final = 1e-9
"""Part of a step that rounding may add to or remove from a quotient of times."""
_SAME: Final = 1e-13
"""Relative difference of two times that rounding explains."""
_UNADVANCED: Final = 0.5
"""Part of a step by which the model's time may miss the end of its segment before it is set exactly."""


def check_end(model: Model, key: str, given: float | str) -> None:
    """Raise CaseError unless the clock of a model can reach the time that was given for the entry `key`."""
    said = f"{key.rpartition('.')[2]}={given!r}"
    if model.clock is None:
        raise CaseError(
            f"{said} is a time, and model {model.name!r} has no clock",
            key=key,
            remedy="count steps, or make the model with clock=mg.Clock(dt=...)",
        )
    if model.clock.kind == "free":
        raise CaseError(
            f"{said}: the clock of model {model.name!r} only reads its time, so no step can be made to end then",
            key=key,
            remedy="count steps, or make the clock with dt= or target=: see mg.Clock",
        )


class Pace:
    """Choice of the steps of a run by the model's clock, so that it reaches given times exactly; equal on all ranks.

    The end and the last step of a segment between two times are registers, as is the length of its steps, so that a
    checkpoint holds them and a resumed run completes the segment with the same steps.

    Parameters
    ----------
    end
        Time at which the run ends; None if it ends after a number of steps.

    Raises
    ------
    CaseError
        If the clock cannot reach `end`.
    """

    def __init__(self, model: Model, engine: Engine, end: float | None) -> None:
        if end is not None:
            check_end(model, "run.until", end)
        self._model, self._engine, self._end = model, engine, end
        self._clock = clock = model.clock
        self._dt = clock.dt if clock is not None and isinstance(clock.dt, Register) else None
        """Register of the length of a step that the run sets."""
        self._kind: Kind | None = None if self._clock is None else self._clock.kind
        self._segment_end = Register("clock.end")
        self._segment_last = Register("clock.last", "i8")
        self._wished = 0.0
        """Longest step of a clock whose steps the run sets."""

    def steps(self, steps: int) -> int:
        """Return the number of steps of the run, given the one it has without an end: exact only for equal steps."""
        if self._end is None or self._clock is None:
            return steps
        if self._kind == "constant":
            return self._clock.steps_to(self._end, "run.until")
        return 1

    def start(self) -> None:
        """Prepare the registers, when the initial values are in the engine."""
        if self._kind not in ("split", "adaptive"):
            return
        engine = self._engine
        engine.write(self._segment_end, 0.0)
        engine.write(self._segment_last, -1)
        if self._dt is not None:
            self._wished = float(engine.read(self._dt))
            if not 0 < self._wished < math.inf:
                raise ProgramError(
                    f"model {self._model.name!r}: the register {self._dt.name!r} of the step's length starts at "
                    f"{self._wished!r}, which is no positive length",
                    remedy="give the longest step: registers={dt: 0.01}, or mg.Register('dt', initial=0.01)",
                )

    def begin(self, simulation: Simulation) -> None:
        """Begin with the present state, which may be that of a checkpoint."""
        if self._end is not None and simulation.time > self._end * (1 + _SAME) and self._kind != "constant":
            raise CaseError(
                f"the model is at the time {simulation.time!r} already, later than {self._end!r}",
                key="run.until",
                remedy="give a later time",
            )
        self._estimate(simulation)

    def plan(self, simulation: Simulation, event: float | None) -> int:
        """Prepare the steps up to the next event, and return how many may be done until `plan` is called again.

        Parameters
        ----------
        simulation
            The run.
        event
            Next time at which an observer is due; None if there is none.
        """
        target = self._target(event)
        if self._clock is not None and self._clock.target is not None:
            self._engine.write(self._clock.target, math.inf if target is None else target)
        return _ANY if self._dt is None else self._split(simulation, target, self._dt)

    def advanced(self, simulation: Simulation) -> None:
        """Set the time exactly where the last steps complete a segment."""
        time = None if self._clock is None else self._clock.time
        if self._dt is not None and time is not None:
            self._land(simulation, time, self._dt)
        self._estimate(simulation)

    def _land(self, simulation: Simulation, time: Register, dt: Register) -> None:
        """Set the time to the end of the present segment if its last step is done."""
        engine = self._engine
        if simulation.step != int(engine.read(self._segment_last)):
            return
        end, now = float(engine.read(self._segment_end)), float(engine.read(time))
        if abs(now - end) > _UNADVANCED * float(engine.read(dt)):
            raise RunError(
                f"the time of model {self._model.name!r} is {now!r} after {simulation.step} steps, not {end!r}",
                remedy=f"let its step add the length to the time: step.let({time.name}, {time.name} + {dt.name})",
            )
        engine.write(time, end)

    def _target(self, event: float | None) -> float | None:
        """Return the time of the next event, the end of the run included."""
        if self._end is None or event is None:
            return self._end if event is None else event
        return self._end if event >= self._end * (1 - _SAME) else event

    def _split(self, simulation: Simulation, target: float | None, dt: Register) -> int:
        """Divide the time up to the target into equal steps, unless the present segment ends before it."""
        engine, step = self._engine, simulation.step
        end, last = float(engine.read(self._segment_end)), int(engine.read(self._segment_last))
        if step < last and (target is None or end <= target * (1 + _SAME)):
            return last - step
        if target is None:
            engine.write(dt, self._wished)
            return _ANY
        rest = target - simulation.time
        count = max(1, math.ceil(rest / self._wished - _SLIVER))
        engine.write(dt, rest / count)
        engine.write(self._segment_end, target)
        engine.write(self._segment_last, step + count)
        return count

    def _estimate(self, simulation: Simulation) -> None:
        """Let the run go on until its end is reached; before that the number of all its steps is an estimate."""
        if self._end is None or self._kind == "constant":
            return
        step, now = simulation.step, simulation.time
        if now >= self._end:
            simulation.steps = step
        elif self._kind == "split":
            last = int(self._engine.read(self._segment_last))
            from_last = self._end - float(self._engine.read(self._segment_end))
            ahead = last + from_last / self._wished if step < last else step + (self._end - now) / self._wished
            simulation.steps = max(step + 1, last, math.ceil(ahead - _SLIVER))
        else:
            simulation.steps = max(step + 1, math.ceil(step * self._end / now) if now > 0 else 0)
