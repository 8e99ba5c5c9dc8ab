"""Running a checked case on the ranks there are, and writing what it leaves; the same alone, in a job, or launched."""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable
from typing import Any

from minga.cli.case import Case
from minga.engine.comm import Comm
from minga.engine.pin import local_place, pin
from minga.errors import RunError
from minga.record.costs import step_costs
from minga.record.directory import RunDirectory, write_whole
from minga.record.environment import environment
from minga.record.live import LiveRecord
from minga.record.planning import Settled
from minga.record.series import SeriesFile
from minga.record.session import Outcome, Settings, execute
from minga.record.store import FrameStore
from minga.record.trace import write_trace
from minga.record.variables import variables_of
from minga.view.progress import Listener, Progress

__all__ = ["perform"]


def perform(
    case: Case, comm: Comm, directory: RunDirectory, listener: Listener, stop: Callable[[], bool]
) -> dict[str, Any] | None:
    """Run a case; collective. On rank 0 the result, which is also in the directory; None on the others."""
    pinning = pin(*_place_on_node(comm), case.run.threads)
    store = FrameStore(directory.fields, variables_of(case.fields), _attributes(case)) if comm.rank == 0 else None
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
        trace=case.output.trace,
        until=case.stop.stop,
        observe=case.output.observe,
    )
    series = SeriesFile(directory)

    def planned(settled: Settled, entry: dict[str, Any]) -> None:
        write_whole(directory.plan, entry)
        if settled.plan is not None:
            listener.note(f"minga: plan: {settled.summary}")

    on_frame = (lambda step, arrays: store.append(step, arrays)) if store else (lambda step, arrays: None)
    outcome = execute(
        case.model,
        comm,
        settings,
        case.fields,
        on_frame,
        progress,
        stop,
        pinning.workers,
        look=live.look,
        on_look=live.on_look,
        on_observe=series.add,
        on_plan=planned,
    )
    if comm.rank != 0:
        return None
    result = result_of(case, outcome, comm.size, directory)
    if store is not None:
        store.describe({key: result[key] for key in ("steps", "digest")} | result["observables"])
    live.close(outcome.steps, outcome.seconds)
    write_whole(directory.result, result)  # first: should the disk be full, this is what matters
    series.write(lasting=True)
    write_whole(directory.ledger, outcome.ledger)
    if outcome.traces is not None:
        write_trace(directory.trace, outcome.traces)
    return result


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
    }


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
