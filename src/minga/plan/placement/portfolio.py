"""The mappings by name, and the portfolio: all of them tried, the cheapest taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.errors import LayoutError, suggest
from minga.plan.contacts import Mesh, mesh_of
from minga.plan.links import Links
from minga.plan.placement.bisection import bisected, coordinates_of, shared_out
from minga.plan.placement.cost import Cost, Pricing
from minga.plan.placement.edges import edges_of
from minga.plan.placement.swaps import MOST_VERTICES, nodes_exchanged, refined
from minga.plan.placement.tiles import Faces, cheapest_tilings, group_counts, tiled
from minga.plan.topology import Tree
from minga.plan.work.work import Exchange
from minga.space.box import Point
from minga.space.boxes import Ints, volumes
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = [
    "MAPPINGS",
    "Candidate",
    "arrange",
    "check_mapping",
    "distribute",
    "place",
    "place_all",
    "portfolio",
    "reassigned",
]

MAPPINGS: Final = ("sequential", "round-robin", "tiles", "bisection", "auto")

_FINALISTS = 4
"""Tilings whose cost is counted message by message."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way to place: ``ranks[r]`` takes over what rank ``r`` owns, and what the messages of a step then cost."""

    mapping: str
    ranks: Ints
    cost: Cost


def place(
    layout: Layout,
    seats: Tree,
    mapping: str = "sequential",
    periodic: Sequence[bool] = (),
    exchanges: Sequence[Exchange] = (),
    links: Links | None = None,
) -> Layout:
    """The same blocks on the ranks that ``mapping`` gives them to; see :func:`arrange`."""
    return reassigned(layout, arrange(layout, seats, mapping, periodic, exchanges, links))


def place_all(
    layouts: Mapping[Grid, Layout],
    seats: Tree,
    mapping: str,
    exchanges: Sequence[Exchange] = (),
    links: Links | None = None,
) -> dict[Grid, Layout]:
    """Layouts of several grids whose blocks belong together, moved alike: as is best for the first grid."""
    first = next(iter(layouts))
    ranks = arrange(layouts[first], seats, mapping, first.periodic, exchanges, links, shift=first.shift)
    return {grid: reassigned(layout, ranks) for grid, layout in layouts.items()}


def reassigned(layout: Layout, ranks: Ints) -> Layout:
    """The layout in which ``ranks[r]`` owns what rank ``r`` owned."""
    return Layout(layout.domain, layout.ranks, layout.lo, layout.hi, ranks[layout.owner])


def check_mapping(mapping: str) -> None:
    """LayoutError unless there is such a mapping."""
    if mapping not in MAPPINGS:
        close = suggest(mapping, MAPPINGS)
        hint = f"did you mean {close!r}? " if close else ""
        raise LayoutError(f"{mapping!r} is not a mapping", remedy=f"{hint}Write one of: {', '.join(MAPPINGS)}")


def arrange(
    layout: Layout,
    seats: Tree,
    mapping: str,
    periodic: Sequence[bool] = (),
    exchanges: Sequence[Exchange] = (),
    links: Links | None = None,
    kinds: Ints | None = None,
    shift: Sequence[Point] = (),
) -> Ints:
    """For each rank of the layout, the rank that takes over its blocks: a permutation, shape (ranks,).

    Parameters
    ----------
    layout, seats
        Blocks and owners; where each rank sits, a row a rank (:meth:`Tree.seats`, :func:`seats_of`).
    mapping
        One of :data:`MAPPINGS`.
    periodic, exchanges, shift
        What is sent in a step, as for :func:`edges_of`; by default faces between neighbours, no axis periodic.
    links
        What messages cost; by default the weights of :func:`level_costs`.
    kinds
        A number for each rank: blocks go to ranks of the same kind only, as where they were cut for a rank's speed.

    Raises LayoutError where the mapping is unknown, or tiles are asked for and impossible.
    """
    check_mapping(mapping)
    if mapping in ("sequential", "round-robin"):
        _check_seats(layout, seats)
        order = seats.order if mapping == "sequential" else _dealt(seats)
        return _by_kind(order, kinds)
    problem = _Problem.of(layout, seats, periodic, exchanges, links, kinds, shift)
    if mapping == "tiles":
        _check_tiles(layout, seats, kinds)
        candidates = list(_tiles(problem))
    elif mapping == "bisection":
        candidates = [_bisection(problem)]
    else:
        candidates = _portfolio(problem)
    return min(candidates, key=lambda candidate: candidate.cost.rank).ranks


