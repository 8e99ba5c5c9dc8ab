"""The ranks of a run as a planner sees them: speed, memory and place of each, and the links between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from minga.plan.links import Links
from minga.plan.speed import Speed
from minga.plan.topology import Tree
from minga.space.boxes import Ints

__all__ = ["RankGroup"]


@dataclass(frozen=True, eq=False)
class RankGroup:
    """The ranks of a run.

    Parameters
    ----------
    speeds
        The different speeds; many ranks have few of them.
    speed_of
        ``speeds[speed_of[r]]`` is rank ``r``'s speed for one kernel, with all its threads; int64, shape (ranks,).
    memory
        Bytes that each rank may fill; int64, shape (ranks,).
    seats
        The places of the ranks, with one row per rank.
    links
        The links between the ranks.
    names
        Names of the nodes, by their number in ``seats``.
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

    def part(self, ranks: Ints) -> RankGroup:
        """Return some of the ranks, in this order.

        Parameters
        ----------
        ranks
            Numbers of ranks.

        Returns
        -------
        RankGroup
            These ranks, in this order.
        """
        return replace(
            self,
            speed_of=self.speed_of[ranks],
            memory=self.memory[ranks],
            seats=self.seats.part(ranks),
        )

    def at(self, seats: Tree) -> RankGroup:
        """Return the same ranks at other places, such as those of a described machine.

        Links keep their meaning: between nodes, and within one. Nodes keep their own links and their names.

        Parameters
        ----------
        seats
            The place of each rank.

        Returns
        -------
        RankGroup
            The ranks at these places.
        """
        known = dict(zip(seats.nodes.tolist(), self.seats.nodes.tolist(), strict=True))
        own = {node: self.links.nodes[before] for node, before in known.items() if before in self.links.nodes}
        named = {node: self.names[before] for node, before in known.items() if before < len(self.names)}
        names = tuple(named.get(node, f"node {node}") for node in range(int(seats.nodes.max(initial=-1)) + 1))
        links = replace(self.links.onto(self.seats, seats), nodes=own)
        return replace(self, seats=seats, links=links, names=names if self.names else ())

    def node(self, rank: int) -> str:
        """Return the name of a rank's node.

        Parameters
        ----------
        rank
            The rank.

        Returns
        -------
        str
            The name.
        """
        number = int(self.seats.nodes[rank])
        return self.names[number] if number < len(self.names) else f"node {number}"
