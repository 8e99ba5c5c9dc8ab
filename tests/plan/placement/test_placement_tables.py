"""Placements whose cost is known: from enumeration, from annealing, from formulas, and from the paper's figure."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.plan.placement import Cost, arrange, cost_of, edges_of, level_costs, place, portfolio
from minga.plan.topology import Tree
from minga.plan.work.work import HaloRound
from minga.space.cuts import cartesian
from minga.space.layout import Layout


def mesh(*parts: int, length: int = 1) -> Layout:
    return cartesian(mg.Grid(tuple(length * n for n in parts)).box, parts, granule=1)


def costs(parts: tuple[int, ...], machine: str, mapping: str, periodic: bool = False, length: int = 1) -> Cost:
    layout, seats, around = mesh(*parts, length=length), Tree.parse(machine), (periodic,) * len(parts)
    return cost_of(place(layout, seats, mapping, around), seats, around)


UNEQUAL = "[[2, 2], [2, 2], [2, 3]]"


@pytest.mark.parametrize(
    ("parts", "machine", "periodic", "sequential", "round_robin", "bisection", "best"),
    [
        ((8, 8), "16x2x2", True, 1760, 2560, 1536, 1536),
        ((8, 8), "16x2x2", False, 1440, 2240, 1216, 1216),
        ((4, 4), "4x2x2", False, 280, 280, 224, 224),
        ((4, 4, 4), "8x2x4", False, 1568, 2080, 1280, 1280),
        ((6, 6), "6x2x3", False, 684, 684, 516, 516),
        ((6, 6), "6x2x3", True, 840, 840, 784, 756),
        ((16, 16), "16x2x8", True, 5760, 5760, 3584, 3584),
        ((13,), UNEQUAL, False, 72, 222, 72, 72),
    ],
)
def test_costs_of_all_mappings(
    parts: tuple[int, ...],
    machine: str,
    periodic: bool,
    sequential: int,
    round_robin: int,
    bisection: int,
    best: int,
) -> None:
    """With 10, 3 and 1 a message; ``best`` is what simulated annealing and enumeration found."""
    found = {word: costs(parts, machine, word, periodic).total for word in ("sequential", "round-robin", "auto")}
    assert found == {"sequential": sequential, "round-robin": round_robin, "auto": best}
    assert best <= costs(parts, machine, "bisection", periodic).total <= bisection
    if machine != UNEQUAL:
        assert costs(parts, machine, "tiles", periodic).total == best


@pytest.mark.parametrize(("periodic", "best", "levels"), [(False, 72, (4, 8, 8)), (True, 120, (8, 8, 16))])
def test_nothing_beats_the_best_of_eight_blocks(periodic: bool, best: int, levels: tuple[int, ...]) -> None:
    """4 x 2 blocks on 2 nodes of 2 chips of 2 cores, against all 8! ways to place them."""
    seats = Tree.parse("2x2x2")
    places = np.array(list(itertools.permutations(range(8))))
    total = np.zeros(len(places), np.int64)
    weights = np.array(level_costs(3))
    for i, j in itertools.product(range(4), range(2)):
        for other in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if periodic or (0 <= other[0] < 4 and 0 <= other[1] < 2):
                neighbour = other[0] % 4 * 2 + other[1] % 2
                total += weights[seats.common(places[:, 2 * i + j], places[:, neighbour])]
    assert total.min() == best
    found = costs((4, 2), "2x2x2", "auto", periodic)
    assert found.total == best
    assert found.copies[:3] == levels


def node_messages(parts: tuple[int, ...], machine: str, mapping: str, periodic: bool) -> list[int]:
    """Faces that each node sends to others."""
    layout, seats, around = mesh(*parts), Tree.parse(machine), (periodic,) * len(parts)
    edges = edges_of(place(layout, seats, mapping, around), around)
    outside = seats.common(edges.sender, edges.receiver) == 0
    return np.bincount(seats.paths[edges.sender[outside], 0], edges.copies[outside]).astype(int).tolist()


@pytest.mark.parametrize(
    ("machine", "mapping", "torus", "a_node", "mesh_levels", "node_range"),
    [
        ("16x2x2", "sequential", (160, 32, 64), 10, (128, 32, 64), (5, 9)),
        ("16x2x2", "round-robin", (256, 0, 0), 16, (224, 0, 0), (11, 15)),
        ("32x1x2", "round-robin", (256, 0, 0), 8, (224, 0, 0), (5, 8)),
        ("16x2x2", "tiles", (128, 64, 64), 8, (96, 64, 64), (4, 8)),
        ("16x2x2", "auto", (128, 64, 64), 8, (96, 64, 64), (4, 8)),
    ],
)
def test_the_figure_of_printista_and_saez(
    machine: str,
    mapping: str,
    torus: tuple[int, ...],
    a_node: int,
    mesh_levels: tuple[int, ...],
    node_range: tuple[int, int],
) -> None:
    """8 x 8 processes: faces between nodes, between chips and within a chip (section 4.2 and figure 5)."""
    assert costs((8, 8), machine, mapping, True).copies == (*torus, 0)
    assert set(node_messages((8, 8), machine, mapping, True)) == {a_node}
    assert costs((8, 8), machine, mapping, False).copies == (*mesh_levels, 0)
    per_node = node_messages((8, 8), machine, mapping, False)
    assert (min(per_node), max(per_node)) == node_range


def test_what_pinning_is_worth_to_a_node() -> None:
    """On the torus, with 10, 3 and 1 a message: 114 where ranks sit anywhere in their node, on average, 110 pinned."""
    layout, seats, around = mesh(8, 8), Tree.parse("16x2x2"), (True, True)
    anywhere = []
    for order in itertools.permutations(range(4)):
        ranks = (np.arange(0, 64, 4)[:, None] + np.array(order)).ravel()
        moved = Layout(layout.domain, 64, layout.lo, layout.hi, ranks[layout.owner])
        anywhere.append(cost_of(moved, seats, around))
    assert np.mean([cost.copies for cost in anywhere], axis=0).tolist() == [160, 64, 32, 0]
    assert np.mean([cost.total for cost in anywhere]) == 16 * 114
    words = ("sequential", "round-robin", "auto")
    assert [costs((8, 8), "16x2x2", word, True).total for word in words] == [16 * 110, 16 * 160, 16 * 96]


@pytest.mark.parametrize(
    ("parts", "machine", "periodic", "expected"),
    [
        ((4, 4), "4x2x2", True, {"sequential": (32, 16, 16), "round-robin": (32, 16, 16), "auto": (32, 16, 16)}),
        ((4, 4), "4x2x2", False, {"sequential": (24, 8, 16), "round-robin": (24, 8, 16), "auto": (16, 16, 16)}),
        ((2, 2), "1x2x2", True, {"sequential": (0, 8, 8), "auto": (0, 8, 8)}),
        ((2, 2), "1x2x2", False, {"sequential": (0, 4, 4), "auto": (0, 4, 4)}),
        ((2, 2), "4x1x1", True, {"sequential": (16, 0, 0), "auto": (16, 0, 0)}),
        ((2, 2), "4x1x1", False, {"sequential": (8, 0, 0), "auto": (8, 0, 0)}),
        ((16,), "4x2x2", True, {"sequential": (8, 8, 16), "round-robin": (32, 0, 0), "auto": (8, 8, 16)}),
        ((16,), "4x2x2", False, {"sequential": (6, 8, 16), "round-robin": (30, 0, 0), "auto": (6, 8, 16)}),
        ((64,), "16x2x2", True, {"sequential": (32, 32, 64), "round-robin": (128, 0, 0), "auto": (32, 32, 64)}),
        ((64,), "16x2x2", False, {"sequential": (30, 32, 64), "round-robin": (126, 0, 0), "auto": (30, 32, 64)}),
        ((4, 4, 4), "8x2x4", True, {"sequential": (192, 64, 128), "round-robin": (256, 64, 64)}),
        ((4, 4, 4), "8x2x4", True, {"auto": (192, 64, 128)}),
        ((4, 4, 4), "8x2x4", False, {"sequential": (128, 64, 96), "round-robin": (192, 32, 64)}),
        ((4, 4, 4), "8x2x4", False, {"tiles": (96, 64, 128), "auto": (96, 64, 128)}),
    ],
)
def test_faces_by_level(
    parts: tuple[int, ...], machine: str, periodic: bool, expected: dict[str, tuple[int, ...]]
) -> None:
    for mapping, levels in expected.items():
        assert costs(parts, machine, mapping, periodic).copies == (*levels, 0), mapping


def test_every_node_of_a_cube_of_tiles_sends_alike() -> None:
    assert node_messages((4, 4, 4), "8x2x4", "auto", False) == [12] * 8


@pytest.mark.parametrize(
    ("parts", "mapping", "cells"),
    [((8, 8), "sequential", 20480), ((8, 8), "auto", 16384), ((4, 16), "sequential", 16384), ((64, 1), "auto", 32768)],
)
def test_cells_between_nodes(parts: tuple[int, int], mapping: str, cells: int) -> None:
    """Of 1024 x 1024 cells on a torus, 16 nodes of 2 chips of 2 cores."""
    layout, seats = cartesian(mg.Grid((1024, 1024)).box, parts, granule=1), Tree.parse("16x2x2")
    around = (True, True)
    assert cost_of(place(layout, seats, mapping, around), seats, around).bytes[0] == cells


def test_diagonal_neighbours_count_where_they_are_read() -> None:
    """Edges of 100 cells and corners of one, on an open 8 x 8 mesh."""
    layout, seats = mesh(8, 8, length=100), Tree.parse("16x2x2")
    moore = (HaloRound((1, 1), (1, 1), 1, corners=True),)
    found = {word: cost_of(place(layout, seats, word, exchanges=moore), seats, exchanges=moore) for word in WORDS}
    assert found["sequential"].bytes == (12996, 3200, 6400, 0)
    assert found["tiles"].bytes == found["auto"].bytes == (9732, 6464, 6400, 0)


WORDS = ("sequential", "tiles", "auto")


def test_long_faces_stay_inside() -> None:
    """4096 x 4096 cells in 4 x 16 blocks, whose faces are 256 and 1024 cells: the plain order is the best there is."""
    layout, seats = cartesian(mg.Grid((4096, 4096)).box, (4, 16), granule=1), Tree.parse("16x2x2")
    best = portfolio(layout, seats)[0]
    assert best.cost.total == 655360
    assert best.cost.bytes == (49152, 32768, 65536, 0)
    assert best.ranks.tolist() == list(range(64))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3).filter(
        lambda axes: math.prod(tiles * inner for tiles, inner in axes) > 1
    ),
    st.booleans(),
)
def test_messages_of_node_tiles_follow_the_formula(axes: list[tuple[int, int]], periodic: bool) -> None:
    """``2 P (1/b - 1/p)`` faces between nodes along an open axis; ``2 P / b``, or none, along a periodic one."""
    parts = tuple(tiles * inner for tiles, inner in axes)
    ranks, nodes = math.prod(parts), math.prod(tiles for tiles, _ in axes)
    layout, around = mesh(*parts), (periodic,) * len(parts)
    # Node by node, each a tile of b blocks along every axis.
    corners = np.stack(np.meshgrid(*(np.arange(n) for n in parts), indexing="ij"), axis=-1).reshape(ranks, -1)
    node = np.ravel_multi_index(tuple((corners // [b for _, b in axes]).T), [tiles for tiles, _ in axes])
    seats = Tree.nested([ranks // nodes] * nodes)
    owner = np.empty(ranks, np.int64)
    owner[np.argsort(node, kind="stable")] = np.arange(ranks)
    found = cost_of(Layout(layout.domain, ranks, layout.lo, layout.hi, owner), seats, around)
    expected = 0
    for (_, b), p in zip(axes, parts, strict=True):
        if periodic:
            expected += 0 if b == p else 2 * ranks // b
        else:
            expected += 2 * (ranks // b - ranks // p)
    assert found.copies[0] == expected
    assert costs(parts, f"{nodes}x{ranks // nodes}", "auto", periodic).copies[0] <= expected


@pytest.mark.parametrize("cores", [1, 2, 4, 6, 8, 9, 12, 16, 24])
def test_no_node_sends_more_than_it_must(cores: int) -> None:
    """``2 ceil(2 sqrt(n))`` faces leave n square blocks at best (Harary and Harborth 1976, OEIS A027709)."""
    seats = Tree.parse(f"{24 * 24 // cores}x{cores}")
    layout = mesh(24, 24)
    around = (True, True)
    ranks = arrange(layout, seats, "tiles", around)
    found = cost_of(Layout(layout.domain, layout.ranks, layout.lo, layout.hi, ranks[layout.owner]), seats, around)
    assert found.copies[0] == len(seats) // cores * 2 * math.ceil(2 * math.sqrt(cores))
