"""The cost of a step's messages for a placement of ranks: J, the sum of ``alpha + beta * bytes`` over all messages.

Costs are integers, so that ranks on different processors find the same sum in any order of its terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from minga.plan.links import Links
from minga.plan.placement.edges import Edges, edges_of
from minga.plan.topology import Tree
from minga.plan.work.work import HaloRound
from minga.space.box import Point
from minga.space.boxes import Ints
from minga.space.layout import Layout

__all__ = ["Cost", "PairCosts", "Pricing", "cost_of", "level_costs", "prices"]

_TICK = 1e-12
"""Seconds of one unit of costs by links."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of the messages of one step.

    Attributes
    ----------
    total
        J: the sum over all messages in picoseconds if links are known, otherwise of bytes with the weights of
        :func:`level_costs`.
    messages, bytes, copies
        Totals by :attr:`Tree.relations`, inter-node first.
    uplinks
        Maximum number of bytes that leave one group, for each level up to the node, the outermost first.
    apart
        Number of messages between nodes.
    """

    total: int
    messages: tuple[int, ...]
    bytes: tuple[int, ...]
    copies: tuple[int, ...]
    uplinks: tuple[int, ...]
    apart: int

    @property
    def busiest(self) -> int:
        """Maximum number of bytes that leave one node."""
        return self.uplinks[-1]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Key for comparing placements: cost, then messages between nodes, then the busiest node's bytes."""
        return self.total, self.apart, self.busiest


def cost_of(
    layout: Layout,
    seats: Tree,
    periodic: Sequence[bool] = (),
    exchanges: Sequence[HaloRound] = (),
    links: Links | None = None,
    shift: Sequence[Point] = (),
) -> Cost:
    """Return the cost of a layout's step with its ranks on ``seats``; other arguments as for :func:`edges_of`.

    Parameters
    ----------
    layout
        The layout.
    seats
        The place of each rank in the machine.
    periodic
        Whether each axis is periodic.
    exchanges
        The halo messages of a step; by default a width of one cell.
    links
        The links of the machine; None: bytes are counted.
    shift
        Shifts of periodic axes, as of `Grid.shift`.

    Returns
    -------
    Cost
        Messages and bytes by distance, and their total.
    """
    return Pricing(edges_of(layout, periodic, exchanges, shift), seats, links).cost(np.arange(layout.ranks))


def level_costs(depth: int) -> tuple[int, ...]:
    """Return the cost of a byte by number of levels in common: 10, 3, 1 and 0 for three levels."""
    between = [round(10 ** (1 - level / (depth - 1))) for level in range(depth)] if depth > 1 else [10]
    return (*between, 0)


def prices(depth: int, sizes: Ints, links: Links | None) -> Ints:
    """Return the cost of messages of ``sizes`` bytes by number of levels in common, shape (depth + 1, sizes)."""
    if links is None:
        return np.array(level_costs(depth), np.int64)[:, None] * sizes
    return np.stack([_ticks(links.levels[min(level, len(links.levels) - 1)].time(sizes)) for level in range(depth + 1)])


