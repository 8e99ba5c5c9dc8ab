"""Block rules (Margolus' neighbourhood): known numbers, NumPy, and the same bits on any layout."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minga as mg
from minga.lang.kernel import _stream
from minga.lang.random import uniform
from model_runs import assert_same, run_model
from rule_oracle import MODES, crc, seed_cells
from thinned import thinned

Array = NDArray[Any]

CRITTERS = [15, 14, 13, 3, 11, 5, 6, 1, 7, 9, 10, 2, 12, 4, 8, 0]
BILLIARDS = [0, 8, 4, 3, 2, 5, 9, 7, 1, 6, 10, 11, 12, 13, 14, 15]


def by_blocks(cells: Array, table: Sequence[int], states: int, offset: int, boundary: str = "periodic") -> Array:
    """One step of a table: blocks begin at indices of the offset's parity."""
    ndim = cells.ndim
    wide = np.pad(cells.astype(int), [(2 - offset, 2 + offset + n % 2) for n in cells.shape], **MODES[boundary])
    places = list(itertools.product((0, 1), repeat=ndim))
    code = sum(wide[tuple(slice(p, None, 2) for p in place)] * states**k for k, place in enumerate(places))
    new = np.empty_like(wide)
    for k, place in enumerate(places):
        new[tuple(slice(p, None, 2) for p in place)] = np.asarray(table)[code] // states**k % states
    return new[tuple(slice(2 - offset, 2 - offset + n) for n in cells.shape)].astype(np.uint8)


def inverse(table: Sequence[int]) -> list[int]:
    return [table.index(code) for code in range(len(table))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "known"),
    [
        (CRITTERS, {1: (2595, "b5359dbc"), 2: (1501, "fed188cd"), 10: (1501, "2fe19c5f"), 100: (1501, "023d77b9")}),
        pytest.param(BILLIARDS, {1: (1501, "8ee4acab"), 10: (1501, "f5cc3426")}, marks=pytest.mark.slow),
    ],
)
def test_critters_and_billiard_balls(table: list[int], known: dict[int, tuple[int, str]]) -> None:
    model = mg.automaton(mg.block_table(table), (64, 64), init=seed_cells((64, 64)))
    for steps, expected in known.items():
        left = run_model(model, steps)
        assert (left.observables["population"], crc(left.cell)) == expected
    for ranks in (2, 4, 6):
        assert_same(run_model(model, 10), run_model(model, 10, ranks=ranks))
    assert_same(run_model(model, 10), run_model(model, 10, ranks=3, halo_depth=4, threads=2))


@pytest.mark.slow
@pytest.mark.parametrize("table", [CRITTERS, BILLIARDS])
def test_the_inverse_table_goes_back(table: list[int]) -> None:
    cells = seed_cells((64, 64))
    there = run_model(mg.automaton(mg.block_table(table), cells.shape, init=cells), 100).cell
    back = mg.block_table(inverse(table), phase=1)  # the hundredth step had blocks at odd indices
    assert np.array_equal(run_model(mg.automaton(back, cells.shape, init=there), 100).cell, cells)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("shape", "states", "boundary"),
    thinned(
        [
            ((66,), 4, "periodic"), ((10, 68), 3, "periodic"), ((9, 67), 2, "fixed"), ((8, 12), 2, "reflect"),
            ((4, 6, 34), 2, "periodic"), ((2, 4, 2, 18), 2, "periodic"), ((67,), 3, "fixed"), ((3, 5, 33), 2, "fixed"),
        ],
        ((10, 68), 3, "periodic"), ((9, 67), 2, "fixed"), ((8, 12), 2, "reflect"),
    ),
)  # fmt: skip
def test_tables_agree_with_numpy(shape: tuple[int, ...], states: int, boundary: str) -> None:
    rng = np.random.default_rng(len(shape))
    table = [int(code) for code in rng.permutation(states**2 ** len(shape))]
    start = rng.integers(0, states, shape).astype(np.uint8)
    cells = start
    for step in range(5):
        cells = by_blocks(cells, table, states, step % 2, boundary)
    rule = mg.block_table(table, states, len(shape))
    model = mg.automaton(rule, shape, init=start, boundary=boundary)
    for ranks in (1, 4):
        assert np.array_equal(run_model(model, 5, ranks=ranks).cell, cells)


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3])
def test_a_fixed_point_is_one_of_even_and_odd_steps(every: int) -> None:
    pair = np.zeros((16, 16), "u1")
    pair[4, 4:6] = 1  # one block in even steps, where it stays; balls of two blocks in odd ones
    moving = mg.automaton(mg.block_table(BILLIARDS), pair.shape, init=pair)
    assert mg.run(moving, 20, stop=mg.Stop(fixed_point=True, every=every)).attrs["ended"] == "all 20 steps done"
    full = mg.automaton(mg.block_table(BILLIARDS), pair.shape, init=np.ones_like(pair))
    ended = mg.run(full, 20, stop=mg.Stop(fixed_point=True, every=every)).attrs["ended"]
    assert ended == "fixed point since step 0"


