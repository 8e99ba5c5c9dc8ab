"""Functions that all ranks have to call together: ranks that differ are told so, and never wait in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minga as mg
from minga.errors import ProgramError
from minga.launch.jobs import running_job
from minga.space.cuts import slabs
from mpi_launch import mpiexec

GRID = mg.Grid((6, 8), periodic=True)
START = np.random.default_rng(2).random(GRID.shape)


@mg.kernel
def average(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


def steps(u: mg.Field) -> mg.Program:
    program = mg.Program("step")
    program.apply(average, u, u.next)
    program.rotate(u)
    return program


def test_ranks_that_change_different_fields_are_refused() -> None:
    u, v = (mg.Field(name, GRID, slots=2) for name in "uv")
    programs = steps(u), steps(v)

    def body(comm: mg.Comm) -> str:
        with mg.Engine(slabs(GRID.box, 2), grid=GRID, comm=comm) as engine:
            for program in programs:
                engine.run(program)
            if comm.rank == 0:
                engine.set(u, 1.0)
            else:
                engine.touch(v)
            both = mg.Program("both")
            both.apply(average, u, v.next)
            both.apply(average, v, u.next)
            with pytest.raises(ProgramError, match="on all ranks together") as caught:
                engine.run(both)
            return str(caught.value)

    first, second = mg.run_virtual(2, body)
    assert first == second


def test_what_one_rank_does_before_the_first_run_does_no_harm() -> None:
    """No halo is valid then on any rank."""
    u = mg.Field("u", GRID, slots=2)

    def body(comm: mg.Comm) -> Any:
        with mg.Engine(slabs(GRID.box, 2), grid=GRID, comm=comm) as engine:
            for box, view in engine.blocks(u, write=True):
                view[...] = START[box.slices((0, 0))]
            if comm.rank == 0:
                engine.touch(u)
            engine.run(steps(u))
            return engine.gather(u)

    alone = mg.run_virtual(1, lambda comm: _alone(u))[0]
    np.testing.assert_array_equal(mg.run_virtual(2, body)[0], alone)


def _alone(u: mg.Field) -> Any:
    with mg.Engine(mg.Layout.single(GRID.box, 1), grid=GRID) as engine:
        engine.set(u, START)
        engine.run(steps(u))
        return engine.gather(u)


LONELY = """
import minga as mg
from minga.engine import engine as engines
from minga.space.cuts import slabs
engines._PATIENCE = 0.5
grid = mg.Grid((6, 8), periodic=True)
u = mg.Field("u", grid, slots=2)

@mg.kernel
def average(u, new):
    new[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])

step = mg.Program("step")
step.apply(average, u, u.next)
step.rotate(u)
comm = mg.MPIComm()
with mg.Engine(slabs(grid.box, 2), grid=grid, comm=comm) as engine:
    engine.set(u, 1.0)
    engine.run(step)
    engine.run(step)
    if comm.rank == 0:
        engine.set(u, 2.0)
    engine.run(step)
    print("done", flush=True)
"""


@pytest.mark.mpi
def test_a_rank_that_waits_for_others_in_vain_says_for_what(tmp_path: Path) -> None:
    """The other one is in native code meanwhile, and cannot be told anything."""
    script = tmp_path / "lonely.py"
    script.write_text(LONELY)
    words = [str(mpiexec()), "-launcher", "fork", "-n", "2", sys.executable, str(script)]
    with running_job(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        assert job.stdout is not None
        said = []
        for line in job.stdout:
            said.append(line)
            if "has waited" in line or "done" in line:
                break
        line = "".join(said)
    assert "minga: rank 0 of 2 has waited 0.5 s for the others to run Program 'step'" in line
    assert "since the last run: set(u[0]). If they have not done the same" in line
