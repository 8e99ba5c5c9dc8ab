"""A person's function that sees whole fields while a run goes on, and may end it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from minga.engine.clock import Interval
from minga.engine.rank_zero import on_rank_zero
from minga.running.observer import Observer, Phase
from minga.running.schedule import at_intervals
from minga.running.simulation import Simulation

__all__ = ["Callback", "Frame"]


@dataclass(frozen=True, slots=True)
class Frame:
    """State of a run at one of its frames, as a callback sees it.

    Parameters
    ----------
    step
        Number of steps done.
    time
        Time of the model, in the unit of its clock; without a clock, the number of steps.
    fields
        Copies of the whole output fields, by name.
    observables
        Observables, by name.
    """

    step: int
    time: float
    fields: Mapping[str, NDArray[Any]]
    observables: Mapping[str, Any]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a field by name.

        Parameters
        ----------
        name
            The name.

        Returns
        -------
        ndarray
            The values.
        """
        return self.fields[name]


class Callback(Observer):
    """Observer that calls a function with each frame on rank 0; StopIteration from it ends the run at this step.

    Parameters
    ----------
    function
        Called with a `Frame`; what it returns is ignored.
    names
        Names of the fields that it sees.
    every
        Interval between two calls; it is also called before the first step and after the last one.
    """

    phase = Phase.OBSERVE

    def __init__(self, function: Callable[[Frame], object], names: Sequence[str], every: Interval | None) -> None:
        self._function, self._names = function, tuple(names)
        self.schedule = at_intervals(every, start=True, end=True)

    def observe(self, simulation: Simulation) -> None:
        """Gather the fields, call the function on rank 0, and tell all ranks whether it ended the run or failed."""
        fields = {name: simulation.whole(name) for name in self._names}
        observables = dict(simulation.observe())

        def call() -> str | None:
            whole = {name: values for name, values in fields.items() if values is not None}
            try:
                self._function(Frame(simulation.step, simulation.time, whole, observables))
            except StopIteration as end:
                return str(end) or "the callback ended the run"
            return None

        words = on_rank_zero(simulation.engine.comm, call, "the callback")
        if words is not None:
            simulation.end(words)
