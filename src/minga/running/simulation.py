"""A model that is being run, as observers see it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.observables import observe
from minga.engine.state import Position
from minga.engine.stop import Ended
from minga.errors import CaseError
from minga.output.cells import blocks_of_cells, gather_cells
from minga.output.trace import Stopwatch
from minga.space.box import Box
from minga.space.field import Register

if TYPE_CHECKING:
    from minga.running.observer import Observer
    from minga.running.stepper import Stepper

__all__ = ["Simulation"]


@dataclass(slots=True, eq=False)
class Simulation:
    """A model that is being run on an engine, between two steps; equal on all ranks.

    Parameters
    ----------
    model, engine
        The model and the engine that runs it.
    steps
        The most steps.
    stepper
        The part that advances the state.
    observers
        All observers of the run, in the order in which they see a step.
    step
        The number of steps done.
    seconds
        The wall time of these steps.
    latest
        Seconds of the steps since observers were asked last, on this rank.
    resumed
        The position at which the run was resumed; None if it began at the beginning.
    ended
        The reason why there are no more steps; None while there are.
    output
        A stopwatch of the time that this rank spends in output.
    failed
        Whether an error ended the run.
    kept
        The state of observers in the checkpoint at which the run was resumed, by name.
    steps_done
        The register of the number of steps done, which conditions read.
    activity
        What this rank does now: "starting", "stepping", "observing", "checkpoint" or "finishing".
    """

    model: Model
    engine: Engine
    steps: int
    stepper: Stepper
    observers: Sequence[Observer] = ()
    step: int = 0
    seconds: float = 0.0
    latest: float = 0.0
    resumed: Position | None = None
    ended: Ended | None = None
    output: Stopwatch = field(default_factory=lambda: Stopwatch(keep=False))
    failed: bool = False
    kept: Mapping[str, Any] = field(default_factory=dict)
    steps_done: Register = field(default_factory=lambda: Register("run.step", "i8"))
    activity: str = "starting"
    _observed: tuple[int, Mapping[str, Any]] | None = None
    _aside: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Simulation({self.model.name!r}, step {self.step} of {self.steps})"

    @property
    def rank(self) -> int:
        """Number of this rank; files are written on rank 0."""
        return self.engine.comm.rank

    @property
    def time(self) -> float:
        """The time of the model, in the unit of its clock; without a clock, the number of steps."""
        clock = self.model.clock
        return float(self.step) if clock is None else clock.read(self.step, self.engine)

    def observe(self) -> Mapping[str, Any]:
        """Return the observables by name; collective, computed once a step.

        Returns
        -------
        Mapping
            Values by name.
        """
        if self._observed is None or self._observed[0] != self.step:
            self._observed = self.step, observe(self.model, self.engine)
        return self._observed[1]

    def observed(self, observables: Mapping[str, Any]) -> None:
        """Take the observables of the present step from the loop of steps, which has recorded them.

        Parameters
        ----------
        observables
            Values by name.
        """
        self._observed = self.step, observables

    def end(self, words: str) -> None:
        """End the run at this step, in `Observer.observe` on all ranks; all observers of the end then see it.

        Parameters
        ----------
        words
            The reason, such as "the front has left the grid", which summaries and reports repeat.
        """
        if self.ended is None:
            self.ended = Ended("over", self.step, words=words)

    def states(self) -> dict[str, Any]:
        """Return the present state of observers for a checkpoint, by name.

        Returns
        -------
        dict
            Data for JSON by the name of the observer.
        """
        return {
            one.name: self._aside[one.name] if one.name in self._aside else _as_data(one)
            for one in self.observers
            if one.name is not None
        }

    def set_aside(self, observer: Observer) -> None:
        """Keep the present state of an observer for checkpoints, before it sees the end of the run.

        A resumed run does not end there, and its observers must not have seen more than those of a run that was never
        interrupted.

        Parameters
        ----------
        observer
            One of `observers`.
        """
        if observer.name is not None:
            self._aside[observer.name] = _as_data(observer)

    def local(self, name: str) -> list[tuple[Box, NDArray[Any]]]:
        """Return this rank's boxes of a field and their values, which are only valid now and only to be read.

        Parameters
        ----------
        name
            The name of the field.

        Returns
        -------
        list of (Box, ndarray)
            Boxes in global indices and their values.
        """
        return [(box, _locked(values)) for box, values in blocks_of_cells(self.engine, self.model, name)]

    def whole(self, name: str) -> NDArray[Any] | None:
        """Return a copy of a whole field on rank 0 and None on the others; collective.

        Parameters
        ----------
        name
            The name of the field.

        Returns
        -------
        ndarray or None
            The values on rank 0.
        """
        return gather_cells(self.engine, self.model, name)


def _as_data(observer: Observer) -> Any:
    """Return a copy of an observer's state as JSON holds it; raise CaseError if it cannot."""
    try:
        return json.loads(json.dumps(observer.state()))
    except (TypeError, ValueError) as error:
        raise CaseError(
            f"the state of observer {observer.name!r} cannot be written into a checkpoint: {error}",
            key="observers",
            remedy="return numbers, text, lists and dicts from state(): array.tolist(), int(count)",
        ) from error


def _locked(values: NDArray[Any]) -> NDArray[Any]:
    view = np.asarray(values).view()
    view.flags.writeable = False
    return view
