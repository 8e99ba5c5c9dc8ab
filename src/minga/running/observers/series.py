"""Series: the observables at some steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minga.running.observer import Observer, Phase
from minga.running.schedule import Schedule
from minga.running.simulation import Simulation

__all__ = ["Series"]


class Series(Observer):
    """Observer that passes observables to a function on rank 0 at the ends of a run and at multiples of `steps`."""

    phase = Phase.OBSERVE
    counted = True

    def __init__(self, add: Callable[[int, Mapping[str, Any]], None], steps: Sequence[int]) -> None:
        self._add = add
        self.schedule = Schedule(tuple(steps), start=True, end=True)

    def observe(self, simulation: Simulation) -> None:
        """Observe and hand over."""
        observables = simulation.observe()
        if simulation.rank == 0:
            self._add(simulation.step, observables)
