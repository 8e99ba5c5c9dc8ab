"""Checkpoints: the state of a run on the disk, and its resumption from there."""

from __future__ import annotations

from minga.engine.engine import Engine
from minga.engine.state import Position
from minga.engine.stop import Reason
from minga.output.checkpoint.keeper import Keeper
from minga.running.observer import Observer, Phase
from minga.running.schedule import at_intervals
from minga.running.simulation import Simulation

__all__ = ["Checkpoints"]


class Checkpoints(Observer):
    """Observer that writes checkpoints, ends the run before its time limit, and resumes it from a checkpoint."""

    phase = Phase.KEEP

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._engine: Engine
        self._time_is_up = False
        self.schedule = at_intervals(keeper.interval, end=True)

    def start(self, simulation: Simulation) -> None:
        """Put back the newest checkpoint, if the run is resumed."""
        self._engine = simulation.engine  # the first one, if others replace it
        position = self._keeper.resume(simulation.model, self._engine, simulation.stepper.state)
        if position is not None:
            simulation.resumed, simulation.kept = position, self._keeper.observers
            simulation.step, simulation.seconds = position.step, position.seconds

    def wants(self, simulation: Simulation) -> bool:
        """Return whether a checkpoint is due by the clock."""
        due, self._time_is_up = self._keeper.wishes(simulation.latest)
        return due

    def ends(self, simulation: Simulation) -> Reason | None:
        """Return "time limit" if there is no time for more steps."""
        return "time limit" if self._time_is_up else None

    def observe(self, simulation: Simulation) -> None:
        """Write a checkpoint, unless the run is complete and its end is not wanted."""
        position = Position(simulation.step, simulation.seconds)
        if self._keeper.keeps(position, simulation.ended):
            self._keeper.keep(self._engine, position, simulation.ended, simulation.states())
