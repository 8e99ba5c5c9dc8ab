"""Rows computed together: the same bits as rows one by one, and sums of integers that they share."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga import kernel
from minga.compile.alternative import Alternative
from minga.compile.rows import may_be_together, together, usual_rows
from minga.compile.schedule import schedule
from minga.lang.graph import KernelGraph, topological
from thinned import thinned

from .helpers import assert_equal_bits, make_case, targets, traced


@kernel
def life(cell: Any, new: Any) -> None:
    alive = sum(cell[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new[0, 0] = mg.where((alive == 3) | ((alive == 2) & (cell[0, 0] == 1)), 1, 0)


@kernel
def weighted(cell: Any, new: Any) -> None:
    new[0, 0] = 3 * cell[-1, -1] + cell[0, 2] * cell[1, 0] + cell[0, 1] + (cell[0, -2] + cell[1, 1]) + 5


@kernel
def jacobi(u: Any, new: Any) -> None:
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@kernel
def wave(u: Any, old: Any) -> None:
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    old[0, 0, 0] = 2 * u[0, 0, 0] - old[0, 0, 0] + 0.1 * around


@kernel(order={"y": +1})
def upwards(u: Any) -> None:
    u[0, 0] = 0.5 * (u[-1, 0] + u[0, 0])


KERNELS = {
    "life": (life, 2, "u1"),
    "weighted": (weighted, 2, "i2"),
    "jacobi": (jacobi, 2, "f8"),
    "wave": (wave, 3, "f4"),
}


def graph_of(name: str) -> KernelGraph:
    function, ndim, dtype = KERNELS[name]
    return traced(function, ndim, [dtype] * 2)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "rows", "height", "width"),
    thinned(
        itertools.product(KERNELS, [1, 4, 8], [1, 4, 11, 17], [1, 9, 33, 70]),
        *[("life", 4, 11, 70), ("weighted", 4, 4, 33), ("jacobi", 8, 17, 33), ("wave", 4, 11, 9)],
    ),
)
def test_rows_together_have_the_bits_of_single_rows(name: str, rows: int, height: int, width: int) -> None:
    graph = graph_of(name)
    shape = (2,) * (graph.ndim - 2) + (height, width)
    for target in targets():
        assert_equal_bits(make_case(graph, shape), on=[target], way=Alternative(rows=rows))


def test_rows_share_sums_of_integers() -> None:
    _, values = together(graph_of("life"), 4)
    operations = [node.op for node in topological(values)]
    assert operations.count("read") == 18  # six rows with three cells each
    assert operations.count("add") <= 24  # two for each of six rows and of four results, and the zero of Python's sum
    assert usual_rows(graph_of("life")) == 4


def test_sums_of_floats_keep_their_order() -> None:
    graph = graph_of("jacobi")
    _, values = together(graph, 1)
    assert [node.op for node in topological(values)] == [
        node.op for node in topological([store.value for store in graph.stores])
    ]
    assert usual_rows(graph) == 1


def test_rows_that_depend_on_each_other_are_computed_one_by_one() -> None:
    graph = traced(upwards, 2, ["f8"])
    assert not may_be_together(graph, schedule(graph))


@pytest.mark.parametrize("rows", [1, 4])
def test_sums_that_are_used_several_times_are_not_taken_apart(rows: int) -> None:
    """A sum that is doubled 40 times would have 2^40 terms."""

    @kernel
    def doubled(cell: Any, new: Any) -> None:
        total = cell[-1, 0] + cell[1, 0] + cell[0, 1]
        for _ in range(40):
            total = total + total
        new[0, 0] = total

    graph = traced(doubled, 2, ["i8"] * 2)
    _, values = together(graph, rows)
    assert sum(node.op == "add" for node in topological(values)) == 42 * rows
    assert_equal_bits(make_case(graph, (5, 33)), way=Alternative(rows=rows))


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(40))
def test_random_kernels_have_the_bits_of_the_oracle(seed: int) -> None:
    """Sums, products and choices of reads of several types, with updates in place and cells that know their place."""
    random = np.random.default_rng(seed)
    ndim, stores = int(random.integers(2, 4)), int(random.integers(1, 3))
    types = ["u1", "i2", "i8"] if seed % 4 else ["f4", "f8"]
    fields = [str(random.choice(types[-2:])) for _ in range(2)] + [types[-1]] * stores

    def term(near: Any, pool: list[Any]) -> Any:
        kind, number = random.integers(6), int(random.integers(len(near)))
        if kind == 0 and pool:
            return pool[int(random.integers(len(pool)))]
        if kind == 1:
            return mg.index(int(random.integers(ndim)), "i2") if seed % 4 else 2
        away = 2 * (number < 2)  # what is stored is read in its own cell
        return near[number][tuple(random.integers(-away, away + 1, ndim).tolist())]

    def mixed(near: Any, written: Any) -> None:
        pool: list[Any] = []
        for _ in range(4):
            value = term(near, pool)
            for _ in range(5):
                other, kind = term(near, pool), random.integers(8)
                choice = {0: value * other, 1: value - other, 2: mg.where(value < other, value, other)}
                value = choice.get(int(kind), value + other)
            pool.append(value)
        for field in written:
            field[(0,) * ndim] = mg.cast(pool[int(random.integers(4))], types[-1])

    def single(a: Any, b: Any, new: Any) -> None:
        mixed([a, b, new], [new])

    def double(a: Any, b: Any, new: Any, old: Any) -> None:
        mixed([a, b, new, old], [new, old])

    graph = traced(kernel(single if stores == 1 else double), ndim, fields)
    assert may_be_together(graph, schedule(graph))
    shape = (2,) * (ndim - 2) + (int(random.integers(1, 19)), int(random.choice([1, 7, 33, 70])))
    target = targets()[seed % len(targets())]
    way = Alternative(rows=int(random.choice([2, 4, 8])))
    assert_equal_bits(make_case(graph, shape, seed=seed), on=[target], way=way)
