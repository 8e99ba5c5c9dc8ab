"""What follows on a run, however it ended: the pictures, the report, the last word in ``progress.json``, the summary.

None of it can lose the result, which is on the disk before: what goes wrong here is told on standard error.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from minga.cli.case import Case
from minga.output.directory import RunDirectory
from minga.output.progress import note_state
from minga.running import finishing
from minga.view.progress import ranks_text, rate_text, time_text

__all__ = ["finish", "leave_unfinished", "summary"]


_FEW = 8
"""Numbers of an observable that are shown one by one."""


def finish(case: Case, directory: RunDirectory, result: dict[str, Any]) -> None:
    """Illustrate a run that has a result."""
    reason = {"asked": "a person asked it to stop", "time limit": "its time was up"}.get(result["ended"]["reason"], "")
    note_state(directory, "finishing")
    finishing.finish(directory, case.options, "the result is complete")
    note_state(directory, "stopped" if reason else "finished", reason)


def leave_unfinished(
    case: Case, directory: RunDirectory, reason: str, *, ended: bool = False, drop: bool = False
) -> bool:
    """Illustrate what a run without a result has left; whether there is something.

    ended  a person, or time, has ended the run: nothing that would take long is done
    drop   whether its directory goes where the run never began
    """
    if not directory.path.exists() or (drop and directory.discard()):
        return False
    directory.settle()
    state = "stopped" if ended else "failed"
    note_state(directory, state, reason)
    if not ended and directory.fields.exists():
        finishing.finish(directory, case.options, "the frames are complete")
        note_state(directory, state, reason)
    return True


def summary(result: dict[str, Any], directory: RunDirectory) -> str:
    """The result in a few lines for a person."""
    shape = " x ".join(map(str, result["shape"]))
    speed = f"{time_text(result['seconds'])}, {rate_text(result['cells_per_second'])}"
    lines = [f"{result['model']}, {shape} cells, {result['steps']} steps on {ranks_text(result['ranks'])}: {speed}"]
    if result["ended"]["reason"] != "steps":
        lines.append(f"  ended: {result['ended']['text']}")
    lines += [f"  {finding['text']}" for finding in result.get("findings", ())]
    units = {name: "" if unit == "1" else f" {unit}" for name, unit in result.get("units", {}).items()}
    lines += [f"  {name} {_short(value)}{units.get(name, '')}" for name, value in result["observables"].items()]
    lines.append(f"  digest {result['digest']}")
    pictures = directory.pictures.glob("*.png") if directory.pictures.is_dir() else ()
    last = max(pictures, key=_step_of, default=None)
    shown = f"; the last picture is {last}" if last else ""
    lines.append(f"  everything is in {directory.path}{shown}")
    if directory.report.is_file():
        lines.append(f"  the report for a browser is {directory.report}")
    return "\n".join(lines)


def _step_of(picture: Path) -> tuple[int, str]:
    """What sorts pictures by their step, and those of one step by the name of their field."""
    field, _, step = picture.stem.rpartition("-")
    return (int(step), field) if step.isdecimal() else (0, picture.stem)


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list) and len(value) > _FEW and all(isinstance(one, float | int) for one in value):
        finite = [abs(one) for one in value if math.isfinite(one)]
        odd = "" if len(finite) == len(value) else f", {len(value) - len(finite)} not finite"
        return f"{len(value)} values, the largest magnitude {max(finite, default=math.nan):.6g}{odd}"
    text = str(value)
    return text if len(text) <= 100 else text[:97] + "..."
