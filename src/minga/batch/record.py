"""The jobs of a run: ``jobs.json``, those that have begun, with what each has gained, and ``job.id``, the last one.

``jobs.json`` has an entry for each time that a job has begun:

========== ==================================================================================
``job``    number of the job
``began``  time of its start, in seconds since 1970
``ended``  time of its end; None before, and for ever if it was killed
``first``  step of the checkpoint from which it has continued the run; None if there was none
``last``   step of the newest checkpoint at its end, or the last step of a complete run
``status`` exit status of ``minga run``
``then``   what followed: ``next``, ``complete``, ``extended``, ``ended``, ``failed`` or ``stuck``
========== ==================================================================================
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from minga.output.directory import write_whole

__all__ = ["JobEntry", "note_entry", "note_number", "read_entries", "read_number", "reopen"]

_ENTRIES: Final = "jobs.json"
_NUMBER: Final = "job.id"


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job that has begun to continue a run; its attributes are those of the file."""

    job: str
    began: float
    ended: float | None = None
    first: int | None = None
    last: int | None = None
    status: int | None = None
    then: str = ""


def read_entries(run: Path) -> list[JobEntry]:
    """Return the jobs of a run; none if there is no such file."""
    try:
        found: Any = json.loads((run / _ENTRIES).read_text(encoding="utf-8"))["jobs"]
        return [JobEntry(**entry) for entry in found]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def note_entry(run: Path, entry: JobEntry) -> None:
    """Write an entry, in place of the last one if that has the same job and beginning.

    Raises
    ------
    DiskError
        If the disk refuses.
    """
    entries = read_entries(run)
    if entries and (entries[-1].job, entries[-1].began) == (entry.job, entry.began):
        del entries[-1]
    write_whole(run / _ENTRIES, {"jobs": [asdict(one) for one in (*entries, entry)]})


def reopen(run: Path) -> None:
    """Note that a complete run is to be continued, since it was made longer.

    Raises
    ------
    DiskError
        If the disk refuses.
    """
    entries = read_entries(run)
    if entries and entries[-1].then == "complete":
        note_entry(run, replace(entries[-1], then="extended"))


def read_number(run: Path) -> str | None:
    """Return the number of the job of a run that was submitted last; None if there is none."""
    try:
        return (run / _NUMBER).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def note_number(run: Path, job: str) -> None:
    """Write the number of the job that was submitted last.

    Raises
    ------
    DiskError
        If the disk refuses.
    """
    write_whole(run / _NUMBER, f"{job}\n")