def portfolio(
    layout: Layout,
    seats: Tree,
    periodic: Sequence[bool] = (),
    exchanges: Sequence[Exchange] = (),
    links: Links | None = None,
    kinds: Ints | None = None,
    shift: Sequence[Point] = (),
) -> list[Candidate]:
    """All placements that the mapping ``auto`` chooses from, the one it takes first; arguments as for :func:`arrange`.

    Equally cheap ones are ordered by messages between nodes, then by the bytes that leave the busiest node; of equal
    ones the plainest comes first, leaving everything as it is being the plainest.
    """
    found = _portfolio(_Problem.of(layout, seats, periodic, exchanges, links, kinds, shift))
    return sorted(found, key=lambda candidate: candidate.cost.rank)


def distribute(
    layout: Layout,
    seats: Tree,
    capacities: np.ndarray,
    weights: np.ndarray | None = None,
    periodic: Sequence[bool] = (),
    exchanges: Sequence[Exchange] = (),
    links: Links | None = None,
    shift: Sequence[Point] = (),
) -> Layout:
    """The same blocks, many for each rank, shared out in proportion to what ranks can do, neighbours near each other.

    ``weights`` is the work in each block, its cells by default; ``capacities`` has a number for each rank, and a rank
    of capacity zero gets nothing. How even that is depends on how small blocks are.
    """
    _check_seats(layout, seats)
    share = np.asarray(capacities, float)
    work = volumes(layout.lo, layout.hi).astype(float) if weights is None else np.asarray(weights, float)
    if share.shape != (layout.ranks,) or not np.isfinite(share).all() or (share < 0).any() or not share.any():
        raise LayoutError(f"capacities are a number for each of {layout.ranks} ranks, none negative and not all zero")
    if work.shape != (len(layout),) or not np.isfinite(work).all() or (work < 0).any():
        raise LayoutError(f"weights are a number for each of {len(layout)} blocks, none negative")
    single = Layout(layout.domain, len(layout), layout.lo, layout.hi, np.arange(len(layout)))
    pricing = Pricing(edges_of(single, periodic, exchanges, shift), seats, links)
    places = shared_out(coordinates_of(layout.lo, layout.hi, single.owner, len(layout)), work, pricing, share)
    return Layout(layout.domain, layout.ranks, layout.lo, layout.hi, places)


# Candidates ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Problem:
    """A layout, where its ranks sit, and what its messages cost there."""

    layout: Layout
    periodic: tuple[bool, ...]
    exchanges: tuple[Exchange, ...]
    pricing: Pricing
    kinds: Ints
    shifted: bool

    @classmethod
    def of(
        cls,
        layout: Layout,
        seats: Tree,
        periodic: Sequence[bool],
        exchanges: Sequence[Exchange],
        links: Links | None,
        kinds: Ints | None,
        shift: Sequence[Point],
    ) -> _Problem:
        _check_seats(layout, seats)
        around = tuple(periodic) or (False,) * layout.ndim
        rounds = tuple(exchanges) or (Exchange((1,) * layout.ndim, (1,) * layout.ndim, 1),)
        pricing = Pricing(edges_of(layout, around, rounds, shift), seats, links)
        alike = np.zeros(layout.ranks, np.int64) if kinds is None else np.asarray(kinds, np.int64)
        return cls(layout, around, rounds, pricing, alike, any(map(any, shift)))

    def candidate(self, mapping: str, ranks: Ints) -> Candidate:
        return Candidate(mapping, ranks, self.pricing.cost(ranks))


