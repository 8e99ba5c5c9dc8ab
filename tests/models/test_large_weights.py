"""Larger than Life with triangles, hexagons, cells of one's own and weights, against sums of shifted arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import minga as mg
from minga.errors import CaseError
from minga.models.automaton.rules import find_rule
from rule_oracle import many_states
from thinned import thinned


def rule(text):
    return find_rule(text, 2, Path())


def box(radius):
    return [(y, x) for y in range(-radius, radius + 1) for x in range(-radius, radius + 1)]


def triangle(radius, odd):
    """The triangles that Golly counts (ltlalgo.cpp): rows of so many cells to both sides."""
    above = [(y, 2 * radius + 1 + y) for y in range(-radius, 0)]
    rows = [*above, *((y, 2 * radius - y) for y in range(radius + 1))]
    return {(-y if odd else y, x): 1 for y, width in rows for x in range(-width, width + 1) if (y, x) != (0, 0)}


def matrix(rows):
    middle = len(rows) // 2
    return {(y - middle, x - middle): int(w) for y, row in enumerate(rows) for x, w in enumerate(row)}


def flipped(weights):
    return {(-y, x): w for (y, x), w in weights.items()}


def step(cells, even, odd, birth, survival, states, *, middle=False, of_state=None):
    """One step on a torus: sums over neighbours of weights, which may depend on the parity of the cell."""
    value = np.array(of_state)[cells] if of_state else (cells == 1).astype(int)
    sums = [sum(w * np.roll(value, (-y, -x), (0, 1)) for (y, x), w in part.items()) for part in (even, odd)]
    y, x = np.indices(cells.shape)
    n = np.where((y + x) % 2 == 0, *sums)
    kept = np.isin(n + middle, survival)
    older = np.where(cells + 1 < states, cells + 1, 0)
    after_life = 2 if states > 2 else 0
    alive = np.where(kept, 1, after_life)
    return np.where(cells == 0, np.isin(n, birth), np.where(cells == 1, alive, older)).astype(np.uint8)


GAUSS = {(y, x): (4 - abs(y)) * (4 - abs(x)) for y, x in box(3)}
CUSTOM = matrix(["10001", "00100", "01010", "00100", "10001"])
WEIGHTS = matrix([[1, 2, 3], [4, 0, 1], [3, 2, 3]])
WIDE = matrix([[8, 16, 8], [10, -5, 10], [8, 16, 8]])
EDGES = {(0, -1): 1, (0, 1): 1, (-1, 0): 1}
CASES = {
    "R1,C0,M0,S3..5,B4..4,NL": (triangle(1, False), triangle(1, True), [4], [3, 4, 5], 2, {}),
    "R2,C3,M1,S9..15,B9..12,NL": (
        triangle(2, False), triangle(2, True), range(9, 13), range(9, 16), 3, {"middle": True}
    ),
    "R1,C0,S1-2,B1,N@58L": (EDGES, flipped(EDGES), [1], [1, 2], 2, {}),
    "R2,C0,S3,5,B3-4,N@891891": (CUSTOM, CUSTOM, [3, 4], [3, 5], 2, {}),
    "R1,C0,S5-9,B6,8,NW123401323": (WEIGHTS, WEIGHTS, [6, 8], range(5, 10), 2, {}),
    "R1,C0,S5-9,B6,8,NW123401323L": (WEIGHTS, flipped(WEIGHTS), [6, 8], range(5, 10), 2, {}),
    "R1,C0,M1,S10..40,B20..30,NW0810080a850a081008": (WIDE, WIDE, range(20, 31), range(10, 41), 2, {}),
    "R1,C4,S5-30,B6-14,NW123401323,012A": (
        WEIGHTS, WEIGHTS, range(6, 15), range(5, 31), 4, {"of_state": [0, 1, 2, 10]}
    ),
    "R3,C2,M0,S24..91,B24..88,NG": (GAUSS, GAUSS, range(24, 89), range(24, 92), 2, {}),
    "R3,C0,M0,S2..4,B3..4,NA": (
        asterisk := {(y, x): 1 for y, x in box(3) if (x * y == 0 or x == y) and (y, x) != (0, 0)},
        asterisk, [3, 4], [2, 3, 4], 2, {},
    ),
    "R2,C0,M0,S1..3,B2..2,N3": (
        tripod := dict.fromkeys([(-1, 0), (-2, 0), (0, -1), (0, -2), (1, 1), (2, 2)], 1), tripod, [2], [1, 2, 3], 2, {}
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", thinned(CASES, *(text for text in CASES if "012A" not in text)))
def test_steps_are_those_of_shifted_arrays(text):
    even, odd, birth, survival, states, more = CASES[text]
    cells = many_states((24, 30), states)
    run = mg.run(mg.automaton(text, cells.shape, init=cells), steps=6, every=1, progress=False)
    for number in range(7):
        assert np.array_equal(run.cell.values[number], cells)
        cells = step(cells, even, odd, list(birth), list(survival), states, **more)
    assert 0 < np.count_nonzero(run.cell.values[5]) < cells.size  # it says something
    assert rule(rule(text).name).name == rule(text).name


def test_a_triangle_has_twelve_neighbours_that_touch_it_and_three_along_its_edges():
    for odd in (False, True):
        assert len(triangle(1, odd)) == 12
        assert set(EDGES if not odd else flipped(EDGES)) <= set(triangle(1, odd))
    for radius in (1, 2, 3):  # the number of neighbours that Golly's max_neighbors gives
        count = (radius * 4 + 1) * (radius * 2 + 1) - 2 * radius * radius - 1
        assert len(triangle(radius, False)) == count
        assert len(rule(f"R{radius},C0,M0,S1..{count},B1..1,NL").neighbourhood.around(2)) >= count
    with pytest.raises(CaseError, match="largest one is 12"):
        rule("R1,C0,M0,S1..13,B1..1,NL")


def test_neighbours_are_mutual():
    """If one triangle is a neighbour of another, this one is its neighbour: the two parities fit together."""
    for radius in (1, 2, 3):
        for y, x in triangle(radius, False):
            assert (-y, -x) in triangle(radius, odd=bool((y + x) % 2))


def test_ranks_and_threads_change_nothing():
    text, cells = "R2,C3,M1,S9..15,B9..12,NL", many_states((26, 30), 3)

    def digest(**more):
        return mg.run(mg.automaton(text, cells.shape, init=cells), steps=9, progress=False, **more).attrs["digest"]

    alone = digest()
    assert digest(threads=2) == alone
    assert set(mg.run_virtual(4, lambda comm: digest(comm=comm))) == {alone}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R1,C0,S2,B3,N@5", "1 digits after N@; its radius needs 2"),
        ("R1,C0,S2,B3,N@00", "counts no neighbour"),
        ("R1,C0,S2,B3,NW12", "2 digits after NW; its radius needs 9, or twice as many"),
        ("R1,C0,S2,B3,NW000010000", "counts no neighbour"),
        ("R1,C3,S2,B3,NW123401323,01", "2 weights of states"),
        ("R1,C0,S2,B3,N@58,01", "2 weights of states"),
        ("R1,C0,S2,B99,NW123401323", "largest one is 19"),
        ("R1,C0,S2,B3,NM58", "no neighbourhood NM58"),
        ("R1,C0,S2,B3,NZ", "no neighbourhood NZ"),
        ("R200,C0,S2,B3,NL", "one by one"),
        ("R20,C0,S2,B3,NG", "one by one"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(CaseError, match=message):
        rule(text)
    with pytest.raises(CaseError, match="2 dimensions"):
        find_rule("R1,C0,M0,S3..5,B4..4,NL", 3, Path())
