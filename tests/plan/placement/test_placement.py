"""Mappings of blocks to cores: permutations, exact tiles, and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.errors import LayoutError
from minga.plan.placement import MAPPINGS, arrange, level_costs, place, place_all
from minga.plan.topology import Tree
from minga.space.cuts import blocks, cartesian, slabs
from minga.space.layout import Layout


def mesh(*parts: int, length: int = 8) -> Layout:
    return cartesian(mg.Grid(tuple(length * n for n in parts)).box, parts, granule=1)


def test_sequential_follows_the_tree() -> None:
    layout, tree = mesh(4), Tree.parse("2x2")
    assert place(layout, tree).owner.tolist() == [0, 1, 2, 3]
    # Ranks that were started on one node after the other in turn.
    dealt = Tree(tree.levels, np.array([[0, 0], [1, 0], [0, 1], [1, 1]]))
    assert place(layout, dealt).owner.tolist() == [0, 2, 1, 3]
    assert place(layout, dealt, "round-robin").owner.tolist() == [0, 1, 2, 3]


def test_round_robin_passes_over_full_nodes() -> None:
    assert place(mesh(6), Tree.nested([1, 3, 2]), "round-robin").owner.tolist() == [0, 1, 4, 2, 5, 3]


def test_the_tiles_of_the_paper() -> None:
    """Node (i//2)*4 + j//2, chip i % 2, core j % 2 of process (i, j)."""
    owner = place(mesh(8, 8), Tree.parse("16x2x2"), "tiles", (True, True)).owner.reshape(8, 8)
    for (i, j), rank in np.ndenumerate(owner):
        assert rank == 4 * ((i // 2) * 4 + j // 2) + 2 * (i % 2) + j % 2
    assert (owner[0, 0], owner[0, 1], owner[1, 0], owner[1, 1]) == (0, 1, 2, 3)
    assert (owner[0, 2], owner[2, 0], owner[7, 7]) == (4, 16, 63)


def cost(layout: Layout, seats: Tree, periodic: bool) -> int:
    """What a step of a five-point stencil costs: faces in cells, by distance, counted pair by pair."""
    total, costs = 0, level_costs(len(seats.levels))
    shape = layout.domain.shape
    for a in range(len(layout)):
        for axis, side in [(axis, side) for axis in range(layout.ndim) for side in (-1, 1)]:
            box = layout.box(a)
            index = box.lo[axis] - 1 if side < 0 else box.hi[axis]
            if not 0 <= index < shape[axis] and not periodic:
                continue
            cell = list(box.lo)
            cell[axis] = index % shape[axis]
            b = int(np.flatnonzero((layout.lo <= cell).all(axis=1) & (layout.hi > cell).all(axis=1))[0])
            if a != b:
                face = box.size // box.shape[axis]
                total += costs[int(seats.common(layout.owner[a], layout.owner[b]))] * face
    return total


@pytest.mark.parametrize(
    ("parts", "tree", "periodic", "expected"),
    [
        ((8, 8), "16x2x2", True, 1536),
        ((8, 8), "16x2x2", False, 1216),
        ((4, 4), "4x2x2", False, 224),
        ((4, 4, 4), "8x2x4", False, 1280),
        ((6, 6), "6x2x3", False, 516),
        ((6, 6), "6x2x3", True, 756),
        ((16, 16), "16x2x8", True, 3584),
        ((13,), "[4, 4, 5]", False, None),
    ],
)
def test_tiles_find_the_best_known_costs(
    parts: tuple[int, ...], tree: str, periodic: bool, expected: int | None
) -> None:
    """The costs that simulated annealing and enumeration found for these machines (10, 3 and 1 a message)."""
    layout, seats = mesh(*parts, length=1), Tree.parse(tree)
    if expected is None:
        with pytest.raises(LayoutError, match="equal nodes"):
            place(layout, seats, "tiles")
    else:
        assert cost(place(layout, seats, "tiles", (periodic,) * len(parts)), seats, periodic) == expected


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(MAPPINGS),
    st.randoms(use_true_random=False),
)
def test_every_mapping_is_a_permutation(
    parts: list[int], nodes: int, periodic: bool, mapping: str, random: object
) -> None:
    layout = mesh(*parts, length=2)
    ranks = math.prod(parts)
    nodes = nodes if ranks % nodes == 0 else 1
    seats = Tree.parse(f"{nodes}x{ranks // nodes}")
    order = list(range(ranks))
    random.shuffle(order)  # type: ignore[attr-defined]
    seats = Tree(seats.levels, seats.paths[order])
    ranks_of = arrange(layout, seats, mapping, (periodic,) * len(parts))
    assert sorted(ranks_of.tolist()) == list(range(ranks))
    placed = place(layout, seats, mapping, (periodic,) * len(parts))
    placed.check()


def test_several_blocks_move_together() -> None:
    grid = mg.Grid((64, 64))
    layout = blocks(grid.box, 4, 3, granule=1)
    placed = place(layout, Tree.parse("2x2"), "round-robin")
    assert placed.owner.tolist() == [0] * 3 + [2] * 3 + [1] * 3 + [3] * 3
    assert (placed.lo == layout.lo).all()


def test_grids_of_a_model_are_moved_alike() -> None:
    fine, coarse = mg.Grid((64, 64)), mg.Grid((32, 32))
    layout = cartesian(fine.box, (4, 4), granule=1)
    placed = place_all({fine: layout, coarse: layout.coarsen()}, Tree.parse("4x4"), "tiles")
    assert (placed[fine].owner == placed[coarse].owner).all()
    assert (placed[fine].owner != layout.owner).any()


def test_what_cannot_be_is_explained() -> None:
    with pytest.raises(LayoutError, match="not a mapping") as error:
        place(mesh(4), Tree.parse("4"), "tile")
    assert "'tiles'" in str(error.value.remedy)
    with pytest.raises(LayoutError, match="places of 4 ranks"):
        place(mesh(8), Tree.parse("4"))
    with pytest.raises(LayoutError, match="one block per rank"):
        place(blocks(mg.Grid((64, 64)).box, 4, 2, granule=1), Tree.parse("2x2"), "tiles")
    with pytest.raises(LayoutError, match="one block per rank"):
        place(slabs(mg.Grid((2, 64)).box, 4), Tree.parse("2x2"), "tiles")


def test_costs_of_levels() -> None:
    assert level_costs(3) == (10, 3, 1, 0)
    assert level_costs(2) == (10, 1, 0)
    assert level_costs(1) == (10, 0)
    assert level_costs(4) == (10, 5, 2, 1, 0)