@dataclass(frozen=True, eq=False)
class Pricing:
    """The cost of each message for each distance. Places are rows of ``seats``."""

    edges: Edges
    seats: Tree
    links: Links | None = None

    @cached_property
    def sizes(self) -> tuple[Ints, Ints]:
        """The different sizes of messages, and the number of each message's size."""
        sizes, which = np.unique(self.edges.bytes, return_inverse=True)
        return sizes, which.reshape(-1)

    @cached_property
    def levels(self) -> Ints:
        """Cost by number of levels in common and by size, shape (levels + 1, sizes)."""
        return prices(len(self.seats.levels), self.sizes[0], self.links)

    @cached_property
    def groups(self) -> tuple[Ints, ...]:
        """The number of the group of each place, for each level up to the node."""
        return tuple(self.seats.groups(level) for level in range(self.seats.above + 1))

    @cached_property
    def nodes(self) -> tuple[Ints, Ints] | None:
        """Costs by nodes' own links (0 is none) and by size, and the number of each place's own link, or None."""
        if self.links is None or not self.links.nodes:
            return None
        numbers = {link: number for number, link in enumerate(dict.fromkeys(self.links.nodes.values()), 1)}
        costs = [np.zeros(len(self.sizes[0]), np.int64), *(_ticks(link.time(self.sizes[0])) for link in numbers)]
        which = np.zeros(int(self.seats.nodes.max()) + 1, np.int64)
        for node, link in self.links.nodes.items():
            if node < len(which):
                which[node] = numbers[link]
        return np.stack(costs), which[self.seats.nodes]

    def of(self, message: Ints, a: Ints, b: Ints, common: Ints | None = None) -> Ints:
        """Return the cost of messages between places ``a`` and ``b``; it is the same in both directions."""
        common = self.seats.common(a, b) if common is None else common
        size = self.sizes[1][message]
        cost: Ints = self.levels[common, size]
        if self.nodes is not None:
            table, own = self.nodes
            slower = np.maximum(table[own[a], size], table[own[b], size])
            cost = np.where(self.seats.apart(common), np.maximum(cost, slower), cost)
        if self.seats.network is not None:
            # A byte costs as much on each hop as on the first one, or a message takes longer by each of them.
            further = np.maximum(self.seats.hops(a, b) - 1, 0)
            each: Ints | int = cost if self.links is None else self.hop
            cost = np.add(cost, further * each)
        return cost * self.edges.times[message]

    def by_pair(self) -> PairCosts | None:
        """Return the costs of all messages of each pair of ranks together.

        Return None if nodes have links of their own: the slower one counts for each message by itself.
        """
        edges = self.edges
        if self.nodes is not None:
            return None
        low, high = np.minimum(edges.sender, edges.receiver), np.maximum(edges.sender, edges.receiver)
        pairs, number = np.unique(low * edges.ranks + high, return_inverse=True)
        costs, times = np.zeros((len(pairs), len(self.levels)), np.int64), np.zeros(len(pairs), np.int64)
        np.add.at(costs, number.reshape(-1), (self.levels[:, self.sizes[1]] * edges.times).T)
        np.add.at(times, number.reshape(-1), edges.times)
        return PairCosts(self, pairs // edges.ranks, pairs % edges.ranks, costs, times)

    @cached_property
    def hop(self) -> int:
        """Cost of each hop of a message after the first one, if links are known."""
        return 0 if self.links is None else int(_ticks(np.array(self.links.hop)))

    def cost(self, places: Ints) -> Cost:
        """Return the cost of the step if rank ``r`` of the edges is at ``places[r]``."""
        a, b = places[self.edges.sender], places[self.edges.receiver]
        common = self.seats.common(a, b)
        count = len(self.seats.levels) + 1

        def by_level(values: Ints) -> tuple[int, ...]:
            sums = np.zeros(count, np.int64)
            np.add.at(sums, common, values)
            return tuple(sums.tolist())

        times = self.edges.times
        sent = times * self.edges.bytes
        uplinks = []
        for level in range(self.seats.above + 1):
            out = np.zeros(self.groups[level].max(initial=0) + 1, np.int64)
            np.add.at(out, self.groups[level][a], np.where(common <= level, sent, 0))
            uplinks.append(int(out.max()))
        return Cost(
            int(self.of(np.arange(len(a)), a, b, common).sum()),
            by_level(times),
            by_level(sent),
            by_level(times * self.edges.copies),
            tuple(uplinks),
            int(times[self.seats.apart(common)].sum()),
        )


@dataclass(frozen=True, eq=False)
class PairCosts:
    """The cost of all messages between two ranks, for each distance.

    ``costs[p, c]`` is that of the pair ``one[p]`` and ``other[p]`` with ``c`` levels in common, ``times`` the number of
    its messages.
    """

    pricing: Pricing
    one: Ints
    other: Ints
    costs: Ints
    times: Ints

    def of(self, pair: Ints, a: Ints, b: Ints, common: Ints) -> Ints:
        """Return the cost of pairs at places ``a`` and ``b``."""
        cost: Ints = self.costs[pair, common]
        if self.pricing.seats.network is not None:
            further = np.maximum(self.pricing.seats.hops(a, b) - 1, 0)
            each: Ints = cost if self.pricing.links is None else self.pricing.hop * self.times[pair]
            cost = np.add(cost, further * each)
        return cost


def _ticks(seconds: np.ndarray) -> Ints:
    return np.rint(seconds / _TICK).astype(np.int64)
