"""The decision that a run should continue without hosts that have become slow; see :mod:`minga.plan.slow_hosts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["RESTART_SECONDS", "Drop"]

RESTART_SECONDS: Final = 10.0
"""Seconds that a restart of the ranks is assumed to cost, after a checkpoint: twice those of four nodes that share two
cores, since large models are timed, and read from disks, for longer."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Ranks whose hosts a run should continue without.

    Attributes
    ----------
    ranks
        Numbers of the ranks.
    slower
        Factor by which they compute slower than expected, relative to the other ranks.
    step, without
        Seconds of a step with them, and predicted without them.
    recovered
        Factor by which they must become faster so that the run is faster with them again.
    """

    ranks: tuple[int, ...]
    slower: float
    step: float
    without: float
    recovered: float

    @property
    def reason(self) -> str:
        """The reason in words, to be put after the names of hosts."""
        return (
            f"computes {self.slower:.3g} times slower than expected: a step takes {self.step:.3g} s with it, and is "
            f"predicted to take {self.without:.3g} s without it"
        )
