"""What goes wrong on one rank ends all of them, and says where."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.engine.comm import end_job
from minga.engine.program import Program
from minga.space.cuts import slabs
from mpi_launch import run_ranks

GRID = mg.Grid((12, 8), periodic=True)


@mg.kernel
def star(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    return mg.max(u[0, 0])


def failing(u: mg.Field, on: int) -> Program:
    """Rank `on` fails in its third step, while the others wait for it."""
    program, rounds = Program("step"), mg.Register("rounds", "i8")

    def fail(engine: Any) -> None:
        if engine.comm.rank == on and engine.read(rounds) == 2:
            raise ZeroDivisionError(f"the call of rank {on}")

    program.apply(star, u, u.next)
    program.rotate(u)
    program.call(fail)
    program.let(rounds, rounds + 1)
    return program


@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_an_error_on_a_virtual_rank_is_raised_with_its_rank(ranks: int) -> None:
    u = mg.Field("u", GRID, slots=2)
    program = failing(u, ranks - 1)

    def body(comm: Any) -> None:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            engine.run(program, 10)

    with pytest.raises(ZeroDivisionError, match=f"the call of rank {ranks - 1}") as error:
        mg.run_virtual(ranks, body)
    assert f"on virtual rank {ranks - 1} of {ranks}" in error.value.__notes__


def test_a_value_that_is_not_finite_says_where_and_keeps_the_fields() -> None:
    u = mg.Field("u", GRID, slots=2)
    program = Program("step")
    program.apply(star, u, u.next)
    program.rotate(u)
    values = np.ones(GRID.shape)
    values[5, 5] = np.inf

    def body(comm: Any) -> tuple[mg.Outcome, Any]:
        with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm) as engine:
            engine.set(u, values)
            outcome = engine.run(program, 10)
            found = engine.gather(u)
            engine.set(u, 1.0)
            assert engine.run(program, 10).ok, "the engine goes on with other values"
            return outcome, found

    for ranks in (1, 4):
        results = mg.run_virtual(ranks, body)
        for outcome, _ in results:
            assert (outcome.ok, bool(outcome), outcome.reason, outcome.place) == (
                False,
                False,
                "not finite",
                "star: value",
            )
        np.testing.assert_array_equal(results[0][1], values)


def test_drivers_raise_what_is_not_finite() -> None:
    u = mg.Field("u", GRID, slots=2)
    program = Program("step")
    program.apply(star, u, u.next)
    program.rotate(u)
    model = mg.Model(name="m", grid=GRID, fields=(u,), step=program, initial={"u": np.full(GRID.shape, 1e308)})
    with (
        mg.Engine({GRID: mg.Layout.single(GRID.box, 1)}) as engine,
        pytest.raises(mg.RunError, match="not finite") as error,
    ):
        mg.drive(model, engine, 5)
    assert "star: value" in str(error.value)


@pytest.mark.parametrize(("key", "slot"), [("u", 0), ("u.next", 1)])
def test_initial_values_that_are_not_finite_are_told_as_such(key: str, slot: int) -> None:
    u = mg.Field("u", GRID, slots=2)
    program = Program("step")
    program.apply(star, u, u.next)
    program.rotate(u)
    values = np.zeros(GRID.shape)
    values[2, 3] = np.nan
    model = mg.Model(name="m", grid=GRID, fields=(u,), step=program, initial={key: values})
    says = rf"initial values of u\[{slot}\] are not finite at cell \(2, 3\)"
    with mg.Engine({GRID: mg.Layout.single(GRID.box, 1)}) as engine, pytest.raises(mg.RunError, match=says):
        mg.drive(model, engine, 5)


SCRIPT = """
import sys
import minga as mg
sys.path.insert(0, {tests!r})
from engine.test_failures import GRID, failing
from minga.space.cuts import slabs

comm = mg.MPIComm()
u = mg.Field("u", GRID, slots=2)
try:
    with mg.Engine(slabs(GRID.box, comm.size), grid=GRID, comm=comm, native=sys.argv[1] == "native") as engine:
        engine.run(failing(u, 1), 10_000_000)
except BaseException as error:
    comm.abort(error)
print("never")
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("way", ["native", pytest.param("interpreted", marks=pytest.mark.slow)])
def test_an_error_on_one_mpi_rank_ends_the_job(tmp_path: Path, way: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent.parent)))
    job = run_ranks(3, script, way, timeout=100)
    assert job.started == [(rank, 3) for rank in range(3)], job.report()
    assert job.status not in (0, None), job.report()
    assert "rank 1 of 3 failed" in job.err[1], job.report()
    assert "ZeroDivisionError: the call of rank 1" in job.err[1]
    assert "in fail" in job.err[1]
    assert not any("never" in out for out in job.out)


def test_the_rank_that_ends_a_job_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Abort of MPICH comes back where ranks sit on several hosts."""
    monkeypatch.setattr(os, "_exit", lambda status: sys.exit(status))
    statuses: list[int] = []
    with pytest.raises(SystemExit) as ended:
        end_job(SimpleNamespace(Abort=statuses.append), 7)
    assert (statuses, ended.value.code) == ([7], 7)
