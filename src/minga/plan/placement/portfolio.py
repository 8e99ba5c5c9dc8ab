"""The mappings by name, and the portfolio, which tries all of them and takes the cheapest."""

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
from minga.plan.placement.exact import MOST_EXACT, cheaper
from minga.plan.placement.swaps import MOST_VERTICES, nodes_exchanged, refined
from minga.plan.placement.tiles import Faces, cheapest_tilings, group_counts, tiled
from minga.plan.topology import Tree
from minga.plan.work.work import HaloRound
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
"""Number of tilings whose cost is computed message by message; of many ranks, half as many."""
_MANY = 1 << 16
"""Number of ranks above which fewer placements are tried."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One placement: rank ``ranks[r]`` takes over what rank ``r`` owns; ``cost`` is that of a step's messages."""

    mapping: str
    ranks: Ints
    cost: Cost


def place(
    layout: Layout,
    seats: Tree,
    mapping: str = "sequential",
    periodic: Sequence[bool] = (),
    exchanges: Sequence[HaloRound] = (),
    links: Links | None = None,
) -> Layout:
    """Return the same blocks on the ranks to which ``mapping`` assigns them; see :func:`arrange`.

    Parameters
    ----------
    layout
        The layout.
    seats
        The place of each rank in the machine.
    mapping
        One of sequential, round-robin, tiles, bisection and auto.
    periodic
        Whether each axis is periodic.
    exchanges
        The halo messages of a step; by default a width of one cell.
    links
        The links of the machine; None: bytes are counted.

    Returns
    -------
    Layout
        The layout with other owners.
    """
    return reassigned(layout, arrange(layout, seats, mapping, periodic, exchanges, links))


def place_all(
    layouts: Mapping[Grid, Layout],
    seats: Tree,
    mapping: str,
    exchanges: Sequence[HaloRound] = (),
    links: Links | None = None,
) -> dict[Grid, Layout]:
    """Place layouts of several grids whose blocks belong together in the same way, which is best for the first grid."""
    first = next(iter(layouts))
    ranks = arrange(layouts[first], seats, mapping, first.periodic, exchanges, links, shift=first.shift)
    return {grid: reassigned(layout, ranks) for grid, layout in layouts.items()}


def reassigned(layout: Layout, ranks: Ints) -> Layout:
    """Return the layout in which rank ``ranks[r]`` owns what rank ``r`` owned."""
    return Layout(layout.domain, layout.ranks, layout.lo, layout.hi, ranks[layout.owner])


def check_mapping(mapping: str) -> None:
    """Raise LayoutError if there is no such mapping."""
    if mapping not in MAPPINGS:
        close = suggest(mapping, MAPPINGS)
        hint = f"did you mean {close!r}? " if close else ""
        raise LayoutError(f"{mapping!r} is not a mapping", remedy=f"{hint}Write one of: {', '.join(MAPPINGS)}")


