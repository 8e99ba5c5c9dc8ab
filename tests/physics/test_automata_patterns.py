"""Life's known patterns on a plane that they do not leave: populations of every generation that is on record.

Sources: conwaylife.com/wiki (r-pentomino, acorn, diehard, pi- and B-heptomino, rabbits, Gosper glider gun); each number
agrees with Golly's bgolly 3.3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.model import Model
from minga.models.automaton.patterns import read_rle

from .watching import cells, history, populations

PATTERNS = Path(mg.__file__).parent / "examples" / "patterns"
GLIDER = "bob$2bo$3o!"
LIGHTWEIGHT_SPACESHIP = "bo2bo$o4b$o3bo$4o!"


def life(text: str, size: int, boundary: object = "fixed", at: list[int] | None = None) -> Model:
    """Life from a pattern in run-length encoding, centred unless `at` says where, on a square of dead cells."""
    init: dict[str, Any] = {"pattern": read_rle(text).cells.tolist()} | ({"at": at} if at else {})
    return mg.automaton("B3/S23", (size, size), init=init, boundary=boundary)


def assert_populations(model: Model, known: dict[int, int]) -> None:
    assert populations(model, known) == known


# A pattern grows by at most one cell a generation, and what leaves its ash, gliders, by one in four.
def test_r_pentomino() -> None:
    known = {0: 5, 1: 6, 2: 7, 3: 9, 4: 8, 5: 9, 10: 11, 50: 64, 100: 121, 200: 120, 500: 174, 1000: 156}
    assert_populations(life("b2o$2o$bo!", 700), known | {1102: 118, 1103: 116, 1104: 116, 1120: 116})


def test_what_the_r_pentomino_leaves() -> None:
    """Eight blocks, six gliders, four beehives, four blinkers, a boat, a loaf and a ship."""
    left = cells(life("b2o$2o$bo!", 700), 1103)
    sizes = sorted(islands(left))
    blocks, gliders, beehives, blinkers = [4] * 8, [5] * 6, [6] * 4, [3] * 4
    boat, loaf, ship = [5], [7], [6]
    assert sizes == sorted(blocks + gliders + beehives + blinkers + boat + loaf + ship)


def islands(field: Any) -> list[int]:
    """Sizes of the parts of a field that touch no other live cell, not even at a corner."""
    left = set(map(tuple, np.argwhere(field).tolist()))
    sizes = []
    while left:
        todo = [left.pop()]
        size = 0
        while todo:
            y, x = todo.pop()
            size += 1
            around = {(y + i, x + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= around
            todo.extend(around)
        sizes.append(size)
    return sizes


def test_diehard_dies() -> None:
    assert_populations(life("6bo$2o$bo3b3o!", 200), {0: 7, 100: 23, 128: 3, 129: 2, 130: 0})


def test_pi_heptomino() -> None:
    assert_populations(life("3o$obo$obo!", 300), {100: 103, 172: 57, 173: 55, 174: 55})


def test_b_heptomino() -> None:
    assert_populations(life("ob2o$3o$bo!", 300), {100: 89, 147: 31, 148: 28, 149: 28})


def test_acorn_grows() -> None:
    assert_populations(life("bo$3bo$2o2b3o!", 600), {0: 7, 10: 30, 100: 76, 1000: 457})


@pytest.mark.slow
def test_acorn_comes_to_rest() -> None:
    assert_populations(life("bo$3bo$2o2b3o!", 2816), {5000: 804, 5205: 635, 5206: 633, 5207: 633})


@pytest.mark.slow
def test_rabbits_come_to_rest() -> None:
    known = {1000: 385, 17_330: 1746, 17_331: 1744, 17_332: 1744}
    assert_populations(life("o3b3o$3o2bo$bo!", 8960), known)


def test_gosper_gun() -> None:
    """A glider of five cells every thirty generations: 36 + 5 k cells at generation 30 k."""
    text = (PATTERNS / "gosper-glider-gun.rle").read_text()
    known = {0: 36, 15: 42, 30: 41, 60: 46, 120: 56, 300: 86, 3000: 536}
    known |= {30 * k: 36 + 5 * k for k in range(1, 100, 7)}
    assert_populations(life(text, 832, at=[4, 4]), known)


def test_glider_returns_on_a_torus() -> None:
    """It moves by one cell along the diagonal in four generations."""
    n = 11
    frames = history(life(GLIDER, n, "periodic"), 4 * n, every=4)
    for moved, frame in enumerate(frames):
        assert np.array_equal(frame, np.roll(frames[0], (moved, moved), (0, 1)))
    assert set(populations(life(GLIDER, n, "periodic"), range(60)).values()) == {5}


def test_lightweight_spaceship() -> None:
    assert list(populations(life(LIGHTWEIGHT_SPACESHIP, 20, "periodic"), range(8)).values()) == [9, 12] * 4
    frames = history(life(LIGHTWEIGHT_SPACESHIP, 20, "periodic"), 8, every=4)
    assert np.array_equal(frames[1], np.roll(frames[0], -2, 1))
    assert np.array_equal(frames[2], np.roll(frames[0], -4, 1))


def test_langtons_loop() -> None:
    """Cells that are not empty; the first child has come off at generation 151."""
    rule, pattern = PATTERNS.parent / "rules" / "langtons-loop.rule", PATTERNS / "langtons-loop.rle"
    model = mg.automaton(str(rule), (128, 128), init=str(pattern), boundary="fixed")
    assert_populations(model, {0: 86, 1: 86, 10: 88, 100: 138, 151: 171, 152: 170, 300: 338, 500: 863})
