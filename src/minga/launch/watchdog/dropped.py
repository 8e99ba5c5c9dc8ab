"""Slow hosts that a run continues without: which ranks ask for it, and when such a host is fast again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minga.launch.hosts import Host
from minga.plan.drop import Drop

__all__ = ["Dropping", "SlowHost"]


@dataclass(eq=False)
class Dropping:
    """The wish of the ranks of one start to continue without slow hosts.

    Attributes
    ----------
    hosts
        Host of each rank; the first one is never dropped, since rank 0 writes the output.
    drop
        The wish; None if there is none.
    """

    hosts: Sequence[Host]
    drop: Drop | None = None

    @property
    def dropped(self) -> tuple[Host, ...]:
        """The hosts to be dropped."""
        ranks = () if self.drop is None else self.drop.ranks
        return tuple({self.hosts[rank].name: self.hosts[rank] for rank in ranks}.values())

    def hear(self, drop: Drop) -> bool:
        """Take note of a wish, and return whether it can be met."""
        if any(self.hosts[rank].name == self.hosts[0].name for rank in drop.ranks):
            return False
        self.drop = drop
        return True

    def forget(self) -> None:
        """Leave everything as it is, because the run was stopped for another reason."""
        self.drop = None


@dataclass(slots=True)
class SlowHost:
    """A host that was dropped because it was slow.

    Attributes
    ----------
    name
        Its name.
    factor
        Factor by which it has to become faster before it takes part again.
    slowest
        Longest time of a fixed piece of work (:mod:`minga.launch.watchdog.tempo`) since then; None if unknown.
    """

    name: str
    factor: float
    slowest: float | None = None

    def recovered(self, seconds: float | None) -> bool:
        """Take note of the present time of that piece of work, and return whether the host is fast enough again."""
        if seconds is None:
            return False
        self.slowest = max(seconds, self.slowest or 0.0)
        return seconds * self.factor <= self.slowest
