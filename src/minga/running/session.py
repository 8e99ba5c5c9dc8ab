"""One run from beginning to end on the ranks there are: frames, digest, observables and ledger of a model.

:func:`minga.output.run.run` is the way in from Python; the command line writes the same to a directory.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.lookout import Finding
from minga.engine.model import Model
from minga.engine.state import Position
from minga.engine.stop import Ended, Stop
from minga.output.account import account_entry, balance_entry, plan_entry
from minga.output.cells import blocks_of_cells, layout_of_cells
from minga.output.checkpoint.keeper import Keeper
from minga.output.digest import digest_of_blocks
from minga.output.ledger import blocks_entry, ledger_entry, levels_entry, machine_entry
from minga.output.trace import RankTrace, Stopwatch, events_a_thread, gather_traces
from minga.plan.settle import AUTO, Settled, balancer_of, settle
from minga.running.loop import Result, drive
from minga.running.observer import Observer
from minga.running.observers.balance import Balance
from minga.running.observers.checkpoints import Checkpoints
from minga.running.observers.ending import Asked
from minga.running.observers.finite import Finite
from minga.running.observers.frames import Frames, Recorder
from minga.space.field import Field

if TYPE_CHECKING:
    from minga.plan.balance import Balancer

__all__ = ["Outcome", "Settings", "execute"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is done; none of it changes a bit of the result, but for when it ends."""

    steps: int
    every: int | None = None
    threads: int = 1
    layout: str = AUTO
    """Who does which cells: a word such as ``"slabs"``, or ``"auto"``: planned (:mod:`minga.plan.settle`)."""
    halo_depth: int | Literal["auto"] = AUTO
    overlap: bool | Literal["auto"] = AUTO
    topology: str | None = None
    """The machine in words (:meth:`minga.plan.topology.Tree.parse`); by default it is what the ranks find."""
    mapping: str = AUTO
    """Which block goes where in it: see :mod:`minga.plan.placement`."""
    machine: Path | None = None
    """A machine file (:mod:`minga.plan.machine.machine`) to plan by; by default the ranks are timed."""
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
    """Fingerprint of the last state, 16 hexadecimal digits: see :mod:`minga.output.digest`."""
    observables: dict[str, Any]
    ended: Ended
    """Why there are no more steps."""
    ledger: dict[str, Any] = field(default_factory=dict)
    """See :mod:`minga.output.ledger`."""
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
    observers: Sequence[Observer] = (),
    *,
    recorder: Recorder | None = None,
    keeper: Keeper | None = None,
    asked: Callable[[], bool] | None = None,
    on_plan: Callable[[Settled, dict[str, Any]], None] | None = None,
    cpus: Sequence[int] | None = None,
) -> Outcome:
    """Run a model on the ranks of ``comm``; collective.

    Parameters
    ----------
    model, comm, settings
        What, on which ranks, how.
    fields
        The output fields; they also make up the digest, in this order.
    observers
        What happens between steps beside frames, checkpoints and balance: see :class:`minga.running.observer.Observer`.
    recorder
        Takes frames at step 0, every ``settings.every`` steps, and at the end. They are all complete when this returns.
    keeper
        Writes checkpoints, and may begin with one: output up to there is not repeated, and its steps and seconds count.
    asked
        Asked on every rank now and then; where it says yes on any, all stop at the same step, or raise
        KeyboardInterrupt where ranks are timed before the first one.
    on_plan
        Called on rank 0 before the first step with how the run is done, also as data for ``plan.json``.
    cpus
        A logical processor for each thread to stay on; by default they move freely.
    """
    output = Stopwatch(keep=settings.trace)
    settled = settle(model, comm, settings, cpus, asked)
    balancer = balancer_of(model, comm, settings, settled)
    watching = [Finite(settings.every), *observers]
    watching += [Asked(asked)] if asked is not None else []
    watching += [Frames(recorder, settings.every)] if recorder is not None else []
    watching += [Checkpoints(keeper)] if keeper is not None else []
    watching += [Balance(balancer)] if balancer is not None else []
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
        result = drive(model, engine, settings.steps, watching, until=settings.until, output=output)
        traces = gather_traces(engine, output.spans) if settings.trace else None
        cells = layout_of_cells(engine, model)
        entry = ledger_entry(engine, cells, output.seconds, None if recorder is None else recorder.written)
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
