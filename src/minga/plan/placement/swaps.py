"""Improvement of a placement by exchanging the places of two ranks' blocks while that makes messages cheaper.

This is the pairwise exchange of B. W. Kernighan and S. Lin, *An Efficient Heuristic Procedure for Partitioning Graphs*
(Bell System Technical Journal 49, 1970), without its sequences of worsening exchanges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minga.plan.placement.cost import PairCosts, Pricing
from minga.plan.topology import Tree
from minga.space.boxes import Ints

__all__ = ["MOST_VERTICES", "nodes_exchanged", "refined"]

MOST_VERTICES = 4096
"""Maximum number of vertices of a graph that is refined."""

_ALL_PAIRS = 256
"""Number of vertices up to which every pair is a candidate; beyond, only pairs that bring a vertex near a partner."""

_AT_ONCE = 1 << 21
"""Number of messages whose costs are compared at once."""

_MOST_PAIRS = 1 << 17
_MOST_EXCHANGES = 4096
"""Maximum numbers of candidates and of exchanges of one pass."""


def refined(places: Ints, pricing: Pricing, kinds: Ints, passes: int = 24) -> Ints:
    """Return ``places`` after exchanges of vertices of one kind that lower the cost, in at most ``passes`` passes."""
    graph = _Graph.of(pricing)
    places = places.copy()
    for _ in range(passes):
        u, v = _candidates(graph, places, kinds)
        gain = graph.gain(places, u, v)
        worth = np.flatnonzero(gain > 0)
        best = worth[np.argsort(-gain[worth], kind="stable")][:_MOST_EXCHANGES]
        if not len(best):
            break
        _exchange(graph, places, u[best].tolist(), v[best].tolist())
    return places


def nodes_exchanged(places: Ints, pricing: Pricing, kinds: Ints) -> Ints:
    """Return ``places`` after equal nodes have exchanged all blocks: the slower a node's link, the less it sends."""
    if pricing.nodes is None:
        return places
    table, own = pricing.nodes
    order, node, inner = pricing.seats.order, pricing.seats.nodes, pricing.seats.paths[:, pricing.seats.above + 1 :]
    first = np.flatnonzero(np.r_[True, np.diff(node[order]) != 0])
    members = np.split(order, first[1:])
    a, b = places[pricing.edges.sender], places[pricing.edges.receiver]
    outside = node[a] != node[b]
    leaving = np.zeros(len(node), np.int64)
    for ends in (a[outside], b[outside]):
        np.add.at(leaving, ends, pricing.levels[pricing.seats.above, pricing.sizes[1][outside]])
    alike: dict[bytes, list[int]] = {}
    for number, seats in enumerate(members):
        alike.setdefault(np.column_stack((inner[seats], kinds[seats])).tobytes(), []).append(number)
    moved = np.arange(len(places))
    for nodes in alike.values():
        slowest = sorted(nodes, key=lambda number: -int(table[own[members[number][0]]].sum()))
        quietest = sorted(nodes, key=lambda number: int(leaving[members[number]].sum()))
        for here, there in zip(quietest, slowest, strict=True):
            moved[members[here]] = members[there]
    return moved[places]


