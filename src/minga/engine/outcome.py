"""How a run of a Program ended, and where the time of a rank went."""

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
        True unless something did not converge or was not finite.
    reason
        The reason of the end, such as "converged" or "limit".
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
    """Where this rank's time went since the engine was made: seconds by category, messages and bytes it sent.

    `traffic`: the same messages and bytes by the rank they went to.
    """

    seconds: Mapping[str, float]
    messages: int
    bytes: int
    traffic: Mapping[int, Traffic]
