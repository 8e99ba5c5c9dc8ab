"""Exit statuses of the command ``minga`` and of the ranks it starts."""

from __future__ import annotations

from typing import Final

__all__ = ["FAILED", "INTERRUPTED", "LOST", "OK", "REPORTED", "TO_BE_CONTINUED", "USAGE", "status_of"]

OK: Final = 0
"""Success."""

FAILED: Final = 1
"""Failure of a run, a launch or a comparison: :attr:`minga.errors.MingaError.exit_status`."""

USAGE: Final = 2
"""Mistake in a case or on the command line: :attr:`minga.errors.CaseError.exit_status`."""

TO_BE_CONTINUED: Final = 75
"""End of a run whose time limit was reached; it can be resumed from a checkpoint. EX_TEMPFAIL of sysexits.h."""

INTERRUPTED: Final = 130
"""End by Ctrl-C or by a termination signal, whichever of the two it was, as a shell reports Ctrl-C."""

LOST: Final = 137
"""End of a rank because another one was lost, as of one that was killed."""

REPORTED: Final = (FAILED, USAGE)
"""Statuses of ranks that have reported themselves why they failed; any other one comes from a rank that was ended."""


def status_of(reason: str) -> int:
    """Return the exit status of a run that has a result, given why it ended (:class:`minga.engine.stop.Ended`)."""
    return {"asked": INTERRUPTED, "time limit": TO_BE_CONTINUED}.get(reason, OK)
