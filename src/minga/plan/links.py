"""What a message costs between two places of a machine: ``t(n) = alpha + beta n``, in pieces where protocols change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minga.plan.topology import Tree
from minga.space.boxes import Ints

__all__ = ["Link", "Links", "Segment"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Segment:
    """Messages of ``least`` bytes and more take ``alpha + beta * bytes`` seconds."""

    least: int
    alpha: float
    beta: float


@dataclass(frozen=True, slots=True)
class Link:
    """A class of connections. ``overlap`` is the part of a message's time that computation can hide, 0 to 1."""

    segments: tuple[Segment, ...]
    overlap: float = 1.0

    def time(self, count: ArrayLike) -> Floats:
        """Seconds of one message of ``count`` bytes, one way; the shape of ``count``.

        No message is faster than an empty one, wherever a segment with a negative ``alpha`` begins.
        """
        size = np.asarray(count, float)
        at = np.searchsorted([s.least for s in self.segments], size, side="right") - 1
        at = np.maximum(at, 0)
        alpha = np.array([s.alpha for s in self.segments])
        beta = np.array([s.beta for s in self.segments])
        seconds: Floats = np.maximum(alpha[at] + beta[at] * size, max(alpha[0], 0.0))
        return seconds


@dataclass(frozen=True)
class Links:
    """The links of a machine.

    ``levels[c]`` joins two ranks that have ``c`` levels of the tree in common: 0 is between nodes, the last on one
    core. ``nodes`` holds for some nodes (their number on the outermost level) a link of their own: between two nodes
    the slower one counts. ``shared``: all nodes use one medium (a hub), so that messages between nodes queue.
    """

    levels: tuple[Link, ...]
    nodes: Mapping[int, Link] = field(default_factory=dict)
    shared: bool = False

    def time(self, seats: Tree, sender: Ints, receiver: Ints, count: ArrayLike, common: Ints | None = None) -> Floats:
        """Seconds of one message for each pair of ranks, alone on the network; shape of ``sender``.

        ``common`` may be given where the levels they have in common are known.
        """
        size = np.broadcast_to(np.asarray(count, float), np.shape(sender))
        common = np.minimum(seats.common(sender, receiver) if common is None else common, len(self.levels) - 1)
        seconds = np.zeros(np.shape(sender))
        for level, link in enumerate(self.levels):
            chosen = common == level
            if chosen.any():
                seconds[chosen] = link.time(size[chosen])
        if self.nodes:
            own = list(dict.fromkeys(self.nodes.values()))
            number = np.full(int(seats.paths[:, 0].max()) + 1, -1)
            for node, link in self.nodes.items():
                if node < len(number):
                    number[node] = own.index(link)
            for ends in (sender, receiver):
                link_of = np.where(common == 0, number[seats.paths[ends, 0]], -1)
                for kind, link in enumerate(own):
                    touched = link_of == kind
                    if touched.any():
                        seconds[touched] = np.maximum(seconds[touched], link.time(size[touched]))
        return seconds

    @classmethod
    def uniform(cls, depth: int, between: Sequence[tuple[float, float]]) -> Links:
        """Links from (alpha, beta) by levels in common, the outermost first; the last one holds for all deeper ones."""
        chosen = [between[min(level, len(between) - 1)] for level in range(depth + 1)]
        return cls(tuple(Link((Segment(0, alpha, beta),)) for alpha, beta in chosen))