@mg.block_rule(states=3)
def turn(block, *, wall=2):
    """A quarter turn of blocks without walls."""
    nw, ne, sw, se = block
    blocked = block.count(2) > 0
    return [[mg.where(blocked, old, new) for old, new in row] for row in [[(nw, sw), (ne, nw)], [(sw, se), (se, ne)]]]


@pytest.mark.slow
def test_a_function_of_a_block() -> None:
    def turned(code: int) -> int:
        nw, ne, sw, se = (code // 3**k % 3 for k in range(4))
        return code if 2 in (nw, ne, sw, se) else sw + 3 * nw + 9 * se + 27 * ne

    start = np.random.default_rng(6).integers(0, 3, (10, 70)).astype(np.uint8)
    as_table = mg.block_table([turned(code) for code in range(81)], 3)
    found = [run_model(mg.automaton(rule, start.shape, init=start), 7, ranks=3) for rule in (turn, as_table)]
    assert_same(*found)


@mg.block_rule(states=2)
def diffuse(block, *, p=0.5):
    """Every block turns one way or the other."""
    nw, ne, sw, se = block
    left = mg.random() < p
    return mg.where(left, ne, sw), mg.where(left, se, nw), mg.where(left, nw, se), mg.where(left, sw, ne)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", thinned(["periodic", "fixed"], "periodic"))
def test_all_cells_of_a_block_draw_alike(boundary: str) -> None:
    start = seed_cells((12, 34))
    model = mg.automaton(diffuse, start.shape, init=start, boundary=boundary, seed=9)
    left = run_model(model, 7)
    for ranks in (2, 4, 6):
        assert_same(left, run_model(model, 7, ranks=ranks))
    if boundary == "periodic":
        assert left.observables["population"] == start.sum()
    draws = uniform(start.shape, seed=9, stream=_stream("diffuse")) < 0.5
    first = run_model(model, 1).cell
    for y, x in np.ndindex(6, 17):
        (nw, ne), (sw, se) = start[2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
        expected = [[ne, se], [nw, sw]] if draws[2 * y, 2 * x] else [[sw, nw], [se, ne]]
        assert np.array_equal(first[2 * y : 2 * y + 2, 2 * x : 2 * x + 2], expected)


@pytest.mark.parametrize(
    ("rule", "options", "message"),
    [
        (mg.block_table(CRITTERS), {"shape": (8, 9)}, "use 10 cells along axis 1"),
        (mg.block_table(CRITTERS), {"shape": (8,)}, "is for 2 dimensions"),
        (mg.block_table(CRITTERS), {"boundary": [{"shift": 2}, "periodic"]}, "shifted or twisted torus"),
        (mg.block_table(CRITTERS), {"update": "coloured"}, "an update of its own"),
        (turn, {"init": [[3]]}, "states are 0 .. 2"),
        (mg.block_rule(lambda block: list(block)[:3]), {}, "returns 3 cells"),
        (mg.block_rule(states=3)(lambda block: [cell + 1 for cell in block]), {}, "can return 3"),
        (mg.block_rule(lambda block: block[0, 2]), {}, r"no cell \[0, 2\]"),
    ],
)
def test_mistakes(rule: Any, options: dict[str, Any], message: str) -> None:
    given = {"shape": (8, 8), "init": {"soup": 0.5}} | options
    with pytest.raises(mg.MingaError, match=message):
        mg.automaton(rule, **given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mg.block_table(CRITTERS[:15]), "a table of 15 entries"),
        (lambda: mg.block_table([16] * 16), "block 0 becomes 16"),
        (lambda: mg.block_table([0], 300), "2 .. 256 states"),
        (lambda: mg.block_table([0], 17, 2), "more than 65536 blocks"),
        (lambda: mg.block_table(CRITTERS, ndim=5), "5 dimensions"),
        (lambda: mg.block_rule(phase=2), "phase=2"),
        (lambda: mg.block_rule(lambda block, near: block), "two positional parameters|has 2 positional"),
    ],
)
def test_wrong_tables(make: Any, message: str) -> None:
    with pytest.raises(mg.KernelError, match=message):
        make()
