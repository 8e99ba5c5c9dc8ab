"""Running a checked case on the ranks there are, and writing what it leaves; the same alone, in a job, or launched."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
from collections.abc import Callable
from typing import Any

from minga.cli.case import Case
from minga.cli.resume import begin_anew
from minga.engine.comm import Comm
from minga.engine.pin import local_place, pin
from minga.errors import RunError
from minga.record.checkpoint.head import heads_of
from minga.record.checkpoint.identity import case_of
from minga.record.checkpoint.keeper import UNFINISHED, Keeper
from minga.record.costs import step_costs
from minga.record.directory import RunDirectory, write_whole
from minga.record.environment import environment
from minga.record.live import LiveRecord
from minga.record.planning import Settled
from minga.record.series import SeriesFile
from minga.record.session import Outcome, Settings, execute
from minga.record.snapshots.archive import describe
from minga.record.snapshots.snapshots import Snapshots
from minga.record.trace import write_trace
from minga.record.traces import write_traces
from minga.view.progress import Listener, Progress

__all__ = ["perform"]


def perform(
    case: Case,
    comm: Comm,
    directory: RunDirectory,
    listener: Listener,
    stop: Callable[[], bool],
    resume: bool = False,
) -> dict[str, Any] | None:
    """Run a case, or with ``resume`` go on with it; collective.

    On rank 0 the result, which is also in the directory; None on the others.
    """
    goes_on = resume and _has_checkpoints(comm, directory)
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    pinning = pin(*_place_on_node(comm), case.run.threads)
    kept = case.output.snapshots
    snapshots = Snapshots(
        directory.fields,
        case.model,
        case.fields,
        kept,
        comm,
        attributes=_attributes(case),
        resume=goes_on,
        cpus=cpus,
    )
    cells = case.model.grid.size
    live = LiveRecord(case.model, case.run.steps, comm, directory)

    def progress(step: int, seconds: float) -> None:
        live.progress(step, seconds)
        listener.progress(Progress(step, case.run.steps, seconds, cells, comm.size))

    settings = Settings(
        steps=case.run.steps,
        every=case.output.every,
        threads=case.run.threads,
        layout=case.run.layout,
        halo_depth=case.run.halo_depth,
        overlap=case.run.overlap,
        topology=case.run.topology,
        mapping=case.run.mapping,
        machine=case.machine,
        balance=case.run.balance,
        poll=case.run.poll,
        device=case.run.device,
        trace=case.output.trace,
        until=case.stop.stop,
        observe=case.output.observe,
        writers=case.output.writers,
    )
    series = SeriesFile(directory)

    def flush(step: int) -> None:
        snapshots.drain(lasting=True)
        if comm.rank == 0:
            series.write(lasting=True)

    def rewind(step: int) -> None:
        every = case.output.every
        if comm.rank == 0:
            directory.result.unlink(missing_ok=True)  # of the run as it was when it was interrupted
        damaged = snapshots.truncate(step - step % every if every else 0)
        if damaged:
            numbers = ", ".join(map(str, damaged[:10])) + (", ..." if len(damaged) > 10 else "")
            listener.note(
                f"minga: frames {numbers} in {directory.fields} are damaged or missing; what is gone reads as NaN or 0"
            )
        series.go_on(step, every, case.output.observe)

    keeper = Keeper(
        directory.checkpoints,
        comm,
        case.checkpoint.schedule(case.run.wall_time),
        resumes=goes_on,
        stop=case.stop.stop,
        case=case_of(directory.case, directory.inputs) if comm.rank == 0 else {},
        flush=flush,
        rewind=rewind,
        note=listener.note,
    )

    def planned(settled: Settled, entry: dict[str, Any]) -> None:
        write_whole(directory.plan, entry)
        if settled.plan is not None:
            listener.note(f"minga: plan: {settled.summary}")

    try:
        outcome = execute(
            case.model,
            comm,
            settings,
            case.fields,
            None,
            progress,
            stop,
            pinning.workers,
            look=live.look,
            on_look=live.on_look,
            on_observe=series.add,
            on_plan=planned,
            snapshots=snapshots,
            keeper=keeper,
        )
    except BaseException:
        snapshots.abandon()  # what is computed and taken is written, whatever happened
        raise
    if comm.rank != 0:
        return None
    result = result_of(case, outcome, comm.size, directory)
    describe(directory.fields, {key: result[key] for key in ("steps", "digest")} | result["observables"])
    live.close(outcome.steps, outcome.seconds)
    try:
        series.write(lasting=True)
        if case.model.traces is not None:
            write_traces(directory.traces, case.model.traces, series.series)
        write_whole(directory.ledger, outcome.ledger)
    finally:  # a run that has a result is finished; should the disk be full, this is what matters
        write_whole(directory.result, result)
    if outcome.traces is not None:
        write_trace(directory.trace, outcome.traces)
    if outcome.ended.reason not in UNFINISHED:
        keeper.discard()
    return result


def _has_checkpoints(comm: Comm, directory: RunDirectory) -> bool:
    """Whether a run that is resumed has checkpoints, whole or not; if not, what it has left is removed. Collective."""
    answer = None
    if comm.rank == 0:
        answer = any(map(bool, heads_of(directory.checkpoints)))
        if not answer:
            begin_anew(directory)
    return bool(comm.bcast(answer))


def _place_on_node(comm: Comm) -> tuple[int, int]:
    """This rank's number among those of its node, and how many they are; collective."""
    nodes = comm.bcast(comm.gather(comm.node))
    mine = [rank for rank, node in enumerate(nodes) if node == comm.node]
    return local_place(mine.index(comm.rank), len(mine))


def result_of(case: Case, outcome: Outcome, ranks: int, directory: RunDirectory) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "model": case.model.name,
        "shape": list(case.model.grid.shape),
        "steps": outcome.steps,
        "ended": outcome.ended.as_dict(),
        "ranks": ranks,
        "threads": case.run.threads,
        "seconds": outcome.seconds,
        "cells_per_second": outcome.cells_per_second,
        "digest": outcome.digest,
        "observables": {name: _plain(value, name) for name, value in outcome.observables.items()},
        "run": str(directory.path),
        "layout": outcome.layout,
        "costs": step_costs(case.model),
        "environment": environment(),
    } | _known_before(directory)


def _known_before(directory: RunDirectory) -> dict[str, Any]:
    """What was said before the first step, where anything was."""
    try:
        return {"preflight": json.loads(directory.preflight.read_text())}
    except (OSError, ValueError):
        return {}


def _attributes(case: Case) -> dict[str, Any]:
    return {"title": case.name, "source": f"minga {importlib.metadata.version('minga')}", "model": case.model.name}


def _plain(value: Any, name: str) -> Any:
    """A value as JSON knows it; JSON has no numbers that are not finite, so these become words."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry, name) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    raise RunError(f"the observable {name!r} is {value!r}, which is neither a number nor a list of numbers")
