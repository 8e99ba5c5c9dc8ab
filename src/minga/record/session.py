"""One run from beginning to end on the ranks there are: frames, digest, observables and ledger of a model.

``run`` is the way in from Python and returns what xarray works with; the command line writes the same to a directory.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from minga.engine.comm import Comm, SerialComm
from minga.engine.drive import Result, drive
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.state import BEGINNING, Position
from minga.engine.stop import Ended, Stop
from minga.errors import CaseError, suggest
from minga.record.account import account_entry, balance_entry, plan_entry
from minga.record.cells import blocks_of_cells, layout_of_cells
from minga.record.checkpoint.keeper import Keeper
from minga.record.digest import digest_of_blocks
from minga.record.ledger import blocks_entry, ledger_entry, levels_entry, machine_entry
from minga.record.planning import AUTO, Settled, balancer_of, settle
from minga.record.series import Series
from minga.record.snapshots.snapshots import Snapshots
from minga.record.snapshots.whole import WholeFrames
from minga.record.trace import RankTrace, Stopwatch, events_a_thread, gather_traces
from minga.record.variables import CONVENTIONS, TIME, variables_of
from minga.record.versions import check_versions
from minga.space.field import Field

if TYPE_CHECKING:
    import xarray

    from minga.fit.balance import Balancer

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
    layout: str = AUTO
    """Who does which cells: a word such as ``"slabs"``, or ``"auto"``: planned (:mod:`minga.record.planning`)."""
    halo_depth: int | Literal["auto"] = AUTO
    overlap: bool | Literal["auto"] = AUTO
    topology: str | None = None
    """The machine in words (:meth:`minga.fit.topology.Tree.parse`); by default it is what the ranks find."""
    mapping: str = AUTO
    """Which block goes where in it: see :mod:`minga.fit.placement`."""
    machine: Path | None = None
    """A machine file (:mod:`minga.fit.machine.machine`) to plan by; by default the ranks are timed."""
    balance: int | Literal["auto", "off"] = AUTO
    """Steps from one look at the balance of the ranks to the next; ``"auto"``: where a plan found unequal ranks."""
    poll: float | Literal["auto", "off"] = AUTO
    """Seconds from one poll of MPI to the next while the interior of blocks is computed."""
    device: Literal["cpu", "gpu", "gpu-shared"] = "cpu"
    """What computes: see :class:`minga.engine.engine.Engine`."""
    trace: bool = False
    """Whether to keep when each rank did what."""
    until: Stop | None = None
    """When to end before the last step."""
    observe: int | None = None
    """Steps from one observation to the next; observables are also read at every frame."""
    writers: int = 0
    """So many of the last ranks own no cells and only write frames."""


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
    on_plan: Callable[[Settled, dict[str, Any]], None] | None = None,
    snapshots: Snapshots | None = None,
    keeper: Keeper | None = None,
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
        Asked on every rank now and then; where it says yes on any, all stop at the same step, or raise
        KeyboardInterrupt where ranks are timed before the first one.
    cpus
        A logical processor for each thread to stay on; by default they move freely.
    look, on_look
        Asked on rank 0 about five times a second; where it says yes, ``on_look(step, engine, entry)`` is called on
        every rank with its line of the ledger so far. The time it takes counts as output.
    on_observe
        Called on rank 0 with the step and the observables, at every frame and every ``settings.observe`` steps.
    on_plan
        Called on rank 0 before the first step with how the run is done, also as data for ``plan.json``.
    keeper
        Writes checkpoints, and may begin with one: output up to there is not repeated, and its steps and seconds count.
    snapshots
        Takes frames at the same steps and writes them while the run goes on, in place of ``on_frame``. They are all
        written when this returns, and what came before when it raises.
    """
    started, earlier = time.perf_counter(), BEGINNING
    output = Stopwatch(keep=settings.trace)
    frames = snapshots or (None if on_frame is None else WholeFrames(model, fields, on_frame))

    def snapshot(step: int, engine: Engine) -> None:
        nonlocal started
        with output.span("frame", step):
            if frames is not None:
                frames.take(step, engine)
        if step == 0:
            started = time.perf_counter()  # until here kernels were compiled

    def looked(step: int, engine: Engine) -> None:
        with output.span("preview", step):
            if on_look is not None:
                on_look(step, engine, ledger_entry(engine, layout_of_cells(engine, model), output.seconds))

    def progress(step: int, steps: int, engine: Engine) -> None:
        if on_progress is not None and comm.rank == 0:
            on_progress(step, earlier.seconds + time.perf_counter() - started)

    def resumed(position: Position) -> None:
        nonlocal started, earlier
        started, earlier = time.perf_counter(), position

    def observed(step: int, observables: Mapping[str, Any]) -> None:
        if on_observe is not None and comm.rank == 0:
            on_observe(step, observables)

    settled = settle(model, comm, settings, cpus, stop)
    balancer = balancer_of(model, comm, settings, settled)
    with Engine(
        settled.layouts,
        comm=comm,
        threads=settings.threads,
        halo_depth=settled.halo_depth,
        overlap=settled.overlap,
        poll=settings.poll,
        device=settings.device,
        cpus=cpus,
        trace=events_a_thread(comm.size * settings.threads) if settings.trace else 0,
    ) as engine:
        hosts = comm.gather(platform.node())
        if on_plan is not None and hosts is not None:
            on_plan(settled, plan_entry(settled, hosts, layout_of_cells(engine, model)))
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
            balance=balancer,
            keeper=keeper,
            on_resume=resumed,
        )
        if snapshots is not None:
            with output.span("last frames", result.steps):
                snapshots.close()
        elif frames is not None:
            frames.close()
        traces = gather_traces(engine, output.spans) if settings.trace else None
        cells = layout_of_cells(engine, model)
        written = None if snapshots is None else snapshots.counters.as_dict()
        entry = ledger_entry(engine, cells, output.seconds, written)
        if keeper is not None and keeper.written:
            entry["seconds"]["checkpoint"] = keeper.seconds
        entries = comm.gather(entry)
        sessions = [] if keeper is None else keeper.sessions_of(engine, Position(result.steps, result.seconds))
        return Outcome(
            steps=result.steps,
            seconds=result.seconds,
            cells_per_second=result.cells_per_second,
            digest=state_digest(engine, model, fields),
            observables=dict(result.observables),
            ended=result.ended,
            ledger=_whole_ledger(entries, settled, balancer, settings, result, sessions) if entries else {},
            layout=blocks_entry(cells),
            traces=traces,
        )


