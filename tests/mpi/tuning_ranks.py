"""Run on MPI ranks by test_tuning_mpi.py: ranks that try other ways at other times have the bits of one process."""

from __future__ import annotations

import numpy as np

import minga as mg
from minga.compile import choices
from minga.engine import time_blocks, tuner
from minga.engine.comm import Comm, MPIComm, SerialComm, started_mpi
from minga.engine.program import Program
from minga.engine.tuner import Tuner
from minga.space.cuts import slabs

USED: set[int] = set()


@mg.kernel
def wave(u, old):  # type: ignore[no-untyped-def]
    far = u[-2, 0] + u[2, 0] + u[0, -2] + u[0, 2]
    old[0, 0] = 2.0 * u[0, 0] - old[0, 0] + 0.1 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 3.5 * u[0, 0] - far / 8.0)


def hurry(rank: int) -> None:
    """Let this rank try everything soon, and at other rounds than the others, whatever the clock says."""
    tuner.AFTER, tuner.TURN, tuner.HOPELESS = 0.0, 20.0 * rank, np.inf
    Tuner._elapsed = lambda self: float(self.rounds[0])  # type: ignore[method-assign]
    tuner.PATIENCE = tuner.TRYING = 0.0
    choices.default_cache = lambda: None  # type: ignore[assignment]
    time_blocks.LEAST_REPEATED = 0  # type: ignore[misc]
    time_blocks.best_bands = lambda *_, **__: (3 + rank, 2, 4)  # type: ignore[assignment]
    use = Tuner._use

    def noted(self: Tuner, setting: tuner._Setting) -> None:
        USED.add(setting.cut)
        use(self, setting)

    Tuner._use = noted  # type: ignore[method-assign]


def result(comm: Comm, tune: bool) -> bytes:
    grid = mg.Grid((48, 37), periodic=(True, False))
    u = mg.Field("u", grid, slots=2, boundary={"x": mg.reflect()})
    step = Program("step")
    step.apply(wave, u, u.previous)
    step.rotate(u)
    with mg.Engine(slabs(grid.box, comm.size), grid=grid, comm=comm, tune=tune) as engine:
        for slot in (u, u.previous):
            engine.set(slot, np.random.default_rng(1).random(grid.shape))
        for times in (5, 600, 3, 22):
            engine.run(step, times=times)
        left = [engine.gather(u), engine.gather(u.previous)]
    return np.array(left).tobytes() if comm.rank == 0 else b""


def main() -> None:
    comm = MPIComm(started_mpi().COMM_WORLD)
    expected = result(SerialComm(), tune=False) if comm.rank == 0 else b""
    hurry(comm.rank)
    found = result(comm, tune=True)
    assert found == expected, "other bits"
    assert {-1, 0} <= USED, USED
    print("ok")


if __name__ == "__main__":
    main()
