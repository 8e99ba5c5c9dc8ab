"""Boundary conditions in words."""

from __future__ import annotations

from typing import Any

import pytest

from minga.case.boundary import parse_boundary
from minga.errors import CaseError

P = (None, None)


def names(value: Any, ndim: int = 2) -> list[tuple[str | None, str | None]]:
    """The conditions of both sides of each axis by name, None where it is periodic."""
    sides = parse_boundary(value, ndim).sides
    return [P if pair is None else (repr(pair[0]), repr(pair[1])) for pair in sides]


def both(name: str) -> tuple[str, str]:
    return name, name


@pytest.mark.parametrize(("value", "expected"), [
    ("periodic", [P, P]),
    ("fixed", [both("fixed(0)"), both("fixed(0)")]),
    ("reflect", [both("reflect('edge')")] * 2),
    ("zero-gradient", [both("zero_gradient()")] * 2),
    (["fixed", 1], [both("fixed(1)")] * 2),
    (["reflect", "cell"], [both("reflect('cell')")] * 2),
    (["periodic", "fixed"], [P, both("fixed(0)")]),
    (["fixed", "reflect"], [both("fixed(0)"), both("reflect('edge')")]),
    ([["fixed", 0.5], "periodic"], [both("fixed(0.5)"), P]),
    ([["fixed", "reflect"], "periodic"], [("fixed(0)", "reflect('edge')"), P]),
    ([[["fixed", 1], "zero-gradient"], ["reflect", "edge"]],
     [("fixed(1)", "zero_gradient()"), both("reflect('edge')")]),
    ([[["fixed", 1], ["fixed", 2]], ["fixed", 3]], [("fixed(1)", "fixed(2)"), both("fixed(3)")]),
])  # fmt: skip
def test_words(value: Any, expected: list[tuple[str | None, str | None]]) -> None:
    assert names(value) == expected


def test_one_axis_and_three() -> None:
    assert names(["fixed", 2], 1) == [both("fixed(2)")]
    assert names([["fixed", "reflect"]], 1) == [("fixed(0)", "reflect('edge')")]
    assert names(["periodic", "fixed", ["reflect", "cell"]], 3) == [P, both("fixed(0)"), both("reflect('cell')")]


def test_the_grid_and_the_fixed_values() -> None:
    ends = parse_boundary([[["fixed", 1], "reflect"], "periodic"], 2)
    assert ends.grid((4, 6)).periodic == (False, True)
    assert list(ends.conditions) == [0]
    assert ends.values == (1,)
    assert parse_boundary("fixed", 2).values == (0, 0)


def test_shifted_tori() -> None:
    assert parse_boundary([{"shift": 5}, "periodic"], 2).grid((4, 6)).shift == ((0, 5), (0, 0))
    assert parse_boundary(["periodic", {"shift": -1}], 2).grid((4, 6)).shift == ((0, 0), (-1, 0))
    grid = parse_boundary([{"shift": {"x": 2}}, "periodic", "periodic"], 3).grid((4, 6, 8))
    assert grid.shift == ((0, 0, 2), (0, 0, 0), (0, 0, 0))


@pytest.mark.parametrize(("value", "words"), [
    ("perodic", "did you mean 'periodic'"), ("zero_gradient", "did you mean 'zero-gradient'"), (3, "found 3"),
    (["periodic"], "1 entries for a grid of 2 axes"), (["fixed"] * 3, "3 entries"),
    ([["periodic", "fixed"], "fixed"], "at both sides or at neither"), (["fixed", float("nan")], "nan"),
    ([["periodic", 1], "fixed"], "found"), (["reflect", 3], "found"), (["fixed", "cell"], "found"),
    ([{"shfit": 5}, "periodic"], "did you mean 'shift'"), ([{"shift": 1.5}, "periodic"], "shift = 1.5"),
    ([{"shift": 5}, "fixed"], "not periodic"), ([{"shift": {"q": 1}}, "periodic"], "no axis 'q'"),
    ([3, "fixed"], "found 3"), ([["fixed", "fixed", "fixed"], "fixed"], "found"), (None, "found None"),
])  # fmt: skip
def test_mistakes_name_the_key(value: Any, words: str) -> None:
    with pytest.raises(CaseError, match="grid") as caught:
        parse_boundary(value, 2).grid((4, 6))
    assert words in str(caught.value)
