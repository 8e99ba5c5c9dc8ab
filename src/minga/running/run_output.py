"""Files that a run writes and resumes from: frames, observables, checkpoints.

They are the same for the command line and for :func:`minga.run`. :class:`minga.output.directory.RunDirectory` has
their paths.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minga.engine.comm import Comm
from minga.engine.model import Model
from minga.engine.stop import stop_of
from minga.errors import CaseError, DiskFullError, MingaError, RunError
from minga.options import RunOptions
from minga.output.checkpoint.head import Head, heads_of
from minga.output.checkpoint.keeper import UNFINISHED, Keeper, checkpointing_of
from minga.output.directory import RunDirectory, disk_errors, run_id, write_whole
from minga.output.epoch import Epoch, begin_epoch, epoch_number
from minga.output.provenance import origin_of
from minga.output.series import SeriesFile
from minga.output.snapshots.archive import describe, manifest_of
from minga.output.snapshots.snapshots import Snapshots
from minga.output.tables import tables_of, write_tables
from minga.output.trace import write_trace
from minga.output.traces import write_traces
from minga.output.variables import model_attributes
from minga.plan.slurm import read_switches, switches_here
from minga.running.goal import Goal
from minga.running.growing import Growing
from minga.running.growing_frames import GrowingFrames
from minga.running.observer import Observer
from minga.running.observers.series import Series
from minga.running.past import Past
from minga.running.result import result_of
from minga.running.schedule import regular
from minga.running.session import Outcome
from minga.space.field import Field

__all__ = ["RunOutput", "check_unfinished", "finished_result", "has_checkpoints"]

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Writers of a run, created and used in the same way on all ranks."""

    directory: RunDirectory
    snapshots: Snapshots | GrowingFrames
    series: SeriesFile
    """Observables, on rank 0."""
    keeper: Keeper
    observer: Observer
    """Observer that adds observables to the series."""
    epoch: Epoch
    """Right to write the run."""

    @classmethod
    def of(
        cls,
        directory: RunDirectory,
        model: Model,
        fields: Sequence[Field],
        comm: Comm,
        options: RunOptions,
        *,
        resume: bool = False,
        case: Mapping[str, Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        cpus: Collection[int] | None = None,
        note: Note = lambda text: None,
        remembers: bool = False,
        past: Past | None = None,
        growing: Growing | None = None,
    ) -> RunOutput:
        """Create the writers of a run in a directory; collective.

        Parameters
        ----------
        directory
            The directory of the run.
        model, fields, comm
            The model, its output fields, and the ranks.
        options
            Settings that say how frames are kept and when checkpoints are written.
        resume
            True to resume the run in the directory.
        case
            Entries that must not change when the run is resumed, besides the model and [stop]; rank 0's are used.
        attributes
            Attributes of the store of frames, in addition to those of the model.
        cpus
            Logical processors for the writer threads.
        note
            Called on rank 0 with notes for the user.
        remembers
            True to record the identity of the model and its initial values, for runs without a case file.
        past
            What the command has done before; by default nothing.
        growing
            The window of a run on an unbounded plane, whose frames are written at its end.

        Raises
        ------
        CaseError, RunError
            As :class:`Snapshots` does.
        """
        past = past or Past()
        epoch = _begun(comm, directory)
        if options.checkpoint.directory is not None:
            _lead_elsewhere(comm, directory, Path(options.checkpoint.directory))
        every, observe = options.output.every, options.output.observe

        def store(model: Model, fields: Sequence[Field], resume: bool) -> Snapshots:
            about = {**model_attributes(model), **origin_of(model), **(attributes or {})}
            return Snapshots(
                directory.fields,
                model,
                fields,
                options.output,
                comm,
                attributes=about,
                resume=resume,
                cpus=cpus,
                check=epoch.check,
            )

        def store_of_plane(model: Model) -> Snapshots:
            if comm.rank == 0:
                remove_frames(directory)  # of an earlier session
            comm.barrier()
            return store(model, [model.field(field.name) for field in fields], False)

        snapshots = (
            store(model, fields, resume) if growing is None else GrowingFrames(growing, store_of_plane, held=False)
        )
        intervals = [every, observe]
        series = SeriesFile(directory)

        def flush(step: int) -> DiskFullError | None:
            snapshots.drain(lasting=True)
            try:
                if comm.rank == 0:
                    series.write(lasting=True)
            except DiskFullError as error:
                return error
            return None

        def rewind(step: int, time: float) -> None:
            if comm.rank == 0:
                directory.result.unlink(missing_ok=True)  # the result of the interrupted run
            # All frames and observations before the checkpoint are regular; that of its step may be of an interruption.
            damaged = snapshots.truncate(0 if every is None else step if regular(step, time, [every]) else step - 1)
            if comm.rank == 0 and (snapshots.gone or damaged):
                note(_loss(directory, snapshots.gone, damaged, step))
            series.resume(step, lambda at: at < step or regular(step, time, intervals))

        keeper = Keeper(
            directory.checkpoints,
            comm,
            checkpointing_of(options),
            resumes=resume,
            stop=stop_of(options.stop),
            case=case or {},
            flush=flush,
            rewind=rewind,
            note=note,
            check=epoch.check,
            remembers=remembers,
            began=time.monotonic() - past.seconds,
            losses=past.losses,
            own=directory.stands_in or options.checkpoint.directory is not None,
            place=options.checkpoint.place,
            switch=_switch(options.run.topology),
            epoch=epoch.number,
        )
        return cls(directory, snapshots, series, keeper, Series(series.add, intervals), epoch)

    def abandon(self, model: Model) -> None:
        """Write the output so far, on a single rank after an error; further errors are suppressed."""
        self.snapshots.abandon()
        series = self.series.series
        if series.values and self.epoch.lasts:  # on rank 0
            with contextlib.suppress(MingaError, OSError):
                self.series.write(lasting=True)
                write_tables(self.directory, model, tables_of(model, series))
                self._write_traces(model)

    def _write_traces(self, model: Model) -> None:
        if model.traces is not None:
            write_traces(self.directory.traces, model.traces, self.series.series)

    def finish(self, model: Model, outcome: Outcome, ranks: int, threads: int) -> dict[str, Any]:
        """Write the result of the run on rank 0, and return it as data."""
        directory = self.directory
        tables = tables_of(model, self.series.series)
        result = result_of(model, outcome, ranks, threads, directory) | tables
        if self.keeper.remembers:
            result["identity"] = {"model": self.keeper.identity, "case": dict(self.keeper.case)}
        known = {key: result[key] for key in ("steps", "digest")} | outcome.facts
        describe(directory.fields, known | result["observables"])
        try:
            self.series.write(lasting=True)
            write_tables(directory, model, tables)
            self._write_traces(model)
            write_whole(directory.ledger, outcome.ledger)
        finally:  # a run with a result is finished: this file matters most if the disk is full
            write_whole(directory.result, result)
        if outcome.traces is not None:
            write_trace(directory.trace, outcome.traces)
        if outcome.ended.reason not in UNFINISHED:
            self.keeper.discard()
        return result

    def leave(self, outcome: Outcome, comm: Comm) -> None:
        """Remove the checkpoints of a complete run on other hosts once rank 0 has written the result; collective."""
        if self.keeper.apart:
            comm.barrier()
            if comm.rank != 0 and outcome.ended.reason not in UNFINISHED:
                self.keeper.discard()


def _begun(comm: Comm, directory: RunDirectory) -> Epoch:
    """Return the right to write a run, which begins now, on all ranks; collective.

    Raises
    ------
    RunError
        On every rank, if the disk fails.
    """
    answer: Epoch | MingaError | None = None
    stands_in = directory.stands_in and comm.leads_node
    known = comm.gather(epoch_number(directory.epoch) if stands_in else 0)
    if known is not None:
        try:
            answer = begin_epoch(directory.epoch, max(known))
        except MingaError as error:
            answer = error
    answer = comm.bcast(answer)
    if not isinstance(answer, Epoch):
        raise answer
    if stands_in and comm.rank != 0:
        answer.spread(directory.epoch)
    comm.barrier()
    return answer.at(directory.epoch)


def _lead_elsewhere(comm: Comm, directory: RunDirectory, place: Path) -> None:
    """Let the checkpoints of a run lie in another place, unless some are here already; collective.

    Raises
    ------
    RunError
        On every rank, if the disk of rank 0 refuses.
    """
    answer: str | MingaError | None = None
    if comm.rank == 0:
        try:
            answer = run_id(directory)
        except MingaError as error:
            answer = error
    answer = comm.bcast(answer)
    if isinstance(answer, MingaError):
        raise answer
    assert answer is not None
    fault: MingaError | None = None
    if comm.leads_node:
        try:
            with disk_errors(place):
                (place / answer).mkdir(parents=True, exist_ok=True)
                if (comm.rank == 0 or directory.stands_in) and not os.path.lexists(directory.checkpoints):
                    directory.checkpoints.symlink_to(place / answer)
        except MingaError as error:
            fault = error
    if (fault := comm.bcast(fault)) is not None:  # others have no folder then, and rank 0 writes for them
        raise fault


def _switch(topology: str | None) -> str:
    """Return the name of the switch that this host is connected to, as far as a file or Slurm says; else no text."""
    here, known = platform.node(), None
    if topology is None:
        known = switches_here()
    elif topology.strip().endswith(".conf"):
        with contextlib.suppress(MingaError):  # which is reported where the run is planned
            every = read_switches(Path(topology.strip()))
            known = every.get(here, every.get(here.partition(".")[0]))
    return known[-1] if known else ""


def _loss(directory: RunDirectory, gone: bool, damaged: Sequence[int], step: int) -> str:
    """Return a description of the frames that are missing from a run resumed after a step."""
    if gone:
        return f"minga: {directory.fields} is gone, and with it the frames up to step {step}; later ones are kept there"
    numbers = ", ".join(map(str, damaged[:10])) + (", ..." if len(damaged) > 10 else "")
    return f"minga: frames {numbers} in {directory.fields} are damaged or missing; lost values read as NaN or 0"


def has_checkpoints(comm: Comm, directory: RunDirectory) -> bool:
    """Return True if a resumed run has checkpoints anywhere, complete or not; otherwise remove its files. Collective.

    Raises
    ------
    RunError
        On every rank, if the disk fails.
    """
    answer: bool | MingaError = False
    elsewhere = directory.checkpoints.is_symlink()  # to a place that each host may have for itself
    asked = comm.rank == 0 or (comm.leads_node and (directory.stands_in or elsewhere))
    mine = asked and any(map(bool, heads_of(directory.checkpoints)))
    found = comm.gather(mine)
    if found is not None:
        try:
            with disk_errors(directory.path):
                answer = any(found)
                if not answer and elsewhere and not directory.checkpoints.exists():
                    raise RunError(
                        f"the checkpoints of the run lie in {directory.checkpoints.readlink()}, which is not there",
                        remedy="mount it and resume again, or remove the link to begin with the first step",
                    )
                if not answer:
                    _begin_anew(directory)
        except MingaError as error:
            answer = error
    answer = comm.bcast(answer)
    if isinstance(answer, MingaError):
        raise answer
    return answer


def remove_frames(directory: RunDirectory) -> None:
    """Remove the store of frames of a run."""
    shutil.rmtree(directory.fields, ignore_errors=True)
    manifest_of(directory.fields).unlink(missing_ok=True)


def _begin_anew(directory: RunDirectory) -> None:
    """Remove the files of a run that was interrupted before its first checkpoint."""
    remove_frames(directory)
    for path in (directory.series, directory.result, directory.ledger):
        path.unlink(missing_ok=True)


def check_unfinished(
    directory: RunDirectory, heads: Sequence[Head], goal: Goal, *, keys: tuple[str, str], longer: str, kept: str
) -> None:
    """Raise CaseError if a run cannot be resumed because it is finished.

    Parameters
    ----------
    directory
        The directory of the run.
    heads
        Its checkpoints.
    goal
        The end that is now requested.
    keys
        Keys for errors: the entry that asks to resume, and the one that sets the end.
    longer
        Instruction that requests a later end, with "{}" for it.
    kept
        Entry that requests a checkpoint of the last step.

    Raises
    ------
    CaseError
        If no further steps are requested, or if no checkpoint of the last step was kept.
    """
    result = finished_result(directory)
    if result is None:
        return
    done, ended = result["steps"], result["ended"]
    if ended["reason"] != "steps":
        raise CaseError(
            f"the run in {directory.path} is finished ({ended['text']}); there is nothing left to do", key=keys[0]
        )
    if goal.done(result):
        raise CaseError(
            f"the run in {directory.path} is finished: all {done} steps are done",
            key=keys[0],
            remedy=f"to extend it, {longer.format(goal.longer(done))}" if heads else None,
        )
    if not heads:
        raise CaseError(
            f"the run in {directory.path} is finished, and no checkpoint of its last step was kept",
            key=keys[1],
            remedy=f"run it again with {kept}; then it can be extended",
        )


def finished_result(directory: RunDirectory) -> dict[str, Any] | None:
    """Return the result of a run, or None if it is not finished."""
    try:
        found = json.loads(directory.result.read_text())
    except (OSError, ValueError):
        return None
    known = isinstance(found, dict) and "ended" in found and found["ended"]["reason"] not in UNFINISHED
    return found if known else None
