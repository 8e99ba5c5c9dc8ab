"""Shots: their sources, receivers and data, and the traces that waves leave at the receivers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.engine.engine import Engine
from minga.engine.program import Program
from minga.errors import CaseError
from minga.models.waves.domain import Domain
from minga.models.waves.medium import Floats
from minga.models.waves.receivers import Receivers
from minga.models.waves.sensors import Sensors, SensorTable
from minga.models.waves.stepping import Stepping
from minga.space.cuts import parse_layout
from minga.space.field import STEP, Field
from minga.space.grid import Grid

__all__ = ["AnyWaves", "Shot", "ShotRun", "checked_data", "shot_snapshots", "shot_traces"]


LONG: Final = 1 << 30
"""Updates of cells, about a second, from which on the preparation of blocks of rounds is worth its time."""


class AnyWaves(Protocol):
    """Waves of which shots are computed: `minga.models.waves.Waves` or `minga.models.waves.elastic.ElasticWaves`."""

    @property
    def grid(self) -> Grid:
        """Grid with layers at its ends."""

    @property
    def domain(self) -> Domain:
        """Cells of the model in the grid."""

    @property
    def dt(self) -> float:
        """Seconds of a step."""

    @property
    def structure(self) -> tuple[object, ...]:
        """Structure: what recorded steps depend on, values of the medium's fields and of layers aside."""

    @property
    def slowest(self) -> float:
        """Lowest velocity of waves that the cells must represent, m/s."""

    @property
    def shown(self) -> Field:
        """Field that pictures show."""

    def stepping(self, sources: Sequence[Any]) -> Stepping:
        """Return a time step with its boundaries and sources."""

    def watch(self, step: Program, sources: Sequence[Any]) -> None:
        """Record at the end of a step what ends a run when waves grow."""

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

    def __post_init__(self) -> None:
        given: Any = self.sources
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise CaseError(f"the sources of a shot are {given!r}", key="shot", remedy="give a list of sources")
        quantities: Any = self.record
        several = isinstance(quantities, Sequence) and not isinstance(quantities, str) and len(quantities)
        if not several or not all(isinstance(name, str) for name in quantities):
            raise CaseError(f"a shot records {quantities!r}", key="shot", remedy='give a list of names: ("p",)')
        if self.data is not None and not is_real_array(self.data):
            raise CaseError(
                "the data of a shot are not an array of real numbers", key="shot",
                remedy="give a row for each sample and a column for each trace",
            )  # fmt: skip

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
        return run.record(engine, run.watched(), samples)


def shot_snapshots(waves: AnyWaves, shot: Shot, steps: Sequence[int], *, threads: int = 1) -> list[Floats]:
    """Return the waves of a shot after some numbers of steps.

    Parameters
    ----------
    waves
        Waves in the medium, as for `shot_traces`.
    shot
        The shot; neither its receivers nor its data are used.
    steps
        Numbers of steps, in rising order.
    threads
        Threads.

    Returns
    -------
    list of ndarray
        p, or for elastic waves the velocity downwards, f8 of the model's shape; one entry for each number.
    """
    numbers = [-1, *steps] if isinstance(steps, Sequence) else []
    whole = all(isinstance(number, int | np.integer) for number in numbers)
    if len(numbers) < 2 or not whole or any(b <= a for a, b in itertools.pairwise(numbers)):
        raise CaseError(f"snapshots after {steps!r} steps", key="steps", remedy="give rising whole numbers, 0 or more")
    run, found, now = ShotRun(waves, shot), list[Floats](), 0
    step = run.watched()
    inside = tuple(slice(low, low + n) for low, n in zip(waves.domain.low, waves.domain.shape, strict=True))
    with run.engine(threads, None, "slabs") as engine:
        for number in steps:
            if number > now:
                engine.run(step, number - now)
                now = number
            found.append(np.array(engine.gather(waves.shown), np.float64)[inside])
    return found


def check_shot(waves: object, shot: object) -> None:
    """Raise CaseError for what are no waves, or is no shot."""
    if not isinstance(shot, Shot):
        raise CaseError(f"a shot is {shot!r}", key="shot", remedy="give Shot(sources, receivers)")
    if not callable(getattr(waves, "stepping", None)):
        raise CaseError(f"the waves are {waves!r}", key="waves", remedy="give waves from prepare or prepare_elastic")


def is_real_array(data: object) -> bool:
    """Return True for an array of real numbers, or what makes one."""
    try:
        return np.asarray(data).dtype.kind in "fiub"
    except ValueError:  # ragged
        return False


class ShotRun:
    """Step and receivers of a shot.

    Parameters
    ----------
    waves
        The waves.
    shot
        The shot.
    """

    def __init__(self, waves: AnyWaves, shot: Shot) -> None:
        check_shot(waves, shot)
        given: Any = shot.receivers
        if not isinstance(given, Receivers):
            found = type(given).__name__
            raise CaseError(f"the receivers of a shot are a {found}", key="shot", remedy="give Receivers(positions)")
        if not len(shot.receivers.positions):
            raise CaseError("a shot without receivers", key="shot", remedy="give one or more positions")
        self.waves, self.shot = waves, shot
        self.stepping = waves.stepping(shot.sources)
        self.sensors = waves.sensors(shot.receivers, shot.record)

    def watched(self, tangent: Program | None = None) -> Program:
        """Return the step, or its tangent, with what ends a run when waves grow."""
        step = Program("step")
        step.include(self.stepping.step if tangent is None else tangent)
        self.waves.watch(step, self.shot.sources)
        return step

    def engine(self, threads: int, comm: Comm | None, layout: str) -> Engine:
        """Return an engine with the state at the start, and 0 in all other fields."""
        ranks = comm or SerialComm()
        grid = self.waves.grid
        engine = Engine({grid: parse_layout(layout, grid.box, ranks.size)}, comm=ranks, threads=threads)
        self.start(engine, self.stepping.initial)
        return engine

    def start(self, engine: Engine, initial: Mapping[str, Any]) -> None:
        """Set the state at the start, from initial values of fields by their names, and 0 in all others."""
        for item in self.stepping.fields:
            for slot in range(item.slots):
                engine.set(item.slot(slot), initial.get(item.name, 0.0))
        engine.reset_registers()
        engine.write(STEP, 0)

    def table(self, samples: int) -> SensorTable:
        """Return a table for a number of samples, whose positions are steps."""
        if not isinstance(samples, int | np.integer) or samples < 1:
            raise CaseError(f"{samples!r} samples", key="samples", remedy="give a whole number, 1 or more")
        every = self.shot.receivers.every
        updates = math.prod(self.waves.grid.shape) * samples * every
        return SensorTable(self.sensors, samples, every, blocks=updates >= LONG)

    def record(self, engine: Engine, step: Program, samples: int, of: Mapping[Field, Field] | None = None) -> Floats:
        """Return the samples at the receivers while a step is repeated from the present state.

        They are those of fields that stand in for the waves, or of these themselves.
        """
        table = self.table(samples)
        sampling = table.sampling(of)
        interval = Program("interval")
        interval.include(step)
        interval.include(sampling)
        engine.run(sampling)
        if table.steps:
            engine.run(interval, table.steps)
        return table.traces(engine.comm)


def checked_data(shot: Shot) -> Floats:
    """Return the data of a shot; raise CaseError if they do not match its receivers."""
    if not isinstance(shot, Shot):
        raise CaseError(f"a shot is {shot!r}", key="shot", remedy="give Shot(sources, receivers, data)")
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
