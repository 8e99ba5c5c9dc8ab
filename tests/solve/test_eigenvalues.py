"""Eigenvalues of small matrices, beside LAPACK's."""

from __future__ import annotations

import numpy as np
import pytest

from minga.solve.eigenvalues import eigenvalues

RNG = np.random.default_rng(4)
MATRICES = {
    "number": np.array([[3.0]]),
    "turn": np.array([[0.0, -2.0], [2.0, 0.0]]),
    "zero": np.zeros((3, 3)),
    "cycle": np.roll(np.eye(7), 1, axis=0),
    "defective": np.eye(4) + np.eye(4, k=1),
    "triangular": np.triu(RNG.normal(size=(9, 9))),
    "any": RNG.normal(size=(14, 14)),
    "differences": np.eye(32, k=1) - 2.0 * np.eye(32) + np.eye(32, k=-1),
    "whole": RNG.integers(-3, 4, (11, 11)).astype(float),
}


@pytest.mark.parametrize("name", MATRICES)
def test_they_are_those_of_lapack(name: str) -> None:
    matrix = MATRICES[name]
    found = np.array([complex(*each) for each in eigenvalues(matrix)])
    expected = np.linalg.eigvals(matrix)
    assert len(found) == len(matrix)
    distance = np.abs(found[:, None] - expected)
    room = 1e-12 * max(1.0, np.abs(matrix).sum())
    assert distance.min(axis=0).max() < room
    assert distance.min(axis=1).max() < room
    assert found.sum() == pytest.approx(np.trace(matrix), abs=room * len(matrix))


def test_the_matrix_is_left_as_it_is() -> None:
    matrix = MATRICES["any"].copy()
    eigenvalues(matrix)
    np.testing.assert_array_equal(matrix, MATRICES["any"])
