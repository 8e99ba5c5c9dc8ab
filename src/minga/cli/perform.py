"""Running a checked case and writing its output; the same in one process, in a job, and on launched ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minga.cli.case import Case
from minga.engine.comm import Comm
from minga.engine.pin import local_place, pin
from minga.output.checkpoint.identity import case_of
from minga.output.directory import RunDirectory, noticing_removal, write_whole
from minga.output.live import LiveRecord
from minga.output.progress import touched
from minga.plan.resolve import ResolvedPlan
from minga.running.goal import ending_time
from minga.running.growing import Growing
from minga.running.observer import Observer
from minga.running.observers.ending import LastStep
from minga.running.observers.progress import Progress, preview_of, progress_of
from minga.running.painting import Painting
from minga.running.past import Past
from minga.running.run_output import RunOutput, has_checkpoints
from minga.running.session import execute
from minga.running.simulation import Simulation
from minga.view.progress import Listener

if TYPE_CHECKING:
    from minga.plan.drop import Drop

__all__ = ["perform"]


def perform(
    case: Case,
    comm: Comm,
    directory: RunDirectory,
    listener: Listener,
    stop: Callable[[], bool],
    resume: bool = False,
    on_last: Callable[[], None] | None = None,
    observers: Sequence[Observer] = (),
    on_drop: Callable[[Drop], object] | None = None,
    past: Past | None = None,
) -> dict[str, Any] | None:
    """Run or resume a case; collective.

    Parameters
    ----------
    case
        The checked case.
    comm
        The ranks of the run.
    directory
        The directory of the run.
    listener
        Receives progress and notes on this rank.
    stop
        Returns True, on every rank, when the run is to end.
    resume
        Whether to resume the run in the directory.
    on_last
        Called on every rank after the last step.
    observers
        Observers beside those of the case.
    on_drop
        Called on rank 0 with hosts without which the rest of the run would be shorter, a restart included.
    past
        What the command has done before it started these ranks.

    Returns
    -------
    dict or None
        On rank 0 the result, which is also in the directory; None on the other ranks.
    """
    with noticing_removal(directory.path), touched(directory, comm.rank):
        return _perform(case, comm, directory, listener, stop, resume, on_last, observers, on_drop, past)


def _perform(
    case: Case,
    comm: Comm,
    directory: RunDirectory,
    listener: Listener,
    stop: Callable[[], bool],
    resume: bool,
    on_last: Callable[[], None] | None,
    observers: Sequence[Observer],
    on_drop: Callable[[Drop], object] | None,
    past: Past | None,
) -> dict[str, Any] | None:
    options = case.located
    resumes = resume and has_checkpoints(comm, directory)
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    pinning = pin(*_place_on_node(comm), case.run.threads)
    growing = None if case.model.growth is None else Growing(case.model)
    kept = RunOutput.of(
        directory,
        case.model,
        case.fields,
        comm,
        options,
        resume=resumes,
        case=case_of(directory.case, directory.inputs) if comm.rank == 0 else {},
        attributes={"title": case.name},
        cpus=cpus,
        note=listener.note,
        past=past,
        growing=growing,
    )
    live = LiveRecord(case.model, case.run.steps, comm, directory)

    end = ending_time(options)

    def progress(simulation: Simulation, seconds: float, updates: int) -> None:
        live.progress(simulation.step, seconds, updates, simulation.steps)
        listener.progress(progress_of(simulation, seconds, updates, end))

    def planned(resolved: ResolvedPlan, entry: dict[str, Any]) -> None:
        write_whole(directory.plan, entry)
        if resolved.plan is not None:
            listener.note(f"minga: plan: {resolved.summary}")

    ending = [] if on_last is None else [LastStep(on_last)]
    named = [observer.make(directory.path) for observer in case.observers]
    more = [*ending, *observers, *named]
    try:
        outcome = execute(
            case.model,
            comm,
            options,
            case.fields,
            [kept.observer, preview_of(live, growing), Progress(progress), *more],
            recorder=kept.snapshots,
            keeper=kept.keeper,
            asked=stop,
            on_plan=planned,
            on_drop=on_drop,
            cpus=pinning.workers,
            growing=growing,
            painting=Painting.of(case.model, comm, options, directory, listener.note),
        )
    except BaseException:
        kept.abandon(case.model)  # write all output that was taken, whatever happened
        raise
    result = None
    if comm.rank == 0:
        live.close(outcome.steps, outcome.seconds)
        result = kept.finish(case.model, outcome, comm.size, case.run.threads)
    kept.leave(outcome, comm)
    return result


def _place_on_node(comm: Comm) -> tuple[int, int]:
    """Return the number of this rank among the ranks of its node, and the number of those ranks; collective."""
    nodes = comm.bcast(comm.gather(comm.node))
    mine = [rank for rank, node in enumerate(nodes) if node == comm.node]
    return local_place(mine.index(comm.rank), len(mine))
