"""Repeated parts of large kernels as loops: the same bits, and code whose size does not grow with the repetitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minga.compile import find_repeats
from minga.compile.llvm import compile_kernel, print_llvm
from minga.lang import functions as mg
from minga.lang.graph import KernelGraph, topological
from minga.lang.kernel import Kernel, infer_signature
from thinned import thinned

from .helpers import assert_equal_bits, make_case, traced


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops wherever anything is repeated, however little it is worth; nothing comes from a cache."""
    monkeypatch.setattr(find_repeats, "LEAST_NODES", 4)
    monkeypatch.setattr(find_repeats, "LEAST_TURNS", 2)
    monkeypatch.setattr(find_repeats, "LEAST_SHARE", 0.0)
    monkeypatch.setattr(find_repeats, "LEAST_OPERATIONS", 1)
    monkeypatch.setenv("MINGA_CACHE", "off")


def weighted(radius: int, seed: int = 1) -> Callable[..., None]:
    """A sum over a square of neighbours, each with a weight of its own."""
    weights = np.random.default_rng(seed).random((2 * radius + 1,) * 2)

    def convolved(u: Any, new: Any) -> None:
        span = range(-radius, radius + 1)
        new[0, 0] = sum(float(weights[a + radius, b + radius]) * u[a, b] for a in span for b in span)

    return convolved


def layers(inputs: int, hidden: int) -> Callable[..., None]:
    """A neural network with one layer between the neighbours of a cell and its next value."""
    random = np.random.default_rng(2)
    first, second, bias = random.random((hidden, inputs)) - 0.5, random.random(hidden) - 0.5, random.random(hidden)

    def network(u: Any, new: Any) -> None:
        seen = [u[0, k - inputs // 2] for k in range(inputs)]
        kept = []
        for row, start in zip(first.tolist(), bias.tolist(), strict=True):
            total: Any = start
            for weight, value in zip(row, seen, strict=True):
                total = total + weight * value
            kept.append(mg.max(total, 0.0))
        new[0, 0] = sum(weight * value for weight, value in zip(second.tolist(), kept, strict=True))

    return network


def counted(u: Any, new: Any) -> None:
    """Neighbours above and below a bound, as whole numbers, which wrap around."""
    near = [u[a, b] for a in range(-2, 3) for b in range(-3, 4)]
    new[0, 0] = sum(mg.where(value > 3, value * 7, value - 1) for value in near)


def alternating(u: Any, new: Any) -> None:
    """Differences, in which the result so far is the second argument, and values that are used twice."""
    found: Any = u[0, 0]
    for k in range(1, 6):
        step = u[0, k] * u[k, 0] + 0.5
        found = step - found * step
    new[0, 0] = found


def graph_of(function: Callable[..., None], dtype: str = "f8") -> KernelGraph:
    return Kernel(function).graph(infer_signature(2, [(dtype, range(2))] * 2))


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", thinned([((3, 16),), ((2, 37),), ((5, 3),)], ((2, 37),)))
@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (weighted(2), "f8"),
        (weighted(1), "f4"),
        (layers(5, 6), "f8"),
        (counted, "u1"),
        (counted, "i4"),
        (alternating, "f8"),
    ],
    ids=["weights", "f4", "network", "bytes", "numbers", "alternating"],
)
@pytest.mark.usefixtures("eager")
def test_loops_have_the_bits_of_the_operations(
    function: Callable[..., None], dtype: str, shape: tuple[int, int]
) -> None:
    graph = traced(Kernel(function), 2, [dtype, dtype])
    assert find_repeats.repeated(graph, [store.value for store in graph.stores]) is not None
    assert_equal_bits(make_case(graph, shape))


def test_small_kernels_stay_as_they_are() -> None:
    graph = graph_of(weighted(3))
    assert find_repeats.repeated(graph, [store.value for store in graph.stores]) is None


def test_a_sum_over_thousands_of_neighbours_is_two_loops_at_most() -> None:
    graph = graph_of(weighted(20))
    (root,) = find_repeats.repeated(graph, [store.value for store in graph.stores]) or []
    assert sum(1 for _ in graph.nodes()) > 5000
    assert sum(1 for _ in topological([root])) < 10


@pytest.mark.slow
@pytest.mark.parametrize(("small", "large"), [(weighted(12), weighted(30)), (layers(15, 60), layers(15, 240))])
def test_code_does_not_grow_with_the_repetitions(small: Callable[..., None], large: Callable[..., None]) -> None:
    few, many = (len(print_llvm(graph_of(function)).splitlines()) for function in (small, large))
    assert many < 1.2 * few


@pytest.mark.slow
def test_a_large_network_is_compiled_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGA_CACHE", "off")
    graph = graph_of(layers(31, 128))
    assert compile_kernel(graph).address
    assert_equal_bits(make_case(traced(Kernel(layers(31, 128)), 2, ["f8", "f8"]), (3, 50)))
