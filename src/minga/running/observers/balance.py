"""Moves of work between ranks during a run."""

from __future__ import annotations

from typing import Protocol

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.running.observer import Observer, Phase
from minga.running.schedule import Schedule
from minga.running.simulation import Simulation

__all__ = ["Balance", "Mover"]


class Mover(Protocol):
    """Mover of work between ranks, such as :class:`minga.plan.balance.Balancer`."""

    @property
    def interval(self) -> int | None:
        """Steps from one check to the next; None for about five checks a second."""

    def start(self, model: Model, engine: Engine) -> None:
        """Prepare on all ranks before the first step."""

    def check(self, engine: Engine, step: int, remaining: int) -> bool:
        """Check on all ranks after `step` steps since `start`; return whether the engine's layouts were changed."""


class Balance(Observer):
    """Observer that moves work if the times of the ranks make it worthwhile; its time counts as steps."""

    phase = Phase.MOVE
    counted = True

    def __init__(self, mover: Mover) -> None:
        self._mover, self._first = mover, 0
        interval = mover.interval
        self.schedule = Schedule(chunks=True) if interval is None else Schedule(interval)

    def start(self, simulation: Simulation) -> None:
        """Prepare the mover."""
        self._first = simulation.step
        self._mover.start(simulation.model, simulation.engine)

    def observe(self, simulation: Simulation) -> None:
        """Check the times, and move work."""
        if simulation.ended is None:
            done = simulation.step
            self._mover.check(simulation.engine, done - self._first, simulation.steps - done)