@dataclass(frozen=True, eq=False)
class _Graph:
    """The messages of each vertex and the vertices at their other ends: rows ``starts[v]`` to ``starts[v + 1]``."""

    seats: Tree
    prices: Pricing | PairCosts
    starts: Ints
    message: Ints
    other: Ints
    common: np.ndarray
    """Number of levels that any two places have in common."""

    @classmethod
    def of(cls, pricing: Pricing) -> _Graph:
        pairs = pricing.by_pair()
        sender, receiver = (pricing.edges.sender, pricing.edges.receiver) if pairs is None else (pairs.one, pairs.other)
        vertex = np.r_[sender, receiver]
        order = np.argsort(vertex, kind="stable")
        starts = np.searchsorted(vertex[order], np.arange(pricing.edges.ranks + 1))
        message = np.tile(np.arange(len(sender)), 2)[order]
        paths = pricing.seats.paths
        common = np.zeros((len(paths), len(paths)), np.int8)
        same = np.ones(common.shape, bool)
        for level in range(paths.shape[1]):
            same &= paths[:, None, level] == paths[None, :, level]
            common += same
        return cls(
            pricing.seats, pricing if pairs is None else pairs, starts, message, np.r_[receiver, sender][order], common
        )

    def gain(self, places: Ints, u: Ints, v: Ints) -> Ints:
        """Return the decrease of the cost if only a given pair exchanges its places, for each pair."""
        messages = np.cumsum((self.starts[u + 1] - self.starts[u]) + (self.starts[v + 1] - self.starts[v]))
        ends = np.searchsorted(messages, np.arange(_AT_ONCE, int(messages[-1:].sum()), _AT_ONCE))
        parts = zip(np.split(u, ends), np.split(v, ends), strict=True)
        return np.concatenate([self._moved(places, a, b) + self._moved(places, b, a) for a, b in parts])

    def _moved(self, places: Ints, mover: Ints, partner: Ints) -> Ints:
        """Return the savings of ``mover``'s messages at the place of ``partner``, without those between the two."""
        degree = self.starts[mover + 1] - self.starts[mover]
        pair = np.repeat(np.arange(len(mover)), degree)
        row = np.arange(len(pair)) - np.repeat(np.cumsum(degree) - degree, degree) + self.starts[mover][pair]
        kept = self.other[row] != partner[pair]
        pair, row = pair[kept], row[kept]
        other = places[self.other[row]]
        here, there = places[mover[pair]], places[partner[pair]]
        message = self.message[row]
        before = self.prices.of(message, here, other, self.common[here, other])
        after = self.prices.of(message, there, other, self.common[there, other])
        less = np.zeros(len(mover), np.int64)
        np.add.at(less, pair, before - after)
        return less

    def neighbours(self, vertex: int) -> list[int]:
        """Return the vertices with which a vertex exchanges messages."""
        found: list[int] = self.other[self.starts[vertex] : self.starts[vertex + 1]].tolist()
        return found


def _candidates(graph: _Graph, places: Ints, kinds: Ints) -> tuple[Ints, Ints]:
    """Return pairs of vertices of one kind, at different places, that may gain from an exchange."""
    count = len(places)
    if count <= _ALL_PAIRS:
        u, v = np.triu_indices(count, 1)
    else:
        u, v = _beside_partners(graph, places)
    apart = (kinds[u] == kinds[v]) & (graph.common[places[u], places[v]] < len(graph.seats.levels))
    return u[apart], v[apart]


def _beside_partners(graph: _Graph, places: Ints) -> tuple[Ints, Ints]:
    """Pair the vertex of each message that leaves a group with all vertices in the other end's innermost group."""
    seats = graph.seats
    # Groups of the level above single places.
    group = seats.groups(max(0, len(seats.levels) - 2))
    at = group[places]
    members = np.argsort(at, kind="stable")
    first = np.searchsorted(at[members], np.arange(at.max() + 2))
    vertex = np.repeat(np.arange(len(places)), np.diff(graph.starts))
    outward = at[vertex] != at[graph.other]
    pair = np.unique(vertex[outward] * (at.max() + 1) + at[graph.other[outward]])
    vertex, towards = np.divmod(pair, at.max() + 1)
    size = first[towards + 1] - first[towards]
    kept = np.cumsum(size) <= _MOST_PAIRS
    vertex, towards, size = vertex[kept], towards[kept], size[kept]
    row = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    return np.repeat(vertex, size), members[np.repeat(first[towards], size) + row]


def _exchange(graph: _Graph, places: Ints, us: list[int], vs: list[int]) -> None:
    """Carry out the exchanges in turn, skipping those that an earlier one may have made worse."""
    moved: set[int] = set()
    for u, v in zip(us, vs, strict=True):
        if u in moved or v in moved:
            continue
        if not moved.isdisjoint(graph.neighbours(u)) or not moved.isdisjoint(graph.neighbours(v)):
            continue
        places[u], places[v] = places[v], places[u]
        moved |= {u, v}
