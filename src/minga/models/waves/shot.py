"""Shots: their sources, receivers and data, and the traces that waves leave at the receivers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.domain import Domain
from minga.models.waves.medium import Floats
from minga.models.waves.model import Stepping
from minga.models.waves.receivers import Receivers
from minga.models.waves.sensors import Sensors
from minga.space.cuts import parse_layout
from minga.space.field import STEP, Field
from minga.space.grid import Grid

__all__ = ["AnyWaves", "Shot", "ShotRun", "checked_data", "shot_traces"]


class AnyWaves(Protocol):
    """Waves of which shots are computed: `minga.models.waves.Waves` or `minga.models.waves.elastic.ElasticWaves`."""

    @property
    def grid(self) -> Grid:
        """Grid with layers at its ends."""

    @property
    def domain(self) -> Domain:
        """Cells of the model in the grid."""

    def stepping(self, sources: Sequence[Any]) -> Stepping:
        """Return a time step with its boundaries and sources."""

    def sensors(self, receivers: Receivers, record: Sequence[str]) -> Sensors:
        """Return the quantities that receivers record."""


@dataclass(frozen=True, slots=True, eq=False)
class Shot:
    """Sources and receivers of a shot, and what was recorded.

    Parameters
    ----------
    sources
        The sources: those of `minga.models.waves`, or of `minga.models.waves.elastic` for elastic waves.
    receivers
        The receivers.
    data
        Observed samples of shape (samples, traces): data[k] after k * receivers.every steps, the first one at the
        start. Traces are those of all receivers for the first quantity, then for the next. None: not known yet.
    record
        Quantities that receivers record: "p", and for elastic waves also "vz", "vx", "szz" and so on.
    """

    sources: Sequence[Any]
    receivers: Receivers
    data: NDArray[Any] | None = None
    record: Sequence[str] = ("p",)

    @property
    def traces(self) -> int:
        """Number of traces: receivers times quantities."""
        return len(self.receivers.positions) * len(self.record)


def shot_traces(
    waves: AnyWaves, shot: Shot, samples: int, *, threads: int = 1, comm: Comm | None = None, layout: str = "slabs"
) -> Floats:
    """Return the traces of a shot; collective.

    Parameters
    ----------
    waves
        Waves in the medium, from `minga.models.waves.prepare` or `minga.models.waves.elastic.prepare_elastic`.
    shot
        The shot, whose data are not used.
    samples
        Number of samples, the first of them at the start.
    threads
        Threads of each rank.
    comm
        Ranks that compute together; None: this process alone.
    layout
        Layout of the grid over the ranks.

    Returns
    -------
    ndarray
        Samples, f8 of shape (samples, traces), on all ranks: one trace for each receiver, or for each quantity that
        the shot records one for each receiver. Velocities of elastic waves are those half a step before the time.
    """
    run = ShotRun(waves, shot)
    with run.engine(threads, comm, layout) as engine:
        return run.record(engine, run.stepping.step, samples)


class ShotRun:
    """Step and receivers of a shot, and the samples taken so far.

    Parameters
    ----------
    waves
        The waves.
    shot
        The shot.
    """

    def __init__(self, waves: AnyWaves, shot: Shot) -> None:
        if not len(shot.receivers.positions):
            raise CaseError("a shot without receivers", key="shot", remedy="give one or more positions")
        self.waves, self.shot = waves, shot
        self.stepping = waves.stepping(shot.sources)
        self.sensors = waves.sensors(shot.receivers, shot.record)
        self.rows: list[Floats] = []

    def engine(self, threads: int, comm: Comm | None, layout: str) -> Engine:
        """Return an engine with the state at the start, and 0 in all other fields."""
        ranks = comm or SerialComm()
        grid = self.waves.grid
        engine = Engine({grid: parse_layout(layout, grid.box, ranks.size)}, comm=ranks, threads=threads)
        for item in self.stepping.fields:
            for slot in range(item.slots):
                engine.set(item.slot(slot), self.stepping.initial.get(item.name, 0.0))
        engine.write(STEP, 0)
        return engine

    def sampling(self, every: int, of: Mapping[Field, Field] | None = None) -> Program:
        """Return a Program that appends the values at the receivers to `rows` whenever it has run `every` times.

        The first time counts as 0. The values are those of fields that stand in for the waves, or of these themselves.
        """
        times = itertools.count()

        def sample(engine: Engine) -> None:
            if next(times) % every == 0:
                self.rows.append(self.sensors.sample(engine, of))

        program = Program("sample")
        program.call(sample, reads=self.sensors.refresh(program, of))
        return program

    def record(self, engine: Engine, step: Program, samples: int, of: Mapping[Field, Field] | None = None) -> Floats:
        """Return the samples at the receivers while a step is repeated from the present state."""
        sampling = self.sampling(1, of)
        interval = Program("interval")
        with interval.repeat(self.shot.receivers.every):
            interval.include(step)
        interval.include(sampling)
        engine.run(sampling)
        if samples > 1:
            engine.run(interval, samples - 1)
        return np.stack(self.rows)

    def injection(self, of: Mapping[Field, Field], steps: int, rows: Callable[[], Floats]) -> Program:
        """Return a Program that adds the rows of a table at the receivers, from the last step to the first.

        They are added to fields that stand in for the waves. `rows` is called when the Program runs for the first time.
        """
        every = self.shot.receivers.every
        number, table = iter(range(steps, -1, -1)), list[Floats]()
        targets = tuple(of[item] for item in self.sensors.taps)

        def inject(engine: Engine) -> None:
            if not table:
                table.append(rows())
            row, rest = divmod(next(number), every)
            if rest == 0 and table[0][row].any():
                self.sensors.inject(engine, of, table[0][row])

        program = Program("inject")
        program.call(inject, reads=targets, writes=targets)
        return program


def checked_data(shot: Shot) -> Floats:
    """Return the data of a shot; raise CaseError if they do not match its receivers."""
    data = np.asarray(shot.data, np.float64) if shot.data is not None else np.zeros((0, 0))
    if data.ndim != 2 or len(data) < 2 or data.shape[1] != shot.traces:
        raise CaseError(
            f"the data have shape {data.shape}, for {len(shot.receivers.positions)} receivers"
            + (f" of {len(shot.record)} quantities" if len(shot.record) > 1 else ""),
            remedy="give a row for each sample, two or more, and a column for each receiver (and quantity)",
        )
    if not np.isfinite(data).all():
        raise CaseError("the data have values that are not finite", remedy="mute those traces: set them to 0")
    return data
