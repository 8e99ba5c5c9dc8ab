"""Elementary automata from a single cell, and the exact flux of the traffic rule.

Source of the sequences: S. Wolfram, A New Kind of Science (2002), and OEIS A070950-A070952 (rule 30), A071049 (rule
110), A001316 (rule 90).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg

from .watching import cells, history


def rows(rule: str, steps: int) -> NDArray[Any]:
    """The rows 0 .. steps from one live cell in the middle of a ring that is wide enough not to close."""
    return history(mg.automaton(rule, (2 * steps + 3,), init=[1]), steps)


def numbers(grown: NDArray[Any]) -> list[int]:
    """Each row as a number in binary, from its first to its last cell that light from the start could reach."""
    middle = grown.shape[1] // 2
    return [int("".join(map(str, row[middle - t : middle + t + 1])), 2) for t, row in enumerate(grown)]


def test_rule_30() -> None:
    grown = rows("W30", 100)
    assert grown.sum(axis=1)[:16].tolist() == [1, 3, 3, 6, 4, 9, 5, 12, 7, 12, 11, 14, 12, 19, 13, 22]
    assert grown.sum(axis=1)[100] == 103
    assert numbers(grown[:8]) == [1, 7, 25, 111, 401, 1783, 6409, 28479]


def test_the_centre_of_rule_30() -> None:
    """481 of its first thousand cells are alive."""
    centre = rows("W30", 999)[:, 1000]
    assert "".join(map(str, centre[:64])) == "1101110011000101100100111010111001110101011000011001010110101011"
    assert centre.sum() == 481


def test_rule_90() -> None:
    """Pascal's triangle modulo 2: row t has two to the number of ones of t, in binary, live cells."""
    assert rows("W90", 130).sum(axis=1).tolist() == [2 ** t.bit_count() for t in range(131)]


def test_rule_110() -> None:
    grown = rows("W110", 1000)
    middle = grown.shape[1] // 2
    assert not grown[:, middle + 1 :].any()  # it grows to the left only
    left = [int("".join(map(str, row[: middle + 1])).lstrip("0"), 2) for row in grown[:10]]
    assert left == [1, 3, 7, 13, 31, 49, 115, 215, 509, 775]
    populations = grown.sum(axis=1)
    assert populations[:16].tolist() == [1, 2, 3, 3, 5, 3, 5, 6, 8, 5, 6, 8, 8, 8, 11, 11]
    assert populations[1000] == 587


@pytest.mark.parametrize("density", [0.25, 0.5, 0.75])
def test_rule_184_flows_as_much_as_it_can(density: float) -> None:
    """Stationary after half as many steps as there are cells; then min(density, 1 - density) of all cells move."""
    n = 400
    start = np.random.default_rng(5).permutation(np.arange(n) < density * n).astype(np.uint8)
    settled = cells(mg.automaton("W184", (n,), init=start), n // 2)
    assert settled.sum() == density * n
    assert np.count_nonzero((settled == 1) & (np.roll(settled, -1) == 0)) == min(density, 1 - density) * n
