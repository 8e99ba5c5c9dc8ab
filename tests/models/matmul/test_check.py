"""Freivalds' check finds what is wrong, and takes rounding for what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minga as mg
from matmul_hands import matrix
from minga.engine.comm import Comm
from minga.models.matmul.check import freivalds
from minga.models.matmul.problem import problem_of


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("transposed", [False, True])
def test_one_wrong_element_is_found(dtype: str, transposed: bool) -> None:
    a, b = matrix(60, 80, dtype), matrix(80, 70, dtype, 1)
    problem = problem_of(a.T.copy() if transposed else a, b, transpose_a=transposed)
    c = a @ b
    check = freivalds(problem, c, seed=1)
    assert check.vectors == 4
    assert 0 < check.largest < 0.3
    for row, column in ((0, 0), (59, 69), (31, 7)):
        wrong = c.copy()
        wrong[row, column] += 1.01 * check.limit
        with pytest.raises(mg.RunError, match=f"row {row} of C"):
            freivalds(problem, wrong)
    wrong = c.copy()
    wrong[3, 4] += 0.1 * check.limit * check.largest
    freivalds(problem, wrong)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1.0])
def test_errors_that_all_point_one_way_are_rounding(value: float) -> None:
    a = np.full((40, 700), value, "f4")
    naive = np.zeros((40, 40), "f4")
    for k in range(700):  # one after the other, as the slowest BLAS does
        naive += a[:, k : k + 1] * a.T[k : k + 1]
    assert freivalds(problem_of(a, a, transpose_b=True), naive).vectors


def test_factors_and_c_take_part() -> None:
    a, b, c0 = matrix(30, 20), matrix(20, 25, seed=1), matrix(30, 25, seed=2)
    problem = problem_of(a, b, alpha=-3.0, beta=0.5, c=c0)
    freivalds(problem, -3 * a @ b + 0.5 * c0)
    with pytest.raises(mg.RunError):
        freivalds(problem, -3 * a @ b)


def test_values_that_are_not_finite() -> None:
    a, b = matrix(10, 10), matrix(10, 10, seed=1)
    wrong = a @ b
    wrong[4, 4] = np.nan
    with pytest.raises(mg.RunError, match=r"row 4 .*not finite"):
        freivalds(problem_of(a, b), wrong)
    a[2, 2] = np.inf
    with np.errstate(all="ignore"):  # some BLAS warn of infinite operands, some do not
        product = a @ b
    check = freivalds(problem_of(a, b), product)
    assert check.as_dict() == {"largest": 0.0, "limit": None, "vectors": 0}


def test_infinite_operands_are_multiplied_without_warnings() -> None:
    a, b = matrix(10, 10), matrix(10, 10, seed=1)
    a[2, 2] = np.inf
    product = mg.matmul(a, b)
    assert not np.isfinite(product[2]).any()
    assert np.isfinite(np.delete(np.asarray(product), 2, axis=0)).all()


def test_ranks_check_a_part_each() -> None:
    a, b = matrix(31, 20), matrix(20, 23, seed=1)
    good = a @ b
    bad = good.copy()
    bad[29, 3] += 1

    def body(comm: Comm) -> Any:
        check = freivalds(problem_of(a, b), good, comm)
        with pytest.raises(mg.RunError, match="row 29 of C"):
            freivalds(problem_of(a, b), bad, comm)
        return check

    assert len(set(mg.run_virtual(3, body))) == 1


def test_a_wrong_product_is_no_result(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rank with a broken BLAS computes is not written; nothing of it is kept either."""
    right = np.matmul

    def broken(a: Any, b: Any, out: Any) -> None:
        right(a, b, out=out)
        out[0, 0] += 1

    monkeypatch.setattr(np, "matmul", broken)
    with pytest.raises(mg.RunError, match="row 0 of C"):
        mg.matmul(matrix(20, 20), matrix(20, 20), out=tmp_path / "c.npy")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("dtype", "left", "right"), [("f8", 1e-200, 1.0), ("f8", 1e-170, 1e-150), ("f4", 1e-25, 1e-25)]
)
def test_small_numbers_are_not_wrong(dtype: str, left: float, right: float) -> None:
    """Squares, products or both are below the least normal number; what is computed is as good as can be."""
    a, b = matrix(30, 20), matrix(20, 25, seed=1)
    a[::3] = np.where(np.arange(20) == 4, left, 0)
    a[1::3] *= left
    a, b = a.astype(dtype), (b * right).astype(dtype)
    good = a @ b
    assert freivalds(problem_of(a, b), good).vectors
    good[2, 2] *= 1.5
    with pytest.raises(mg.RunError, match="row 2 of C"):
        freivalds(problem_of(a, b), good)


def test_large_numbers_are_checked_too() -> None:
    a, b = matrix(30, 20) * 1e170, matrix(20, 25, seed=1)
    assert freivalds(problem_of(a, b), a @ b).vectors
    wrong = a @ b
    wrong[7, 7] = 0
    with pytest.raises(mg.RunError, match="row 7 of C"):
        freivalds(problem_of(a, b), wrong)
