"""Finishers: pictures, the report and additions of other packages, once a run has a result.

A *finisher* is a function of the run's directory and its options, found by the entry points `minga.finishers`. None can
lose the result, which is on the disk before: an error of a finisher is told on standard error.
"""

from __future__ import annotations

import sys
from typing import Final

from minga.errors import MingaError
from minga.options import RunOptions
from minga.output.directory import RunDirectory
from minga.output.progress import note_state
from minga.plugins import load, names

__all__ = ["FINISHERS", "complete", "finish", "note_failure", "reason_of"]

FINISHERS: Final = "minga.finishers"


def complete(directory: RunDirectory, options: RunOptions, reason: str) -> None:
    """Call all finishers for a run that has a result, and note its final state, on rank 0.

    `reason` is that of its end, see :class:`minga.engine.stop.Ended`.
    """
    why = {"asked": "a user asked it to stop", "time limit": "its time was up"}.get(reason, "")
    note_state(directory, "finishing")
    finish(directory, options, "the result is complete")
    note_state(directory, "stopped" if why else "finished", why)


def note_failure(directory: RunDirectory, error: BaseException) -> None:
    """Note on rank 0 that an error, or an interruption by a person, has ended a run without a result."""
    if directory.path.exists():
        directory.settle()
        note_state(directory, "stopped" if isinstance(error, KeyboardInterrupt) else "failed", reason_of(error))


def reason_of(error: BaseException) -> str:
    """Return the reason why a run ended, as text for the live page and the report."""
    if isinstance(error, KeyboardInterrupt):
        return "a user ended it at once"
    return str(error) if isinstance(error, MingaError) else f"{type(error).__name__}: {error}"


def finish(directory: RunDirectory, options: RunOptions, comfort: str) -> None:
    """Call all finishers on rank 0; `comfort` says what is safe if one fails."""
    for name in names(FINISHERS):
        try:
            load(FINISHERS, name, "finisher")(directory, options)
        except Exception as error:  # whatever it is, it comes after the run
            said = str(error) if isinstance(error, MingaError) else f"{type(error).__name__}: {error}"
            sys.stderr.write(f"minga: the {name} could not be made, but {comfort} in {directory.path}\n  {said}\n")
