"""The ranks of a run as a planner sees them: how fast each is, what it can hold, where it sits, and what joins them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from minga.plan.links import Links
from minga.plan.speed import Speed
from minga.plan.topology import Tree
from minga.space.boxes import Ints

__all__ = ["Crew"]


@dataclass(frozen=True, eq=False)
class Crew:
    """``speeds[speed_of[r]]`` is rank ``r``'s speed for one kernel, with all its threads; few speeds, many ranks.

    ``memory[r]`` is the bytes it may fill; ``seats`` has a row a rank; ``speed_of`` and ``memory`` are int64, shape
    (ranks,). ``names[node]`` are the nodes by their number in ``seats``.
    """

    speeds: tuple[Speed, ...]
    speed_of: Ints
    memory: Ints
    seats: Tree
    links: Links
    names: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.speed_of)

    def part(self, ranks: Ints) -> Crew:
        """Some of the ranks, in this order."""
        return replace(
            self,
            speed_of=self.speed_of[ranks],
            memory=self.memory[ranks],
            seats=Tree(self.seats.levels, self.seats.paths[ranks]),
        )

    def node(self, rank: int) -> str:
        """What the node of a rank is called."""
        number = int(self.seats.paths[rank, 0])
        return self.names[number] if number < len(self.names) else f"node {number}"
