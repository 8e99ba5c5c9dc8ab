"""Margolus' reversible block rules on a soup of 64 x 64 cells: populations, checksums, and all the way back.

A block's code is nw + 2 ne + 4 sw + 8 se; blocks begin at even cells in the first step, at odd ones in the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.case.examples import examples
from minga.case.python_file import run_file
from rule_oracle import crc, seed_cells
from thinned import thinned

from .watching import cells

SOUP = seed_cells((64, 64))
CRITTERS = (15, 14, 13, 3, 11, 5, 6, 1, 7, 9, 10, 2, 12, 4, 8, 0)
BILLIARD_BALLS = (0, 8, 4, 3, 2, 5, 9, 7, 1, 6, 10, 11, 12, 13, 14, 15)
SHIPPED: dict[str, Any] = dict(run_file(examples()["critters"].parent / "rules" / "margolus.py", "automaton.rule"))

Steps = Callable[[np.ndarray, int], np.ndarray]


def steps_of(rule: Any) -> Steps:
    return lambda start, count: cells(mg.automaton(rule, start.shape, init=start), count)


def by_numpy(table: tuple[int, ...], start: np.ndarray, count: int, first: int = 0) -> np.ndarray:
    """The same by whole arrays: `first` is the first step's offset."""
    state = start
    for step in range(first, first + count):
        turned = np.roll(state, (-(step % 2),) * 2, (0, 1))
        code = turned[::2, ::2] + 2 * turned[::2, 1::2] + 4 * turned[1::2, ::2] + 8 * turned[1::2, 1::2]
        block = np.array(table, np.uint8)[code]
        turned = np.empty_like(state)
        for bit, corner in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
            turned[corner[0] :: 2, corner[1] :: 2] = block >> bit & 1
        state = np.roll(turned, (step % 2,) * 2, (0, 1))
    return state


@pytest.mark.parametrize("steps", [
    pytest.param(steps_of(mg.block_table(CRITTERS)), marks=pytest.mark.slow), steps_of(SHIPPED["critters"]),
    lambda start, count: by_numpy(CRITTERS, start, count),
], ids=["table", "function", "numpy"])  # fmt: skip
def test_critters(steps: Steps) -> None:
    known = {1: (2595, "b5359dbc"), 2: (1501, "fed188cd"), 10: (1501, "2fe19c5f"), 100: (1501, "023d77b9")}
    for count, (population, checksum) in known.items():
        left = steps(SOUP, count)
        assert (left.sum(), crc(left)) == (population, checksum)


@pytest.mark.parametrize("steps", [
    steps_of(mg.block_table(BILLIARD_BALLS)), pytest.param(steps_of(SHIPPED["billiard_balls"]), marks=pytest.mark.slow),
    lambda start, count: by_numpy(BILLIARD_BALLS, start, count),
], ids=["table", "function", "numpy"])  # fmt: skip
def test_billiard_balls(steps: Steps) -> None:
    for count, checksum in {1: "8ee4acab", 10: "f5cc3426", 57: None, 100: None}.items():
        left = steps(SOUP, count)
        assert left.sum() == 1501
        assert checksum in (None, crc(left))


@pytest.mark.parametrize("table", [CRITTERS, BILLIARD_BALLS])
def test_a_hundred_steps_forth_and_back(table: tuple[int, ...]) -> None:
    """The inverse table, beginning with the blocks of the last step."""
    inverse = tuple(int(code) for code in np.argsort(table))
    later = steps_of(mg.block_table(table))(SOUP, 100)
    assert not np.array_equal(later, SOUP)
    assert np.array_equal(by_numpy(inverse, later, 100, first=1), SOUP)
    assert np.array_equal(steps_of(mg.block_table(inverse, phase=1))(later, 100), SOUP)


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(["critters", "billiard_balls"], "billiard_balls"))
def test_blocks_lie_across_ranks(name: str) -> None:
    """On 35 x 65 blocks cut among ranks at any cell."""
    start = seed_cells((70, 130))

    def digest(comm: Any = None, **options: Any) -> str:
        return str(mg.run(mg.automaton(SHIPPED[name], start.shape, init=start), steps=11, comm=comm, **options).digest)

    for ranks, depth in [(2, 1), (6, 3)]:
        found = mg.run_virtual(ranks, lambda comm: digest(comm, halo_depth=depth))
        assert set(found) == {digest()}
