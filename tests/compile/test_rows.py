"""Rows computed together: the same bits as rows one by one, and sums of integers that they share."""

from __future__ import annotations

import itertools
from typing import Any

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
