"""Recursive bisection on any tree: the machine is halved at its widest joints, and the blocks along with it.

A set of blocks goes to a run of places. If the run spans several groups of a level, these are halved by capacity;
blocks are ordered along every permutation and direction of the axes, the first ones fill the first half (a hyperplane
with a staircase), and the order that cuts the cheapest messages is chosen. All sets of a depth are halved at once. The
method follows Hunold, von Kirchbach, Lehr, Schulz and Träff, *Efficient Process-to-Node Mapping Algorithms for Stencil
Computations* (CLUSTER 2020).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minga.plan.placement.cost import Pricing
from minga.plan.topology import Tree
from minga.space.boxes import Ints

__all__ = ["bisected", "coordinates_of", "shared_out"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_ORDER_WORK = 600_000
"""Maximum product of vertices and orders that are tried at each depth: larger graphs try fewer orders."""


def bisected(coordinates: Ints, pricing: Pricing, kinds: Ints) -> Ints:
    """Return the place of each vertex, a permutation.

    ``coordinates`` has one row per vertex. Vertex ``i`` gets a place of kind ``kinds[i]``; ``kinds[p]`` is also the
    kind of place ``p``.
    """
    walk = _Walk.of(pricing.seats, np.ones(len(kinds)))
    places = np.argsort(kinds[walk.places], kind="stable")
    state = _start(coordinates, np.ones(len(kinds)), kinds, places, pricing)
    result = np.full(len(kinds), -1, np.int64)
    while len(state.first):
        split, level, between = walk.halves(state.first, state.last)
        # Places that are all equally far from one another need no further halving.
        done = between == state.last - state.first - 1
        ours, theirs = done[state.set_of_position], done[state.set_of_place]
        result[state.orders[0][ours]] = walk.places[state.run[theirs]]
        left = state.run < split[state.set_of_place]
        target = np.add.reduceat(left.astype(float), state.segments) if len(left) else np.empty(0)
        state = _halved(state, done, level, split, target, left, pricing)
    return result


def shared_out(coordinates: Ints, weights: Floats, pricing: Pricing, capacities: Floats) -> Ints:
    """Return the place of each vertex, such that the total of ``weights`` on each place matches its capacity.

    Place ``p`` gets about the share ``capacities[p]`` of the sum of all capacities, and nothing if that is zero.
    """
    walk = _Walk.of(pricing.seats, capacities)
    kinds = np.zeros(len(weights), np.int64)
    state = _start(coordinates, weights, kinds, np.arange(len(capacities)), pricing)
    result = np.full(len(weights), -1, np.int64)
    while len(state.first):
        split, level, _ = walk.halves(state.first, state.last)
        done = state.last - state.first == 1
        ours = done[state.set_of_position]
        result[state.orders[0][ours]] = walk.places[state.first[state.set_of_position[ours]]]
        below, all_of = (walk.before[end] - walk.before[state.first] for end in (split, state.last))
        share = np.divide(below, all_of, out=np.zeros(len(below)), where=all_of > 0)
        # Summed one after another, which gives the same bits on every processor.
        total = np.bincount(state.set_of_position, weights[state.orders[0]], len(done)).astype(float)
        target = (total * share)[state.set_of_position[state.segments]]
        left = state.run < split[state.set_of_place]
        state = _halved(state, done, level, split, target, left, pricing)
    return result


def coordinates_of(lo: Ints, hi: Ints, owner: Ints, count: int) -> Ints:
    """Return the positions of the boxes of each of ``count`` owners, numbered along each axis.

    Owners without boxes come last.
    """
    sizes = np.prod(hi - lo, axis=1)
    total = np.bincount(owner, sizes, count)
    found = np.empty((count, lo.shape[1]), np.int64)
    for axis in range(lo.shape[1]):
        sums = np.bincount(owner, sizes * (lo[:, axis] + hi[:, axis]), count)
        centre = np.divide(sums, total, out=np.full(count, np.inf), where=total > 0)
        found[:, axis] = np.unique(centre, return_inverse=True)[1].reshape(-1)
    return found


@dataclass(frozen=True, eq=False)
class _Walk:
    """The places of a tree in the order of a walk through it."""

    places: Ints
    steps: Ints
    """Number of levels that each place has in common with the one before it; -1 at both ends."""
    at_level: tuple[Ints, ...]
    """Positions with such a step, by level."""
    before: Floats
    """Total capacity of the places before each position."""
    seats: Tree

    @classmethod
    def of(cls, seats: Tree, capacities: Floats) -> _Walk:
        places = seats.order
        steps = np.full(len(seats) + 1, -1, np.int64)
        steps[1:-1] = seats.common(places[:-1], places[1:])
        at_level = tuple(np.flatnonzero(steps == level) for level in range(len(seats.levels) + 1))
        return cls(places, steps, at_level, np.r_[0.0, np.cumsum(capacities[places])], seats)

    def halves(self, first: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
        """Return where runs ``[first, last)`` are cut, at which level, and their number of joints of this level."""
        level = self.seats.common(self.places[first], self.places[last - 1])
        split, joints = last.copy(), np.zeros(len(first), np.int64)
        middle = 0.5 * (self.before[first] + self.before[last])
        for number in np.unique(level).tolist():
            at = self.at_level[number]
            runs = np.flatnonzero((level == number) & (last - first > 1))
            if not len(runs):
                continue
            low, high = np.searchsorted(at, first[runs], "right"), np.searchsorted(at, last[runs])
            joints[runs] = high - low
            above = np.clip(np.searchsorted(self.before[at], middle[runs]), low, high - 1)
            below = np.clip(above - 1, low, high - 1)
            nearer = np.abs(self.before[at[above]] - middle[runs]) < np.abs(self.before[at[below]] - middle[runs])
            split[runs] = np.where(nearer, at[above], at[below])
        return split, level, joints


@dataclass(frozen=True, eq=False)
class _State:
    """All sets of a depth; set ``s`` goes to the places ``[first[s], last[s])`` of the walk."""

    first: Ints
    last: Ints
    orders: list[Ints]
    """The vertices in several orders, each sorted by set, then by kind, then along the order."""
    set_of_position: Ints
    """Set at each position; the same for all orders."""
    segments: Ints
    """Positions at which a set, or a kind within it, begins."""
    run: Ints
    """Positions in the walk, sorted by set, then by kind."""
    set_of_place: Ints
    edges: tuple[Ints, Ints, Ints]
    """Messages within sets: numbers, and the vertices that they join."""
    weights: Floats
    kinds: Ints


def _start(coordinates: Ints, weights: Floats, kinds: Ints, run: Ints, pricing: Pricing) -> _State:
    vertices = len(weights)
    orders = [np.lexsort((*columns[::-1], kinds)) for columns in _orders(coordinates)]
    sender, receiver = pricing.edges.sender, pricing.edges.receiver
    sets = np.zeros(vertices, np.int64)
    return _State(
        np.zeros(1, np.int64),
        np.array([len(run)]),
        orders,
        sets,
        _segments(sets, kinds[orders[0]]),
        run,
        np.zeros(len(run), np.int64),
        (np.arange(len(sender)), sender, receiver),
        weights,
        kinds,
    )


def _orders(coordinates: Ints) -> Iterator[list[Ints]]:
    """Yield columns to sort by, along all permutations and directions of the axes; only some for a large graph."""
    vertices, ndim = coordinates.shape
    ways = sorted(
        itertools.product(itertools.product((1, -1), repeat=ndim), itertools.permutations(range(ndim))),
        # The plain orders come first, and of these, one for each axis that is cut across.
        key=lambda way: (way[0].count(-1), way[1][1:] != tuple(sorted(way[1][1:])), way[1]),
    )
    for signs, axes in ways[: max(ndim, _ORDER_WORK // max(vertices, 1))]:
        yield [signs[axis] * coordinates[:, axis] for axis in axes]


def _halved(
    state: _State, done: Bools, level: Ints, split: Ints, target: Floats, left: Bools, pricing: Pricing
) -> _State:
    """Halve the sets that are not done: in each segment, the vertices whose weight comes before ``target`` go left."""
    sets = len(done)
    set_of = np.full(len(state.weights), -1, np.int64)
    set_of[state.orders[0]] = state.set_of_position
    edge, u, v = state.edges
    price = pricing.levels[level[set_of[u]], pricing.sizes[1][edge]].astype(float)
    lengths = np.diff(np.r_[state.segments, len(state.set_of_position)])
    goal = np.repeat(target, lengths)
    sides = np.zeros((len(state.orders), len(state.weights)), bool)
    cuts = np.empty((len(state.orders), sets))
    for number, order in enumerate(state.orders):
        weight = state.weights[order]
        passed = np.cumsum(weight) - weight
        passed -= np.repeat(passed[state.segments], lengths)
        sides[number, order] = passed + 0.5 * weight < goal
        cut = sides[number, u] != sides[number, v]
        cuts[number] = np.bincount(set_of[u[cut]], price[cut], sets)
    side = sides[np.argmin(cuts, axis=0)[set_of], np.arange(len(set_of))]
    return _next(state, done, split, set_of, side, left)


def _next(state: _State, done: Bools, split: Ints, set_of: Ints, side: Bools, left: Bools) -> _State:
    number = np.cumsum(~done) - 1
    going = ~done
    half = np.where((set_of >= 0) & going[set_of], 2 * number[set_of] + ~side, -1)
    orders = []
    for order in state.orders:
        kept = order[half[order] >= 0]
        orders.append(kept[_sorted_by(half[kept])])
    set_of_position = half[orders[0]]
    stays = going[state.set_of_place]
    run, sets = state.run[stays], state.set_of_place[stays]
    sets = 2 * number[sets] + ~left[stays]
    order = _sorted_by(sets)
    edge, u, v = (
        ends[(half[state.edges[1]] == half[state.edges[2]]) & (half[state.edges[1]] >= 0)] for ends in state.edges
    )
    return _State(
        np.stack((state.first[going], split[going]), axis=1).ravel(),
        np.stack((split[going], state.last[going]), axis=1).ravel(),
        orders,
        set_of_position,
        _segments(set_of_position, state.kinds[orders[0]]),
        run[order],
        sets[order],
        (edge, u, v),
        state.weights,
        state.kinds,
    )


def _sorted_by(sets: Ints) -> Ints:
    """Return a stable order by set; 16-bit numbers use radix sort, which is faster."""
    return np.argsort(sets.astype(np.uint16) if sets.max(initial=0) < 1 << 16 else sets, kind="stable")


def _segments(sets: Ints, kinds: Ints) -> Ints:
    begins = np.r_[True, (sets[1:] != sets[:-1]) | (kinds[1:] != kinds[:-1])][: len(sets)]
    return np.flatnonzero(begins)
