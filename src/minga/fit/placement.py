"""Which rank takes which block, so that neighbours in the grid are near each other in the machine.

MPI does not do this: ``MPI_Cart_create`` with ``reorder`` leaves ranks as they are in MPICH and Open MPI. Here ranks
stay where they were started and blocks move. Three mappings, those of Printista and Saez (*Effective Use of Multicore
Clusters in Parallel Cellular Automata*), the last one for any number of axes and levels (nodes of equal tiles, chips
inside them, as in Gropp, *Using Node Information to Implement MPI Cartesian Topologies*, EuroMPI 2018):

sequential   block after block onto the cores as the machine's tree is walked through
round-robin  the first block on the first node, the second on the second, and around again
tiles        every node gets a tile of blocks, every chip of it a tile of that, and so on
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from minga.errors import LayoutError, suggest
from minga.fit.topology import Tree
from minga.space.boxes import Ints
from minga.space.grid import Grid
from minga.space.layout import Layout

__all__ = ["MAPPINGS", "arrange", "check_mapping", "level_costs", "place", "place_all", "reassigned"]

MAPPINGS: Final = ("sequential", "round-robin", "tiles")


def place(layout: Layout, seats: Tree, mapping: str = "sequential", periodic: Sequence[bool] = ()) -> Layout:
    """The same blocks on the ranks that ``mapping`` gives them to.

    ``seats`` has one row a rank: where it sits (:meth:`Tree.seats`, :func:`seats_of`). ``periodic`` says for each axis
    whether its ends are neighbours; none are by default. LayoutError where the mapping is unknown, or tiles are asked
    for and impossible.
    """
    return reassigned(layout, arrange(layout, seats, mapping, periodic))


def place_all(layouts: Mapping[Grid, Layout], seats: Tree, mapping: str) -> dict[Grid, Layout]:
    """Layouts of several grids whose blocks belong together, moved alike: as is best for the first grid."""
    first = next(iter(layouts))
    ranks = arrange(layouts[first], seats, mapping, first.periodic)
    return {grid: reassigned(layout, ranks) for grid, layout in layouts.items()}


def reassigned(layout: Layout, ranks: Ints) -> Layout:
    """The layout in which ``ranks[r]`` owns what rank ``r`` owned."""
    return Layout(layout.domain, layout.ranks, layout.lo, layout.hi, ranks[layout.owner])


def arrange(layout: Layout, seats: Tree, mapping: str, periodic: Sequence[bool] = ()) -> Ints:
    """For each rank of the layout, the rank that takes over its blocks: a permutation, shape (ranks,)."""
    check_mapping(mapping)
    if len(seats) != layout.ranks:
        raise LayoutError(f"a layout for {layout.ranks} ranks, but the seats of {len(seats)}")
    if mapping == "sequential":
        return seats.order
    if mapping == "round-robin":
        return _dealt(seats)
    return _tiles(layout, seats, tuple(periodic) or (False,) * layout.ndim)


def check_mapping(mapping: str) -> None:
    """LayoutError unless there is such a mapping."""
    if mapping not in MAPPINGS:
        close = suggest(mapping, MAPPINGS)
        hint = f"did you mean {close!r}? " if close else ""
        raise LayoutError(f"{mapping!r} is not a mapping", remedy=f"{hint}Write one of: {', '.join(MAPPINGS)}")


def level_costs(depth: int) -> tuple[int, ...]:
    """What a cell sent costs by the levels that two places have in common: 10, 3, 1 and 0 for three levels."""
    between = [round(10 ** (1 - level / (depth - 1))) for level in range(depth)] if depth > 1 else [10]
    return (*between, 0)


def _dealt(seats: Tree) -> Ints:
    """Ranks as they are dealt out to nodes in turn; full nodes are passed over."""
    nodes: dict[int, list[int]] = {}
    for rank in seats.order.tolist():
        nodes.setdefault(int(seats.paths[rank, 0]), []).append(rank)
    rounds = itertools.zip_longest(*nodes.values())
    return np.array([rank for dealt in rounds for rank in dealt if rank is not None], np.int64)


# Tiles ---------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Mesh:
    """The blocks of a Cartesian layout as points of a mesh."""

    shape: tuple[int, ...]
    coordinates: Ints
    """Of every block, shape (blocks, ndim)."""
    edges: tuple[Ints, Ints, Ints]
    """Sender, receiver and cells of all that is sent across faces, one cell deep."""


def _tiles(layout: Layout, seats: Tree, periodic: tuple[bool, ...]) -> Ints:
    """The tiles with the cheapest faces: all ways to write the groups of each level as a tile are tried."""
    mesh = _mesh(layout, periodic)
    counts = tuple((seats.paths.max(axis=0) + 1).tolist())
    if math.prod(counts) != len(seats) or len(np.unique(seats.paths, axis=0)) != len(seats):
        raise LayoutError(
            f"tiles need equal nodes, one rank a core: {len(seats)} ranks do not fill "
            + " x ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in zip(counts, seats.levels)),
            remedy="start as many ranks on each node, or choose the mapping sequential",
        )
    costs = np.array(level_costs(len(counts)))
    best: tuple[tuple[int, int], Ints] | None = None
    for tiles in _tilings(counts, mesh.shape):
        place_of = _places(mesh.coordinates, tiles)
        paths = np.stack(np.unravel_index(place_of, counts), axis=1)
        sender, receiver, cells = mesh.edges
        common = np.cumprod(paths[sender] == paths[receiver], axis=1).sum(axis=1)
        # On ties fewer cells between nodes, then the first found: outer axes are divided among outer levels.
        cost = int((costs[common] * cells).sum()), int(cells[common == 0].sum())
        if best is None or cost < best[0]:
            best = cost, place_of
    assert best is not None, "one level after the other can always be laid along the axes, as the products agree"
    result = np.empty(layout.ranks, np.int64)
    result[layout.owner] = seats.order[best[1]]
    return result


def _mesh(layout: Layout, periodic: tuple[bool, ...]) -> _Mesh:
    shape = tuple(len(cuts) for cuts in layout.cuts)
    if math.prod(shape) != len(layout) or len(set(layout.owner.tolist())) != layout.ranks or len(layout) > layout.ranks:
        raise LayoutError(
            f"tiles need a Cartesian layout with one block a rank, found {layout!r}",
            remedy='write layout = "cartesian" and no more ranks than the grid has parts, or mapping = "sequential"',
        )
    columns = [np.searchsorted(cuts, layout.lo[:, axis]) for axis, cuts in enumerate(layout.cuts)]
    coordinates = np.stack(columns, axis=1)
    at = np.empty(shape, np.int64)
    at[tuple(columns)] = np.arange(len(layout))
    sizes = layout.hi - layout.lo
    pieces: list[tuple[Ints, Ints, Ints]] = []
    for axis, count in enumerate(shape):
        face = sizes.prod(axis=1) // sizes[:, axis]
        for step in (-1, 1):
            beside = coordinates.copy()
            beside[:, axis] += step
            inside = (beside[:, axis] >= 0) & (beside[:, axis] < count) | periodic[axis]
            beside[:, axis] %= count
            senders = np.flatnonzero(inside & (count > 1))
            pieces.append((senders, at[tuple(beside[senders].T)], face[senders]))
    sender, receiver, cells = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return _Mesh(shape, coordinates, (sender, receiver, cells))


def _tilings(counts: Sequence[int], shape: Sequence[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All ways to give every level a tile of as many parts as it has groups, so that together they make up the mesh."""
    if not counts:
        if all(length == 1 for length in shape):
            yield ()
        return
    for tile in _factors(counts[0], shape):
        left = [length // along for length, along in zip(shape, tile, strict=True)]
        for rest in _tilings(counts[1:], left):
            yield (tile, *rest)


def _factors(number: int, shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All products of one divisor of each length in ``shape`` that are ``number``, the largest first factor first."""
    if not shape:
        if number == 1:
            yield ()
        return
    for factor in range(min(number, shape[0]), 0, -1):
        if number % factor == 0 and shape[0] % factor == 0:
            for rest in _factors(number // factor, shape[1:]):
                yield (factor, *rest)


def _places(coordinates: Ints, tiles: Sequence[Sequence[int]]) -> Ints:
    """The number of the place of each mesh point: its coordinates are numbers of mixed radix, a digit a level."""
    place = np.zeros(len(coordinates), np.int64)
    for level, tile in enumerate(tiles):
        inner = np.prod(tiles[level + 1 :], axis=0, dtype=np.int64)
        digits = coordinates // inner % tile
        for axis, length in enumerate(tile):
            place = place * length + digits[:, axis]
    return place
