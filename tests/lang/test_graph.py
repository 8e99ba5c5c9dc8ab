"""Digests of graphs: equal for equal meaning, in every process, and never equal for kernels of different code."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import minga as mg
from minga.lang.graph import KernelGraph, dump
from minga.lang.kernel import FieldType, Kernel, ScalarType, Signature

ZERO = [-0.0, 0.0]


def graph_of(function: Callable[..., None], dtype: str = "f8", scalars: tuple[str, ...] = ()) -> KernelGraph:
    fields = (FieldType(dtype, (0,)), FieldType(dtype, (0,)))
    return Kernel(function).graph(Signature(1, fields, tuple((name, ScalarType("f8", weak=False)) for name in scalars)))


def average(u: Any, new: Any) -> None:
    new[0] = 0.5 * (u[-1] + u[1])


def renamed(field: Any, result: Any) -> None:
    result[0] = 0.5 * (field[-1] + field[1])


def swapped(u: Any, new: Any) -> None:
    new[0] = 0.5 * (u[1] + u[-1])


def wider(u: Any, new: Any) -> None:
    new[0] = 0.5 * (u[-1] + u[2])


def shared(u: Any, new: Any) -> None:
    new[0] = 0.5 * (u[-1] + u[-1])


def other_constant(u: Any, new: Any) -> None:
    new[0] = 0.1 * (u[-1] + u[1])


def table_of(values: list[float]) -> Callable[..., None]:
    def looked_up(u: Any, new: Any) -> None:
        new[0] = mg.lookup(values, mg.cast(u[0], "u1"))

    return looked_up


def replaced(zero: float) -> Callable[..., None]:
    def replacing(u: Any, new: Any) -> None:
        new[0] = mg.where(u[0] > 0, u[0], zero)

    return replacing


def scaled(u: Any, new: Any, *, a: Any, b: Any) -> None:
    new[0] = a * u[0] - b


def scaled_otherwise(u: Any, new: Any, *, a: Any, b: Any) -> None:
    new[0] = b * u[0] - a


def graphs() -> list[KernelGraph]:
    functions = [average, renamed, swapped, wider, shared, other_constant, *map(replaced, ZERO)]
    found = [graph_of(function) for function in functions]
    found += [graph_of(table_of(values)) for values in ([1.0, 2.0], [1.0, 3.0])]
    found += [graph_of(function, scalars=("a", "b")) for function in (scaled, scaled_otherwise)]
    return [*found, graph_of(scaled, scalars=("b", "a")), graph_of(average, "f4")]


def test_graphs_have_one_code_digest_if_and_only_if_their_text_without_names_is_equal() -> None:
    pairs = list(itertools.combinations(graphs(), 2))
    same = [(one, other) for one, other in pairs if one.code_digest() == other.code_digest()]
    assert same == [(one, other) for one, other in pairs if dump(one, names=False) == dump(other, names=False)]
    named = [("average", "renamed"), ("scaled_otherwise", "scaled")]  # the latter with scalars in the other order
    assert [(one.name, other.name) for one, other in same] == named
    assert len({graph.digest() for graph in graphs()}) == len(graphs())


@pytest.mark.parametrize("seed", ["1", "2"])
def test_code_digests_are_the_same_in_every_process(seed: str) -> None:
    here = [graph.code_digest() for graph in graphs()]
    program = "from tests.lang.test_graph import graphs; print(*(graph.code_digest() for graph in graphs()))"
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    there = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    assert there.stdout.split() == here
