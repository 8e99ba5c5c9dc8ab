"""Errors for output fields with values that are not finite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from minga.engine.clock import Interval
from minga.engine.finite import check_finite
from minga.options import Interval as IntervalSetting
from minga.running.observer import Observer, Phase
from minga.running.observer_spec import ObserverSpec
from minga.running.schedule import at_intervals
from minga.running.simulation import Simulation

__all__ = ["SPEC", "Finite"]


class Finite(Observer):
    """Observer that raises RunError if an output field is not finite, at intervals and at the end."""

    phase = Phase.CHECK

    def __init__(self, interval: Interval | None = None) -> None:
        self.schedule = at_intervals(interval, end=True)

    def observe(self, simulation: Simulation) -> None:
        """Check all output fields."""
        check_finite(simulation.model, simulation.engine, simulation.step)


class FiniteSettings(BaseModel):
    """Settings of the table [observers.finite] of a case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    every: Annotated[
        IntervalSetting, Field(description="steps (an integer) or time of the model from one check to the next")
    ] = 1


def _make(settings: FiniteSettings, directory: Path) -> Finite:
    return Finite(settings.every)


SPEC = ObserverSpec(
    settings=FiniteSettings,
    make=_make,
    description="end a run with an error as soon as a value is not finite, also between frames",
)
