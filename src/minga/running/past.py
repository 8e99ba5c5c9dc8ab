"""The past of a command that starts the ranks of a run, possibly again."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Past"]


@dataclass(frozen=True, slots=True)
class Past:
    """The past of a command when it starts ranks.

    Attributes
    ----------
    seconds
        Seconds that it has run; the time limit counts them.
    losses
        Number of hosts and ranks that were lost meanwhile.
    """

    seconds: float = 0.0
    losses: int = 0