def arrange(
    layout: Layout,
    seats: Tree,
    mapping: str,
    periodic: Sequence[bool] = (),
    exchanges: Sequence[HaloRound] = (),
    links: Links | None = None,
    kinds: Ints | None = None,
    shift: Sequence[Point] = (),
) -> Ints:
    """Return, for each rank of the layout, the rank that takes over its blocks: a permutation, shape (ranks,).

    Parameters
    ----------
    layout, seats
        Blocks and owners, and the place of each rank, one row per rank (:meth:`Tree.seats`, :func:`seats_of`).
    mapping
        One of :data:`MAPPINGS`.
    periodic, exchanges, shift
        The messages of a step, as for :func:`edges_of`; by default, faces between neighbours, with no axis periodic.
    links
        The costs of messages; by default, the weights of :func:`level_costs`.
    kinds
        A number for each rank: blocks only go to ranks of the same kind, as when they were cut for a rank's speed.

    Raises
    ------
    LayoutError
        If the mapping is unknown, or tiles are requested but impossible.
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
    exchanges: Sequence[HaloRound] = (),
    links: Links | None = None,
    kinds: Ints | None = None,
    shift: Sequence[Point] = (),
) -> list[Candidate]:
    """Return all placements that the mapping ``auto`` chooses from, its choice first; arguments as for :func:`arrange`.

    Equally cheap placements are ordered by messages between nodes, then by the bytes that leave the busiest node; of
    equal ones, the plainest comes first, beginning with the one that leaves everything as it is.

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
    kinds
        A number for each rank: blocks go to ranks of the same kind only; None: all are alike.
    shift
        Shifts of periodic axes, as of `Grid.shift`.

    Returns
    -------
    list of Candidate
        Placements with their costs, the best first.
    """
    found = _portfolio(_Problem.of(layout, seats, periodic, exchanges, links, kinds, shift))
    return sorted(found, key=lambda candidate: candidate.cost.rank)


def distribute(
    layout: Layout,
    seats: Tree,
    capacities: np.ndarray,
    weights: np.ndarray | None = None,
    periodic: Sequence[bool] = (),
    exchanges: Sequence[HaloRound] = (),
    links: Links | None = None,
    shift: Sequence[Point] = (),
) -> Layout:
    """Distribute many blocks per rank in proportion to the ranks' capacities, with neighbours close to each other.

    The smaller the blocks, the more even the distribution.

    Parameters
    ----------
    layout, seats
        Blocks, and the places of ranks.
    capacities
        A number for each rank; a rank of capacity zero gets nothing.
    weights
        The work of each block; by default, its number of cells.
    periodic, exchanges, links, shift
        As for :func:`arrange`.
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
    """A layout, the places of its ranks, and the cost of its messages there."""

    layout: Layout
    periodic: tuple[bool, ...]
    exchanges: tuple[HaloRound, ...]
    pricing: Pricing
    kinds: Ints
    shifted: bool

    @classmethod
    def of(
        cls,
        layout: Layout,
        seats: Tree,
        periodic: Sequence[bool],
        exchanges: Sequence[HaloRound],
        links: Links | None,
        kinds: Ints | None,
        shift: Sequence[Point],
    ) -> _Problem:
        _check_seats(layout, seats)
        around = tuple(periodic) or (False,) * layout.ndim
        rounds = tuple(exchanges) or (HaloRound((1,) * layout.ndim, (1,) * layout.ndim, 1),)
        pricing = Pricing(edges_of(layout, around, rounds, shift), seats, links)
        alike = np.zeros(layout.ranks, np.int64) if kinds is None else np.asarray(kinds, np.int64)
        return cls(layout, around, rounds, pricing, alike, any(map(any, shift)))

    def candidate(self, mapping: str, ranks: Ints) -> Candidate:
        """Return a placement with its cost."""
        return Candidate(mapping, ranks, self.pricing.cost(ranks))


def _portfolio(problem: _Problem) -> list[Candidate]:
    seats = problem.pricing.seats
    found = [
        problem.candidate("as started", np.arange(len(seats))),
        problem.candidate("sequential", _by_kind(seats.order, problem.kinds)),
    ]
    if len(seats) <= _MANY:  # it brings nobody closer, and takes seconds for a quarter of a million ranks
        found.append(problem.candidate("round-robin", _by_kind(_dealt(seats), problem.kinds)))
    if not (problem.kinds != problem.kinds[0]).any():
        found += _tiles(problem)
    found.append(_bisection(problem))
    best = min(found, key=lambda candidate: candidate.cost.rank)
    exchanged = _exchanged(problem, best.ranks)
    if exchanged is not best.ranks:
        found.append(problem.candidate(f"{best.mapping} with exchanges", exchanged))
    if len(seats) <= MOST_EXACT:
        limit = min(candidate.cost.total for candidate in found)
        ranks = cheaper(problem.pricing, problem.kinds, limit)
        found += [] if ranks is None else [problem.candidate("exact", ranks)]
    return found


