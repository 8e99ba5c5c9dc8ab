"""One digest for every way of sharing the work, and the corners where sharing it goes wrong first."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.models.automaton.patterns import read_rle, write_rle
from minga.models.automaton.rules import life_like
from mpi_launch import run_ranks
from rule_oracle import evolve, seed_cells
from thinned import thinned

from .shared_automata import MODELS, digest, lopsided
from .watching import cells

GLIDER = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
SCRIPT = Path(__file__).parent / "shared_automata.py"


@cache
def serial(name: str) -> str:
    return digest(name)


def shared(name: str, ranks: int, **options: Any) -> set[str]:
    return set(mg.run_virtual(ranks, lambda comm: digest(name, comm, **options)))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "ranks", "layout"),
    thinned(
        [
            (name, *way)
            for name in MODELS
            for way in ((7, "cartesian"), (3, "blocks:3"), (2, "slabs"), (5, "bisection"))
        ],
        *((name, 7, "cartesian") for name in ("life", "lopsided", "space")),
        *((name, 3, "blocks:3") for name in ("forest", "laplace", "born of nothing")),
    ),
)
def test_layouts(name: str, ranks: int, layout: str) -> None:
    assert shared(name, ranks, layout=layout) == {serial(name)}


@pytest.mark.parametrize(
    "layout",
    thinned(["cartesian:1x6", "cartesian:2x3", "cartesian:3x2", "cartesian:6x1"], "cartesian:1x6", "cartesian:3x2"),
)
def test_process_grids(layout: str) -> None:
    assert shared("life", 6, layout=layout) == {serial("life")}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("depth", "overlap"),
    thinned(itertools.product([1, 2, 3, 4, 5], [True, False]), (2, True), (3, False), (4, True), (5, False)),
)
def test_halo_depths_and_overlap(depth: int, overlap: bool) -> None:
    for name in ("life", "lopsided", "laplace")[depth % 2 :]:
        assert shared(name, 2, halo_depth=depth, overlap=overlap) == {serial(name)}


@pytest.mark.slow
@pytest.mark.parametrize("threads", thinned([1, 2, 4], 4))
def test_threads(threads: int) -> None:
    for name in MODELS:
        assert digest(name, threads=threads) == serial(name)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16])
def test_mpi_ranks(ranks: int) -> None:
    job = run_ranks(ranks, SCRIPT, timeout=280).check()
    assert json.loads(job.out[0]) == {name: serial(name) for name in MODELS}


# Patterns
def test_patterns_written_and_read_again() -> None:
    for soup in (seed_cells((13, 40)), seed_cells((7, 9), 5, 2) * 3, np.zeros((2, 3), np.uint8)):
        again = read_rle(write_rle(soup)).cells
        assert np.array_equal(again, soup)


# Corners
@pytest.mark.slow
def test_a_glider_crosses_the_corner_of_four_blocks() -> None:
    """From the upper left block to the lower right one, through the point where all four meet."""
    init = {"pattern": GLIDER, "at": [26, 58]}
    model = mg.automaton("B3/S23", (64, 128), init=init)

    def frames(comm: Any = None, **options: Any) -> Any:
        left = mg.run(model, steps=32, every=4, comm=comm, **options)
        return np.asarray(left.cell) if comm is None or comm.rank == 0 else None

    alone = frames()
    assert all(np.array_equal(frame, np.roll(alone[0], (k, k), (0, 1))) for k, frame in enumerate(alone))
    for depth in (1, 3):
        together = mg.run_virtual(4, lambda comm: frames(comm, layout="cartesian:2x2", halo_depth=depth))
        assert np.array_equal(together[0], alone)


def test_rings_of_one_and_two_cells() -> None:
    """Neighbours across a short ring are the cell itself, or the same cell twice."""
    for shape in [(1, 1), (1, 9), (9, 1), (2, 2), (2, 65), (65, 2)]:
        soup = seed_cells(shape)
        assert np.array_equal(
            cells(mg.automaton("B3/S23", shape, init=soup), 5), evolve(life_like("B3/S23"), soup, 5)
        ), shape


def test_lopsided_neighbourhoods_against_numpy() -> None:
    soup = seed_cells((17, 40))
    expected = soup
    for _ in range(9):
        read = {o: np.roll(expected, (-o[0], -o[1]), (0, 1)) for o in [(0, 3), (-2, 0), (1, -1)]}
        expected = read[0, 3] ^ (read[-2, 0] & read[1, -1]) ^ expected
    assert np.array_equal(cells(mg.automaton(lopsided, soup.shape, init=soup), 9), expected)
