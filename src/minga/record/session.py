"""One run from beginning to end on the ranks there are: frames, digest, observables and ledger of a model.

:func:`minga.record.run.run` is the way in from Python; the command line writes the same to a directory.
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

from minga.engine.comm import Comm
from minga.engine.drive import Result, drive, updates_of
from minga.engine.engine import Engine
from minga.engine.lookout import Finding
from minga.engine.model import Model
from minga.engine.state import BEGINNING, Position
from minga.engine.stop import Ended, Stop
from minga.record.account import account_entry, balance_entry, plan_entry
from minga.record.cells import blocks_of_cells, layout_of_cells
from minga.record.checkpoint.keeper import Keeper
from minga.record.digest import digest_of_blocks
from minga.record.ledger import blocks_entry, ledger_entry, levels_entry, machine_entry
from minga.record.planning import AUTO, Settled, balancer_of, settle
from minga.record.snapshots.snapshots import Snapshots
from minga.record.snapshots.whole import WholeFrames
from minga.record.trace import RankTrace, Stopwatch, events_a_thread, gather_traces
from minga.space.field import Field

if TYPE_CHECKING:
    from minga.fit.balance import Balancer

__all__ = ["Outcome", "Settings", "execute"]

Arrays = Mapping[str, NDArray[Any]]


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
    findings: tuple[Finding, ...] = ()
    """What people should know of the run."""

    @property
    def facts(self) -> dict[str, int | str]:
        """The findings as data, by name."""
        return {name: value for finding in self.findings for name, value in finding.facts.items()}


def execute(
    model: Model,
    comm: Comm,
    settings: Settings,
    fields: Sequence[Field],
    on_frame: Callable[[int, float, Arrays], None] | None = None,
    on_progress: Callable[[int, float, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    cpus: Sequence[int] | None = None,
    look: Callable[[], bool] | None = None,
    on_look: Callable[[int, Engine, dict[str, Any]], None] | None = None,
    on_observe: Callable[[int, Mapping[str, Any]], None] | None = None,
    on_plan: Callable[[Settled, dict[str, Any]], None] | None = None,
    snapshots: Snapshots | None = None,
    keeper: Keeper | None = None,
    on_last: Callable[[], None] | None = None,
) -> Outcome:
    """Run a model on the ranks of ``comm``; collective.

    Parameters
    ----------
    model, comm, settings
        What, on which ranks, how.
    fields
        The output fields; they also make up the digest, in this order.
    on_frame
        Called on rank 0 with the step, the time of the model and whole arrays, at step 0, every ``settings.every``
        steps, and at the end.
    on_progress
        Called on rank 0 now and then with the steps done, the seconds since the first, and how often all cells were
        updated.
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
    on_last
        Called on every rank when all have agreed that there are no more steps, before the last output.
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
            on_progress(step, earlier.seconds + time.perf_counter() - started, updates_of(model, engine, step))

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
            on_last=on_last,
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
            findings=(*result.findings, *_of_shares(settled)),
        )


def _of_shares(settled: Settled) -> tuple[Finding, ...]:
    """That nodes had equal shares because nobody measured them."""
    text = settled.unmeasured
    return () if text is None else (Finding(text, {"shares": "equal, nodes not measured"}),)


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
