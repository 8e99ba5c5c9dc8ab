"""One run of a model from beginning to end on given ranks: frames, digest, observables and ledger.

:func:`minga.running.run.run` is the entry from Python; the command line writes the same files to a directory.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from minga.engine.comm import Comm
from minga.engine.diagnostics import Finding
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.state import Position
from minga.engine.stop import Ended, stop_of
from minga.options import RunOptions
from minga.output.account import account_entry, balance_entry, plan_entry
from minga.output.cells import blocks_of_cells, layout_of_cells
from minga.output.checkpoint.keeper import Keeper
from minga.output.digest import digest_of_blocks
from minga.output.ledger import blocks_entry, ledger_entry, levels_entry, machine_entry
from minga.output.trace import RankTrace, Stopwatch, events_a_thread, gather_traces
from minga.plan.resolve import ResolvedPlan, balancer_of, resolve
from minga.running.goal import ending_time
from minga.running.growing import Growing, check_options, plane_digest
from minga.running.growing_state import GrowingState
from minga.running.loop import Result, drive
from minga.running.observer import Observer
from minga.running.observers.balance import Balance
from minga.running.observers.checkpoints import Checkpoints
from minga.running.observers.ending import Asked
from minga.running.observers.finite import Finite
from minga.running.observers.frames import Frames, Recorder
from minga.running.painting import Painting
from minga.space.box import Box
from minga.space.field import Field
from minga.space.grid import Grid
from minga.space.layout import Layout

if TYPE_CHECKING:
    from minga.plan.balance import Balancer
    from minga.plan.drop import Drop

__all__ = ["Outcome", "execute"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run, equal on all ranks except for gathered data (ledger and traces), which rank 0 has."""

    steps: int
    """Number of completed steps."""
    time: float
    """Time of the model, in the unit of its clock; the number of steps if it has none."""
    seconds: float
    """Wall time of these steps, without output."""
    cells_per_second: float | None
    """Cell updates per second; None on an unbounded plane."""
    digest: str
    """Fingerprint of the last state, 16 hexadecimal digits: see :mod:`minga.output.digest`."""
    observables: dict[str, Any]
    ended: Ended
    """Reason of the end."""
    ledger: dict[str, Any] = field(default_factory=dict)
    """Times of all ranks, see :mod:`minga.output.ledger`."""
    layout: list[dict[str, Any]] = field(default_factory=list)
    """Blocks of cells: ``rank``, ``lo``, ``hi``."""
    traces: list[RankTrace] | None = None
    findings: tuple[Finding, ...] = ()
    """Findings to be shown to the user."""
    window: Box | None = None
    """Cells of an unbounded plane on which the run ended; None on other grids."""

    @property
    def facts(self) -> dict[str, int | str]:
        """Findings as data, by name."""
        return {name: value for finding in self.findings for name, value in finding.facts.items()}


