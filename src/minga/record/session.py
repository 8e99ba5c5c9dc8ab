"""One run from beginning to end on the ranks there are: frames, digest, observables and ledger of a model.

``run`` is the way in from Python and returns what xarray works with; the command line writes the same to a directory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.engine.drive import drive
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.stop import Ended, Stop
from minga.errors import CaseError, suggest
from minga.fit.placement import place_all
from minga.fit.topology import Tree, seats_of
from minga.record.cells import blocks_of_cells, gather_cells, layout_of_cells
from minga.record.digest import digest_of_blocks
from minga.record.ledger import blocks_entry, ledger_entry, levels_entry, machine_entry
from minga.record.series import Series
from minga.record.trace import RankTrace, Stopwatch, events_a_thread, gather_traces
from minga.record.variables import CONVENTIONS, TIME, variables_of
from minga.space.field import Field

if TYPE_CHECKING:
    import xarray

__all__ = ["Outcome", "Settings", "execute", "run"]

Arrays = Mapping[str, NDArray[Any]]

OBSERVED = "observed"
"""The dimension of observables over time."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is done; none of it changes a bit of the result, but for when it ends."""

    steps: int
    every: int | None = None
    threads: int = 1
    layout: str = "cartesian"
    halo_depth: int = 1
    overlap: bool = True
    topology: str | None = None
    """The machine in words (:meth:`minga.fit.topology.Tree.parse`); by default it is what the ranks find."""
    mapping: str = "sequential"
    """Which block goes where in it: see :mod:`minga.fit.placement`."""
    trace: bool = False
    """Whether to keep when each rank did what."""
    until: Stop | None = None
    """When to end before the last step."""
    observe: int | None = None
    """Steps from one observation to the next; observables are also read at every frame."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to; equal on all ranks, but for what is gathered (ledger and traces), which rank 0 has."""

    steps: int
    """Steps that were done."""
    seconds: float
    """Wall time of these steps, without output."""
    cells_per_second: float
    digest: str
    """Fingerprint of the last state, 16 hexadecimal digits: see :mod:`minga.record.digest`."""
    observables: dict[str, Any]
    ended: Ended
    """Why there are no more steps."""
    ledger: dict[str, Any] = field(default_factory=dict)
    """See :mod:`minga.record.ledger`."""
    layout: list[dict[str, Any]] = field(default_factory=list)
    """The blocks of cells: ``rank``, ``lo``, ``hi``."""
    traces: list[RankTrace] | None = None


