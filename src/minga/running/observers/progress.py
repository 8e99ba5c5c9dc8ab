"""Progress of a run, and the present field when somebody watches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from minga.engine.engine import Engine
from minga.engine.observables import updates_of
from minga.output.cells import layout_of_cells
from minga.output.ledger import ledger_entry
from minga.output.live import LiveRecord
from minga.running.growing import Growing
from minga.running.observer import Observer, Phase
from minga.running.schedule import Schedule
from minga.running.simulation import Simulation
from minga.view import progress as views

__all__ = ["Preview", "Progress", "preview_of", "progress_of"]


def progress_of(simulation: Simulation, seconds: float, updates: int, end: float | None) -> views.Progress:
    """Return the progress of a run as displays show it.

    Parameters
    ----------
    simulation, seconds, updates
        The arguments that `Progress` passes to its function.
    end
        The model time at which the run ends; None if it ends after a number of steps.
    """
    clock = simulation.model.clock
    unit = "" if clock is None or clock.unit == "1" else f" {clock.unit}"
    timed = None if end is None else views.Timed(simulation.time, end, unit)
    model, ranks = simulation.model, simulation.engine.comm.size
    cells = model.grid.size if model.growth is None else None
    return views.Progress(simulation.step, simulation.steps, seconds, cells, ranks, updates, timed)


class Progress(Observer):
    """Observer that reports progress to a function on rank 0, about five times a second.

    Parameters
    ----------
    tell
        Called with the simulation, the seconds since its first step began (those before an interruption included), and
        how often all cells were updated.
    """

    phase = Phase.SHOW
    schedule = Schedule(chunks=True, start=True)

    def __init__(self, tell: Callable[[Simulation, float, int], None]) -> None:
        self._tell = tell
        self._began: float | None = None
        self._earlier = 0.0

    def resume(self, simulation: Simulation, state: Any) -> None:
        """Count the seconds before the interruption as well."""
        self._began, self._earlier = time.perf_counter(), simulation.seconds

    def observe(self, simulation: Simulation) -> None:
        """Tell how far the run is; at its beginning, start the clock: until then kernels were compiled."""
        if self._began is None:
            self._began = time.perf_counter()
        elif simulation.rank == 0:
            updates = updates_of(simulation.model, simulation.engine, simulation.step)
            self._tell(simulation, self._earlier + time.perf_counter() - self._began, updates)


class Preview(Observer):
    """Observer that shows the state to people who want to see it during the run.

    Parameters
    ----------
    wanted
        Asked on rank 0 about five times a second whether somebody wants to see the state.
    show
        Called on every rank with the step, the engine, and the rank's entry of the ledger so far.
    """

    phase = Phase.SHOW

    def __init__(self, wanted: Callable[[], bool], show: Callable[[int, Engine, dict[str, Any]], None]) -> None:
        self._wanted, self._show = wanted, show

    def wants(self, simulation: Simulation) -> bool:
        """Return whether somebody wants to see the state."""
        return simulation.rank == 0 and self._wanted()

    def observe(self, simulation: Simulation) -> None:
        """Show the state."""
        engine = simulation.engine
        with simulation.output.span("preview", simulation.step):
            entry = ledger_entry(engine, layout_of_cells(engine, simulation.model), simulation.output.seconds)
            self._show(simulation.step, engine, entry)


def preview_of(live: LiveRecord, growing: Growing | None) -> Preview:
    """Return the observer that shows the state during a run; that of an unbounded plane on its present window."""
    if growing is None:
        return Preview(live.is_watched, live.update_preview)
    return Preview(live.is_watched, lambda step, engine, entry: live.update_preview(step, engine, entry, growing.model))
