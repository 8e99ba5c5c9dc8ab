"""Frames: the output fields at some steps."""

from __future__ import annotations

from typing import Any, Protocol

from minga.engine.clock import Interval
from minga.engine.engine import Engine
from minga.running.observer import Observer, Phase
from minga.running.schedule import at_intervals
from minga.running.simulation import Simulation

__all__ = ["Frames", "Recorder"]


class Recorder(Protocol):
    """Recorder of frames, such as `minga.output.snapshots.snapshots.Snapshots` and `WholeFrames`."""

    def take(self, step: int, engine: Engine) -> None:
        """Take the present state; collective."""

    def close(self) -> None:
        """Complete all frames that were taken."""

    @property
    def written(self) -> dict[str, Any] | None:
        """Counters of the written frames, for the ledger; None if frames stay in memory."""


class Frames(Observer):
    """Observer that takes frames at the first step, at intervals of steps or model time, and at the last step."""

    phase = Phase.FRAMES

    def __init__(self, recorder: Recorder, interval: Interval | None) -> None:
        self._recorder = recorder
        self.schedule = at_intervals(interval, start=True, end=True)

    def observe(self, simulation: Simulation) -> None:
        """Take a frame."""
        with simulation.output.span("frame", simulation.step):
            self._recorder.take(simulation.step, simulation.engine)

    def finish(self, simulation: Simulation) -> None:
        """Complete all frames of a run that did not fail."""
        if not simulation.failed:
            with simulation.output.span("last frames", simulation.step):
                self._recorder.close()
