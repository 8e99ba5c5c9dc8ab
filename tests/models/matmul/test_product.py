"""Products are right for every shape, transpose, factor, type, layout and number of ranks, and wrong input is told."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minga as mg
from matmul_hands import close, matrix, plan_for
from minga.engine.comm import Comm, MPIComm
from minga.models.matmul.check import freivalds
from minga.models.matmul.problem import problem_of
from minga.models.matmul.product import Options, product
from minga.models.matmul.teams import team_of

SHAPES = [(1, 1, 1), (7, 5, 3), (33, 17, 64), (5, 130, 40)]


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_all_transposes_and_factors_alone(dtype: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    for left, right, fortran in itertools.product([False, True], repeat=3):
        a, b, c = matrix(m, k, dtype), matrix(k, n, dtype, 1), matrix(m, n, dtype, 2)
        given_a, given_b = (a.T.copy() if left else a), (b.T.copy() if right else b)
        if fortran:
            given_a, given_b = np.asfortranarray(given_a), given_b[::-1][::-1]
        for alpha, beta in ((1.0, 0.0), (-2.0, 0.5), (0.0, 1.0)):
            found = mg.matmul(
                given_a, given_b, alpha=alpha, beta=beta, c=c, transpose_a=left, transpose_b=right
            )  # fmt: skip
            assert found is not None
            assert found.dtype == dtype
            expected = alpha * (a.astype("f8") @ b.astype("f8")) + beta * c.astype("f8")
            assert close(found, (abs(alpha) + 1) * a, b, expected)


@pytest.mark.parametrize("everywhere", [True, False], ids=["seen by all", "on rank 0"])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_matrices_in_any_byte_order(tmp_path: Path, dtype: str, everywhere: bool) -> None:
    a, b, c = (
        matrix(*size, dtype, seed) + 1j * matrix(*size, dtype, seed + 9)
        for seed, size in enumerate(((50, 30), (41, 30), (50, 41)))
    )
    expected = (1 + 2j) * (a.astype("c16") @ b.T.astype("c16")) - 1j * c
    np.save(tmp_path / "a.npy", a.T.astype(f">{dtype}"))
    np.save(tmp_path / "b.npy", b.astype(f"<{dtype}"))
    plan = plan_for(50, 41, 30, [4e9, 2e9, 1e9, 1e9], anywhere=everywhere, layout="rows", width=8)

    def body(comm: Comm) -> Any:
        if everywhere or comm.rank == 0:
            return mg.matmul(
                tmp_path / "a.npy", tmp_path / "b.npy", alpha=1 + 2j, beta=-1j, c=c.astype(f">{dtype}"),
                transpose_a=True, transpose_b=True, plan=plan, comm=comm,
            )  # fmt: skip
        return mg.matmul(None, None, plan=plan, comm=comm)

    found = mg.run_virtual(4, body)[0]
    assert found.dtype == np.dtype(dtype)
    assert found.dtype.isnative
    bound = 8 * 32 * np.finfo(dtype).eps * (3 * np.abs(a) @ np.abs(b.T) + np.abs(c))
    assert (np.abs(found - expected) <= bound).all()
    problem = problem_of(a.T.astype(f">{dtype}"), b, alpha=1 + 2j, beta=-1j, c=c, transpose_a=True, transpose_b=True)
    right = freivalds(problem, found)
    assert right.largest < 0.5
    assert right.limit < 0.1
    wrong = found.copy()
    wrong[20, 20] += 2j * right.limit
    with pytest.raises(mg.RunError, match="row 20 of C is off"):
        freivalds(problem, wrong)


@pytest.mark.parametrize("everywhere", [True, False], ids=["seen by all", "on rank 0"])
@pytest.mark.parametrize("layout", ["rows", "equal", "alone"])
def test_ranks_make_the_same(layout: Any, everywhere: bool) -> None:
    a, b, c = matrix(50, 30), matrix(41, 30, seed=1), matrix(50, 41, seed=2)
    expected = 1.5 * a @ b.T - c
    given_a = a.T.copy() if layout == "equal" else a
    plan = plan_for(50, 41, 30, [4e9, 2e9, 1e9, 1e9], anywhere=everywhere, layout=layout, width=8)

    def body(comm: Comm) -> Any:
        if everywhere or comm.rank == 0:
            return mg.matmul(
                given_a, b, alpha=1.5, beta=-1.0, c=c, transpose_a=given_a is not a, transpose_b=True, plan=plan,
                comm=comm,
            )  # fmt: skip
        return mg.matmul(None, None, plan=plan, comm=comm)

    results = mg.run_virtual(4, body)
    assert results[1:] == [None] * 3
    assert close(results[0], 2 * a, b.T, expected)


@pytest.mark.parametrize("everywhere", [True, False], ids=["seen by all", "on rank 0"])
@pytest.mark.parametrize("route", ["pairwise", "chain"])
def test_files_and_caps_of_memory(tmp_path: Path, everywhere: bool, route: str) -> None:
    """Operands are mapped, rows are taken in passes, and panels are narrow: nothing is ever held whole."""
    a, b = matrix(60, 50), matrix(50, 70, seed=1)
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    np.save(files[0], a)
    np.save(files[1], np.asfortranarray(b))
    least = 8 * 50 * 12
    plan = plan_for(60, 70, 50, [2e9, 1e9, 1e9], anywhere=everywhere, layout="rows", memory=least)
    assert plan.passes > 1
    assert plan.width < 70

    def body(comm: Comm) -> Any:
        given = everywhere or comm.rank == 0
        found, account = product(
            lambda: problem_of(*files), tmp_path / "c.npy", comm, Options(route=route), plan=plan, given=given
        )
        return None if account is None else (np.array(found), account.stored, len(account.ledgers))

    found, stored, ledgers = mg.run_virtual(3, body)[0]
    assert (stored, ledgers) == (everywhere, 3)
    assert close(found, a, b, a @ b)
    assert np.array_equal(np.load(tmp_path / "c.npy"), found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.npy", "c.npy"]


def test_memory_is_kept_to_on_one_rank(tmp_path: Path) -> None:
    import tracemalloc

    a, b = matrix(400, 300), matrix(300, 350, seed=1)
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for file, array in zip(files, (a, b)):
        np.save(file, array)
    cap = 300_000  # of 960, 840 and 1120 kB
    tracemalloc.start()
    found = mg.matmul(*files, out=tmp_path / "c.npy", memory=cap, check=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    assert close(np.array(found), a, b, a @ b)
    assert peak < cap + 100_000


def test_nothing_to_multiply() -> None:
    c = matrix(3, 4)
    assert np.array_equal(mg.matmul(np.empty((3, 0)), np.empty((0, 4)), beta=2.0, c=c), 2 * c)
    assert mg.matmul(np.empty((0, 2)), np.empty((2, 4))).shape == (0, 4)
    assert not mg.matmul(np.empty((3, 0)), np.empty((0, 4))).any()


def test_out_may_be_c() -> None:
    a, b, c = matrix(6, 5), matrix(5, 4), matrix(6, 4, seed=3)
    expected = a @ b + c
    assert mg.matmul(a, b, beta=1.0, c=c, out=c) is c
    assert close(c, a, b, expected)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a": np.ones((3, 4), "i8")}, "f4, f8, c8 or c16"),
        ({"a": np.ones((3, 4), "f2")}, "f4, f8, c8 or c16"),
        ({"a": np.ones((3, 4), "c16")}, "a is c16 and b is f8"),
        ({"out": np.empty((3, 5), ">f8")}, "out is 3x5 f8 in the other byte order"),
        ({"alpha": 1j}, "alpha is 1j, but the matrices are real"),
        ({"a": np.ones((3, 4), "f4")}, "a is f4 and b is f8"),
        ({"a": np.ones(4)}, "1 axes"),
        ({"a": np.ones((4, 3))}, "transpose a"),
        ({"b": np.ones((5, 4))}, "transpose b"),
        ({"b": np.ones((7, 7))}, "cannot be multiplied"),
        ({"beta": 1.0}, "there is no c"),
        ({"beta": 1.0, "c": np.ones((2, 2))}, "shape 2 x 2, but the product has shape 3 x 5"),
        ({"beta": 1.0, "c": np.ones((3, 5), "f4")}, "c is f4"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"out": np.empty((3, 4))}, "out is 3x4"),
        ({"out": np.empty((3, 5), "f4")}, "out is 3x5 f4"),
        ({"a": None}, "there is no matrix a"),
    ],
)
def test_wrong_input_is_told(change: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"a": np.ones((3, 4)), "b": np.ones((4, 5)), **change}
    with pytest.raises(mg.CaseError, match=said):
        mg.matmul(**given)


def test_out_in_an_operand_is_refused() -> None:
    a = matrix(4, 4)
    with pytest.raises(mg.CaseError, match="in the memory of a"):
        mg.matmul(a, a.copy(), out=a)


def test_a_map_of_an_operands_file_is_refused(tmp_path: Path) -> None:
    """Two maps of one file are two pieces of memory with the same bytes."""
    a = np.arange(36.0).reshape(6, 6)
    file, other, link = tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "link.npy"
    np.save(file, a)
    np.save(other, a)
    link.symlink_to(file)
    for name in (file, link):
        out = np.load(name, mmap_mode="r+")
        for target in (out, out[:], out.T):
            for left, right in ((file, other), (other, file), (np.load(file, mmap_mode="r"), a)):
                with pytest.raises(mg.CaseError, match="out lies in the memory of"):
                    mg.matmul(left, right, out=target)
    assert (np.load(file) == a).all()
    whole = np.lib.format.open_memmap(tmp_path / "whole.npy", mode="w+", dtype="f8", shape=(12, 6))
    whole[:6] = a
    again = np.load(tmp_path / "whole.npy", mmap_mode="r+")
    mg.matmul(again[:6], a, out=whole[6:])  # other bytes of the file
    assert (whole[6:] == a @ a).all()
    c = np.load(other, mmap_mode="r+")
    mg.matmul(a, a, beta=1.0, c=other, out=c)
    assert (c == a @ a + a).all()


def test_a_file_is_replaced_only_where_that_is_asked_for(tmp_path: Path) -> None:
    a = np.arange(16.0).reshape(4, 4)
    file, out = tmp_path / "a.npy", tmp_path / "c.npy"
    np.save(file, a)
    out.write_text("precious")
    with pytest.raises(mg.CaseError, match="exists already"):
        mg.matmul(file, a, out=out)
    assert out.read_text() == "precious"
    for left, right in ((file, a), (a, np.load(file, mmap_mode="r"))):
        with pytest.raises(mg.CaseError, match="out is the file of"):
            mg.matmul(left, right, out=file, overwrite=True)
    assert (np.load(file) == a).all()
    mg.matmul(file, a, out=out, overwrite=True)
    assert (np.load(out) == a @ a).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "c.npy"]


def test_the_same_error_on_all_ranks() -> None:
    def body(comm: Comm) -> str:
        with pytest.raises(mg.CaseError) as error:
            mg.matmul(np.ones((2, 3)), np.ones((4, 2)), comm=comm)
        return str(error.value)

    assert len(set(mg.run_virtual(2, body))) == 1


def test_rectangles(tmp_path: Path) -> None:
    a, b = matrix(50, 30), matrix(30, 41, seed=1)
    plan = plan_for(50, 41, 30, [4e9, 2e9, 1e9, 1e9], layout="columns", width=8)
    assert len(plan.columns) > 1

    def body(comm: Comm) -> Any:
        return mg.matmul(a, b, out=tmp_path / "c.npy", plan=plan, comm=comm)

    mg.run_virtual(4, body)
    assert close(np.load(tmp_path / "c.npy"), a, b, a @ b)
    with pytest.raises(mg.CaseError, match="cannot make this product"):
        mg.run_virtual(4, lambda comm: mg.matmul(a, b, plan=plan, comm=comm))  # into memory of rank 0
    with pytest.raises(mg.CaseError, match="every rank can read"):
        plan_for(50, 41, 30, [1e9] * 4, anywhere=False, layout="columns")


def test_a_plan_for_another_product_is_refused() -> None:
    with pytest.raises(mg.CaseError, match="not for 3 rows and 5 columns"):
        mg.matmul(np.ones((3, 4)), np.ones((4, 5)), plan=plan_for(4, 5, 4, [1e9]))


def test_only_rank_0_need_say_where_the_result_goes(tmp_path: Path) -> None:
    a, b = matrix(20, 30), matrix(30, 10, seed=1)
    plan = plan_for(20, 10, 30, [1e9, 1e9], layout="rows", width=4)

    def body(comm: Comm) -> Any:
        return mg.matmul(a, b, out=tmp_path / "c.npy" if comm.rank == 0 else None, plan=plan, comm=comm)

    assert mg.run_virtual(2, body)[1] is None
    assert close(np.load(tmp_path / "c.npy"), a, b, a @ b)


def test_errors_still_end_the_job_after_a_part_of_it_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A team has a communicator of its own, which is gone when it is done: what ends the job must not use it."""

    class Ranks:
        rank, size = 0, 2

        def itself(self, *_: Any) -> Any:
            return self

        Dup = Split = Split_type = itself

        def bcast(self, value: Any) -> Any:
            return value

        def Free(self) -> None:
            return None

    mpi = SimpleNamespace(COMM_TYPE_SHARED=0, UNDEFINED=-1, Is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=mpi))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    comm = MPIComm(Ranks())
    ends = sys.excepthook
    team = team_of(comm, [[1, 0]])
    assert isinstance(team, MPIComm)
    assert team is not comm
    assert sys.excepthook == ends
