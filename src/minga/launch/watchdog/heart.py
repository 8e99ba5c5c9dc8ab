"""The heart of a rank: a thread that renews its pulse once a second, whatever the rank waits for."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Final

from minga.launch.watchdog.pulse import LEFT, PulseFile
from minga.running.observer import Observer
from minga.running.simulation import Simulation

__all__ = ["Heart"]

_PERIOD: Final = 1.0
"""Seconds between two beats."""
_SOON: Final = 0.1
"""Seconds between two looks for the agent of this host."""


class Heart(Observer):
    """Observer whose thread writes where the run is, until :meth:`leave`; only on hosts that have an agent.

    Parameters
    ----------
    folder
        Folder of the pulses on this host, which its agent makes.
    rank
        Number of this rank.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        self._folder, self._rank = folder, rank
        self._pulse: PulseFile | None = None
        self._simulation: Simulation | None = None
        self._beats = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)
        self._thread.start()

    def start(self, simulation: Simulation) -> None:
        """Write the steps of a simulation from now on."""
        self._simulation = simulation

    def leave(self) -> None:
        """Write that this rank ends by itself, so that it is not missed."""
        self._over.set()
        self._thread.join()
        self._write(LEFT)

    def _beat(self) -> None:
        while True:
            self._write(None)
            if self._over.wait(_PERIOD if self._pulse is not None else _SOON):
                return

    def _write(self, phase: str | None) -> None:
        if self._pulse is None and self._folder.is_dir():
            with contextlib.suppress(OSError):
                self._pulse = PulseFile(self._folder, self._rank)
        if self._pulse is None:
            return
        self._beats += 1
        simulation = self._simulation
        if simulation is None:
            self._pulse.write(self._beats, 0, 0, phase or "starting")
        else:
            rounds = simulation.engine.interrupt.polls
            self._pulse.write(self._beats, simulation.step, rounds, phase or simulation.activity)
