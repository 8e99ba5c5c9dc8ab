"""Series: observables as they are at some steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minga.running.observer import Observer, Phase
from minga.running.schedule import Schedule
from minga.running.simulation import Simulation

__all__ = ["Series"]


class Series(Observer):
    """Hands observables to a function on rank 0: at the first step, at multiples of `steps`, and at the last one."""

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
