"""Boxes of blocks for equal nodes: every node gets a tile of the mesh, every chip a tile of that, and so on.

Coordinates in the mesh are written as mixed-radix numbers with one digit per level. All ways of doing so are tried; the
cost of each follows from how often a digit of each level changes along each axis, so the blocks themselves are never
visited. The method follows Gropp, *Using Node Information to Implement MPI Cartesian Topologies* (EuroMPI 2018), and
Niethammer and Rabenseifner, *An MPI Interface for Application and Hardware Aware Cartesian Topology Optimization*
(EuroMPI 2019).
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from minga.plan.contacts import Mesh
from minga.plan.links import Links
from minga.plan.placement.cost import prices
from minga.plan.topology import Tree
from minga.plan.work.work import HaloRound
from minga.space.box import Point, directions
from minga.space.boxes import Ints

__all__ = ["Faces", "cheapest_tilings", "group_counts", "tiled"]

Tiling = tuple[Point, ...]
"""Number of groups along each axis, for each level."""

_MOST_TILINGS = 20_000
"""Maximum number of tilings that are compared; machines of many levels have millions."""


def group_counts(seats: Tree) -> Point | None:
    """Return the number of each level's groups per enclosing group; None if they differ, or ranks share cores."""
    order, depth = seats.order, len(seats.levels)
    common = np.r_[-1, seats.common(order[:-1], order[1:])]
    around, counts = np.array([0, len(order)]), []
    for level in range(depth):
        # Groups of a level begin at places that have only outer levels in common with the previous place.
        begins = np.r_[np.flatnonzero(common <= level), len(order)]
        within = np.diff(np.searchsorted(begins, around))
        if (within != within[0]).any():
            return None
        counts.append(int(within[0]))
        around = begins
    return tuple(counts) if math.prod(counts) == len(order) else None


@dataclass(frozen=True)
class Faces:
    """The total cost of messages that cross the mesh along given axes, by number of levels in common.

    ``crossing[axes][c]`` is the cost of all messages along ``axes`` (one axis for faces, several for edges and corners)
    that leave one plane of blocks across each of these axes, in both directions, with ``c`` levels in common.
    """

    shape: Point
    periodic: tuple[bool, ...]
    crossing: dict[Point, Ints]

    @classmethod
    def of(
        cls,
        sizes: Sequence[Ints],
        periodic: Sequence[bool],
        exchanges: Sequence[HaloRound],
        depth: int,
        links: Links | None = None,
    ) -> Faces:
        """Make the faces of a mesh with parts of ``sizes[a]`` cells along axis ``a``, for ``depth`` levels."""
        sizes_of: dict[Point, list[Ints]] = {}
        times_of: dict[Point, list[Ints]] = {}
        alike = [np.unique(along, return_counts=True) for along in sizes]
        for exchange in exchanges:
            for towards in directions(len(sizes), faces_only=not exchange.corners):
                axes = tuple(axis for axis, side in enumerate(towards) if side)
                widths = [exchange.low[a] if towards[a] < 0 else exchange.high[a] for a in axes]
                if min(widths) == 0:
                    continue
                cells, times = np.array([math.prod(widths)], np.int64), np.ones(1, np.int64)
                for axis in set(range(len(sizes))) - set(axes):
                    lengths, counts = alike[axis]
                    cells, times = np.outer(cells, lengths).ravel(), np.outer(times, counts).ravel()
                sizes_of.setdefault(axes, []).append(cells * exchange.bytes)
                times_of.setdefault(axes, []).append(times * exchange.times)
        crossing = {
            axes: prices(depth, np.concatenate(found), links) @ np.concatenate(times_of[axes])
            for axes, found in sizes_of.items()
        }
        return cls(tuple(map(len, sizes)), tuple(periodic), crossing)

    def cost(self, tiling: Tiling) -> int:
        """Return J of a tiling, which is exact unless two faces between the same ranks share a message's latency."""
        total = 0
        for axes, price in self.crossing.items():
            # Blocks on both sides of a corner have the levels in common that they have along every crossed axis.
            at_least = np.ones(len(tiling) + 1, np.int64)
            for axis in axes:
                along = tuple(level[axis] for level in tiling)
                at_least = at_least * _in_common(along, self.periodic[axis])
            pairs = at_least - np.append(at_least[1:], 0)
            # Pairs with all levels in common are on one rank.
            total += int((pairs[:-1] * price[:-1]).sum())
        return total


@functools.lru_cache(1 << 14)
def _in_common(factors: Point, periodic: bool) -> Ints:
    """Return the number of pairs of neighbours along an axis that have at least 0, 1, ... levels in common.

    The axis is cut into ``factors[0]`` parts, each of these into ``factors[1]`` parts, and so on.
    """
    exactly = np.zeros(len(factors) + 1, np.int64)
    outside = 1
    for level, factor in enumerate(factors):
        exactly[level] = outside * (factor - 1)
        outside *= factor
    if periodic:
        # The two ends differ in the outermost level that divides the axis; if none does, they are equal.
        exactly[next((level for level, factor in enumerate(factors) if factor > 1), len(factors))] += 1
    return np.cumsum(exactly[::-1])[::-1]


def cheapest_tilings(counts: Point, faces: Faces, most: int) -> list[tuple[int, Tiling]]:
    """Return the cheapest ways to map groups of ``counts`` to a mesh, with costs; ties in the order of finding."""
    tilings = itertools.islice(_tilings(counts, faces.shape), _MOST_TILINGS)
    found = ((faces.cost(tiling), number, tiling) for number, tiling in enumerate(tilings))
    return [(cost, tiling) for cost, _, tiling in heapq.nsmallest(most, found)]


def tiled(mesh: Mesh, seats: Tree, tiling: Tiling) -> Ints:
    """Return the place of each block."""
    number = np.zeros(mesh.shape, np.int64)
    for level, tile in enumerate(tiling):
        inner = np.prod(tiling[level + 1 :], axis=0, dtype=np.int64) if level + 1 < len(tiling) else [1] * len(tile)
        for axis, length in enumerate(tile):
            digit = np.arange(mesh.shape[axis]) // inner[axis] % length
            along = [1] * len(tile)
            along[axis] = -1
            number = number * length + digit.reshape(along)
    places = np.empty(mesh.blocks.size, np.int64)
    places[mesh.blocks.ravel()] = seats.order[number.ravel()]
    return places


def _tilings(counts: Sequence[int], shape: Sequence[int]) -> Iterator[Tiling]:
    """Yield all ways to give each level a tile of as many parts as it has groups, such that they form the mesh."""
    if not counts:
        if all(length == 1 for length in shape):
            yield ()
        return
    for tile in _factors(counts[0], shape):
        left = [length // along for length, along in zip(shape, tile, strict=True)]
        for rest in _tilings(counts[1:], left):
            yield (tile, *rest)


def _factors(number: int, shape: Sequence[int]) -> Iterator[Point]:
    """Yield all factorings of ``number`` into one divisor of each length in ``shape``, largest first factor first."""
    if not shape:
        if number == 1:
            yield ()
        return
    for factor in range(min(number, shape[0]), 0, -1):
        if number % factor == 0 and shape[0] % factor == 0:
            for rest in _factors(number // factor, shape[1:]):
                yield (factor, *rest)
