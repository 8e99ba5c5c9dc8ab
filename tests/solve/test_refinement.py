"""Solutions are the exact ones, rounded, whatever the factors make of them; beside elimination with fractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from minga.solve.refinement import Term, refined

Floats = np.ndarray
EVERY = (slice(None), slice(None))


def terms_of(matrix: Floats) -> list[Term]:
    """A dense matrix of unknowns 0, 1, ... of one cell each."""
    n = len(matrix)
    return [Term(i, j, EVERY, EVERY, matrix[i, j].reshape(1, 1)) for i in range(n) for j in range(n) if matrix[i, j]]


def solver(matrix: Floats, noise: float, seed: int) -> Callable[[Floats], Floats]:
    """What solves with factors that are wrong by a relative error in every entry."""
    wrong = matrix * (1.0 + noise * np.random.default_rng(seed).uniform(-1, 1, matrix.shape))
    return lambda b: np.linalg.solve(wrong, b.ravel()).reshape(b.shape)


def exactly(matrix: Floats, b: Floats) -> list[Fraction]:
    rows = [[Fraction(float(v)) for v in (*row, value)] for row, value in zip(matrix, b, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]


def found(matrix: Floats, b: Floats, noise: float, seed: int = 0) -> Floats:
    return refined(terms_of(matrix), b.reshape(-1, 1, 1), solver(matrix, noise, seed)).ravel()


def graded(n: int, decades: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(n)
    matrix = rng.uniform(-1, 1, (n, n)) + 3.0 * np.eye(n)
    return matrix * 10.0 ** rng.integers(-decades, decades + 1, n), rng.uniform(-1, 1, n)


@pytest.mark.parametrize("decades", [0, 12])
def test_it_is_the_exact_solution_rounded(decades: int) -> None:
    matrix, b = graded(12, decades)
    expected = [float(value) for value in exactly(matrix, b)]
    for noise in (1e-16, 1e-9, 1e-3):
        assert found(matrix, b, noise).tolist() == expected


def test_it_is_exact_where_twice_the_precision_is_not_enough() -> None:
    """Hilbert's matrix of 9 rows, whose condition number is 5e11."""
    n = 9
    matrix = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1.0)
    expected = [float(value) for value in exactly(matrix, np.ones(n))]
    for seed in range(4):
        assert found(matrix, np.ones(n), 1e-15, seed).tolist() == expected


def test_numbers_that_cancel_are_zero() -> None:
    """The middle of an antisymmetric solution, of which round-off leaves other noise for all factors."""
    n = 9
    matrix = 2.1 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    b = np.linspace(-1.0, 1.0, n)
    b = 0.3 * (b - b[::-1])
    for seed in range(4):
        x = found(matrix, b, 1e-10, seed)
        assert x[n // 2] == 0.0
        assert not np.signbit(x[n // 2])
        assert x.tobytes() == found(matrix, b, 1e-16).tobytes()


@pytest.mark.parametrize("loose", [1, 3])
def test_parts_that_hardly_anything_holds_take_few_corrections(loose: int) -> None:
    """Chains with one weak link each to a fixed end, which factors know to a few tens of percent, or not at all."""
    length, weak = 6, 1e-15
    n = loose * length
    matrix = np.zeros((n, n))
    for first in range(0, n, length):
        for k in range(first, first + length - 1):
            matrix[k : k + 2, k : k + 2] += np.array([[1.0, -1.0], [-1.0, 1.0]])
        matrix[first, first] += 2.0**-49 * (1 + first)
    b = np.linspace(1.0, 2.0, n)
    wrong = matrix.copy()
    wrong[::length, ::length] += np.diag(weak * (0.3 + np.arange(loose)))
    steps = []

    def solve(right: Floats) -> Floats:
        steps.append(1)
        return np.linalg.solve(wrong, right.ravel()).reshape(right.shape)

    x = refined(terms_of(matrix), b.reshape(-1, 1, 1), solve).ravel()
    assert x.tolist() == [float(value) for value in exactly(matrix, b)]
    assert len(steps) <= 12


def test_factors_that_are_too_wrong_leave_what_they_find() -> None:
    matrix, b = graded(6, 0)
    given = np.linalg.solve(matrix, b).reshape(-1, 1, 1)
    nothing = [given, *[np.ones_like(given)] * 50]
    assert refined(terms_of(matrix), b.reshape(-1, 1, 1), lambda _: nothing.pop(0)).tobytes() == given.tobytes()


def test_what_has_no_solution_is_not_finite() -> None:
    matrix, b = graded(4, 0)
    assert np.isnan(refined(terms_of(matrix), b.reshape(-1, 1, 1), lambda right: np.full_like(right, np.nan))).all()
