"""The process grid (number of parts along each axis) whose messages cost least on a machine, if placed best."""

from __future__ import annotations

from typing import Any

import numpy as np

from minga.errors import LayoutError
from minga.plan.links import Links
from minga.plan.placement.bisection import bisected, coordinates_of
from minga.plan.placement.cost import Pricing
from minga.plan.placement.edges import edges_of
from minga.plan.placement.tiles import Faces, cheapest_tilings, group_counts
from minga.plan.topology import Tree
from minga.plan.work.work import Work
from minga.space.box import Point
from minga.space.boxes import Ints
from minga.space.cuts import cut_positions, factorings
from minga.space.layout import Layout

__all__ = ["best_grid", "grids_by_cost"]

_FINALISTS = 6
"""Number of grids for which blocks are actually placed on unequal nodes: those with the cheapest faces."""


_MANY, _MOST_TILED = 4096, 8
"""Number of ranks above which only so many grids are tiled: those with the cheapest faces."""


def best_grid(work: Work, seats: Tree, links: Links | None = None) -> Point:
    """Return the process grid whose messages cost least.

    Only communication counts, and not how evenly the parts share the cells.

    Raises
    ------
    LayoutError
        If no grid of so many parts fits.
    """
    found = grids_by_cost(work, seats, links)
    if not found:
        raise LayoutError(
            f"{' x '.join(map(str, work.domain.shape))} cells cannot be cut into {len(seats)} Cartesian parts that are "
            f"at least {' x '.join(map(str, work.least))} cells wide",
            remedy="use fewer ranks, or another layout",
        )
    return found[0][1]


def grids_by_cost(work: Work, seats: Tree, links: Links | None = None) -> list[tuple[int, Point]]:
    """Return the process grids for as many ranks as there are seats, the one with the cheapest messages first.

    Each comes with J (:class:`Cost`) of its best placement: on equal nodes that of the best tiles, otherwise that of
    the order of ranks or of bisection, whichever is cheaper; in the latter case, only grids with the cheapest faces are
    considered. Grids whose parts would be narrower than ``work.least`` or a granule are left out. On ties, grids that
    cut inner axes less come first.
    """
    counts, depth = group_counts(seats), len(seats.levels)
    found = []
    for parts in factorings(len(seats), work.domain.ndim):
        if _fits(work, parts):
            faces = Faces.of(_sizes(work, parts), work.periodic, work.exchanges, depth, links)
            # With every rank alone on a node, tiles do not matter, and faces have their maximum cost.
            found.append((cheapest_tilings((len(seats), *(1,) * (depth - 1)), faces, 1)[0][0], parts, faces))
    found.sort(key=_order)
    if counts is None:
        placed = [(_placed(work, seats, links, parts), parts) for _, parts, _ in found[:_FINALISTS]]
    else:
        most = _MOST_TILED if len(seats) > _MANY else len(found)
        placed = [(cheapest_tilings(counts, faces, 1)[0][0], parts) for _, parts, faces in found[:most]]
    return sorted(placed, key=_order)


def _order(found: tuple[Any, ...]) -> tuple[int, Point]:
    return found[0], found[1][::-1]


def _fits(work: Work, parts: Point) -> bool:
    axes = zip(parts, work.domain.shape, work.granule, work.least, strict=True)
    if any(count > max(length // max(granule, least), 1) for count, length, granule, least in axes):
        return False
    return work.one_axis is None or all(count == 1 for axis, count in enumerate(parts) if axis != work.one_axis)


def _ends(work: Work, parts: Point) -> list[Ints]:
    box = work.domain
    axes = zip(box.lo, box.hi, parts, work.granule, strict=True)
    return [cut_positions(low, high, [1.0] * count, granule) for low, high, count, granule in axes]


def _sizes(work: Work, parts: Point) -> list[Ints]:
    return [np.diff(ends) for ends in _ends(work, parts)]


def _placed(work: Work, seats: Tree, links: Links | None, parts: Point) -> int:
    """Return the cost of the messages of equal parts on unequal nodes."""
    ends = _ends(work, parts)
    lo = np.stack([axis.ravel() for axis in np.meshgrid(*(e[:-1] for e in ends), indexing="ij")], axis=1)
    hi = np.stack([axis.ravel() for axis in np.meshgrid(*(e[1:] for e in ends), indexing="ij")], axis=1)
    layout = Layout(work.domain, len(seats), lo, hi, np.arange(len(seats)))
    pricing = Pricing(edges_of(layout, work.periodic, work.exchanges), seats, links)
    halved = bisected(coordinates_of(lo, hi, layout.owner, len(seats)), pricing, np.zeros(len(seats), np.int64))
    return min(pricing.cost(seats.order).total, pricing.cost(halved).total)
