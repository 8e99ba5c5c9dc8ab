"""Widths of vectors on processors that compute the widest ones in halves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import minga as mg
from minga.compile.target import host_target
from minga.compile.vector import usual_lanes
from minga.lang.kernel import Kernel, infer_signature

TARGET = replace(host_target(), lanes=64, halves=True)


def lanes_of(function: Any, target: Any = TARGET) -> int:
    return usual_lanes(Kernel(function).graph(infer_signature(2, [("f8", range(2))] * 2)), target)


def neighbours(u: Any, new: Any) -> None:
    new[0, 0] = u[0, 1] + u[0, -1] + u[1, 0] + u[-1, 0]


def many_neighbours(u: Any, new: Any) -> None:
    new[0, 0] = sum((k + 1.5) * u[k % 20, k // 20] for k in range(400))


def arithmetic(u: Any, new: Any) -> None:
    new[0, 0] = mg.exp(u[0, 0])


def test_kernels_that_mostly_read_neighbours_have_half_vectors() -> None:
    assert lanes_of(neighbours) == 32
    assert lanes_of(many_neighbours) == 32


def test_kernels_with_much_arithmetic_have_the_widest() -> None:
    assert lanes_of(arithmetic) == 64


def test_other_processors_have_the_widest() -> None:
    assert lanes_of(neighbours, replace(TARGET, halves=False)) == 64


def test_no_vector_is_narrower_than_two_numbers() -> None:
    assert lanes_of(neighbours, replace(TARGET, lanes=16)) == 16