def execute(
    model: Model,
    comm: Comm,
    options: RunOptions,
    fields: Sequence[Field],
    observers: Sequence[Observer] = (),
    *,
    recorder: Recorder | None = None,
    keeper: Keeper | None = None,
    asked: Callable[[], bool] | None = None,
    on_plan: Callable[[ResolvedPlan, dict[str, Any]], None] | None = None,
    on_drop: Callable[[Drop], object] | None = None,
    cpus: Sequence[int] | None = None,
    growing: Growing | None = None,
    painting: Painting | None = None,
) -> Outcome:
    """Run a model on the ranks of ``comm``; collective.

    Parameters
    ----------
    model, comm, options
        The model, the ranks, and the settings of the run.
    fields
        The output fields; the digest is also computed from them, in this order.
    observers
        Observers in addition to frames, checkpoints and balance: see :class:`minga.running.observer.Observer`.
    recorder
        Takes frames at step 0, at intervals of ``output.every``, and at the end. They are all complete on return.
    keeper
        Writes checkpoints, and may resume from one: output up to that step is not repeated, and the steps and seconds
        of the checkpoint are included in the result.
    asked
        Called on every rank from time to time. If it returns True on any rank, all ranks stop at the same step, or
        raise KeyboardInterrupt if ranks are still being timed before the first step.
    on_plan
        Called on rank 0 before the first step with the resolved plan, and with its data for ``plan.json``.
    on_drop
        Called on rank 0 with hosts without which the rest of the run would be shorter, a restart included.
    cpus
        The logical processor to which each thread is pinned; by default threads are not pinned.
    growing
        The window of a model on an unbounded plane; None: the model's grid is all there is.
    painting
        Cells that pages may set between steps; None: only those of `run.edits`.

    Returns
    -------
    Outcome
        The result of the run.
    """
    if growing is not None:
        check_options(options)
    painting = painting or Painting.of(model, comm, options)
    output = Stopwatch(keep=options.output.trace)
    resolved = resolve(model, comm, options, cpus, asked)
    balancer = None if growing is not None else balancer_of(model, comm, options, resolved, on_drop)
    watching = [Finite(options.output.every), *observers]
    watching += [Asked(asked)] if asked is not None else []
    watching += [Frames(recorder, options.output.every)] if recorder is not None else []
    watching += [Checkpoints(keeper)] if keeper is not None else []
    watching += [Balance(balancer)] if balancer is not None else []
    watching += [GrowingState(growing)] if growing is not None and keeper is not None else []
    with ExitStack() as engines:

        def open_engine(layouts: Mapping[Grid, Layout]) -> Engine:
            return Engine(
                layouts,
                comm=comm,
                threads=options.run.threads,
                halo_depth=resolved.halo_depth,
                overlap=resolved.overlap,
                poll=options.run.poll,
                device=options.run.device,
                cpus=cpus,
                trace=events_a_thread(comm.size * options.run.threads) if options.output.trace else 0,
            )

        engine = open_engine(resolved.layouts)
        if growing is None:
            engines.callback(engine.close)
        else:
            growing.begin(engine, lambda moved: open_engine(moved.layouts("bisection", comm.size)))
            engines.callback(growing.close)
        hosts = comm.gather(platform.node())
        if on_plan is not None and hosts is not None:
            on_plan(resolved, plan_entry(resolved, hosts, layout_of_cells(engine, model)))
        result = drive(
            model,
            engine,
            options.run.steps,
            watching,
            until=stop_of(options.stop),
            end=ending_time(options),
            output=output,
            growing=growing,
            painting=painting,
        )
        if growing is not None:
            model, engine = growing.model, growing.engine
        traces = gather_traces(engine, output.spans) if options.output.trace else None
        cells = layout_of_cells(engine, model)
        entry = ledger_entry(engine, cells, output.seconds, None if recorder is None else recorder.written)
        if keeper is not None and keeper.written:
            entry["seconds"]["checkpoint"] = keeper.seconds
        entries = comm.gather(entry)
        sessions = [] if keeper is None else keeper.sessions_of(engine, Position(result.steps, result.seconds))
        return Outcome(
            steps=result.steps,
            time=result.time,
            seconds=result.seconds,
            cells_per_second=result.cells_per_second,
            digest=state_digest(engine, model, fields) if growing is None else plane_digest(model, engine),
            observables=dict(result.observables),
            ended=result.ended,
            ledger=_whole_ledger(entries, resolved, balancer, options, result, sessions) if entries else {},
            layout=blocks_entry(cells),
            traces=traces,
            findings=(*result.findings, *_of_shares(resolved)),
            window=None if growing is None else growing.growth.window,
        )


def _of_shares(resolved: ResolvedPlan) -> tuple[Finding, ...]:
    """Return a finding if nodes were given equal shares because they were not measured."""
    text = resolved.unmeasured
    return () if text is None else (Finding(text, {"shares": "equal, nodes not measured"}),)


def _whole_ledger(
    entries: list[dict[str, Any]],
    resolved: ResolvedPlan,
    balancer: Balancer | None,
    options: RunOptions,
    result: Result,
    sessions: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the content of ``ledger.json`` from the entries of all ranks, on rank 0."""
    prediction = None if resolved.plan is None else resolved.plan.prediction
    first = result.resumed.step
    steps, seconds = result.steps - first, result.seconds - result.resumed.seconds
    held = None if balancer is None else balancer.mean_cells(steps).tolist()
    balance = None if balancer is None else balance_entry(balancer)
    for decision in balance["decisions"] if balance is not None else ():
        decision["step"] += first
    return {
        "ranks": entries,
        "sessions": sessions,
        "machine": machine_entry(resolved.seats, options.run.topology, resolved.mapping),
        "levels": levels_entry(entries, resolved.seats),
        "account": account_entry(entries, steps, seconds, prediction, held),
        "balance": balance,
    }


def state_digest(engine: Engine, model: Model, fields: Sequence[Field]) -> str:
    """Return the digest of the current state of fields of a model; collective, equal on all ranks."""
    mine = digest_of_blocks(
        # A replicated field, which every rank holds completely, is counted once.
        [
            (f.bounds, blocks_of_cells(engine, model, f.name) if engine.comm.rank == 0 or not f.replicated else ())
            for f in fields
        ]
    )
    buffer = np.array([mine], np.uint64).view(np.int64)
    engine.comm.allreduce(buffer, "sum")
    return f"{int(buffer.view(np.uint64)[0]):016x}"
