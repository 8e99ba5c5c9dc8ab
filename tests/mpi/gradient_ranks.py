"""Run on MPI ranks by test_gradient_mpi.py: the gradient of a shot in the named medium has the bits of one process."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from minga.engine.comm import MPIComm
from minga.models.waves import shot_gradient, shot_traces

sys.path.insert(0, str(Path(__file__).parents[1]))
import elastic_physics
from wave_physics import ENTRIES, PHYSICS, SHOT, prepared


def problem(medium: str) -> tuple[Any, Any, Any]:
    """Return the waves, the parameters of the gradient and the shot."""
    if medium == "elastic":
        return elastic_physics.waves_in("matched", elastic_physics.SEA), elastic_physics.WRT, elastic_physics.SHOT
    return prepared(medium, ENTRIES), PHYSICS[medium][0], SHOT


def main() -> None:
    comm = MPIComm(MPI.COMM_WORLD)
    waves, wrt, bare = problem(sys.argv[1])
    alone = shot_traces(waves, bare, 16)
    shot = replace(bare, data=0.5 * alone)
    number, expected = shot_gradient(waves, shot, wrt)
    assert expected is not None
    assert np.array_equal(shot_traces(waves, bare, 16, comm=comm, threads=2), alone)
    for memory in (1 << 30, 20_000):
        again, found = shot_gradient(waves, shot, wrt, comm=comm, threads=2, memory=memory)
        assert again == number
        assert (found is None) == (comm.rank > 0)
        if found is not None:
            assert all(np.array_equal(found[name], values) for name, values in expected.items())
    print("ok", flush=True)


main()
