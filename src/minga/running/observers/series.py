"""Series: the observables at some steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minga.engine.clock import Interval
from minga.running.observer import Observer, Phase
from minga.running.schedule import at_intervals
from minga.running.simulation import Simulation

__all__ = ["Series"]


class Series(Observer):
    """Observer that passes observables to a function on rank 0 at the ends of a run and at multiples of intervals."""

    phase = Phase.OBSERVE
    counted = True

    def __init__(
        self, add: Callable[[int, float | None, Mapping[str, Any]], None], intervals: Sequence[Interval | None]
    ) -> None:
        self._add = add
        self.schedule = at_intervals(*intervals, start=True, end=True)

    def observe(self, simulation: Simulation) -> None:
        """Observe and hand over."""
        observables = simulation.observe()
        if simulation.rank == 0:
            time = None if simulation.model.clock is None else simulation.time
            self._add(simulation.step, time, observables)

    def recorded(self, simulation: Simulation, step: int, observables: Mapping[str, Any]) -> None:
        """Hand over the observables after an earlier step of a model whose steps have one length.

        Parameters
        ----------
        simulation
            The run.
        step
            The number of steps.
        observables
            Values by name.
        """
        if simulation.rank == 0:
            clock = simulation.model.clock
            self._add(step, None if clock is None else clock.read(step, simulation.engine), observables)
