"""Exact search for the cheapest placement of a few ranks, by branch and bound.

Ranks are placed one after another, those that exchange most with the ones before them first. Partial placements are
kept side by side; one is left out if its messages, with the least that the others can cost, reach the cost of a
placement that is known already, or if another one differs from it only by an exchange of equal parts of the machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.plan.placement.cost import Pricing
from minga.space.boxes import Ints

__all__ = ["MOST_EXACT", "cheaper"]

MOST_EXACT: Final = 12
"""Maximum number of ranks that are placed exactly."""
_MOST_KEPT: Final = 1 << 15
"""Maximum number of partial placements that are kept; of more, the most promising ones are, and the result may not be
the cheapest one."""
_NEVER: Final = 1 << 60


def cheaper(pricing: Pricing, kinds: Ints, limit: int) -> Ints | None:
    """Return the places of a placement that costs less than ``limit``, the cheapest one, or None if there is none.

    Vertices go to places of their own kind, as in :func:`minga.plan.placement.bisection.bisected`.
    """
    problem = _Problem.of(pricing, kinds)
    count = len(kinds)
    front = _Front(
        np.empty((1, 0), np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, count, count), np.int64)
    )
    for depth in range(count):
        front = _placed(problem, front, depth, limit)
        if not len(front.cost):
            return None
    best = int(np.argmin(front.cost))
    places = np.empty(count, np.int64)
    places[problem.order] = front.places[best]
    return places


@dataclass(frozen=True, eq=False)
class _Problem:
    """Costs and rules of a search.

    costs    cost of the messages of two vertices at two places, shape (vertices, vertices, places, places)
    order    the vertices in the order in which they are placed
    allowed  places for each vertex, shape (vertices, places)
    earlier  for each place, masks of places of which one must be taken before
    rest     least cost of all messages among the vertices from each position of the order on
    """

    costs: Ints
    order: Ints
    allowed: np.ndarray
    earlier: tuple[tuple[int, ...], ...]
    rest: tuple[int, ...]

    @classmethod
    def of(cls, pricing: Pricing, kinds: Ints) -> _Problem:
        count, pairs, edges = len(kinds), pricing.by_pair(), pricing.edges
        one, other = (edges.sender, edges.receiver) if pairs is None else (pairs.one, pairs.other)
        number, a, b = np.indices((len(one), count, count)).reshape(3, -1)
        each = (pricing if pairs is None else pairs).of(number, a, b, pricing.seats.common(a, b))
        costs = np.zeros((count,) * 4, np.int64)
        np.add.at(costs, (one, other), each.reshape(len(one), count, count))
        costs = costs + costs.transpose(1, 0, 3, 2)
        apart = costs + np.where(np.eye(count, dtype=bool), _NEVER, 0)
        least = np.where(costs.any(axis=(2, 3)), apart.min(axis=(2, 3)), 0)
        order = _order(costs.sum(axis=(2, 3)))
        sorted_least = np.tril(least[np.ix_(order, order)], -1)
        rest = tuple(int(sorted_least[depth:, depth:].sum()) for depth in range(count + 1))
        allowed = kinds[:, None] == kinds[None, :]
        symmetries = _Symmetries(pricing, kinds)
        allowed[order[0]] &= symmetries.first()
        return cls(costs, order, allowed, tuple(map(tuple, symmetries.earlier)), rest)


@dataclass(frozen=True, eq=False)
class _Front:
    """All partial placements of some depth.

    places  those of the vertices placed so far, shape (partial placements, depth)
    taken   masks of the places that are taken
    cost    cost of the messages among the vertices placed so far
    future  cost of the messages of each vertex at each place with these, shape (partial placements, vertices, places)
    """

    places: Ints
    taken: Ints
    cost: Ints
    future: Ints


def _placed(problem: _Problem, front: _Front, depth: int, limit: int) -> _Front:
    """Place the next vertex in all ways that may lead to a cost below ``limit``."""
    vertex, later = int(problem.order[depth]), problem.order[depth + 1 :]
    count = len(problem.order)
    bits = np.int64(1) << np.arange(count)
    open_ = problem.allowed[vertex] & ((front.taken[:, None] & bits) == 0)
    for column, masks in enumerate(problem.earlier):
        for mask in masks:
            open_[:, column] &= (front.taken & mask) != 0
    row, place = np.nonzero(open_)
    cost = front.cost[row] + front.future[row, vertex, place]
    kept = cost + problem.rest[depth + 1] < limit
    row, place, cost = row[kept], place[kept], cost[kept]
    taken = front.taken[row] | bits[place]
    free = (taken[:, None] & bits) == 0
    bound = cost + problem.rest[depth + 1]
    for other in later.tolist():
        there = front.future[row, other] + problem.costs[other, vertex][:, place].T
        bound = bound + np.where(free & problem.allowed[other], there, _NEVER).min(axis=1)
    kept_rows = np.flatnonzero(bound < limit)
    if len(kept_rows) > _MOST_KEPT:
        kept_rows = np.sort(kept_rows[np.argsort(bound[kept_rows], kind="stable")[:_MOST_KEPT]])
    row, place = row[kept_rows], place[kept_rows]
    places = np.column_stack((front.places[row], place))
    future = front.future[row] + problem.costs[:, vertex][:, :, place].transpose(2, 0, 1)
    return _Front(places, taken[kept_rows], cost[kept_rows], future)


def _order(weights: Ints) -> Ints:
    """Return the vertices such that each has much to do with those before it."""
    order = [int(np.argmax(weights.sum(axis=1)))]
    while len(order) < len(weights):
        towards = weights[order].sum(axis=0) + 1
        towards[order] = 0
        order.append(int(np.argmax(towards)))
    return np.array(order)


class _Symmetries:
    """Rules that leave out placements which differ by an exchange of equal parts of the machine.

    Of equal groups within one group, and of equal places, one is taken after the other: ``earlier`` has, for each
    place, masks of places of which one must be taken before.
    """

    def __init__(self, pricing: Pricing, kinds: Ints) -> None:
        self.seats, self.kinds = pricing.seats, kinds
        self.own = np.zeros(len(kinds), np.int64) if pricing.nodes is None else pricing.nodes[1]
        self.earlier: list[list[int]] = [[] for _ in range(len(kinds))]
        self.nodes: dict[int, str] = {}
        self._visit(self.seats.order.tolist(), 0)

    def _visit(self, members: list[int], level: int) -> str:
        """Return a description of a group on a level, equal for equal groups, and note the rules inside it."""
        seats = self.seats
        if level == len(seats.levels):
            for number, place in enumerate(members):
                same = [other for other in members[:number] if self.kinds[other] == self.kinds[place]]
                self._after([place], same[-1:])
            return str(sorted(self.kinds[members].tolist()))
        groups: dict[int, list[int]] = {}
        for place in members:
            groups.setdefault(int(seats.paths[place, level]), []).append(place)
        latest: dict[str, list[int]] = {}
        signs = []
        for number, inside in groups.items():
            sign = self._visit(inside, level + 1)
            if level == seats.above:
                sign = self.nodes[number] = f"{self.own[inside[0]]} {sign}"
            if level != seats.above or seats.network is None:
                self._after(inside, latest.get(sign, []))
            latest[sign] = inside
            signs.append(sign)
        return str(sorted(signs))

    def _after(self, members: list[int], before: list[int]) -> None:
        if before:
            for place in members:
                self.earlier[place].append(sum(1 << other for other in before))

    def first(self) -> np.ndarray:
        """Mark the places to which the first vertex may go: on a ring or torus of equal nodes, those of one node."""
        network, node = self.seats.network, self.seats.nodes
        if network is None or network.table is not None or not all(network.lengths):
            return np.ones(len(node), bool)
        whole = len(self.nodes) == len(network) == math.prod(network.lengths)
        alike = whole and len(set(self.nodes.values())) == 1
        return node == node[0] if alike else np.ones(len(node), bool)
