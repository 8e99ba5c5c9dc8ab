"""A run from Python in a directory: it is begun there or gone on with, and leaves what one of the command line does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minga.engine.comm import Comm
from minga.engine.model import Model
from minga.errors import CaseError, MingaError
from minga.record.checkpoint.head import heads_of
from minga.record.checkpoint.keeper import Schedule
from minga.record.directory import RunDirectory, disk_errors
from minga.record.keeping import Kept, check_unfinished, has_checkpoints
from minga.record.series import Series
from minga.record.session import Outcome, Settings, execute
from minga.record.snapshots.archive import manifest_of
from minga.record.snapshots.manifest import read_manifest
from minga.record.snapshots.settings import SnapshotSettings
from minga.space.field import Field

__all__ = ["SECONDS", "Place", "kept_in", "run_in"]

SECONDS: Final = 300.0
"""From one checkpoint to the next, where nobody says."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run is kept, how often its state is, and whether it goes on with a state that is there.

    made  whether the directory was made for this run
    """

    directory: RunDirectory
    schedule: Schedule
    goes_on: bool
    made: bool


def kept_in(comm: Comm, out: Path, schedule: Schedule, resume: bool, steps: int) -> Place:
    """Make a directory for a run of so many steps, or with `resume` look at what an interrupted one left; collective.

    CaseError on every rank where it holds something else, or a run that is finished; RunError where the disk refuses.
    """
    answer: RunDirectory | MingaError | None = None
    if comm.rank == 0:
        try:
            with disk_errors(out):
                answer = _made(out)
                if answer is None:
                    _check(RunDirectory(out), resume, steps)
        except MingaError as error:
            answer = error
    answer = comm.bcast(answer)
    if isinstance(answer, MingaError):
        raise answer
    if answer is not None:
        return Place(answer, schedule, goes_on=False, made=True)
    directory = RunDirectory(out)
    return Place(directory, schedule, has_checkpoints(comm, directory), made=False)


def run_in(
    place: Place, model: Model, comm: Comm, settings: Settings, fields: Sequence[Field]
) -> tuple[Outcome, Series]:
    """Run a model, or go on with it; collective. What it came to, and on rank 0 all that was observed."""
    try:
        kept = _begun(place, model, comm, settings, fields)
        try:
            outcome = execute(
                model, comm, settings, fields, on_observe=kept.series.add, snapshots=kept.snapshots, keeper=kept.keeper
            )
        except BaseException:
            kept.snapshots.abandon()
            raise
    except BaseException:
        if comm.rank == 0 and place.made and not _has_frames(place.directory):
            place.directory.discard()
        raise
    if comm.rank == 0:
        kept.finish(model, outcome, comm.size, settings.threads)
    return outcome, kept.series.series


def _begun(place: Place, model: Model, comm: Comm, settings: Settings, fields: Sequence[Field]) -> Kept:
    """What is written while the run goes on; collective."""
    return Kept.of(
        place.directory,
        model,
        fields,
        comm,
        SnapshotSettings(settings.every),
        place.schedule,
        observe=settings.observe,
        stop=settings.until,
        goes_on=place.goes_on,
        case={"every": settings.every, "fields": [field.name for field in fields], "observe": settings.observe},
        note=_say,
    )


def _has_frames(directory: RunDirectory) -> bool:
    return bool(read_manifest(manifest_of(directory.fields))) or directory.checkpoints.exists()


def _made(path: Path) -> RunDirectory | None:
    """A directory for a new run; None where there is something already."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        return None
    return RunDirectory.create(path, path.name)


def _check(directory: RunDirectory, resume: bool, steps: int) -> None:
    """See that a run can go on in a directory; CaseError where it cannot."""
    path = directory.path
    ours = directory.fields.exists() or directory.checkpoints.exists()
    if directory.case.exists() or not (ours and resume):
        raise CaseError(
            f"out={str(path)!r} holds {'a run' if ours else 'files'} already; nothing is overwritten",
            remedy=f"minga run --resume {path} goes on with it, or name another directory"
            if directory.case.exists()
            else "name another directory" + (", or go on with what it left: resume=True" if ours else ""),
        )
    heads, _ = heads_of(directory.checkpoints)
    check_unfinished(
        directory,
        heads,
        steps,
        keys=("resume", "steps"),
        longer="give steps={}",
        kept="checkpoint=Schedule(steps=..., at_end=True)",
    )
    if heads and heads[0].step > steps:
        raise CaseError(f"{heads[0].step} steps are done, more than {steps}", key="steps")


def _say(note: str) -> None:
    sys.stderr.write(note + "\n")