def _exchanged(problem: _Problem, ranks: Ints) -> Ints:
    """Improve a placement by exchanges of whole nodes and, if there are not too many, of single ranks."""
    pricing, kinds = problem.pricing, problem.kinds
    swapped = nodes_exchanged(ranks, pricing, kinds)
    if swapped is not ranks and pricing.cost(swapped).total < pricing.cost(ranks).total:
        ranks = swapped
    return refined(ranks, pricing, kinds) if len(ranks) <= MOST_VERTICES else ranks


def _tiles(problem: _Problem) -> Iterator[Candidate]:
    """Yield the cheapest tilings; there are none if the machine's nodes are unequal or the layout has no mesh.

    On a torus or mesh of nodes, each of its axes is tried as a level of its own.
    """
    mesh, seats = _full_mesh(problem.layout), problem.pricing.seats
    if mesh is None:
        return
    most = _FINALISTS if len(seats) <= _MANY else _FINALISTS // 2
    for tree in (seats, *([] if seats.network is None else [seats.axes()])):
        counts = group_counts(tree)
        if counts is None:
            continue
        links = problem.pricing.links if tree is seats else None
        faces = Faces.of(mesh.sizes, problem.periodic, problem.exchanges, len(counts), links)
        for _, tiling in cheapest_tilings(counts, faces, most):
            ranks = np.empty(len(seats), np.int64)
            ranks[problem.layout.owner] = tiled(mesh, tree, tiling)
            yield problem.candidate("tiles", ranks)


def _bisection(problem: _Problem) -> Candidate:
    """Return the placement by bisection, of a network by halves of its nodes, after exchanges."""
    layout, pricing = problem.layout, problem.pricing
    coordinates = coordinates_of(layout.lo, layout.hi, layout.owner, layout.ranks)
    if pricing.seats.network is not None:
        pricing = Pricing(pricing.edges, pricing.seats.halves())
    ranks = bisected(coordinates, pricing, problem.kinds)
    return problem.candidate("bisection", _exchanged(problem, ranks))


def _full_mesh(layout: Layout) -> Mesh | None:
    """Return the mesh of a layout with one block for every rank, or None for other layouts."""
    if len(layout) != layout.ranks or len(np.unique(layout.owner)) != layout.ranks:
        return None
    return mesh_of(layout)


def _by_kind(order: Ints, kinds: Ints | None) -> Ints:
    """Let the ranks in this order take over what ranks 0, 1, ... own; with kinds, each within its own kind."""
    if kinds is None:
        return order
    result = np.empty(len(order), np.int64)
    result[np.argsort(kinds, kind="stable")] = order[np.argsort(kinds[order], kind="stable")]
    return result


def _dealt(seats: Tree) -> Ints:
    """Return the ranks in an order that takes one from each node in turn; exhausted nodes are skipped."""
    order, nodes = seats.order, dict[int, list[int]]()
    for rank, node in zip(order.tolist(), seats.nodes[order].tolist(), strict=True):
        nodes.setdefault(node, []).append(rank)
    rounds = itertools.zip_longest(*nodes.values())
    return np.array([rank for dealt in rounds for rank in dealt if rank is not None], np.int64)


def _check_seats(layout: Layout, seats: Tree) -> None:
    if len(seats) != layout.ranks:
        raise LayoutError(f"a layout for {layout.ranks} ranks, but places of {len(seats)} ranks")


def _check_tiles(layout: Layout, seats: Tree, kinds: Ints | None) -> None:
    """Raise LayoutError if there are no tiles."""
    if _full_mesh(layout) is None:
        raise LayoutError(
            f"tiles need a Cartesian layout with one block per rank, found {layout!r}",
            remedy='write layout = "cartesian" and no more ranks than the grid has parts, or mapping = "auto"',
        )
    if group_counts(seats) is None:
        counts = [len(np.unique(column)) for column in seats.paths.T]
        raise LayoutError(
            f"tiles need equal nodes with one rank per core: {len(seats)} ranks do not fill "
            + " x ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in zip(counts, seats.levels)),
            remedy="start as many ranks on each node, or choose the mapping auto",
        )
    if kinds is not None and (kinds != kinds[0]).any():
        raise LayoutError(
            "tiles need ranks of equal speed, as any of them may get any block", remedy="choose the mapping auto"
        )
