"""The end of a run of a Program, and the ledger of a rank's time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from minga.engine.traffic import Traffic

__all__ = ["Ledger", "Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run of a Program.

    Parameters
    ----------
    ok
        True unless something failed to converge or was not finite.
    reason
        The reason why the run ended, such as "converged" or "limit".
    place
        The place where it ended.
    """

    ok: bool
    reason: str
    place: str = ""

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True, slots=True)
class Ledger:
    """The use of this rank's time since the engine was created: seconds by category, messages and bytes sent.

    `traffic` holds the same messages and bytes by receiving rank.
    """

    seconds: Mapping[str, float]
    messages: int
    bytes: int
    traffic: Mapping[int, Traffic]
