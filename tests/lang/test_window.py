"""Sums over large neighbourhoods: the same counts as cell by cell, in far fewer operations; weighted neighbourhoods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minga as mg
from minga.compile.call import Call
from minga.compile.llvm import compile_kernel
from minga.compile.numpy import BoundArray
from minga.errors import KernelError
from minga.lang.kernel import FieldType, Signature
from minga.lang.neighbourhood import Neighbourhood
from rule_oracle import evolve, graph_of

SHAPES = {1: (70,), 2: (26, 41), 3: (9, 10, 13), 4: (5, 6, 5, 7)}


def counting(neighbourhood: Neighbourhood, states: int = 2) -> Any:
    @mg.rule(neighbourhood=neighbourhood, fields={"cell": "u1", "total": "i8"})
    def count_and_sum(cell, near):
        ones = near.count(1, "cell") if states > 2 else near.sum("cell")
        return {"cell": cell.cell, "total": mg.cast(ones, "i8")}

    return count_and_sum


def brute(cells: Any, neighbourhood: Neighbourhood) -> Any:
    total = np.zeros(cells.shape, np.int64)
    for offset in neighbourhood.around(cells.ndim):
        total += np.roll(cells.astype(np.int64), tuple(-x for x in offset), tuple(range(cells.ndim)))
    return total


CASES = [
    (mg.moore(10), 1), (mg.moore(40), 1), (mg.moore(2), 2), (mg.moore(5), 2), (mg.moore(12), 2), (mg.von_neumann(3), 2),
    (mg.von_neumann(4), 2), (mg.von_neumann(11), 2), (mg.circular(2), 2), (mg.circular(6), 2), (mg.circular(11), 2),
    (mg.moore(2), 3), (mg.von_neumann(3), 3), (mg.circular(3), 3), (mg.moore(2), 4), (mg.von_neumann(2), 4),
]  # fmt: skip


@pytest.mark.parametrize(("neighbourhood", "ndim"), CASES, ids=lambda value: str(value))
def test_sums_are_those_of_the_cells(neighbourhood: Neighbourhood, ndim: int) -> None:
    cells = np.random.default_rng(0).integers(0, 256, SHAPES[ndim]).astype(np.uint8)
    radius = max(abs(x) for offset in neighbourhood.around(ndim) for x in offset)
    start = {"cell": cells, "total": np.zeros(cells.shape, np.int64)}
    assert np.array_equal(
        evolve(counting(neighbourhood), start, 1, radius=radius)["total"], brute(cells, neighbourhood)
    )
    of_ones = evolve(counting(neighbourhood, 3), start, 1, radius=radius)["total"]
    assert np.array_equal(of_ones, brute(cells == 1, neighbourhood))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.sets(st.tuples(st.integers(-4, 5), st.integers(-6, 3)).filter(any), min_size=20, max_size=70))
def test_any_large_set_of_cells(offsets: set[tuple[int, int]]) -> None:
    neighbourhood = mg.offsets(sorted(offsets))
    cells = np.random.default_rng(1).integers(0, 2, (15, 17)).astype(np.uint8)
    start = {"cell": cells, "total": np.zeros(cells.shape, np.int64)}
    assert np.array_equal(evolve(counting(neighbourhood), start, 1, radius=6)["total"], brute(cells, neighbourhood))


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbourhood", [mg.moore(7), mg.von_neumann(9), mg.circular(8)], ids=str)
def test_compiled(neighbourhood: Neighbourhood) -> None:
    @mg.rule(neighbourhood=neighbourhood)
    def majority(cell, near):
        return near.count(1) > len(near) // 2

    cells = np.random.default_rng(2).integers(0, 2, (40, 90)).astype(np.uint8)
    padded, found = np.pad(cells, 9, mode="wrap"), np.zeros_like(cells)
    arrays = [BoundArray(padded, (-9, -9)), BoundArray(found, (0, 0))]
    Call(compile_kernel(graph_of(majority, 2)), ((0, 0), cells.shape), arrays).run()
    around = neighbourhood.around(2)
    assert np.array_equal(found, brute(cells, neighbourhood) > len(around) // 2)


@pytest.mark.parametrize(("neighbourhood", "most"), [
    (mg.moore(5), 60), (mg.moore(50), 110), (mg.von_neumann(50), 130), (mg.circular(10), 140),
], ids=str)  # fmt: skip
def test_few_operations(neighbourhood: Neighbourhood, most: int) -> None:
    """Cell by cell these would be 120, 10200, 5100 and 348 additions."""

    @mg.rule(neighbourhood=neighbourhood)
    def majority(cell, near):
        return near.count(1) > len(near) // 2

    assert len(graph_of(majority, 2).nodes()) <= most


def test_small_sums_and_floats_are_added_cell_by_cell() -> None:
    """The order of a sum of floats is part of its meaning."""

    @mg.rule(neighbourhood=mg.moore(1))
    def small(cell, near):
        return near.count(1) == 3

    @mg.rule(neighbourhood=mg.moore(3), dtype="f8")
    def floats(cell, near):
        return near.sum()

    assert not graph_of(small, 2).locals
    assert not graph_of(floats, 2).locals


def test_sums_in_place_are_cell_by_cell() -> None:
    @mg.rule(neighbourhood=mg.moore(3), update=mg.Coloured())
    def majority(cell, near):
        return near.count(1) > 24

    graph = majority.kernel.graph(Signature(2, (FieldType("u1", (0, 1)),)))
    assert not graph.locals
    assert len([node for node in graph.nodes() if node.op == "read"]) == 48


@pytest.mark.slow
def test_too_many_lengths() -> None:
    @mg.rule(neighbourhood=mg.circular(400))
    def huge(cell, near):
        return near.count(1) > 3

    with pytest.raises(KernelError, match="is too large"):
        graph_of(huge, 2)


# Weights -------------------------------------------------------------------------------------------------------------
WEIGHTS = np.array([[1, 2, 1], [0, 3, -4], [5, 0, 1]])


@pytest.mark.parametrize(("weights", "states", "dtype"), [
    (WEIGHTS, 2, "i2"), (abs(WEIGHTS), 2, "u1"), (WEIGHTS, 256, "i2"), (100 * WEIGHTS, 256, "i4"),
    (WEIGHTS / 8, 5, "f8"),
])  # fmt: skip
def test_weighted_bytes(weights: Any, states: int, dtype: str) -> None:
    found = []

    @mg.rule(neighbourhood=mg.weights(weights), fields={"cell": "u1", "total": "f8"})
    def weigh(cell, near):
        found.append(near.weighted("cell").dtype)
        return {"cell": cell.cell, "total": mg.cast(near.weighted("cell"), "f8")}

    @mg.rule(neighbourhood=mg.weights(weights), states=states)
    def narrow(cell, near):
        found.append(near.weighted().dtype)
        return mg.cast(near.weighted() > 0, "u1")

    cells = np.random.default_rng(3).integers(0, states, (9, 11)).astype(np.uint8)
    total = evolve(weigh, {"cell": cells, "total": np.zeros(cells.shape)}, 1)["total"]
    expected = sum(
        weights[y + 1, x + 1] * np.roll(cells.astype(float), (-y, -x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)
    )
    assert np.array_equal(total, expected)
    graph_of(narrow, 2)
    assert found[-1] == dtype


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_weighted_floats(ndim: int) -> None:
    """Diffusion by a kernel of weights; the sum is in row-major order."""
    weights = np.random.default_rng(4).random((3, 5, 3)[:ndim])

    @mg.rule(neighbourhood=mg.weights(weights), dtype="f8")
    def convolve(cell, near):
        return near.weighted()

    cells = np.random.default_rng(5).random(SHAPES[ndim])
    expected = np.zeros_like(cells)
    for place in np.ndindex(weights.shape):
        offset = [i - n // 2 for i, n in zip(place, weights.shape)]
        expected = expected + np.roll(cells, [-x for x in offset], range(ndim)) * weights[place]
    assert np.array_equal(evolve(convolve, cells, 1, radius=2), expected)


@pytest.mark.parametrize(("array", "words"), [
    ([[1, 2], [3, 4]], "has no middle"), ([[1, 2, 3], [4]], "rows of equal length"), ("x", "found 'x'"),
    ([0, 5, 0], "no neighbour"),
    ([1, float("nan"), 1], "finite"), (3, "found 3"),
])  # fmt: skip
def test_wrong_weights(array: Any, words: str) -> None:
    with pytest.raises(KernelError, match=r"mg\.weights") as caught:
        mg.weights(array)
    assert words in str(caught.value)


def test_weighted_needs_weights() -> None:
    @mg.rule
    def plain(cell, near):
        return near.weighted() > 0

    with pytest.raises(KernelError, match="has no weights"):
        graph_of(plain, 2)
    with pytest.raises(KernelError, match="selected from"):
        mg.moore(500).around(3)
