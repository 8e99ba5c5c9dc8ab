"""Runs from Python with a directory: they start or resume there, and write the same files as the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.engine.begin import start
from minga.engine.comm import Comm
from minga.engine.engine import Engine
from minga.engine.model import Model
from minga.engine.state import state_of
from minga.engine.stop import Stop, Watch, stop_of
from minga.errors import CaseError, MingaError
from minga.options import FIXED, RunOptions, marked
from minga.output.checkpoint.head import heads_of
from minga.output.checkpoint.identity import changed_entries
from minga.output.checkpoint.keeper import Checkpointing, Keeper, changed_parts
from minga.output.dataset import attach_dataset, failed_attributes, open_dataset
from minga.output.directory import RunDirectory, disk_errors, noticing_removal, write_whole
from minga.output.disk_space import check_room, need_of
from minga.output.live import LiveRecord
from minga.output.progress import touched
from minga.output.provenance import COMMAND
from minga.output.series import Series, SeriesFile
from minga.output.snapshots.archive import manifest_of
from minga.output.snapshots.manifest import read_manifest
from minga.running.finishing import note_failure
from minga.running.goal import Goal
from minga.running.growing import Growing
from minga.running.observer import Observer
from minga.running.observers.progress import Progress, preview_of
from minga.running.painting import Painting
from minga.running.run_output import RunOutput, check_unfinished, finished_result, has_checkpoints
from minga.running.session import Outcome, execute
from minga.running.simulation import Simulation
from minga.space.field import Field

__all__ = ["PreparedDirectory", "finished_result_in", "prepare_directory", "run_in_directory"]


@dataclass(frozen=True, slots=True)
class PreparedDirectory:
    """Directory of a run, and its state."""

    directory: RunDirectory
    resumes: bool
    """True if the run in the directory is resumed from a checkpoint."""
    made: bool
    """True if the directory was created for this run."""
    finished: bool = False
    """True if the run in the directory is finished, and no further steps are requested."""


def prepare_directory(comm: Comm, out: Path, resume: bool, goal: Goal) -> PreparedDirectory:
    """Create a directory for a run, or with `resume` examine that of an interrupted run; collective.

    Parameters
    ----------
    comm
        The ranks.
    out
        Path of the directory.
    resume
        Whether a run in the directory may be resumed.
    goal
        Requested end.

    Returns
    -------
    Place
        The directory and its state, equal on all ranks.

    Raises
    ------
    CaseError
        On every rank, if the directory contains other files, or a run that cannot be resumed.
    RunError
        On every rank, if the disk fails.
    """
    answer: RunDirectory | MingaError | None = None
    finished = False
    if comm.rank == 0:
        try:
            with disk_errors(out):
                answer = _made(out)
                if answer is None:
                    finished = _check(RunDirectory(out), resume, goal)
        except MingaError as error:
            answer = error
    answer, finished = comm.bcast((answer, finished))
    if isinstance(answer, MingaError):
        raise answer
    if answer is not None:
        return PreparedDirectory(answer, resumes=False, made=True)
    directory = RunDirectory(out)
    if finished:
        return PreparedDirectory(directory, resumes=False, made=False, finished=True)
    return PreparedDirectory(directory, has_checkpoints(comm, directory), made=False)


def run_in_directory(
    place: PreparedDirectory,
    model: Model,
    comm: Comm,
    options: RunOptions,
    fields: Sequence[Field],
    stop: Callable[[], bool],
    observers: Sequence[Observer] = (),
    command: str = "",
) -> tuple[Outcome, Series]:
    """Run or resume a model, and return the outcome, and on rank 0 all observations; collective.

    The files of a run that begins say that `command` made them.
    An error carries the output kept until then: see `minga.output.dataset.attach_dataset`.
    """
    directory = place.directory
    growing = None if model.growth is None else Growing(model)
    try:
        _check_room(place, model, comm, options, fields)
        with noticing_removal(directory.path):
            kept = _open_output(place, model, comm, options, fields, command, growing)
            live = LiveRecord(model, options.run.steps, comm, directory)

        def progress(simulation: Simulation, seconds: float, updates: int) -> None:
            live.progress(simulation.step, seconds, updates, simulation.steps)

        try:
            with noticing_removal(directory.path), touched(directory, comm.rank):
                outcome = execute(
                    model,
                    comm,
                    options,
                    fields,
                    [kept.observer, preview_of(live, growing), Progress(progress), *observers],
                    recorder=kept.snapshots,
                    keeper=kept.keeper,
                    asked=stop,
                    on_plan=lambda resolved, entry: write_whole(directory.plan, entry),
                    growing=growing,
                    painting=Painting.of(model, comm, options, directory),
                )
        except BaseException as error:
            kept.abandon(model)
            if comm.rank == 0 and (lines := read_manifest(manifest_of(directory.fields))):
                attributes = failed_attributes(model, [line.step for line in lines], error)
                attach_dataset(
                    error, open_dataset(directory, model, kept.series.series, attributes), f", and in {directory.path}"
                )
            raise
    except BaseException as error:
        if comm.rank == 0 and not (place.made and directory.discard()):  # which removes a run that never began
            note_failure(directory, error)
        raise
    if comm.rank == 0:
        with noticing_removal(directory.path):
            live.close(outcome.steps, outcome.seconds)
            kept.finish(model, outcome, comm.size, options.run.threads)
    kept.leave(outcome, comm)
    return outcome, kept.series.series


def _check_room(
    place: PreparedDirectory, model: Model, comm: Comm, options: RunOptions, fields: Sequence[Field]
) -> None:
    """Raise CaseError on every rank if the disk has no room for the frames; warn on rank 0 if it may not suffice."""
    answer: str | CaseError | None = None
    if comm.rank == 0:
        need = need_of(place.directory, model, fields, options)
        try:
            answer = check_room(place.directory.path, need, "every")
        except CaseError as error:
            answer = error
    answer = comm.bcast(answer)
    if isinstance(answer, CaseError):
        raise answer
    if answer is not None and comm.rank == 0:
        _say(answer)


def _open_output(
    place: PreparedDirectory,
    model: Model,
    comm: Comm,
    options: RunOptions,
    fields: Sequence[Field],
    command: str,
    growing: Growing | None,
) -> RunOutput:
    """Create the writers of a run that starts or resumes; collective."""
    return RunOutput.of(
        place.directory,
        model,
        fields,
        comm,
        options,
        resume=place.resumes,
        case=_case(options, fields),
        attributes={COMMAND: command},
        note=_say,
        remembers=True,
        growing=growing,
    )


def _case(options: RunOptions, fields: Sequence[Field]) -> dict[str, Any]:
    """Return the settings that must not change when a run is resumed, besides the model and its end conditions."""
    output = options.output
    entries = {"every": output.every, "fields": [field.name for field in fields], "observe": output.observe}
    others = {name for table, name in marked(FIXED) if table == "output"} - set(entries)
    return entries | output.model_dump(include=others, exclude_defaults=True)


def finished_result_in(
    place: PreparedDirectory, model: Model, comm: Comm, options: RunOptions, fields: Sequence[Field]
) -> tuple[dict[str, Any], Series]:
    """Return the result of a finished run, and on rank 0 all observations; collective.

    Raises
    ------
    CaseError
        On every rank, if the run had another model or other settings.
    """
    result = comm.bcast(finished_result(place.directory) if comm.rank == 0 else None)
    was = result.get("identity")
    if was is None:
        raise CaseError(
            f"the run in {place.directory.path} is finished, and an earlier version of minga did not record its model",
            remedy=f"open it: xarray.open_zarr({str(place.directory.fields)!r}), or choose another directory",
        )
    changed = changed_entries(was["case"], _case(options, fields))
    changed += [f"the {part} of the model" for part in changed_parts(was["model"], _identity(model, comm, options))]
    if changed:
        raise CaseError(
            f"the run in {place.directory.path} is finished, and was a different run; these parts differ:\n  "
            + "\n  ".join(changed),
            remedy="resume it as it was, or choose another directory",
        )
    series = SeriesFile(place.directory)
    if comm.rank == 0:
        series.resume(result["steps"])
    return result, series.series


def _identity(model: Model, comm: Comm, options: RunOptions) -> dict[str, str]:
    """Return the identity of a model, including its initial values; collective."""
    until = stop_of(options.stop)
    watch = None if until is None and model.over is None else Watch(model, until or Stop())
    state = state_of(model, None if watch is None else watch.program)
    keeper = Keeper(Path(), comm, Checkpointing(off=True), stop=until, remembers=True)
    with Engine(model.layouts("bisection", comm.size), comm=comm, threads=options.run.threads) as engine:
        start(model, engine)
        keeper.resume(model, engine, state)
    return keeper.identity


def _made(path: Path) -> RunDirectory | None:
    """Create a directory for a new run; return None if the path exists and is not an empty directory."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        return None
    return RunDirectory.create(path, path.name)


def _check(directory: RunDirectory, resume: bool, goal: Goal) -> bool:
    """Return True if the run in a directory is finished; raise CaseError if it cannot be resumed."""
    path = directory.path
    ours = directory.fields.exists() or directory.checkpoints.exists()
    if directory.case.exists() or not (ours and resume):
        raise CaseError(
            f"out={str(path)!r} holds {'a run' if ours else 'files'} already; nothing is overwritten",
            remedy=f"resume it with minga run --resume {path}, or choose another directory"
            if directory.case.exists()
            else "choose another directory" + (", or resume the run with resume=True" if ours else ""),
        )
    heads, _ = heads_of(directory.checkpoints)
    result = finished_result(directory)
    if result is not None and (goal.met(result) or result["ended"]["reason"] != "steps"):
        return True
    goal.check(heads[0].step if heads else 0, result, "steps")
    check_unfinished(
        directory,
        heads,
        goal,
        keys=("resume", goal.entry),
        longer=f"give {goal.entry}={{}}",
        kept="checkpoint=Checkpointing(steps=..., at_end=True)",
    )
    return False


def _say(note: str) -> None:
    sys.stderr.write(note + "\n")
