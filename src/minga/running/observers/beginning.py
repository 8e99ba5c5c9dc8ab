"""The observables before the first step of a run, which checkpoints keep for the end of a resumed one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minga.running.observer import Observer
from minga.running.simulation import Simulation

__all__ = ["Beginning"]


class Beginning(Observer):
    """Observer that remembers the observables before the first step, however often the run is resumed."""

    name = "minga.beginning"

    def __init__(self) -> None:
        self._found: Mapping[str, Any] | None = None

    def resume(self, simulation: Simulation, state: Any) -> None:
        """Take the observables from the checkpoint; those of earlier versions have none."""
        self._found = state

    def state(self) -> Any:
        """Return the observables for a checkpoint."""
        return self._found

    def look(self, simulation: Simulation) -> Mapping[str, Any]:
        """Return the observables before the first step, in its place those at which the run goes on; collective."""
        if self._found is None:
            self._found = simulation.observe()
        return self._found
