"""Message times between two places of a machine: ``t(n) = alpha + beta n``, piecewise where protocols change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.plan.topology import Tree
from minga.space.boxes import Ints

__all__ = ["HOP", "Link", "Links", "Segment"]

Floats = NDArray[np.float64]

HOP: Final = 100e-9
"""Default latency of each hop after the first one between two nodes of a ring, torus or mesh, in seconds."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A range of message sizes: ``least`` bytes and more take ``alpha + beta * bytes`` seconds.

    Parameters
    ----------
    least
        The least bytes of a message.
    alpha
        Seconds of a message.
    beta
        Seconds of a byte.
    """

    least: int
    alpha: float
    beta: float


@dataclass(frozen=True, slots=True)
class Link:
    """A class of connections. ``overlap`` is the share of a message's time that computation can hide, 0 to 1.

    Parameters
    ----------
    segments
        Costs by the size of messages, ascending.
    overlap
        The fraction of a message's time that computation can hide, 0 to 1.
    """

    segments: tuple[Segment, ...]
    overlap: float = 1.0

    def time(self, count: ArrayLike) -> Floats:
        """Return the one-way seconds of messages of ``count`` bytes, with the shape of ``count``.

        No message is faster than an empty one, even if a segment has a negative ``alpha``.

        Parameters
        ----------
        count
            Bytes.

        Returns
        -------
        ndarray
            Seconds, of the shape of ``count``.
        """
        size = np.asarray(count, float)
        if len(self.segments) == 1:
            only = self.segments[0]
            alone: Floats = np.maximum(only.alpha + only.beta * size, max(only.alpha, 0.0))
            return alone
        at = np.searchsorted([s.least for s in self.segments], size, side="right") - 1
        at = np.maximum(at, 0)
        alpha = np.array([s.alpha for s in self.segments])
        beta = np.array([s.beta for s in self.segments])
        seconds: Floats = np.maximum(alpha[at] + beta[at] * size, max(alpha[0], 0.0))
        return seconds


@dataclass(frozen=True)
class Links:
    """The links of a machine.

    Parameters
    ----------
    levels
        ``levels[c]`` joins two ranks that have ``c`` levels of the tree in common: the first is between the outermost
        groups, that is, between nodes if there are no switches above them; the last within one core.
    nodes
        Links of single nodes, by their number; between two nodes, the slower link counts.
    shared
        True if all nodes use one medium (a hub), so that messages between nodes queue.
    uplinks
        For each level above the nodes, the outermost first, the seconds of a byte on the uplink of a group, which all
        its messages to other groups share; 0 where it never limits them. Levels without a number do not limit.
    hop
        Seconds that each hop after the first one adds to a message, if the nodes form a network of their own
        (:attr:`Tree.network`).
    """

    levels: tuple[Link, ...]
    nodes: Mapping[int, Link] = field(default_factory=dict)
    shared: bool = False
    uplinks: tuple[float, ...] = ()
    hop: float = HOP

    def between(self, seats: Tree) -> Link:
        """Return the link between two nodes that are as close to each other as nodes can be.

        Parameters
        ----------
        seats
            The place of each rank in the machine.

        Returns
        -------
        Link
            The link between nodes of one switch, if there are switches.
        """
        return self.levels[min(seats.above, len(self.levels) - 1)]

    def widest(self, seats: Tree) -> Link:
        """Return the link between those two ranks that are farthest from each other.

        Parameters
        ----------
        seats
            The place of each rank in the machine.

        Returns
        -------
        Link
            The link between the outermost groups that differ; for ranks of one node, one of its own.
        """
        closest = int(seats.common(0, np.arange(len(seats))).min(initial=len(self.levels) - 1))
        return self.levels[min(closest, len(self.levels) - 1)]

    def onto(self, known: Tree, seats: Tree) -> Links:
        """Return the links for places with other levels.

        Parameters
        ----------
        known
            Places to whose levels these links belong.
        seats
            The other places.

        Returns
        -------
        Links
            Links by the levels of `seats`. Additional levels above nodes have the link between the outermost groups,
            additional levels within nodes that within the innermost ones. Uplinks stay if there are as many levels
            above nodes.
        """
        if known.levels == seats.levels:
            return self
        between, inside = self.levels[: known.above + 1], self.levels[known.above + 1 :] or self.levels[-1:]
        above, below = seats.above + 1, len(seats.levels) - seats.above
        between = (*between[:1] * (above - len(between)), *between[-above:])
        inside = (*inside[: below - 1], *inside[-1:] * max(1, below - len(inside) + 1))
        uplinks = self.uplinks if known.above == seats.above else ()
        return replace(self, levels=(*between, *inside), uplinks=uplinks)

    def time(self, seats: Tree, sender: Ints, receiver: Ints, count: ArrayLike, common: Ints | None = None) -> Floats:
        """Return the seconds of one message for each pair of ranks, alone on the network; shape of ``sender``.

        ``common`` are the numbers of levels that the pairs have in common, if known already.

        Parameters
        ----------
        seats
            The place of each rank in the machine.
        sender, receiver
            Numbers of ranks, int64 arrays.
        count
            Bytes.
        common
            The number of levels that each pair has in common, if it is known.

        Returns
        -------
        ndarray
            Seconds, of the shape of ``sender``.
        """
        size = np.broadcast_to(np.asarray(count, float), np.shape(sender))
        common = seats.common(sender, receiver) if common is None else common
        apart = seats.apart(common)
        seconds = self._by_level(np.minimum(common, len(self.levels) - 1), count)
        if self.nodes:
            own = list(dict.fromkeys(self.nodes.values()))
            number = np.full(int(seats.nodes.max()) + 1, -1)
            for node, link in self.nodes.items():
                if node < len(number):
                    number[node] = own.index(link)
            for ends in (sender, receiver):
                link_of = np.where(apart, number[seats.nodes[ends]], -1)
                for kind, link in enumerate(own):
                    touched = link_of == kind
                    if touched.any():
                        seconds[touched] = np.maximum(seconds[touched], link.time(size[touched]))
        if seats.network is not None:
            seconds += self.hop * np.maximum(seats.hops(sender, receiver) - 1, 0)
        return seconds

    def _by_level(self, common: Ints, count: ArrayLike) -> Floats:
        """Return the seconds of messages by the number of levels in common, without what single nodes add."""
        if np.ndim(count) == 0:  # one size, such as that of an empty message
            table = np.array([float(link.time(count)) for link in self.levels])
            return table[common]
        size = np.asarray(count, float)
        seconds = np.zeros(np.shape(common))
        for level, link in enumerate(self.levels):
            chosen = common == level
            if chosen.all():
                return link.time(size)
            if chosen.any():
                seconds[chosen] = link.time(size[chosen])
        return seconds

    @classmethod
    def uniform(cls, depth: int, between: Sequence[tuple[float, float]]) -> Links:
        """Make links from (alpha, beta) by number of levels in common; the last pair is used for all deeper ones.

        Parameters
        ----------
        depth
            The number of levels.
        between
            (alpha, beta) by levels in common, the outermost first.

        Returns
        -------
        Links
            The links.
        """
        chosen = [between[min(level, len(between) - 1)] for level in range(depth + 1)]
        return cls(tuple(Link((Segment(0, alpha, beta),)) for alpha, beta in chosen))
