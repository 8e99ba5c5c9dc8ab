"""Kernels with their locals written out compute the same."""

from __future__ import annotations

import numpy as np

import minga as mg
from minga.compile.numpy import BoundArray, evaluate
from minga.lang.analysis import reads
from minga.lang.inline import without_locals
from minga.lang.kernel import infer_signature


@mg.kernel
def smoothed(u, new):
    across = mg.local(u[0, -1] + 2.0 * u[0, 0] + u[0, 1])
    both = mg.local(across[-1, 0] + across[1, 0] * across)
    new[0, 0] = both - both[0, 2] + mg.cast(mg.index(1), "f8")


def test_the_same_values() -> None:
    graph = smoothed.graph(infer_signature(2, [("f8", (0, 1)), ("f8", (0, 1))]))
    plain = without_locals(graph)
    assert graph.locals
    assert not plain.locals
    assert not any(node.op == "local" for node in plain.nodes())
    assert reads(plain) == reads(graph)
    cells = np.random.default_rng(0).random((12, 20))
    results = []
    for one in (graph, plain):
        new = np.zeros_like(cells)
        evaluate(one, ((2, 4), (10, 15)), [BoundArray(cells, (0, 0)), BoundArray(new, (0, 0))])
        results.append(new)
    assert results[0].any()
    assert np.array_equal(*results)


def test_positions_are_those_of_the_place_that_is_read() -> None:
    @mg.kernel
    def numbered(u, new):
        here = mg.local(u[0] + mg.cast(mg.index(0), "f8"))
        new[0] = here[0] * 1.0

    graph = without_locals(numbered.graph(infer_signature(1, [("f8", (0,)), ("f8", (0,))])))
    new = np.zeros(5)
    evaluate(graph, ((0,), (5,)), [BoundArray(np.ones(5), (0,)), BoundArray(new, (0,))])
    assert new.tolist() == [1, 2, 3, 4, 5]


def test_a_kernel_without_locals_is_itself() -> None:
    graph = smoothed.graph(infer_signature(2, [("f8", (0, 1)), ("f8", (0, 1))]))
    plain = without_locals(graph)
    assert without_locals(plain) is plain
