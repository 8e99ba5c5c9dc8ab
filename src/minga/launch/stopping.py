"""Exit statuses of runs that were ended before their last step."""

from __future__ import annotations

__all__ = ["INTERRUPTED", "TO_BE_CONTINUED", "status_of"]

INTERRUPTED = 130
"""Exit status of what a person stopped, as a shell gives it."""

TO_BE_CONTINUED = 75
"""Exit status of a run whose time was up, so that it wrote a checkpoint to go on from: EX_TEMPFAIL of sysexits.h."""


def status_of(reason: str) -> int:
    """Exit status of a run that has a result, by the reason of its end (:class:`minga.engine.stop.Ended`)."""
    return {"asked": INTERRUPTED, "time limit": TO_BE_CONTINUED}.get(reason, 0)
