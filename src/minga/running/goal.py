"""End of a run: a number of steps, or a time of its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minga.engine.model import Model
from minga.errors import CaseError
from minga.options import RunOptions

__all__ = ["Goal", "ending_time"]


def ending_time(options: RunOptions) -> float | None:
    """Return the model time at which a run ends, in the unit of the clock; None if it ends after a number of steps.

    The options are those that `minga.running.defaults.completed` returns.
    """
    until = options.run.until
    return until if isinstance(until, float) else None


@dataclass(frozen=True, slots=True)
class Goal:
    """End of a run.

    Attributes
    ----------
    steps
        Number of steps; an estimate where the steps differ in length and `time` is given.
    time
        Model time; None if the run ends after a number of steps.
    exact
        Whether `steps` is the number of steps that the run takes.
    """

    steps: int
    time: float | None = None
    exact: bool = True

    @classmethod
    def of(cls, options: RunOptions, model: Model) -> Goal:
        """Return the end of a run with completed options."""
        time = ending_time(options)
        return cls(options.run.steps, time, time is None or model.clock is None or model.clock.kind == "constant")

    @property
    def entry(self) -> str:
        """Name of the setting that gives the end."""
        return "steps" if self.time is None else "until"

    @property
    def whole(self) -> str:
        """The number of steps as in "after 3 of 10 steps"; empty if it is not known."""
        return f" of {self.steps}" if self.exact else ""

    def met(self, result: Mapping[str, Any]) -> bool:
        """Return whether a finished run ended here."""
        return bool(result["steps"] == self.steps if self.exact else result.get("time") == self.time)

    def done(self, result: Mapping[str, Any]) -> bool:
        """Return whether a finished run came here or further."""
        if self.exact or self.time is None:
            return bool(result["steps"] >= self.steps)
        return bool(result.get("time", 0.0) >= self.time)

    def longer(self, done: int) -> float:
        """Return a later end to suggest, for a run of so many steps."""
        return 2 * done or 100 if self.time is None else 2 * self.time

    def check(self, kept: int, result: Mapping[str, Any] | None, key: str) -> None:
        """Raise CaseError if a run has gone further: its newest checkpoint, at so many steps, or its result."""
        if not self.exact:
            if result is not None and self.time is not None and result.get("time", 0.0) > self.time:
                raise CaseError(
                    f"the model is at the time {result['time']!r} already, later than {self.time!r}",
                    key=key.replace("steps", "until"),
                    remedy="give a later time",
                )
            return
        done = max(kept, 0 if result is None else int(result["steps"]))
        if done > self.steps:
            raise CaseError(f"{done} steps are done, more than {self.steps}", key=key, remedy=f"give at least {done}")
