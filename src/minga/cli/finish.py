"""Steps after a run, however it ended: pictures, report, final state in ``progress.json``, and summary.

The result is on disk before these steps, so none of them can lose it; their failures are reported on standard error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minga.cli.case import Case
from minga.output.directory import RunDirectory
from minga.output.progress import note_state
from minga.running import finishing
from minga.view.progress import extent_text, ranks_text, speed_text, time_text
from minga.view.values import outcome_texts

__all__ = ["finish", "leave_unfinished", "summary"]


def finish(case: Case, directory: RunDirectory, result: dict[str, Any]) -> None:
    """Write the pictures and the report of a run that has a result, and note its final state."""
    finishing.complete(directory, case.options, result["ended"]["reason"])


def leave_unfinished(
    case: Case, directory: RunDirectory, reason: str, *, state: str = "failed", drop: bool = False
) -> bool:
    """Write the pictures and the report of a run without a result.

    Parameters
    ----------
    case
        The case of the run.
    directory
        The directory of the run.
    reason
        Why the run ended.
    state
        State to note: "failed", "lost" after the loss of a host or rank, or "stopped" if a user or a time limit has
        ended the run; then nothing is done that would take long.
    drop
        True if the directory is to be removed if the run never began.

    Returns
    -------
    bool
        True if the run has left something.
    """
    if not directory.path.exists() or (drop and directory.discard()):
        return False
    directory.settle()
    note_state(directory, state, reason)
    if state != "stopped" and directory.fields.exists():
        finishing.finish(directory, case.options, "the frames are complete")
        note_state(directory, state, reason)
    return True


def summary(result: dict[str, Any], directory: RunDirectory) -> str:
    """Return the result as a few lines of text."""
    speed = f"{time_text(result['seconds'])}, {speed_text(result)}"
    what = f"{result['model']}, {extent_text(result)}, {result['steps']} steps"
    lines = [f"{what} on {ranks_text(result['ranks'])}: {speed}"]
    if result["ended"]["reason"] != "steps":
        lines.append(f"  ended: {result['ended']['text']}")
    lines += [f"  {finding['text']}" for finding in result.get("findings", ())]
    lines += [f"  {name} {text}" for name, text in outcome_texts(result).items()]
    lines.append(f"  digest {result['digest']}")
    pictures = directory.pictures.glob("*.png") if directory.pictures.is_dir() else ()
    last = max(pictures, key=_step_of, default=None)
    shown = f"; the last picture is {last}" if last else ""
    lines.append(f"  everything is in {directory.path}{shown}")
    if directory.report.is_file():
        lines.append(f"  the report for a browser is {directory.report}")
    return "\n".join(lines)


def _step_of(picture: Path) -> tuple[int, str]:
    """Return the key that sorts pictures by step, and pictures of one step by the name of their field."""
    field, _, step = picture.stem.rpartition("-")
    return (int(step), field) if step.isdecimal() else (0, picture.stem)
