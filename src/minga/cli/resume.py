"""The command ``minga run --resume RUN``: check that a run can be resumed with its case."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minga.cli.case import Case
from minga.errors import CaseError
from minga.output.checkpoint.head import heads_of
from minga.output.checkpoint.identity import changed_entries, entries_of
from minga.output.directory import RunDirectory
from minga.output.progress import is_active, read_progress
from minga.running.goal import Goal
from minga.running.run_output import check_unfinished, finished_result

__all__ = ["check_resumed", "open_resumed", "result_without_end", "resume_hint", "write_case"]


def open_resumed(target: str, out: Path | None, force: bool) -> RunDirectory:
    """Return the directory of an interrupted run; raise CaseError if it is not one, or if the run is still active."""
    path = Path(target)
    path = path.parent if path.name == "case.toml" else path
    if out is not None or force:
        raise CaseError(
            f"a resumed run continues in its own directory, {path}",
            key="--out" if out is not None else "--force",
            remedy="leave it out",
        )
    if not (path / "case.toml").is_file():
        raise CaseError(
            f"{path} is not a run directory: it has no case.toml",
            key="--resume",
            remedy="name a directory under runs/, such as minga run --resume runs/NAME",
        )
    directory = RunDirectory(path)
    progress = read_progress(directory)
    if progress is not None and is_active(directory, progress):
        raise CaseError(
            f"the run in {path} is still active, as process {progress['pid']} on {progress['host']}",
            key="--resume",
            remedy="wait until it has ended, or end it",
        )
    return directory


def check_resumed(case: Case, directory: RunDirectory, ranks: int | None, *, elsewhere: bool = False) -> list[str]:
    """Check that a run can be resumed as ``case``, and return notes for the user.

    With ``elsewhere``, hosts may have checkpoints that this machine does not have.

    Raises
    ------
    CaseError
        If the run cannot be resumed, with the reason.
    """
    heads, faults = heads_of(directory.checkpoints)
    goal = Goal.of(case.options, case.model)
    check_unfinished(
        directory,
        heads,
        goal,
        keys=("--resume", f"run.{goal.entry}"),
        longer=f"add --set run.{goal.entry}={{}}",
        kept="checkpoint.at_end = true",
    )
    before = entries_of(tomllib.loads(directory.case.read_text(encoding="utf-8")))
    changed = changed_entries(before, entries_of(_without_none(case.resolved(ranks))))
    if changed and (heads or faults or directory.began()):  # otherwise its frames would be lost
        raise CaseError(
            "a resumed run must not change entries of its case:\n  " + "\n  ".join(changed),
            key="--resume",
            remedy="leave these entries as they were, or start a new run with them",
        )
    if heads:
        goal.check(heads[0].step, None, "run.steps")
    notes = [f"minga: checkpoint {fault}" for fault in faults]
    if heads:
        return [*notes, f"minga: resuming after step {heads[0].step}{goal.whole}"]
    if faults or elsewhere:
        return notes
    return ["minga: no checkpoint was written yet; the run begins with its first step"]


def result_without_end(case: Case, directory: RunDirectory) -> dict[str, Any] | None:
    """Return the result of a run that was killed after writing it but before its end, unless it is to be extended.

    Return None for any other run.
    """
    result = finished_result(directory)
    progress = read_progress(directory)
    if result is None or (progress is not None and progress["state"] == "finished"):
        return None
    longer = result["ended"]["reason"] == "steps" and not Goal.of(case.options, case.model).done(result)
    if longer:
        return None
    if not case.options.checkpoint.at_end:
        directory.discard_checkpoints()
    say([f"minga: all steps of {directory.path} were done; writing the pictures and the report"])
    return result


def write_case(case: Case, directory: RunDirectory, ranks: int | None) -> None:
    """Write the case with which the run is resumed into its directory, which is that of the run from now on."""
    case.save(directory, ranks)
    directory.host_mark.unlink(missing_ok=True)


def resume_hint(directory: RunDirectory) -> str | None:
    """Return a hint on how to resume a run that ended early, or None if no checkpoint was written."""
    heads, _ = heads_of(directory.checkpoints)
    return f"resume it with: minga run --resume {directory.path}" if heads else None


def _without_none(value: Any) -> Any:
    """Convert a table to the form that it has after being written as TOML: without None, and with lists for tuples."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


def say(notes: Sequence[str]) -> None:
    """Print notes to standard error, before a display of progress exists."""
    for note in notes:
        sys.stderr.write(note + "\n")