def execute(
    model: Model,
    comm: Comm,
    settings: Settings,
    fields: Sequence[Field],
    on_frame: Callable[[int, Arrays], None] | None = None,
    on_progress: Callable[[int, float], None] | None = None,
    stop: Callable[[], bool] | None = None,
    cpus: Sequence[int] | None = None,
    look: Callable[[], bool] | None = None,
    on_look: Callable[[int, Engine, dict[str, Any]], None] | None = None,
    on_observe: Callable[[int, Mapping[str, Any]], None] | None = None,
) -> Outcome:
    """Run a model on the ranks of ``comm``; collective.

    Parameters
    ----------
    model, comm, settings
        What, on which ranks, how.
    fields
        The output fields; they also make up the digest, in this order.
    on_frame
        Called on rank 0 with the step and whole arrays, at step 0, every ``settings.every`` steps, and at the end.
    on_progress
        Called on rank 0 now and then with the steps done and the seconds since the first.
    stop
        Asked on every rank now and then; where it says yes on any, all stop at the same step.
    cpus
        A logical processor for each thread to stay on; by default they move freely.
    look, on_look
        Asked on rank 0 about five times a second; where it says yes, ``on_look(step, engine, entry)`` is called on
        every rank with its line of the ledger so far. The time it takes counts as output.
    on_observe
        Called on rank 0 with the step and the observables, at every frame and every ``settings.observe`` steps.
    """
    started = time.perf_counter()
    output = Stopwatch(keep=settings.trace)

    def snapshot(step: int, engine: Engine) -> None:
        nonlocal started
        with output.span("frame", step):
            if on_frame is not None:
                arrays = {field.name: gather_cells(engine, model, field.name) for field in fields}
                if comm.rank == 0:
                    on_frame(step, {name: array for name, array in arrays.items() if array is not None})
        if step == 0:
            started = time.perf_counter()  # until here kernels were compiled

    def looked(step: int, engine: Engine) -> None:
        with output.span("preview", step):
            if on_look is not None:
                on_look(step, engine, ledger_entry(engine, layout_of_cells(engine, model), output.seconds))

    def progress(step: int, steps: int, engine: Engine) -> None:
        if on_progress is not None and comm.rank == 0:
            on_progress(step, time.perf_counter() - started)

    def observed(step: int, observables: Mapping[str, Any]) -> None:
        if on_observe is not None and comm.rank == 0:
            on_observe(step, observables)

    seats = seats_of(comm) if settings.topology is None else Tree.parse(settings.topology).seats(comm.size)
    with Engine(
        place_all(model.layouts(settings.layout, comm.size), seats, settings.mapping),
        comm=comm,
        threads=settings.threads,
        halo_depth=settings.halo_depth,
        overlap=settings.overlap,
        cpus=cpus,
        trace=events_a_thread(comm.size * settings.threads) if settings.trace else 0,
    ) as engine:
        result = drive(
            model,
            engine,
            settings.steps,
            every=settings.every,
            on_snapshot=snapshot,
            on_progress=progress,
            stop=stop,
            look=look,
            on_look=looked if on_look is not None else None,
            until=settings.until,
            observe_every=settings.observe,
            on_observe=observed,
        )
        traces = gather_traces(engine, output.spans) if settings.trace else None
        cells = layout_of_cells(engine, model)
        entries = comm.gather(ledger_entry(engine, cells, output.seconds))
        machine = machine_entry(seats, settings.topology, settings.mapping)
        return Outcome(
            steps=result.steps,
            seconds=result.seconds,
            cells_per_second=result.cells_per_second,
            digest=state_digest(engine, model, fields),
            observables=dict(result.observables),
            ended=result.ended,
            ledger={"ranks": entries, "machine": machine, "levels": levels_entry(entries, seats)} if entries else {},
            layout=blocks_entry(cells),
            traces=traces,
        )


def state_digest(engine: Engine, model: Model, fields: Sequence[Field]) -> str:
    """The digest of the present state of fields of a model; collective, equal on all ranks."""
    mine = digest_of_blocks(
        # Of a field that every rank holds whole, one copy counts.
        [
            (f.bounds, blocks_of_cells(engine, model, f.name) if engine.comm.rank == 0 or not f.replicated else ())
            for f in fields
        ]
    )
    words = np.array([mine], np.uint64).view(np.int64)
    engine.comm.allreduce(words, "sum")
    return f"{int(words.view(np.uint64)[0]):016x}"