def _portfolio(problem: _Problem) -> list[Candidate]:
    seats = problem.pricing.seats
    found = [
        problem.candidate("as started", np.arange(len(seats))),
        problem.candidate("sequential", _by_kind(seats.order, problem.kinds)),
        problem.candidate("round-robin", _by_kind(_dealt(seats), problem.kinds)),
    ]
    if not (problem.kinds != problem.kinds[0]).any():
        found += _tiles(problem)
    found.append(_bisection(problem))
    best = min(found, key=lambda candidate: candidate.cost.rank)
    found.append(problem.candidate(f"{best.mapping} with exchanges", _exchanged(problem, best.ranks)))
    return found


def _exchanged(problem: _Problem, ranks: Ints) -> Ints:
    """The same after exchanges of whole nodes and, where there are not too many, of single ranks."""
    ranks = nodes_exchanged(ranks, problem.pricing, problem.kinds)
    return refined(ranks, problem.pricing, problem.kinds) if len(ranks) <= MOST_VERTICES else ranks


def _tiles(problem: _Problem) -> Iterator[Candidate]:
    """The cheapest tilings; none where the machine's nodes are unequal or the layout has no mesh."""
    mesh, seats = _full_mesh(problem.layout), problem.pricing.seats
    counts = group_counts(seats)
    if mesh is None or counts is None:
        return
    faces = Faces.of(mesh.sizes, problem.periodic, problem.exchanges, len(counts), problem.pricing.links)
    for _, tiling in cheapest_tilings(counts, faces, _FINALISTS):
        ranks = np.empty(len(seats), np.int64)
        ranks[problem.layout.owner] = tiled(mesh, seats, tiling)
        yield problem.candidate("tiles", ranks)


def _bisection(problem: _Problem) -> Candidate:
    layout = problem.layout
    coordinates = coordinates_of(layout.lo, layout.hi, layout.owner, layout.ranks)
    ranks = bisected(coordinates, problem.pricing, problem.kinds)
    return problem.candidate("bisection", _exchanged(problem, ranks))


def _full_mesh(layout: Layout) -> Mesh | None:
    """The mesh of a layout with one block for every rank."""
    if len(layout) != layout.ranks or len(np.unique(layout.owner)) != layout.ranks:
        return None
    return mesh_of(layout)


def _by_kind(order: Ints, kinds: Ints | None) -> Ints:
    """The ranks in this order take over what ranks 0, 1, ... own; with kinds, each among its own kind."""
    if kinds is None:
        return order
    result = np.empty(len(order), np.int64)
    result[np.argsort(kinds, kind="stable")] = order[np.argsort(kinds[order], kind="stable")]
    return result


def _dealt(seats: Tree) -> Ints:
    """Ranks as they are dealt out to nodes in turn; full nodes are passed over."""
    nodes: dict[int, list[int]] = {}
    for rank in seats.order.tolist():
        nodes.setdefault(int(seats.paths[rank, 0]), []).append(rank)
    rounds = itertools.zip_longest(*nodes.values())
    return np.array([rank for dealt in rounds for rank in dealt if rank is not None], np.int64)


def _check_seats(layout: Layout, seats: Tree) -> None:
    if len(seats) != layout.ranks:
        raise LayoutError(f"a layout for {layout.ranks} ranks, but the seats of {len(seats)}")


def _check_tiles(layout: Layout, seats: Tree, kinds: Ints | None) -> None:
    """LayoutError where there are no tiles."""
    if _full_mesh(layout) is None:
        raise LayoutError(
            f"tiles need a Cartesian layout with one block a rank, found {layout!r}",
            remedy='write layout = "cartesian" and no more ranks than the grid has parts, or mapping = "auto"',
        )
    if group_counts(seats) is None:
        counts = [len(np.unique(column)) for column in seats.paths.T]
        raise LayoutError(
            f"tiles need equal nodes, one rank a core: {len(seats)} ranks do not fill "
            + " x ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in zip(counts, seats.levels)),
            remedy="start as many ranks on each node, or choose the mapping auto",
        )
    if kinds is not None and (kinds != kinds[0]).any():
        raise LayoutError(
            "tiles need ranks that are all alike, as any of them may get any block", remedy="choose the mapping auto"
        )
