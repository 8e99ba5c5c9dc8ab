"""Timing in turns: what is compared is measured alternately, so that a busy moment meets all of it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Way = Callable[[int], object]
"""Does its work so many times."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: rounds, and the least seconds of one sample."""

    rounds: int = 11
    sample: float = 0.03
    quick: bool = False

    @classmethod
    def least(cls) -> Effort:
        """Just enough to see that everything runs."""
        return cls(rounds=3, sample=0.002, quick=True)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds a call, one sample a round, by way."""

    seconds: Mapping[str, list[float]] = field(default_factory=dict)

    def median(self, way: str) -> float:
        return statistics.median(self.seconds[way])

    def least(self, way: str) -> float:
        return min(self.seconds[way])

    def ratio(self, way: str, other: str) -> dict[str, float]:
        """How many times as fast `way` is as `other`: of samples taken one after the other, and of the best ones."""
        pairs = [b / a for a, b in zip(self.seconds[way], self.seconds[other], strict=True)]
        return {
            "median": round(statistics.median(pairs), 3),
            "low": round(min(pairs), 3),
            "high": round(max(pairs), 3),
            "of_best": round(self.least(other) / self.least(way), 3),
        }


Clock = Callable[[], int]
"""Returns nanoseconds."""


def measure(ways: Mapping[str, Way], effort: Effort, clock: Clock = time.thread_time_ns) -> Times:
    """Each way in turn, `effort.rounds` times after a warm-up; every second round in the opposite order.

    The clock is by default the processor time of this thread: what other processes do meanwhile does not count, though
    they still slow down caches and memory. With it all ways must work in the calling thread.
    """
    turns = {name: _turns(way, effort.sample, clock) for name, way in ways.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(effort.rounds):
        names = list(ways) if number % 2 == 0 else list(reversed(ways))
        for name in names:
            seconds[name].append(_time(ways[name], turns[name], clock) / turns[name])
    return Times(seconds)


def _turns(way: Way, sample: float, clock: Clock) -> int:
    """Return the number of turns that take a sample's time.

    Each number is timed thrice: an engine prepares a loop again in the first two runs of another number of rounds.
    """
    way(1)
    turns = 1
    while (spent := min(_time(way, turns, clock) for _ in range(3))) < sample / 2:
        turns = max(turns + 1, int(turns * min(16.0, 0.8 * sample / max(spent, 1e-7))))
    return turns


def _time(way: Way, turns: int, clock: Clock) -> float:
    start = clock()
    way(turns)
    return max(1, clock() - start) * 1e-9
