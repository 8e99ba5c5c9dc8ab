"""Work moves between ranks while a run goes on."""

from __future__ import annotations

from typing import Protocol

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.running.observer import Observer, Phase
from minga.running.schedule import Schedule
from minga.running.simulation import Simulation

__all__ = ["Balance", "Mover"]


class Mover(Protocol):
    """Moves work between ranks while a model runs, as :class:`minga.plan.balance.Balancer` does."""

    @property
    def interval(self) -> int | None:
        """Steps from one look to the next; None for about five a second."""

    def start(self, model: Model, engine: Engine) -> None:
        """Prepare on all ranks before the first step."""

    def look(self, engine: Engine, step: int, remaining: int) -> bool:
        """Look on all ranks after `step` steps since `start`; return whether the engine's layouts were changed."""


class Balance(Observer):
    """Has a mover look at the times of the ranks, and move work where that pays; its time counts as steps."""

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
        """Look, and move work."""
        if simulation.ended is None:
            done = simulation.step
            self._mover.look(simulation.engine, done - self._first, simulation.steps - done)
