"""What follows on a run, however it ended: the pictures, the report, the last word in ``progress.json``, the summary.

None of it can lose the result, which is on the disk before: what goes wrong here is told on standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from minga.cli.case import Case
from minga.errors import MingaError
from minga.record.directory import RunDirectory
from minga.record.progress import note_state
from minga.view.progress import ranks_text, rate_text, time_text

__all__ = ["finish", "keep_or_drop", "summary"]


def finish(case: Case, directory: RunDirectory, result: dict[str, Any]) -> None:
    """Illustrate a run that has a result."""
    reason = {"asked": "a person asked it to stop", "time limit": "its time was up"}.get(result["ended"]["reason"], "")
    note_state(directory, "finishing")
    _illustrate(case, directory, "the result is complete")
    note_state(directory, "stopped" if reason else "finished", reason)


def keep_or_drop(case: Case, directory: RunDirectory, reason: str) -> bool:
    """Illustrate what a run that failed has left, or remove it where there is no first frame; whether it is kept."""
    if not _has_frames(directory) and not directory.checkpoints.exists():
        directory.discard()
        return False
    directory.settle()
    note_state(directory, "failed", reason)
    _illustrate(case, directory, "the frames are complete")
    note_state(directory, "failed", reason)
    return True


def summary(result: dict[str, Any], directory: RunDirectory) -> str:
    """The result in a few lines for a person."""
    shape = " x ".join(map(str, result["shape"]))
    speed = f"{time_text(result['seconds'])}, {rate_text(result['cells_per_second'])}"
    lines = [f"{result['model']}, {shape} cells, {result['steps']} steps on {ranks_text(result['ranks'])}: {speed}"]
    if result["ended"]["reason"] != "steps":
        lines.append(f"  ended: {result['ended']['text']}")
    lines += [f"  {name} {_short(value)}" for name, value in result["observables"].items()]
    lines.append(f"  digest {result['digest']}")
    pictures = sorted(directory.pictures.glob("*.png")) if directory.pictures.is_dir() else []
    shown = f"; the last picture is {pictures[-1]}" if pictures else ""
    lines.append(f"  everything is in {directory.path}{shown}")
    if directory.report.is_file():
        lines.append(f"  the report for a browser is {directory.report}")
    return "\n".join(lines)


def _illustrate(case: Case, directory: RunDirectory, comfort: str) -> None:
    for name, make in (("pictures", _draw), ("report", _write_report)):
        _try(make, case, directory, name, comfort)


def _try(
    make: Callable[[Case, RunDirectory], None], case: Case, directory: RunDirectory, name: str, comfort: str
) -> None:
    try:
        make(case, directory)
    except Exception as error:  # whatever it is, it comes after the run
        said = str(error) if isinstance(error, MingaError) else f"{type(error).__name__}: {error}"
        sys.stderr.write(f"minga: the {name} could not be made, but {comfort} in {directory.path}\n  {said}\n")


def _draw(case: Case, directory: RunDirectory) -> None:
    from minga.view.pictures import draw_run

    draw_run(directory.fields, directory.pictures, case.output.pictures)


def _write_report(case: Case, directory: RunDirectory) -> None:
    if case.output.report:
        from minga.view.report import write_report

        write_report(directory)


def _has_frames(directory: RunDirectory) -> bool:
    from minga.record.store import FrameReader

    try:
        return directory.fields.exists() and bool(FrameReader.open(directory.fields).steps)
    except Exception:  # a store that was only just being created
        return False


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= 100 else text[:97] + "..."