def run(
    model: Model,
    steps: int,
    *,
    every: int | None = None,
    fields: Sequence[str] | None = None,
    threads: int = 1,
    comm: Comm | None = None,
    layout: str = "cartesian",
    halo_depth: int = 1,
    overlap: bool = True,
    stop: Stop | None = None,
    observe: int | None = None,
) -> xarray.Dataset:
    """Run a model and return its frames: dimensions time, y, x; the digest and the last observables are attributes.

    Observables are also variables, over the dimension ``observed``: at frames, and every ``observe`` steps.

    Parameters
    ----------
    steps, every
        How many steps, and from one frame to the next; without ``every`` the first and the last state are kept.
    fields
        Names of the fields to keep; by default the model's output.
    stop
        When to end before the last step: ``mg.Stop(when="population < 10")``; the attribute ``ended`` says why it did.
    observe
        Steps from one observation to the next.
    threads, comm, layout, halo_depth, overlap
        How it is run; nothing of the result depends on them. On several ranks (``comm=mg.MPIComm()``) every rank calls
        this, and rank 0 gets the frames; the datasets of the others hold attributes only.

    Raises CaseError for an argument that cannot be meant.
    """
    import xarray

    _check_kinds(model, stop)
    _check_number("steps", steps, 0, "say how many steps to do: steps=100")
    if every is not None:
        _check_number("every", every, 1, "say the steps from one frame to the next, every=10, or leave it out")
    if observe is not None:
        _check_number("observe", observe, 1, "say the steps from one observation to the next, or leave it out")
    _check_number("threads", threads, 1, "say how many threads a rank has: threads=2")
    _check_number("halo_depth", halo_depth, 1, "say how many steps lie between two exchanges: halo_depth=1")
    chosen = _chosen(model, fields)
    frames: list[tuple[int, dict[str, NDArray[Any]]]] = []

    def keep(step: int, arrays: Arrays) -> None:
        frames.append((step, {name: np.array(array) for name, array in arrays.items()}))

    ranks = comm or SerialComm()
    variables = variables_of(chosen, f"model {model.name!r}")
    settings = Settings(steps, every, threads, layout, halo_depth, overlap, until=stop, observe=observe)
    series = Series()
    outcome = execute(model, ranks, settings, chosen, keep, on_observe=series.add)
    attributes = {"Conventions": CONVENTIONS, "model": model.name, "steps": outcome.steps, "digest": outcome.digest}
    attributes["ended"] = str(outcome.ended)
    dataset = xarray.Dataset(attrs=attributes | outcome.observables)
    if ranks.rank != 0:
        return dataset
    dataset = dataset.assign_coords({TIME: (TIME, [step for step, _ in frames], {"long_name": "steps done"})})
    for variable in variables:
        dataset = dataset.assign_coords({c.name: (c.name, c.values, c.attributes) for c in variable.coordinates})
        stacked = np.stack([arrays[variable.name] for _, arrays in frames])
        dataset[variable.name] = (variable.dims, stacked, variable.attributes)
    return _with_series(dataset, series)


def _with_series(dataset: xarray.Dataset, series: Series) -> xarray.Dataset:
    """The dataset with a variable for each observable; one that has a field's name is called ``NAME_observed``."""
    if series.values:
        dataset = dataset.assign_coords({OBSERVED: (OBSERVED, series.steps, {"long_name": "steps done"})})
    for name, values in series.values.items():
        array = np.asarray(values)
        dims = (OBSERVED, *(f"{name}_{number}" for number in range(1, array.ndim)))
        dataset[name if name not in dataset.variables else f"{name}_{OBSERVED}"] = (dims, array)
    return dataset


def _check_kinds(model: object, stop: object) -> None:
    """CaseError where Python was given something else for the model or the stop."""
    if not isinstance(model, Model):
        raise CaseError(
            f"expected a model, found {model!r}",
            remedy='make one: mg.automaton("B3/S23", (256, 256), init={"soup": 0.3}), or mg.Model(...)',
        )
    if stop is not None and not isinstance(stop, Stop):
        raise CaseError(f"stop={stop!r}: expected mg.Stop", remedy=f"write stop=mg.Stop(when={str(stop)!r}), for one")


def _check_number(name: str, value: object, least: int, remedy: str) -> None:
    """CaseError unless a parameter is a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise CaseError(f"{name}={value!r}: expected a whole number of at least {least}", remedy=remedy)


def _chosen(model: Model, fields: Sequence[str] | None) -> tuple[Field, ...]:
    """The fields to keep; CaseError for one that the model does not have."""
    known = {field.name: field for field in model.visible}
    names = (fields,) if isinstance(fields, str) else model.output if fields is None else tuple(fields)
    for name in names:
        if name not in known:
            raise CaseError(
                f"fields={list(names)!r}: model {model.name!r} has no field {name!r}",
                suggestion=suggest(str(name), known),
                remedy=f"its fields are {', '.join(known)}",
            )
    if not names:
        raise CaseError("fields=[]: expected at least one field", remedy=f"leave it out, or name {', '.join(known)}")
    return tuple(known[name] for name in names)