def _whole_ledger(
    entries: list[dict[str, Any]],
    settled: Settled,
    balancer: Balancer | None,
    settings: Settings,
    result: Result,
    sessions: list[dict[str, Any]],
) -> dict[str, Any]:
    """``ledger.json`` out of the lines of all ranks, on rank 0."""
    prediction = None if settled.plan is None else settled.plan.prediction
    first = result.resumed.step
    steps, seconds = result.steps - first, result.seconds - result.resumed.seconds
    held = None if balancer is None else balancer.mean_cells(steps).tolist()
    balance = None if balancer is None else balance_entry(balancer)
    for decision in balance["decisions"] if balance is not None else ():
        decision["step"] += first
    return {
        "ranks": entries,
        "sessions": sessions,
        "machine": machine_entry(settled.seats, settings.topology, settled.mapping),
        "levels": levels_entry(entries, settled.seats),
        "account": account_entry(entries, steps, seconds, prediction, held),
        "balance": balance,
    }


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
    layout: str = AUTO,
    halo_depth: int | Literal["auto"] = AUTO,
    overlap: bool | Literal["auto"] = AUTO,
    machine: str | Path | None = None,
    balance: int | Literal["auto", "off"] = AUTO,
    stop: Stop | None = None,
    observe: int | None = None,
    device: Literal["cpu", "gpu", "gpu-shared"] = "cpu",
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
    threads, comm, layout, halo_depth, overlap, balance
        How it is run; nothing of the result depends on them. On several ranks (``comm=mg.MPIComm()``) every rank calls
        this, and rank 0 gets the frames; the datasets of the others hold attributes only. ``layout="auto"`` plans: for
        a run that is worth it the ranks time the model and the network for a moment, and the other three may be
        ``"auto"`` too. ``balance`` may be steps from one look to the next, or ``"off"``.
    machine
        A machine file to plan by, as ``minga measure`` writes it, in place of timing.
    device
        ``"gpu"`` for a GPU for each rank of a machine, ``"gpu-shared"`` where ranks may share one.

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
    if halo_depth != AUTO:
        _check_number("halo_depth", halo_depth, 1, "say how many steps lie between two exchanges: halo_depth=1")
    if overlap != AUTO and not isinstance(overlap, bool | np.bool_):
        raise CaseError(f"overlap={overlap!r}: expected True or False", remedy='write overlap=True, False or "auto"')
    if balance not in (AUTO, "off"):
        _check_number("balance", balance, 1, 'say the steps from one look to the next, "auto" or "off"')
    chosen = _chosen(model, fields)
    frames: list[tuple[int, dict[str, NDArray[Any]]]] = []

    def keep(step: int, arrays: Arrays) -> None:
        frames.append((step, {name: np.array(array) for name, array in arrays.items()}))

    ranks = comm or SerialComm()
    check_versions(ranks)
    variables = variables_of(chosen, f"model {model.name!r}")
    file = None if machine is None else Path(machine)
    settings = Settings(
        steps, every, threads, layout, halo_depth, overlap, machine=file, balance=balance, until=stop, observe=observe,
        device=device,
    )  # fmt: skip
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
