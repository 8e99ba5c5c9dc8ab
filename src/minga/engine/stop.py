"""Ending of a run before its last step: the conditions, and the Program that checks them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from minga.engine.condition import check_condition, condition
from minga.engine.engine import Engine, Outcome
from minga.engine.model import Model, Recurrence
from minga.engine.program import Program
from minga.errors import CaseError
from minga.lang import functions as mg
from minga.lang.cell import CellReader, Reduced
from minga.lang.expr import as_node, where
from minga.lang.kernel import Kernel
from minga.options import StopSettings
from minga.schema import validate
from minga.space.field import Field, Register, Slot

__all__ = ["WATCHED", "Ended", "Reason", "Stop", "Watch", "duration", "stop_of"]

Reason = Literal[
    "steps", "over", "condition", "fixed point", "period", "wall time", "asked", "time limit", "not finite"
]

WATCHED: Final = "stop.watched "
"""Prefix of the names of Programs that check conditions; other Programs do not use their registers."""

_SECONDS: Final[Mapping[str, float]] = {"": 1, "s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*([a-z]{0,3})")


def duration(value: float | str, key: str) -> float:
    """Return seconds from a number or text such as "10 min". Raise CaseError for an invalid value of entry `key`."""
    found = _DURATION.fullmatch(str(value).strip().lower())
    unit = None if found is None else _SECONDS.get(found[2])
    if found is None or unit is None or not float(found[1]) > 0:
        raise CaseError(f"found {value!r}", key=key, remedy='write seconds, or "90 s", "10 min", "2 h"')
    return float(found[1]) * unit


@dataclass(frozen=True, slots=True)
class Stop:
    """Conditions that end a run before its last step; the first one that holds applies.

    Parameters
    ----------
    when
        A condition on observables and `step`, "population < 10"; checked every `every` steps.
    fixed_point
        End after a step that changes nothing, after which nothing can change.
    period
        End when a state recurs after at most this number of steps (a fixed point is a period of 1).
    wall_time
        Seconds of steps and observation, or "10 min", "2 h".
    every
        Steps between checks. With 1 the first fixed point or recurrence is found at once; with more, a recurrence is
        searched for during the first `period` steps after each check.
    """

    when: str | None = None
    fixed_point: bool = False
    period: int | None = None
    wall_time: float | str | None = None
    every: int = 1

    def __post_init__(self) -> None:
        validate(StopSettings, {item.name: getattr(self, item.name) for item in fields(self)}, "stop", keywords=True)
        if self.when is not None:
            check_condition(self.when)
        self.seconds  # noqa: B018 - raises an error if the duration is invalid

    @property
    def seconds(self) -> float | None:
        """The wall time in seconds; None for no limit."""
        return None if self.wall_time is None else duration(self.wall_time, "stop.wall_time")

    @property
    def longest(self) -> int:
        """The longest period that is searched for, 0 for none."""
        return self.period or int(self.fixed_point)


def stop_of(settings: StopSettings) -> Stop | None:
    """Return the conditions of the table [stop], or None if it has none.

    Raise CaseError for an invalid condition or duration.
    """
    asked = settings.when is not None or settings.fixed_point or settings.period is not None
    return Stop(**settings.model_dump()) if asked or settings.wall_time is not None else None


@dataclass(frozen=True, slots=True)
class Ended:
    """The reason why a run ended, after `step` steps.

    reason  "steps" (all were done), "over" (the model has nothing left to do), "condition", "fixed point", "period",
            "wall time"; "asked" by a person, or "time limit", after which the run may be resumed
    period  number of steps after which the state recurs, if that is the reason
    since   step of the state that recurred. With checks after every step it is the first possible one if only fixed
            points are searched for; otherwise the cycle may have begun earlier, by less than the longest period
    words   the model's description of why it is over
    unmet   the model's description of what it watched for, where that did not happen
    """

    reason: Reason
    step: int
    period: int | None = None
    since: int | None = None
    words: str | None = None
    unmet: str | None = None

    def __str__(self) -> str:
        return self._text if self.unmet is None else f"{self._text}; {self.unmet}"

    @property
    def _text(self) -> str:
        match self.reason:
            case "fixed point":
                return f"fixed point since step {self.since}"
            case "period":
                return f"period {self.period} since step {self.since}"
            case "steps":
                return f"all {self.step} steps done"
            case "over":
                return f"{self.words}, in step {self.step}"
        return f"{self.reason} at step {self.step}"

    def as_dict(self) -> dict[str, Any]:
        """Return the data for JSON; entries that do not apply are left out."""
        found = {
            "reason": self.reason,
            "step": self.step,
            "period": self.period,
            "since": self.since,
            "unmet": self.unmet,
            "text": str(self),
        }
        return {key: value for key, value in found.items() if value is not None}


class Watch:
    """A model's steps together with the checks of a Stop, as one Program that ends when a check requires it.

    `run` does some steps; `ended` then returns the reason if there are no more to do. A recurring state is recognised
    by comparing it, cell by cell, with a stored one, which is replaced by the present state every `period` steps (or
    `every`, if that is longer). For fixed points alone the previous state is used if the model stores it anyway.
    """

    def __init__(self, model: Model, stop: Stop, step: Program | None = None) -> None:
        self.program = Program()
        self.program.name = f"{WATCHED}{id(self.program):x}"  # one engine may be driven several times
        self._chunk, self._done, self._step = (Register(f"stop.{name}", "i8") for name in ("chunk", "done", "step"))
        self._lap, self._quiet = Register("stop.lap", "i8"), Register("stop.quiet", "i8")
        self._again, self._holds = Register("stop.again", "bool"), Register("stop.holds", "bool")
        recurrence = _recurrence(model, stop) if stop.longest else None
        kept = _kept(recurrence) if recurrence and not (stop.longest == 1 and recurrence.before) else {}
        self._over = model.over
        finished = self._again | self._holds
        if model.over is not None:
            finished = finished | (model.over.register != 0)
        if model.clock is not None and model.clock.time is not None and model.clock.target is not None:
            finished = finished | (as_node(model.clock.time) >= model.clock.target)
        program = self.program
        program.let(self._done, 0)
        # No limit of its own: an outcome of "limit" must refer to a loop within the model's step.
        with program.repeat(until=finished | (as_node(self._done) >= self._chunk)):
            if kept:
                with program.when(self._lap == 0):
                    for slot, field in kept.items():
                        program.apply(_COPY, slot, field)
            program.include(step or model.step)
            program.let(self._done, self._done + 1)
            program.let(self._step, self._step + 1)
            if recurrence and kept:
                self._compare_with_kept(kept, max(stop.longest, recurrence.cycle), recurrence.cycle, stop.every)
            elif recurrence:
                self._compare_with_before(recurrence, stop.every)
            if stop.when is not None:
                self._observe(model, stop.when, stop.every)

    def _compare_with_kept(self, kept: Mapping[Slot, Field], longest: int, cycle: int, every: int) -> None:
        """Record the comparison with the state `lap` steps ago, and the steps at which a new state is stored."""
        program, lap = self.program, self._lap
        program.let(lap, lap + 1)
        with program.when((lap <= longest) & (lap % cycle == 0)):
            program.let(self._again, self._same(kept))
        with program.when(~as_node(self._again) & (lap >= max(longest, every))):
            program.let(lap, 0)

    def _compare_with_before(self, recurrence: Recurrence, every: int) -> None:
        """Record the comparison with the state one step ago, in all steps of a cycle: any may change cells."""
        program, quiet = self.program, self._quiet
        before = dict(zip(recurrence.slots, recurrence.before, strict=True))
        program.let(self._lap, 1)
        if recurrence.cycle > 1:
            program.let(quiet, where(self._same(before), as_node(quiet) + 1, 0))
        with program.when(self._step % every == 0):
            program.let(self._again, quiet >= recurrence.cycle if recurrence.cycle > 1 else self._same(before))

    def _same(self, pairs: Mapping[Slot, Field | Slot]) -> Any:
        """Record the comparison of slots with their partners; return an expression that is true if all are equal."""
        same: Any = True
        for slot, other in pairs.items():
            differing: Any = self.program.apply(_DIFFERING, slot, other)
            same = (differing == 0) & same
        return same

    def _observe(self, model: Model, when: str, every: int) -> None:
        program = self.program
        former = {old: model.observables[new] for old, new in model.former.items()}
        holds = condition(when, {**former, **model.observables, "step": self._step})
        with program.when(self._step % every == 0):
            if model.observe is not None:
                program.include(model.observe)
            program.let(self._holds, holds)

    def start(self, engine: Engine) -> None:
        """Reset the registers of the checks before the first step."""
        for register in (self._step, self._lap, self._quiet, self._again, self._holds):
            engine.write(register, 0)

    def run(self, engine: Engine, count: int) -> tuple[int, Outcome]:
        """Do `count` steps, or fewer if a check ends the run; return their number and the outcome."""
        engine.write(self._chunk, count)
        outcome = engine.run(self.program)
        if outcome.reason == "converged":  # all steps done, or ended by a check
            outcome = Outcome(True, "finished")
        return int(engine.read(self._done)), outcome

    def ended(self, engine: Engine, step: int) -> Ended | None:
        """Return the reason if the run is over after `step` steps, otherwise None."""
        if self._over is not None and engine.read(self._over.register):
            return Ended("over", step, words=self._over.say(engine))
        if engine.read(self._again):
            lap = int(engine.read(self._lap))
            since = step - max(lap, int(engine.read(self._quiet)))
            return Ended("fixed point" if lap == 1 else "period", step, lap, since)
        return Ended("condition", step) if engine.read(self._holds) else None

    def unmet(self, engine: Engine) -> str | None:
        """Return what the model watched for, to no avail; None for nothing."""
        if self._over is None or self._over.unmet is None or engine.read(self._over.register):
            return None
        return self._over.unmet(engine) or None


def _recurrence(model: Model, stop: Stop) -> Recurrence:
    """Return the model's recurrence. Raise CaseError if equal states may have different futures."""
    if model.recurrence is None:
        raise CaseError(
            f"model {model.name!r} may continue differently from equal states (it draws random numbers, or does not "
            "declare its state), so it has no period",
            key="stop.period" if stop.period else "stop.fixed_point",
            remedy='stop on a condition instead, such as when = "residual == 0"',
        )
    return model.recurrence


def _kept(recurrence: Recurrence) -> dict[Slot, Field]:
    """Return a field for each slot of a model's state that stores a copy of it."""
    return {
        slot: Field(f"kept {number}", slot.field.grid, slot.field.dtype, centre=_faces(slot.field), on=slot.field.on)
        for number, slot in enumerate(recurrence.slots)
    }


def _faces(field: Field) -> tuple[int, ...]:
    return tuple(axis for axis, on_faces in enumerate(field.centre) if on_faces)


def _copy(old: CellReader, new: CellReader) -> None:
    new[_here(new)] = old[_here(old)]


def _differing(now: CellReader, kept: CellReader) -> Reduced:
    return mg.count(now[_here(now)] != kept[_here(kept)])


def _here(field: CellReader) -> tuple[int, ...]:
    return (0,) * len(field.axes)


_COPY: Final = Kernel(_copy, name="keep")
_DIFFERING: Final = Kernel(_differing, name="differing")
